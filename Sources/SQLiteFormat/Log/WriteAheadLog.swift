public import Platform

/// A write-ahead log: what it says about itself, and which of its frames a reader sees (SQLite file format, "The
/// Write-Ahead Log").
///
/// Only frames whose salts and cumulative checksum agree, up to the last commit, count; the rest is told of. Pages are not
/// kept in memory, only where each page's newest committed frame is.
public struct WriteAheadLog: Sendable {
  /// The first 32 bytes of a log.
  public struct Header: Sendable, Hashable {
    /// The number of bytes of the header.
    public static let length = 32

    /// Whether checksums are computed over big-endian words: magic 0x377f0683, not 0x377f0682.
    public var isBigEndian: Bool

    /// The format version; always 3007000.
    public var version: UInt32

    /// The page size in bytes as stored.
    public var storedPageSize: UInt32

    /// The number of checkpoints that restarted the log.
    public var checkpointSequence: UInt32

    /// The first salt; it grows by one with each restart of the log.
    public var salt1: UInt32

    /// The second salt; random for each restart of the log.
    public var salt2: UInt32

    /// Whether the header's checksum is right.
    public var isChecksumRight: Bool

    /// The page size, or nil where it is not a power of two from 512 to 65536.
    public var pageSize: Int? {
      DatabaseHeader.isPageSize(Int(storedPageSize)) ? Int(storedPageSize) : nil
    }
  }

  /// The number of bytes of a frame's header.
  public static let frameHeaderLength = 24

  /// The log's bytes.
  public let source: any ByteSource

  /// The header; nil where the log is too short or does not begin with its magic number.
  public let header: Header?

  /// The frames that the log's length has room for.
  public internal(set) var frameCount: Int = 0

  /// The frames from the first on whose salts and checksums are right.
  public internal(set) var validFrameCount: Int = 0

  /// The frames up to the last commit: those that a reader sees.
  public internal(set) var committedFrameCount: Int = 0

  /// The number of commits among them.
  public internal(set) var commitCount: Int = 0

  /// Frames of the log's present round behind the valid ones.
  ///
  /// Where none of them is a commit, they are of a transaction that never ended: until its commit, SQLite leaves out salts
  /// and checksums once it has written a page twice.
  public internal(set) var framesBehindBreak: Int = 0

  /// The commits among ``framesBehindBreak``: transactions that were complete and are lost to readers.
  public internal(set) var commitsBehindBreak: Int = 0

  /// Frames behind the valid ones with other salts: left from before the log was restarted.
  public internal(set) var staleFrameCount: Int = 0

  /// The size of the database in pages after the last commit; 0 where nothing is committed.
  public internal(set) var pageCount: UInt32 = 0

  /// What is odd about the log.
  public internal(set) var findings = Findings()

  /// The last frame of the first transaction, counted from 1; 0 where nothing is committed.
  var firstCommittedFrame = 0

  /// The first committed frame that has page 1, counted from 1; nil where none has.
  var firstHeaderFrame: Int?

  /// The newest committed frame of each page, frames counted from 1.
  var frames: [UInt32: UInt32] = [:]

  /// Whether every byte of it is understood: of a committed transaction, or left from an earlier round.
  public var isReadToItsEnd: Bool { !findings.counts.keys.contains(where: \.isOfUnreadLog) }

  /// Whether any page is to be read from the log.
  public var hasCommittedFrames: Bool { committedFrameCount > 0 }

  /// How many pages the committed frames have, each counted once.
  public var committedPageCount: Int { frames.count }

  /// The valid frames behind the last commit: a transaction that never ended.
  public var uncommittedFrameCount: Int { validFrameCount - committedFrameCount }

  /// The pages that have a committed frame, in ascending order.
  public var pages: [UInt32] { frames.keys.sorted() }

  /// The number of bytes from a frame to the next; nil without a usable header.
  public var frameLength: Int? { header?.pageSize.map { $0 + WriteAheadLog.frameHeaderLength } }

  /// The newest committed frame of a page, counted from 1.
  public func frame(of page: UInt32) -> Int? { frames[page].map(Int.init) }

  /// Where in the log the page of a frame begins, frames counted from 1.
  public func pageOffset(ofFrame frame: Int) -> Int64? {
    guard let frameLength, frame >= 1, frame <= frameCount else { return nil }
    return Int64(Header.length) + Int64(frame - 1) * Int64(frameLength) + Int64(WriteAheadLog.frameHeaderLength)
  }

  /// Reads a log from its first byte to its last, in pieces.
  public init(_ source: any ByteSource) throws(FormatError) {
    self.source = source
    let bytes = try source.read(at: 0, length: Header.length)
    header = Header(bytes)
    guard source.count > 0 else { return }
    guard let header else {
      findings.note(bytes.count < Header.length ? .logHeaderTruncated : .logMagicWrong)
      return
    }
    if header.version != 3_007_000 { findings.note(.logVersionUnknown, found: Int64(header.version)) }
    guard header.pageSize != nil else {
      findings.note(.logPageSizeInvalid, found: Int64(header.storedPageSize))
      return
    }
    if !header.isChecksumRight { findings.note(.logHeaderChecksumWrong) }
    try scan(header)
  }
}

extension WriteAheadLog {
  /// Whether the log's index shows that all that it has behind the last commit is a transaction that never ended.
  ///
  /// - Parameter index: that which a process that has the log open keeps; nil where there is none that can be read.
  package func endsWithUnfinishedTransaction(by index: WriteAheadLogIndex?) -> Bool {
    guard let index, let header, index.salts == header.salts, Int(index.lastFrame) == committedFrameCount else {
      return false
    }
    let kinds = findings.counts.keys.filter(\.isOfUnreadLog)
    return !kinds.isEmpty && kinds.allSatisfy { $0 == .logUncommittedFrames || $0 == .logPartialFrame }
  }
}

extension WriteAheadLog.Header {
  /// A header that is lost, as far as frames tell it.
  package init(isBigEndian: Bool, pageSize: Int, salt1: UInt32, salt2: UInt32) {
    self.isBigEndian = isBigEndian
    version = 3_007_000
    storedPageSize = UInt32(clamping: pageSize)
    checkpointSequence = 0
    self.salt1 = salt1
    self.salt2 = salt2
    isChecksumRight = false
  }

  /// The salts, as they stand in the header.
  package var salts: [UInt8] {
    [salt1, salt2].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32($0))) } }
  }

  /// Whether a frame has the salts of this round.
  package func hasSalts(of frame: LogFrame) -> Bool { frame.salt1 == salt1 && frame.salt2 == salt2 }

  /// Whether a frame was left from before the log was restarted, which adds one to the first salt and draws the second anew.
  package func isOfEarlierRound(_ frame: LogFrame) -> Bool {
    (1...0xffff).contains(salt1 &- frame.salt1) && frame.salt2 != salt2
  }

  /// Reads a header from the log's first 32 bytes; nil where there are fewer, or they do not begin with the magic number.
  public init?(_ bytes: [UInt8]) {
    let span = bytes.span
    guard bytes.count >= WriteAheadLog.Header.length, let magic = span.uint32(at: 0), magic & ~1 == 0x377f_0682 else {
      return nil
    }
    func word(_ offset: Int) -> UInt32 { bytes.span.uint32(at: offset) ?? 0 }
    isBigEndian = magic & 1 == 1
    version = word(4)
    storedPageSize = word(8)
    checkpointSequence = word(12)
    salt1 = word(16)
    salt2 = word(20)
    var checksum = LogChecksum()
    checksum.add(span.extracting(0..<24), bigEndian: isBigEndian)
    isChecksumRight = checksum.first == word(24) && checksum.second == word(28)
  }
}

extension WriteAheadLog {
  /// Walks over all frames once, in pieces of about 256 KiB.
  mutating func scan(_ header: Header) throws(FormatError) {
    guard let pageSize = header.pageSize, let frameLength else { return }
    let room = source.count - Int64(Header.length)
    // A frame's number has 32 bits in SQLite's own index.
    frameCount = Int(min(Int64(UInt32.max), room / Int64(frameLength)))
    guard header.isChecksumRight, header.version == 3_007_000 else { return }

    var chain = Chain(header: header)
    let start = try source.read(at: 0, length: 24)
    chain.checksum.add(start.span, bigEndian: header.isBigEndian)
    let framesPerPiece = max(1, 262_144 / frameLength)
    var piece: [UInt8] = []
    var isUnbroken = true
    while isUnbroken, validFrameCount < frameCount {
      let count = min(framesPerPiece, frameCount - validFrameCount)
      let offset = Int64(Header.length) + Int64(validFrameCount) * Int64(frameLength)
      try source.fill(&piece, at: offset, length: count * frameLength)
      let readable = piece.count / frameLength
      isUnbroken = readable == count
      var index = 0
      while index < readable {
        let start = index * frameLength
        if !add(piece.span.extracting(start..<(start + frameLength)), pageSize: pageSize, to: &chain) {
          isUnbroken = false
          break
        }
        index += 1
      }
    }
    let unknown = try scanBehindEnd(header, chain.checksum, frameLength: frameLength)
    if let unknown { try searchBehind(unknown, header, frameLength: frameLength) }
    let unfinished = uncommittedFrameCount + framesBehindBreak
    if commitsBehindBreak > 0 {
      findings.note(.logFrameChecksumWrong, found: Int64(validFrameCount + 1))
    } else if unfinished > 0 {
      findings.note(.logUncommittedFrames, found: Int64(unfinished))
    }
    if staleFrameCount > 0 { findings.note(.logStaleFrames, found: Int64(staleFrameCount)) }
  }

  /// What is carried from one frame to the next: the checksum so far, and the pages since the last commit.
  private struct Chain {
    let header: Header
    var checksum = LogChecksum()
    var transaction: [UInt32] = []
  }

  /// Takes the next frame; false where it does not continue the log.
  private mutating func add(_ frame: Span<UInt8>, pageSize: Int, to chain: inout Chain) -> Bool {
    let head = LogFrame(frame)
    let checksum = LogFrame.checksum(chain.checksum, adding: frame, bigEndian: chain.header.isBigEndian)
    guard head.page != 0, chain.header.hasSalts(of: head), checksum == head.checksum else { return false }
    chain.checksum = checksum
    validFrameCount += 1
    chain.transaction.append(head.page)
    if head.pageCount != 0 { commit(&chain.transaction, endingAt: validFrameCount, pageCount: head.pageCount) }
    return true
  }

  private mutating func commit(_ transaction: inout [UInt32], endingAt frame: Int, pageCount size: UInt32) {
    let first = frame - transaction.count
    for (index, page) in transaction.enumerated() {
      frames[page] = UInt32(first + index + 1)
      if page == 1, firstHeaderFrame == nil { firstHeaderFrame = first + index + 1 }
    }
    if commitCount == 0 { firstCommittedFrame = frame }
    transaction.removeAll(keepingCapacity: true)
    committedFrameCount = frame
    commitCount += 1
    pageCount = size
  }

  /// Counts what lies behind the valid frames, frame by frame; returns the offset of what is no frame, nil where all is.
  ///
  /// A frame is of this round by its salts or, where these alone are wrong, by the checksum that its predecessor's leads to.
  private mutating func scanBehindEnd(
    _ header: Header, _ checksum: LogChecksum, frameLength: Int
  ) throws(FormatError) -> Int64? {
    var bytes: [UInt8] = []
    var previous: LogChecksum? = checksum
    var isStale = false
    var offset = Int64(Header.length) + Int64(validFrameCount) * Int64(frameLength)
    while offset < source.count {
      let isWhole = offset + Int64(frameLength) <= source.count
      try source.fill(&bytes, at: offset, length: WriteAheadLog.frameHeaderLength)
      let frame = LogFrame(bytes.span)
      let isOwn = frame.page != 0 && header.hasSalts(of: frame)
      if !isOwn, isWhole, frame.page != 0, let known = previous {
        try source.fill(&bytes, at: offset, length: frameLength)
        if LogFrame.checksum(known, adding: bytes.span, bigEndian: header.isBigEndian) == frame.checksum {
          findings.note(.logFrameSaltsWrong)
          count(frame)
          previous = frame.checksum
          offset += Int64(frameLength)
          continue
        }
      }
      isStale = isOwn ? false : bytes.count < 16 ? isStale : header.isOfEarlierRound(frame)
      guard isWhole else {
        if !isStale { findings.note(.logPartialFrame) }
        return nil
      }
      if isOwn {
        count(frame)
      } else if frame.page != 0, frame.salt1 == 0, frame.salt2 == 0 {
        framesBehindBreak += 1
      } else if isStale {
        staleFrameCount += 1
      } else {
        return offset
      }
      previous = isOwn ? frame.checksum : nil
      offset += Int64(frameLength)
    }
    return nil
  }

  private mutating func count(_ frame: LogFrame) {
    framesBehindBreak += 1
    if frame.pageCount != 0 { commitsBehindBreak += 1 }
  }

  /// Looks for frames of this round behind bytes that are none, wherever they begin.
  private mutating func searchBehind(_ place: Int64, _ header: Header, frameLength: Int) throws(FormatError) {
    findings.note(.logUnknownBytes)
    var search = LogFrameSearch(source, salts: header.salts)
    // A frame before it may have lost bytes, so that the next one begins in it.
    var offset = max(Int64(Header.length), place - Int64(frameLength) + 1)
    while let found = try search.next(from: offset) {
      let bytes = try source.read(at: found, length: WriteAheadLog.frameHeaderLength)
      let frame = LogFrame(bytes.span)
      if frame.page != 0, found >= place || (found - Int64(Header.length)) % Int64(frameLength) != 0 { count(frame) }
      offset = found + Int64(frameLength)
    }
  }
}

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
