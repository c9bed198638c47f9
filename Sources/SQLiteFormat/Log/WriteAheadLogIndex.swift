import Platform

/// The beginning of a write-ahead log's index, the `-shm` file, as far as a reader needs it
/// (https://sqlite.org/walformat.html, "The WAL-Index File Format").
///
/// Its numbers are in the byte order of the machine, which is little-endian on every one this project runs on; the salts
/// are the bytes of the log's header.
package struct WriteAheadLogIndex: Sendable, Hashable {
  /// The number of bytes of both copies of the header, and of what checkpoints and readers note.
  package static let length = 136

  /// The last committed frame; frames behind it are not part of the database.
  package var lastFrame: UInt32

  /// The frames that had been copied into the database file.
  package var copiedCount: UInt32

  /// The size of the database in pages.
  package var pageCount: UInt32

  /// The page size in bytes.
  package var pageSize: Int

  /// The salts of the log, as they stand in its header.
  package var salts: [UInt8]

  /// The frame up to which each mark's readers need the log, marks 0 to 4; `UInt32.max` for one that is not used.
  package var readMarks: [UInt32]

  /// Reads the index; nil where it is being written to, or is none.
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
    // An index that was made anew, before anything is in the log, says no page size yet.
    guard DatabaseHeader.isPageSize(pageSize) || lastFrame == 0 && size == 0 else { return nil }
    copiedCount = word(96)
    pageCount = word(20)
    salts = Array(bytes[32..<40])
    readMarks = (0..<5).map { word(100 + 4 * $0) }
  }

  /// How many committed frames are gone from a log, whose bytes up to the last commit were not all copied into the file.
  ///
  /// - Parameter log: nil where there is none.
  package func missingFrames(of log: WriteAheadLog?) -> Int {
    guard lastFrame > copiedCount else { return 0 }
    // A log of another time says nothing of this index.
    if let log, log.source.count > 0 { return log.header?.salts == salts ? max(0, Int(lastFrame) - log.frameCount) : 0 }
    return Int(lastFrame - copiedCount)
  }
}

/// The cumulative checksum of a write-ahead log: two 32-bit sums over pairs of words (SQLite file format, "Checksum
/// Algorithm").
package struct LogChecksum: Sendable, Equatable {
  /// The first of the two sums.
  package var first: UInt32 = 0

  /// The second of the two sums.
  package var second: UInt32 = 0

  /// A checksum of nothing yet.
  package init() {}

  /// Adds bytes, whose number is a multiple of eight, as words of the given byte order.
  package mutating func add(_ bytes: Span<UInt8>, bigEndian: Bool) {
    var first = first
    var second = second
    var index = 0
    let end = bytes.count & ~7
    // Both loops read little-endian words, which is what most machines write; the other order swaps them.
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
