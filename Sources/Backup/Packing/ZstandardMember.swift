import Platform

/// A member of a Zstandard file (RFC 8878): a skippable frame with the block's number, and the block's frame.
///
/// The former has the letters `LZ` and a ``GzipMember``'s extra field. After all members, the seek table of the
/// seekable format lists both frames of each.
enum ZstandardMember {
  /// The skippable frame's magic, little-endian.
  static let magic: [UInt8] = [0x5c, 0x2a, 0x4d, 0x18]

  /// The size of the skippable frame.
  static let headerLength = 22

  /// - Throws: `backup-packing` if memory is short.
  static func pack(
    _ block: [UInt8], number: Int, with packer: any ZstandardPacker
  ) throws -> [UInt8] {
    let frame = packer.pack(block)
    guard !frame.isEmpty else { throw BackupError.memory() }
    var header = magic + [14, 0, 0, 0, UInt8(ascii: "L"), UInt8(ascii: "Z")] + [UInt8](repeating: 0, count: 12)
    GzipMember.put(UInt32(truncatingIfNeeded: number), at: 10, in: &header)
    GzipMember.put(UInt32(truncatingIfNeeded: block.count), at: 14, in: &header)
    GzipMember.put(UInt32(truncatingIfNeeded: header.count + frame.count), at: 18, in: &header)
    return header + frame
  }

  static func header(_ bytes: ArraySlice<UInt8>) -> GzipMember.Header? {
    let bytes = Array(bytes.prefix(headerLength))
    guard bytes.count == headerLength, bytes[0..<10] == magic + [14, 0, 0, 0, UInt8(ascii: "L"), UInt8(ascii: "Z")]
    else { return nil }
    func word(_ offset: Int) -> UInt32 {
      (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32(8 * $1) }
    }
    let header = GzipMember.Header(
      number: word(10), contentLength: Int(word(14)), length: Int(word(18)))
    guard header.contentLength <= BackupManifest.blockLength, header.length > headerLength,
      header.length <= BackupManifest.longestMember
    else { return nil }
    return header
  }

  /// Unpacks a member, unless its frame is damaged or of another size.
  ///
  /// Damage to the skippable frame does not matter.
  static func unpack(_ member: [UInt8], count: Int) -> [UInt8]? {
    guard member.count > headerLength else { return nil }
    return ZstandardSupport.current?.unpack(member[headerLength...], count: count)
  }

  // MARK: The seek table

  /// The seek table's magic, little-endian.
  static let tableMagic: [UInt8] = [0x5e, 0x2a, 0x4d, 0x18]
  private static let seekableMagic: [UInt8] = [0xb1, 0xea, 0x92, 0x8f]

  /// A frame header, two numbers per frame, a footer.
  static func seekTableLength(members count: Int, empty: Int) -> Int64 { 8 + 16 * Int64(count) + 8 * Int64(empty) + 9 }

  /// Makes the seek table (Zstandard Seekable Format 0.1.0), without checksums, as the frames have them.
  ///
  /// - Parameters:
  ///   - members: the size of each member.
  ///   - content: their unpacked size.
  ///   - empty: the size of each following empty frame.
  static func seekTable(members: [Int], content: Int64, empty: [Int]) -> [UInt8] {
    let length = Int(seekTableLength(members: members.count, empty: empty.count))
    var table = [UInt8](repeating: 0, count: length)
    table.replaceSubrange(0..<4, with: tableMagic)
    GzipMember.put(UInt32(truncatingIfNeeded: length - 8), at: 4, in: &table)
    var offset = 8
    func add(_ packed: Int, _ unpacked: Int) {
      GzipMember.put(UInt32(truncatingIfNeeded: packed), at: offset, in: &table)
      GzipMember.put(UInt32(truncatingIfNeeded: unpacked), at: offset + 4, in: &table)
      offset += 8
    }
    for (index, member) in members.enumerated() {
      let blockLength = Int64(BackupManifest.blockLength)
      let unpacked = max(0, min(blockLength, content - Int64(index) * blockLength))
      add(headerLength, 0)
      add(member - headerLength, Int(unpacked))
    }
    for frame in empty { add(frame, 0) }
    GzipMember.put(UInt32(truncatingIfNeeded: 2 * members.count + empty.count), at: offset, in: &table)
    table.replaceSubrange((offset + 5)..<(offset + 9), with: seekableMagic)
    return table
  }
}

/// Zstandard for single frames, injected by the command `lazaret`, as the library has none.
package protocol ZstandardFrames: Sendable {
  /// Returns a packer for one thread, unless memory is short.
  func packer(level: Int) -> (any ZstandardPacker)?

  /// Unpacks exactly one frame; nil if damaged or of another size.
  func unpack(_ frame: ArraySlice<UInt8>, count: Int) -> [UInt8]?

  func reader() -> (any ZstandardReader)?
}

/// Packs frames, on one thread at a time.
package protocol ZstandardPacker: AnyObject {
  /// Returns a frame with content size and checksum; empty on failure.
  func pack(_ bytes: [UInt8]) -> [UInt8]
}

/// Unpacks any number of frames, on one thread at a time.
package protocol ZstandardReader: AnyObject {
  /// Unpacks a piece; returns false if it is damaged.
  func read(_ bytes: [UInt8], visit: (ArraySlice<UInt8>) throws -> Void) throws -> Bool

  var isWhole: Bool { get }
}

/// The Zstandard of this process.
package enum ZstandardSupport {
  private static let given = Mutex<(any ZstandardFrames)?>(nil)

  static var current: (any ZstandardFrames)? { given.withLock { $0 } }

  package static func give(_ frames: any ZstandardFrames) { given.withLock { $0 = frames } }
}
