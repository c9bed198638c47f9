import Platform

/// A WAL index, the `-shm` file (https://sqlite.org/walformat.html, "The WAL-Index File Format").
///
/// Numbers have the machine's byte order, little-endian on all supported ones; salts keep the header's bytes.
package struct WriteAheadLogIndex: Sendable, Hashable {
  /// Both header copies and the checkpoint information.
  package static let length = 136

  /// The last committed frame.
  package var lastFrame: UInt32

  /// The frames already copied into the database file.
  var copiedCount: UInt32

  package var pageCount: UInt32

  package var pageSize: Int

  /// The log's salts, as in its header.
  package var salts: [UInt8]

  /// The last frames that readers need; `UInt32.max` if unused.
  package var readMarks: [UInt32]

  /// Reads an index; nil if it is invalid or being written.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count >= Self.length, bytes[0..<48] == bytes[48..<96] else { return nil }
    func word(_ offset: Int) -> UInt32 {
      (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32(8 * $1) }
    }
    var checksum = LogChecksum()
    checksum.add(bytes.span.extracting(0..<40), bigEndian: false)
    guard word(0) == 3_007_000, bytes[12] != 0, checksum.first == word(40), checksum.second == word(44) else {
      return nil
    }
    let size = Int(bytes[14]) | Int(bytes[15]) << 8
    pageSize = size & 0xfe00 | (size & 1) << 16
    lastFrame = word(16)
    // A new index without frames has no page size yet.
    guard DatabaseHeader.isPageSize(pageSize) || lastFrame == 0 && size == 0 else { return nil }
    copiedCount = word(96)
    pageCount = word(20)
    salts = Array(bytes[32..<40])
    readMarks = (0..<5).map { word(100 + 4 * $0) }
  }

  /// Returns the committed frames missing from a log not fully checkpointed.
  package func missingFrames(of log: WriteAheadLog?) -> Int {
    guard lastFrame > copiedCount else { return 0 }
    // A log with other salts does not belong to this index.
    if let log, log.source.count > 0 { return log.header?.salts == salts ? max(0, Int(lastFrame) - log.frameCount) : 0 }
    return Int(lastFrame - copiedCount)
  }
}

/// A WAL checksum: two 32-bit sums over pairs of words (SQLite file format, "Checksum Algorithm").
package struct LogChecksum: Sendable, Equatable {
  package var first: UInt32 = 0

  package var second: UInt32 = 0

  package init() {}

  /// Adds a multiple of eight bytes.
  package mutating func add(_ bytes: Span<UInt8>, bigEndian: Bool) {
    var first = first
    var second = second
    var index = 0
    let end = bytes.count & ~7
    // Reads little-endian words, the usual order, and swaps them otherwise.
    while index < end {
      var low = UInt32(bytes[index]) | UInt32(bytes[index &+ 1]) << 8
      low |= UInt32(bytes[index &+ 2]) << 16 | UInt32(bytes[index &+ 3]) << 24
      var high = UInt32(bytes[index &+ 4]) | UInt32(bytes[index &+ 5]) << 8
      high |= UInt32(bytes[index &+ 6]) << 16 | UInt32(bytes[index &+ 7]) << 24
      if bigEndian {
        low = low.byteSwapped
        high = high.byteSwapped
      }
      first &+= low &+ second
      second &+= high &+ first
      index &+= 8
    }
    self.first = first
    self.second = second
  }
}
