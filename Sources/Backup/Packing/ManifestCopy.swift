import Platform

/// The manifest copy after a packed file's blocks: gzip members that unpack to nothing, or skippable Zstandard frames
/// before the seek table.
///
/// Each member's extra field `LM`, or each frame after these letters, has the part's number, from 0, the number of
/// parts and the manifest's size, as little-endian 32-bit numbers, and the part itself: 48 KiB, or the rest. `gunzip`
/// and `zstd -d` ignore the copy.
package enum ManifestCopy {
  /// The manifest bytes per member.
  static let partLength = 48 << 10

  /// Gzip header, extra field head, and three numbers; or the frame's head, the letters, and three numbers.
  static func headerLength(_ packing: BackupCompression) -> Int { packing == .gzip ? 28 : 22 }

  /// An empty DEFLATE block, checksum and length; none for a frame.
  static func trailerLength(_ packing: BackupCompression) -> Int { packing == .gzip ? 10 : 0 }

  /// The searched end of a file: far more than a member.
  private static let window: Int64 = 1 << 20

  /// The offset of the letters in a member.
  static func lettersOffset(_ packing: BackupCompression) -> Int { packing == .gzip ? 12 : 8 }

  /// The number of possible starts to try.
  private static let attempts = 8

  package static func length(of manifest: Int, packedBy packing: BackupCompression = .gzip) -> Int {
    manifest + parts(of: manifest) * (headerLength(packing) + trailerLength(packing))
  }

  static func parts(of manifest: Int) -> Int { max(1, (manifest + partLength - 1) / partLength) }

  static func memberLengths(of manifest: Int, packedBy packing: BackupCompression) -> [Int] {
    (0..<parts(of: manifest)).map { number in
      headerLength(packing) + min(partLength, manifest - number * partLength) + trailerLength(packing)
    }
  }

  package static func members(of manifest: [UInt8], packedBy packing: BackupCompression = .gzip) -> [UInt8] {
    let count = parts(of: manifest.count)
    var result: [UInt8] = []
    result.reserveCapacity(length(of: manifest.count, packedBy: packing))
    for number in 0..<count {
      let part = manifest[(number * partLength)..<min(manifest.count, (number + 1) * partLength)]
      var header = [UInt8](repeating: 0, count: headerLength(packing))
      switch packing {
      case .gzip:
        // Magic, DEFLATE, flag for an extra field, no time, no flags, no system.
        header.replaceSubrange(0..<10, with: [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255])
        put(UInt16(part.count + 16), at: 10, in: &header)
        header.replaceSubrange(12..<14, with: Array("LM".utf8))
        put(UInt16(part.count + 12), at: 14, in: &header)
      case .zstd:
        header.replaceSubrange(0..<4, with: ZstandardMember.magic)
        GzipMember.put(UInt32(part.count + 14), at: 4, in: &header)
        header.replaceSubrange(8..<10, with: Array("LM".utf8))
      }
      let numbers = header.count - 12
      GzipMember.put(UInt32(number), at: numbers, in: &header)
      GzipMember.put(UInt32(count), at: numbers + 4, in: &header)
      GzipMember.put(UInt32(truncatingIfNeeded: manifest.count), at: numbers + 8, in: &header)
      result += header + part
      // A final, empty block of the fixed codes.
      result += [3, 0, 0, 0, 0, 0, 0, 0, 0, 0].prefix(trailerLength(packing))
    }
    return result
  }

  private static func put(_ value: UInt16, at offset: Int, in bytes: inout [UInt8]) {
    bytes[offset] = UInt8(truncatingIfNeeded: value)
    bytes[offset + 1] = UInt8(truncatingIfNeeded: value >> 8)
  }

  /// Reads the copy at the end of a file, if its digest is correct.
  ///
  /// - Parameter size: the file's size.
  package static func read(
    _ name: String, packedBy packing: BackupCompression = .gzip, size: Int64, in place: any BackupPlace,
    _ section: BackupSection
  ) throws -> [UInt8]? {
    let start = max(0, size - window)
    let tail = try place.read(name, in: section, at: start, length: Int(min(size, window)))
    var tried: Set<Int64> = []
    for offset in packing.memberStarts(in: tail, before: tail.count).reversed() {
      guard let part = Part(tail[offset...], packing) else { continue }
      let full = Int64(partLength + headerLength(packing) + trailerLength(packing))
      let first = start + Int64(offset) - Int64(part.number) * full
      let length = length(of: part.manifestLength, packedBy: packing)
      guard first >= 0, first + Int64(length) <= size, tried.insert(first).inserted else { continue }
      let members = try place.read(name, in: section, at: first, length: length)
      let manifest = joined(members, count: part.manifestLength, packing)
      if DigestedText.verdict(manifest) == .right { return manifest }
      if tried.count == attempts { break }
    }
    return nil
  }

  private static func joined(_ members: [UInt8], count: Int, _ packing: BackupCompression) -> [UInt8] {
    var manifest: [UInt8] = []
    manifest.reserveCapacity(count)
    var offset = headerLength(packing)
    while manifest.count < count, offset < members.count {
      let part = min(partLength, count - manifest.count, members.count - offset)
      manifest += members[offset..<(offset + part)]
      offset += part + trailerLength(packing) + headerLength(packing)
    }
    return manifest
  }

  /// A member's header; nil if invalid.
  struct Part {
    let number: Int
    let manifestLength: Int

    init?(_ bytes: ArraySlice<UInt8>, _ packing: BackupCompression = .gzip) {
      let length = ManifestCopy.headerLength(packing)
      let magic = packing == .gzip ? [0x1f, 0x8b, 8, 4] : ZstandardMember.magic
      guard bytes.count >= length, bytes.starts(with: magic),
        bytes.dropFirst(ManifestCopy.lettersOffset(packing)).starts(with: "LM".utf8)
      else { return nil }
      let bytes = Array(bytes.prefix(length))
      func word(_ offset: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) } }
      (number, manifestLength) = (word(length - 12), word(length - 4))
      guard manifestLength > 0, manifestLength <= BackupManifest.limit, number < word(length - 8),
        word(length - 8) == ManifestCopy.parts(of: manifestLength)
      else { return nil }
    }
  }
}
