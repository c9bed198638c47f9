import Platform

/// The copy of a manifest at the end of a packed file: gzip members that unpack to nothing, behind those of the blocks; or
/// skippable frames of Zstandard, with the seek table behind them.
///
/// Each member's header has an extra field `LM`, or each frame begins with these letters: the number of the part, from 0, the
/// number of parts and the bytes of the whole manifest, each a little-endian 32-bit number, and then the part itself, 48 KiB
/// or what is left. What `gunzip` or `zstd -d` makes of the file is the same with the copy and without it.
package enum ManifestCopy {
  /// The bytes of the manifest in each member but the last.
  static let partLength = 48 << 10

  /// The bytes of a member before its part: a gzip header, the head of the extra field, and three numbers; or the head of a
  /// skippable frame, the letters, and three numbers.
  static func headerLength(_ packing: BackupCompression) -> Int { packing == .gzip ? 28 : 22 }

  /// The bytes of a member behind its part: a block of DEFLATE that is empty, its checksum and its length; nothing of a frame.
  static func trailerLength(_ packing: BackupCompression) -> Int { packing == .gzip ? 10 : 0 }

  /// How far from the end of a file a copy is looked for, in bytes: as far as one member reaches, and much more.
  private static let window: Int64 = 1 << 20

  /// Where in a member the letters stand.
  static func lettersOffset(_ packing: BackupCompression) -> Int { packing == .gzip ? 12 : 8 }

  /// How many places are tried that look like the beginning of a part.
  private static let attempts = 8

  /// The bytes that a copy takes.
  package static func length(of manifest: Int, packedBy packing: BackupCompression = .gzip) -> Int {
    manifest + parts(of: manifest) * (headerLength(packing) + trailerLength(packing))
  }

  /// How many members a manifest takes.
  static func parts(of manifest: Int) -> Int { max(1, (manifest + partLength - 1) / partLength) }

  /// The bytes of each member.
  static func memberLengths(of manifest: Int, packedBy packing: BackupCompression) -> [Int] {
    (0..<parts(of: manifest)).map { number in
      headerLength(packing) + min(partLength, manifest - number * partLength) + trailerLength(packing)
    }
  }

  /// The members that hold a manifest.
  package static func members(of manifest: [UInt8], packedBy packing: BackupCompression = .gzip) -> [UInt8] {
    let count = parts(of: manifest.count)
    var result: [UInt8] = []
    result.reserveCapacity(length(of: manifest.count, packedBy: packing))
    for number in 0..<count {
      let part = manifest[(number * partLength)..<min(manifest.count, (number + 1) * partLength)]
      var header = [UInt8](repeating: 0, count: headerLength(packing))
      switch packing {
      case .gzip:
        // Magic, DEFLATE, an extra field follows, no time, no flags of the packer, no system.
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
      // One block that is the last, of the fixed codes, with nothing in it.
      result += [3, 0, 0, 0, 0, 0, 0, 0, 0, 0].prefix(trailerLength(packing))
    }
    return result
  }

  private static func put(_ value: UInt16, at offset: Int, in bytes: inout [UInt8]) {
    bytes[offset] = UInt8(truncatingIfNeeded: value)
    bytes[offset + 1] = UInt8(truncatingIfNeeded: value >> 8)
  }

  /// Reads the copy at the end of a file; nil where there is none whose own digest is right.
  ///
  /// - Parameter size: the bytes of the file.
  /// - Throws: what the place says where it cannot be read.
  package static func read(
    _ name: String, packedBy packing: BackupCompression = .gzip, size: Int64, in place: any BackupPlace,
    _ section: BackupSection
  ) throws(BackupError) -> [UInt8]? {
    let start = max(0, size - window)
    let tail = try place.read(name, in: section, at: start, length: Int(min(size, window)))
    var tried: Set<Int64> = []
    for offset in starts(in: tail, packing).reversed() {
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

  /// The parts of members that follow each other, as far as they are there.
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

  private static func starts(in bytes: [UInt8], _ packing: BackupCompression) -> [Int] {
    let length = headerLength(packing)
    let magic: [UInt8] = packing == .gzip ? [0x1f, 0x8b] : Array(ZstandardMember.magic[..<2])
    let (first, second) = (magic[0], magic[1])
    let place = lettersOffset(packing)
    let span = bytes.span
    var starts: [Int] = []
    var index = 0
    while index + length <= span.count {
      if span[index] == first, span[index + 1] == second, span[index + place] == UInt8(ascii: "L"),
        span[index + place + 1] == UInt8(ascii: "M")
      {
        starts.append(index)
      }
      index += 1
    }
    return starts
  }

  /// What a member's header says of its part; nil where it cannot be.
  struct Part {
    let number: Int
    let manifestLength: Int

    init?(_ bytes: ArraySlice<UInt8>, _ packing: BackupCompression = .gzip) {
      let length = ManifestCopy.headerLength(packing)
      let bytes = Array(bytes.prefix(length))
      let magic = packing == .gzip ? [0x1f, 0x8b, 8, 4] : ZstandardMember.magic
      let letters = ManifestCopy.lettersOffset(packing)
      guard bytes.count == length, bytes[0..<4].elementsEqual(magic),
        bytes[letters..<(letters + 2)].elementsEqual("LM".utf8)
      else { return nil }
      func word(_ offset: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) } }
      (number, manifestLength) = (word(length - 12), word(length - 4))
      guard manifestLength > 0, manifestLength <= BackupManifest.limit, number < word(length - 8),
        word(length - 8) == ManifestCopy.parts(of: manifestLength)
      else { return nil }
    }
  }
}
