package import StoreFiles

/// The header of a frame of a write-ahead log.
package struct LogFrame: Sendable, Equatable {
  /// The page whose image follows; 0 in no frame that SQLite wrote.
  package var page: UInt32

  /// The number of pages of the database after it, where it ends a transaction; 0 elsewhere.
  package var pageCount: UInt32

  /// The first salt.
  package var salt1: UInt32

  /// The second salt.
  package var salt2: UInt32

  /// The checksum of the log up to the end of the frame.
  package var checksum: LogChecksum

  /// Reads a header; what the bytes do not have is 0.
  package init(_ bytes: Span<UInt8>) {
    page = bytes.uint32(at: 0) ?? 0
    pageCount = bytes.uint32(at: 4) ?? 0
    salt1 = bytes.uint32(at: 8) ?? 0
    salt2 = bytes.uint32(at: 12) ?? 0
    checksum = LogChecksum()
    checksum.first = bytes.uint32(at: 16) ?? 0
    checksum.second = bytes.uint32(at: 20) ?? 0
  }

  /// The checksum up to the end of a whole frame.
  ///
  /// - Parameter known: that of its predecessor, or of the log's header.
  package static func checksum(_ known: LogChecksum, adding frame: Span<UInt8>, bigEndian: Bool) -> LogChecksum {
    var checksum = known
    checksum.add(frame.extracting(0..<8), bigEndian: bigEndian)
    checksum.add(frame.extracting(WriteAheadLog.frameHeaderLength..<frame.count), bigEndian: bigEndian)
    return checksum
  }
}

/// Finds where frames begin in a log, at whatever offset, by their salts.
package struct LogFrameSearch {
  private let source: any ByteSource
  private let salts: [UInt8]
  private var piece: [UInt8] = []
  private var start: Int64 = 0

  private static let pieceLength = 1 << 18

  /// A search for frames with the eight bytes of two salts.
  package init(_ source: any ByteSource, salts: [UInt8]) {
    self.source = source
    self.salts = salts
  }

  /// The offset of the next header of a frame at or behind an offset; nil where there is none.
  package mutating func next(from offset: Int64) throws(FormatError) -> Int64? {
    var place = max(0, offset) + 8
    while place + 8 <= source.count {
      if place < start || place + 8 > start + Int64(piece.count) {
        try source.fill(&piece, at: place, length: Self.pieceLength)
        start = place
        guard piece.count >= 8 else { return nil }
      }
      if let found = Self.find(salts.span, in: piece.span, from: Int(place - start)) { return start + Int64(found) - 8 }
      place = start + Int64(piece.count) - 7
    }
    return nil
  }

  private static func find(_ wanted: Span<UInt8>, in bytes: Span<UInt8>, from first: Int) -> Int? {
    var index = first
    let end = bytes.count - wanted.count
    while index <= end {
      var length = 0
      while length < wanted.count, bytes[index + length] == wanted[length] { length += 1 }
      if length == wanted.count { return index }
      index += 1
    }
    return nil
  }
}
