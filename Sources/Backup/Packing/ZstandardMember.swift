import Platform

/// One member of a file that is packed with Zstandard (RFC 8878): a skippable frame that says which block it is, and the
/// frame of the block.
///
/// The skippable frame has the letters `LZ` and what the extra field of a ``GzipMember`` has. Behind the last member comes the
/// seek table of Zstandard's seekable format, which knows both frames of each member.
enum ZstandardMember {
  /// The magic of the skippable frame before each block, little-endian.
  static let magic: [UInt8] = [0x5c, 0x2a, 0x4d, 0x18]

  /// The bytes of the skippable frame.
  static let headerLength = 22

  /// Packs a block.
  ///
  /// - Throws: `backup-packing` where memory is short.
  static func pack(
    _ block: [UInt8], number: Int, with packer: any ZstandardPacker
  ) throws(BackupError) -> [UInt8] {
    let frame = packer.pack(block)
    guard !frame.isEmpty else { throw .memory() }
    var header = magic + [14, 0, 0, 0, UInt8(ascii: "L"), UInt8(ascii: "Z")] + [UInt8](repeating: 0, count: 12)
    GzipMember.put(UInt32(truncatingIfNeeded: number), at: 10, in: &header)
    GzipMember.put(UInt32(truncatingIfNeeded: block.count), at: 14, in: &header)
    GzipMember.put(UInt32(truncatingIfNeeded: header.count + frame.count), at: 18, in: &header)
    return header + frame
  }

  /// What a member's header says of it; nil where it is none of ours.
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

  /// Unpacks a member; nil where its frame is damaged, or does not unpack to so many bytes.
  ///
  /// What the skippable frame says is not asked: damage to it costs nothing.
  static func unpack(_ member: [UInt8], count: Int) -> [UInt8]? {
    guard member.count > headerLength else { return nil }
    return ZstandardSupport.current?.unpack(member[headerLength...], count: count)
  }

  // MARK: The seek table

  /// The magic of the skippable frame that is the seek table, little-endian.
  static let tableMagic: [UInt8] = [0x5e, 0x2a, 0x4d, 0x18]
  private static let seekableMagic: [UInt8] = [0xb1, 0xea, 0x92, 0x8f]

  /// The bytes of the seek table of so many members and empty frames behind them: a frame's header, two numbers for each
  /// frame, a footer.
  static func seekTableLength(members count: Int, empty: Int) -> Int64 { 8 + 16 * Int64(count) + 8 * Int64(empty) + 9 }

  /// The seek table (Zstandard Seekable Format 0.1.0), without checksums, which the frames themselves have.
  ///
  /// - Parameters:
  ///   - members: the bytes of each member.
  ///   - content: the bytes that all of them unpack to.
  ///   - empty: the bytes of each frame behind them that unpacks to nothing.
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

/// Zstandard, as far as backups need it: one frame at a time.
///
/// The library has none of it. What does, such as the command `lazaret`, gives it once, before anything else is done.
package protocol ZstandardFrames: Sendable {
  /// What packs frames on one thread; nil where memory is short.
  func packer(level: Int) -> (any ZstandardPacker)?

  /// Unpacks one frame; nil where it is damaged, is not exactly one, or does not unpack to so many bytes.
  func unpack(_ frame: ArraySlice<UInt8>, count: Int) -> [UInt8]?

  /// What unpacks a file of any origin, piece by piece; nil where memory is short.
  func reader() -> (any ZstandardReader)?
}

/// Packs frames; used by one thread at a time.
package protocol ZstandardPacker: AnyObject {
  /// A frame with its content's size and checksum; empty where it was not possible.
  func pack(_ bytes: [UInt8]) -> [UInt8]
}

/// Unpacks a file of any number of frames; used by one thread at a time.
package protocol ZstandardReader: AnyObject {
  /// Adds a piece of the file, and hands over what it unpacks to; false where it is damaged.
  func read(_ bytes: [UInt8], visit: (ArraySlice<UInt8>) throws -> Void) throws -> Bool

  /// Whether the last frame is whole.
  var isWhole: Bool { get }
}

/// The Zstandard that this process was given.
package enum ZstandardSupport {
  private static let given = Mutex<(any ZstandardFrames)?>(nil)

  /// What was given; nil where the process has none.
  static var current: (any ZstandardFrames)? { given.withLock { $0 } }

  /// Gives this process its Zstandard.
  package static func give(_ frames: any ZstandardFrames) { given.withLock { $0 = frames } }
}
