import StoreFiles

/// The copy of a manifest at the end of a packed file: gzip members that unpack to nothing, behind those of the blocks.
///
/// Each member's header has an extra field `LM`: the number of the part, from 0, the number of parts and the bytes of the whole
/// manifest, each a little-endian 32-bit number, and then the part itself, 48 KiB or what is left. What `gunzip` makes of
/// the file is the same with the copy and without it.
package enum ManifestCopy {
  /// The bytes of the manifest in each member but the last.
  static let partLength = 48 << 10

  /// The bytes of a member before its part: a gzip header, the head of the extra field, and three numbers.
  static let headerLength = 28

  /// The bytes of a member behind its part: a block of DEFLATE that is empty, its checksum and its length.
  static let trailerLength = 10

  /// How far from the end of a file a copy is looked for, in bytes: as far as one member reaches, and much more.
  private static let window: Int64 = 1 << 20

  /// How many places are tried that look like the beginning of a part.
  private static let attempts = 8

  /// The bytes that a copy takes.
  package static func length(of manifest: Int) -> Int {
    manifest + parts(of: manifest) * (headerLength + trailerLength)
  }

  private static func parts(of manifest: Int) -> Int { max(1, (manifest + partLength - 1) / partLength) }

  /// The members that hold a manifest.
  package static func members(of manifest: [UInt8]) -> [UInt8] {
    let count = parts(of: manifest.count)
    var result: [UInt8] = []
    result.reserveCapacity(length(of: manifest.count))
    for number in 0..<count {
      let part = manifest[(number * partLength)..<min(manifest.count, (number + 1) * partLength)]
      var header = [UInt8](repeating: 0, count: headerLength)
      // Magic, DEFLATE, an extra field follows, no time, no flags of the packer, no system.
      header.replaceSubrange(0..<10, with: [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255])
      put(UInt16(part.count + 16), at: 10, in: &header)
      header.replaceSubrange(12..<14, with: Array("LM".utf8))
      put(UInt16(part.count + 12), at: 14, in: &header)
      GzipMember.put(UInt32(number), at: 16, in: &header)
      GzipMember.put(UInt32(count), at: 20, in: &header)
      GzipMember.put(UInt32(truncatingIfNeeded: manifest.count), at: 24, in: &header)
      result += header + part
      // One block that is the last, of the fixed codes, with nothing in it.
      result += [3, 0, 0, 0, 0, 0, 0, 0, 0, 0]
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
    _ name: String, size: Int64, in place: any BackupPlace, _ section: BackupSection
  ) throws(BackupError) -> [UInt8]? {
    let start = max(0, size - window)
    let tail = try place.read(name, in: section, at: start, length: Int(min(size, window)))
    var tried: Set<Int64> = []
    for offset in starts(in: tail).reversed() {
      guard let part = Part(tail[offset...]) else { continue }
      let full = Int64(partLength + headerLength + trailerLength)
      let first = start + Int64(offset) - Int64(part.number) * full
      let length = length(of: part.manifestLength)
      guard first >= 0, first + Int64(length) <= size, tried.insert(first).inserted else { continue }
      let members = try place.read(name, in: section, at: first, length: length)
      let manifest = joined(members, count: part.manifestLength)
      if DigestedText.verdict(manifest) == .right { return manifest }
      if tried.count == attempts { break }
    }
    return nil
  }

  /// The parts of members that follow each other, as far as they are there.
  private static func joined(_ members: [UInt8], count: Int) -> [UInt8] {
    var manifest: [UInt8] = []
    manifest.reserveCapacity(count)
    var offset = headerLength
    while manifest.count < count, offset < members.count {
      let part = min(partLength, count - manifest.count, members.count - offset)
      manifest += members[offset..<(offset + part)]
      offset += part + trailerLength + headerLength
    }
    return manifest
  }

  /// Where gzip members with an extra field of ours may begin.
  private static func starts(in bytes: [UInt8]) -> [Int] {
    let span = bytes.span
    var starts: [Int] = []
    var index = 0
    while index + headerLength <= span.count {
      if span[index] == 0x1f, span[index + 1] == 0x8b, span[index + 12] == UInt8(ascii: "L"),
        span[index + 13] == UInt8(ascii: "M")
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

    init?(_ bytes: ArraySlice<UInt8>) {
      let bytes = Array(bytes.prefix(ManifestCopy.headerLength))
      guard bytes.count == ManifestCopy.headerLength, bytes[0..<4].elementsEqual([0x1f, 0x8b, 8, 4]),
        bytes[12..<14].elementsEqual("LM".utf8)
      else { return nil }
      func word(_ offset: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) } }
      (number, manifestLength) = (word(16), word(24))
      guard manifestLength > 0, manifestLength <= BackupManifest.limit, number < word(20),
        word(20) == ManifestCopy.parts(of: manifestLength)
      else { return nil }
    }
  }
}
