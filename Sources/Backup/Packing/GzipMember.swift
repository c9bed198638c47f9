import Platform

/// A gzip member (RFC 1952): a block that unpacks on its own.
///
/// Its header has an extra field `LZ` of twelve bytes: the block's number, counted from 0, its unpacked size, and the
/// size of the whole member, each a little-endian 32-bit number. Other programs skip it; it locates members if the
/// manifest is lost.
enum GzipMember {
  static let headerLength = 28

  static let trailerLength = 8

  /// - Throws: `backup-packing` if memory is short.
  static func pack(_ block: [UInt8], number: Int, with deflate: Deflate) throws -> [UInt8] {
    var member = deflate.pack(block, headerLength: headerLength, trailerLength: trailerLength)
    guard !member.isEmpty else {
      throw BackupError(
        .packing, operation: "pack the backup", detail: "a block could not be packed",
        hint: "Free some memory and run the same command again; nothing was lost.")
    }
    // Magic, DEFLATE, flag for an extra field, no time, no flags, no system; the field's length and name.
    let start: [UInt8] = [
      0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, 16, 0, UInt8(ascii: "L"), UInt8(ascii: "Z"), 12, 0,
    ]
    member.replaceSubrange(0..<16, with: start)
    put(UInt32(truncatingIfNeeded: number), at: 16, in: &member)
    put(UInt32(truncatingIfNeeded: block.count), at: 20, in: &member)
    put(UInt32(truncatingIfNeeded: member.count), at: 24, in: &member)
    put(Deflate.crc32(block[...]), at: member.count - 8, in: &member)
    put(UInt32(truncatingIfNeeded: block.count), at: member.count - 4, in: &member)
    return member
  }

  static func put(_ value: UInt32, at offset: Int, in bytes: inout [UInt8]) {
    for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: value >> UInt32(8 * index)) }
  }

  /// The facts in a member's header; nil for another format.
  struct Header {
    var number: UInt32
    var contentLength: Int
    var length: Int

    init(number: UInt32, contentLength: Int, length: Int) {
      self.number = number
      self.contentLength = contentLength
      self.length = length
    }

    init?(_ bytes: ArraySlice<UInt8>) {
      let bytes = Array(bytes.prefix(GzipMember.headerLength))
      guard bytes.count == GzipMember.headerLength, bytes[0..<4] == [0x1f, 0x8b, 8, 4],
        bytes[10..<16] == [16, 0, UInt8(ascii: "L"), UInt8(ascii: "Z"), 12, 0]
      else { return nil }
      func word(_ offset: Int) -> UInt32 {
        (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32(8 * $1) }
      }
      number = word(16)
      contentLength = Int(word(20))
      length = Int(word(24))
      guard contentLength <= BackupManifest.blockLength, length > GzipMember.headerLength + GzipMember.trailerLength,
        length <= BackupManifest.longestMember
      else { return nil }
    }
  }
}
