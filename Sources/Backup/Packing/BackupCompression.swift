import Platform

/// The compression of a backup's blocks.
package enum BackupCompression: String, Sendable, Hashable, Codable, CaseIterable {
  /// The default (RFC 1952): a member for each block, readable by any gunzip.
  case gzip

  /// The seekable format (RFC 8878): a frame for each block, readable by any zstd.
  ///
  /// Its libzstd is part of the command `lazaret`, not of the library.
  case zstd

  var usualLevel: Int { self == .gzip ? 6 : 3 }

  var levelWords: String { self == .gzip ? "1, 6 or 9" : "1 to 19" }

  func has(level: Int) -> Bool { self == .gzip ? [1, 6, 9].contains(level) : (1...19).contains(level) }

  var isAvailable: Bool { self == .gzip || ZstandardSupport.current != nil }

  var fileEnding: String { self == .gzip ? ".gz" : ".zst" }

  // MARK: Members

  /// Returns possible starts of members, by two bytes.
  func memberStarts(in bytes: [UInt8], before end: Int) -> [Int] {
    let magic = self == .gzip ? GzipMember.start : ZstandardMember.magic
    let (first, second) = (magic[0], magic[1])
    let span = bytes.span
    var starts: [Int] = []
    var index = 0
    while index < min(end, span.count - 1) {
      if span[index] == first, span[index + 1] == second { starts.append(index) }
      index += 1
    }
    return starts
  }

  /// The size of a header with the block's number.
  var memberHeaderLength: Int { self == .gzip ? GzipMember.headerLength : ZstandardMember.headerLength }

  /// A lower bound.
  var leastMemberLength: Int { memberHeaderLength + (self == .gzip ? GzipMember.trailerLength : 8) }

  /// Reads the header of a member; nil for another format.
  func memberHeader(_ bytes: ArraySlice<UInt8>) -> MemberHeader? {
    let bytes = Array(bytes.prefix(memberHeaderLength))
    guard bytes.count == memberHeaderLength else { return nil }
    let (isMember, rest) =
      switch self {
      case .gzip:
        (bytes[0..<4] == GzipMember.start[0..<4] && bytes[10...15] == GzipMember.start[10...], GzipMember.trailerLength)
      case .zstd: (bytes.starts(with: ZstandardMember.start), 0)
      }
    func word(_ offset: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) } }
    let numbers = memberHeaderLength - 12
    let header = MemberHeader(number: word(numbers), contentLength: word(numbers + 4), length: word(numbers + 8))
    guard isMember, header.contentLength <= BackupManifest.blockLength, header.length > memberHeaderLength + rest,
      header.length <= BackupManifest.longestMember
    else { return nil }
    return header
  }

  /// Makes the tail after the blocks: manifest copy, and data for other programs.
  ///
  /// - Parameters:
  ///   - content: the unpacked size.
  ///   - manifest: the manifest's text, if it has a copy.
  func tail(of file: BackupManifest.File, content: Int64, manifest: [UInt8]?) -> [UInt8] {
    let copy = manifest.map { ManifestCopy.members(of: $0, packedBy: self) } ?? []
    switch self {
    case .gzip: return copy
    case .zstd:
      let parts = manifest.map { ManifestCopy.memberLengths(of: $0.count, packedBy: self) } ?? []
      return copy + ZstandardMember.seekTable(members: file.members ?? [], content: content, empty: parts)
    }
  }

  /// Returns the tail's size.
  ///
  /// - Parameters:
  ///   - members: the number of members.
  ///   - manifest: the length of the manifest's text, if it has a copy.
  func tailLength(members: Int, manifest: Int?) -> Int64 {
    let copy = manifest.map { ManifestCopy.length(of: $0, packedBy: self) } ?? 0
    switch self {
    case .gzip: return Int64(copy)
    case .zstd:
      let parts = manifest.map { ManifestCopy.parts(of: $0) } ?? 0
      return Int64(copy) + ZstandardMember.seekTableLength(members: members, empty: parts)
    }
  }

  /// Unpacks a member, unless damaged or of another size.
  func unpack(member: [UInt8], count: Int) -> [UInt8]? {
    self == .gzip ? Deflate.unpack(member: member, count: count) : ZstandardMember.unpack(member, count: count)
  }

  /// Returns a packer for one thread.
  ///
  /// - Throws: `backup-packing` if memory is short, `compression-unavailable`.
  func packer(level: Int) throws -> MemberPacker {
    switch self {
    case .gzip:
      let packers = Deflate.levels(likeGzip: level).compactMap { Deflate(level: $0) }
      guard !packers.isEmpty else { throw BackupError.memory() }
      return { block, number in
        // The packer depends only on the block's number, so that output is reproducible.
        try GzipMember.pack(block, number: number, with: packers[number % packers.count])
      }
    case .zstd:
      guard let frames = ZstandardSupport.current else { throw BackupError.unavailable(self, "pack the backup") }
      guard let packer = frames.packer(level: level) else { throw BackupError.memory() }
      return { block, number in try ZstandardMember.pack(block, number: number, with: packer) }
    }
  }

  /// - Throws: `compression-unavailable`.
  func requireAvailable(to operation: String, file: String? = nil) throws {
    guard isAvailable else { throw BackupError.unavailable(self, operation, file: file) }
  }
}

/// The facts in a member's header.
struct MemberHeader {
  var number: Int
  var contentLength: Int
  var length: Int
}

/// Packs a block with its number, from 0.
typealias MemberPacker = (_ block: [UInt8], _ number: Int) throws -> [UInt8]

extension BackupError {
  static func unavailable(_ compression: BackupCompression, _ operation: String, file: String? = nil) -> BackupError {
    let subject =
      file.map { "\(printable($0)) is packed with \(compression.rawValue), which" } ?? "\(compression.rawValue)"
    return BackupError(.compressionUnavailable, operation: operation, detail: "\(subject) this build does not have")
  }
}

/// A gzip member (RFC 1952): a block that unpacks on its own.
///
/// Its header has an extra field `LZ` of twelve bytes: the block's number, counted from 0, its unpacked size, and the
/// size of the whole member, each a little-endian 32-bit number. Other programs skip it; it locates members if the
/// manifest is lost.
enum GzipMember {
  static let headerLength = 28

  static let trailerLength = 8

  /// Magic, DEFLATE, flag for an extra field, no time, no flags, no system; the field's length and name.
  static let start: [UInt8] = [
    0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, 16, 0, UInt8(ascii: "L"), UInt8(ascii: "Z"), 12, 0,
  ]

  /// - Throws: `backup-packing` if memory is short.
  static func pack(_ block: [UInt8], number: Int, with deflate: Deflate) throws -> [UInt8] {
    var member = deflate.pack(block, headerLength: headerLength, trailerLength: trailerLength)
    guard !member.isEmpty else {
      throw BackupError(
        .packing, operation: "pack the backup", detail: "a block could not be packed",
        hint: "Free some memory and run the same command again; nothing was lost.")
    }
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
}

/// A member of a Zstandard file (RFC 8878): a skippable frame with the block's number, and the block's frame.
///
/// The former has the letters `LZ` and a ``GzipMember``'s extra field. After all members, the seek table of the
/// seekable format lists both frames of each.
enum ZstandardMember {
  /// The skippable frame's magic, little-endian.
  static let magic: [UInt8] = [0x5c, 0x2a, 0x4d, 0x18]

  /// The magic, the length of the rest, and the letters.
  static let start = magic + [14, 0, 0, 0, UInt8(ascii: "L"), UInt8(ascii: "Z")]

  /// The size of the skippable frame.
  static let headerLength = 22

  /// - Throws: `backup-packing` if memory is short.
  static func pack(_ block: [UInt8], number: Int, with packer: any ZstandardPacker) throws -> [UInt8] {
    let frame = packer.pack(block)
    guard !frame.isEmpty else { throw BackupError.memory() }
    var header = start + [UInt8](repeating: 0, count: 12)
    GzipMember.put(UInt32(truncatingIfNeeded: number), at: 10, in: &header)
    GzipMember.put(UInt32(truncatingIfNeeded: block.count), at: 14, in: &header)
    GzipMember.put(UInt32(truncatingIfNeeded: header.count + frame.count), at: 18, in: &header)
    return header + frame
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
