public import Platform

/// A write-ahead log (SQLite file format, "The Write-Ahead Log").
///
/// Only frames with matching salts and checksums count, up to the last commit; findings list the rest. Only frame
/// numbers stay in memory.
public struct WriteAheadLog: Sendable {
  /// The first 32 bytes of a log.
  public struct Header: Sendable, Hashable {
    /// The header's length in bytes.
    public static let length = 32

    /// Whether checksums use big-endian words: magic 0x377f0683, not 0x377f0682.
    public var isBigEndian: Bool

    /// The format version; always 3007000.
    public var version: UInt32

    /// The stored page size in bytes.
    public var storedPageSize: UInt32

    /// The checkpoint sequence: the number of restarts.
    public var checkpointSequence: UInt32

    /// The first salt, incremented at each restart.
    public var salt1: UInt32

    /// The second salt, random for each restart.
    public var salt2: UInt32

    /// Whether the header's checksum is right.
    public var isChecksumRight: Bool

    /// The page size; nil unless a power of two from 512 to 65536.
    public var pageSize: Int? { DatabaseHeader.isPageSize(Int(storedPageSize)) ? Int(storedPageSize) : nil }
  }

  /// The length of a frame header in bytes.
  public static let frameHeaderLength = 24

  /// The log's bytes.
  public let source: any ByteSource

  /// The header; nil if the log is too short or lacks the magic number.
  public let header: Header?

  /// The frames that fit in the log's length.
  public internal(set) var frameCount: Int = 0

  /// The leading frames with right salts and checksums.
  public internal(set) var validFrameCount: Int = 0

  /// The frames up to the last commit, which a reader sees.
  public internal(set) var committedFrameCount: Int = 0

  /// The commits among them.
  public internal(set) var commitCount: Int = 0

  /// The current frames after the valid ones.
  ///
  /// Without a commit they are unfinished: until its commit, SQLite omits salts and checksums after rewriting a page.
  public internal(set) var framesBehindBreak: Int = 0

  /// The commits among ``framesBehindBreak``, lost to readers.
  public internal(set) var commitsBehindBreak: Int = 0

  /// The later frames left from before a restart.
  public internal(set) var staleFrameCount: Int = 0

  /// The database size in pages after the last commit; 0 without one.
  public internal(set) var pageCount: UInt32 = 0

  /// The oddities of the log.
  public internal(set) var findings = Findings()

  /// The first transaction's last frame; 0 without a commit.
  var firstCommittedFrame = 0

  /// The first committed frame of page 1.
  var firstHeaderFrame: Int?

  /// The newest committed frames, from 1.
  var frames: [UInt32: UInt32] = [:]

  /// Whether every byte is committed or a leftover of a restart.
  public var isReadToItsEnd: Bool { !findings.counts.keys.contains(where: \.isOfUnreadLog) }

  /// Whether the log has pages for a reader.
  public var hasCommittedFrames: Bool { committedFrameCount > 0 }

  /// The number of distinct pages in committed frames.
  public var committedPageCount: Int { frames.count }

  /// The valid frames after the last commit, of an unfinished transaction.
  public var uncommittedFrameCount: Int { validFrameCount - committedFrameCount }

  /// The pages with a committed frame, in ascending order.
  public var pages: [UInt32] { frames.keys.sorted() }

  /// The bytes per frame; nil without a usable header.
  public var frameLength: Int? { header?.pageSize.map { $0 + WriteAheadLog.frameHeaderLength } }

  /// Returns a page's newest committed frame, from 1.
  public func frame(of page: UInt32) -> Int? { frames[page].map(Int.init) }

  /// Returns the log offset of a frame's page; frames count from 1.
  public func pageOffset(ofFrame frame: Int) -> Int64? {
    guard let frameLength, frame >= 1, frame <= frameCount else { return nil }
    return Int64(Header.length) + Int64(frame - 1) * Int64(frameLength) + Int64(WriteAheadLog.frameHeaderLength)
  }

  /// Reads a whole log in pieces.
  public init(_ source: any ByteSource) throws(FileError) {
    self.source = source
    let bytes = try source.bytes(at: 0, length: Header.length)
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
  /// Whether the index shows that only an unfinished transaction remains.
  ///
  /// - Parameter index: a running process's index, if readable.
  package func endsWithUnfinishedTransaction(by index: WriteAheadLogIndex?) -> Bool {
    guard let index, let header, index.salts == header.salts, Int(index.lastFrame) == committedFrameCount else {
      return false
    }
    let kinds = findings.counts.keys.filter(\.isOfUnreadLog)
    return !kinds.isEmpty && kinds.allSatisfy { $0 == .logUncommittedFrames || $0 == .logPartialFrame }
  }
}

extension WriteAheadLog.Header {
  /// Reconstructs a lost header.
  package init(isBigEndian: Bool, pageSize: Int, salt1: UInt32, salt2: UInt32) {
    self.isBigEndian = isBigEndian
    version = 3_007_000
    storedPageSize = UInt32(clamping: pageSize)
    checkpointSequence = 0
    self.salt1 = salt1
    self.salt2 = salt2
    isChecksumRight = false
  }

  package var salts: [UInt8] {
    [salt1, salt2].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32($0))) } }
  }

  package func hasSalts(of frame: LogFrame) -> Bool { frame.salt1 == salt1 && frame.salt2 == salt2 }

  /// Whether a frame predates a restart, which increments the first salt and randomizes the second.
  package func isOfEarlierRound(_ frame: LogFrame) -> Bool {
    (1...0xffff).contains(salt1 &- frame.salt1) && frame.salt2 != salt2
  }

  /// Reads a header; nil for fewer than 32 bytes or a wrong magic number.
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
  mutating func scan(_ header: Header) throws(FileError) {
    guard let pageSize = header.pageSize, let frameLength else { return }
    let room = source.count - Int64(Header.length)
    // SQLite's index has 32-bit frame numbers.
    frameCount = Int(min(Int64(UInt32.max), room / Int64(frameLength)))
    guard header.isChecksumRight, header.version == 3_007_000 else { return }

    var chain = Chain(header: header)
    let start = try source.bytes(at: 0, length: 24)
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

  /// The running checksum and the pages since the last commit.
  private struct Chain {
    let header: Header
    var checksum = LogChecksum()
    var transaction: [UInt32] = []
  }

  /// Adds the next frame; returns false if it breaks the chain.
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

  /// Counts later frames; returns the offset of unknown bytes, if any.
  ///
  /// A current frame has the header's salts or, if only these are wrong, the next checksum.
  private mutating func scanBehindEnd(
    _ header: Header, _ checksum: LogChecksum, frameLength: Int
  ) throws(FileError) -> Int64? {
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

  /// Searches for frames at any offset after unknown bytes.
  private mutating func searchBehind(_ place: Int64, _ header: Header, frameLength: Int) throws(FileError) {
    findings.note(.logUnknownBytes)
    var search = LogFrameSearch(source, salts: header.salts)
    // A frame without a right checksum may have lost bytes and contain the next one's start.
    let valid = Int64(Header.length) + Int64(validFrameCount) * Int64(frameLength)
    var offset = max(valid, place - Int64(frameLength) + 1)
    while let found = try search.next(from: offset) {
      guard found + Int64(frameLength) <= source.count else {
        findings.note(.logPartialFrame)
        return
      }
      let bytes = try source.bytes(at: found, length: WriteAheadLog.frameHeaderLength)
      let frame = LogFrame(bytes.span)
      if frame.page != 0, found >= place || (found - Int64(Header.length)) % Int64(frameLength) != 0 { count(frame) }
      offset = found + Int64(frameLength)
    }
  }
}

package struct LogFrame: Sendable, Equatable {
  /// The page; SQLite never writes 0.
  package var page: UInt32

  /// The database size in pages after a commit; 0 in other frames.
  package var pageCount: UInt32

  package var salt1: UInt32

  package var salt2: UInt32

  /// The checksum up to the frame's end.
  package var checksum: LogChecksum

  /// Reads missing bytes as 0.
  package init(_ bytes: Span<UInt8>) {
    page = bytes.uint32(at: 0) ?? 0
    pageCount = bytes.uint32(at: 4) ?? 0
    salt1 = bytes.uint32(at: 8) ?? 0
    salt2 = bytes.uint32(at: 12) ?? 0
    checksum = LogChecksum()
    checksum.first = bytes.uint32(at: 16) ?? 0
    checksum.second = bytes.uint32(at: 20) ?? 0
  }

  /// Returns the checksum up to a frame's end.
  ///
  /// - Parameter known: that of the previous frame or the header.
  package static func checksum(_ known: LogChecksum, adding frame: Span<UInt8>, bigEndian: Bool) -> LogChecksum {
    var checksum = known
    checksum.add(frame.extracting(0..<8), bigEndian: bigEndian)
    checksum.add(frame.extracting(WriteAheadLog.frameHeaderLength..<frame.count), bigEndian: bigEndian)
    return checksum
  }
}

/// Finds frames by their salts, at any offset.
package struct LogFrameSearch {
  private let source: any ByteSource
  private let salts: [UInt8]
  private var piece: [UInt8] = []
  private var start: Int64 = 0

  private static let pieceLength = 1 << 18

  package init(_ source: any ByteSource, salts: [UInt8]) {
    self.source = source
    self.salts = salts
  }

  /// Returns the next frame header at or after an offset.
  package mutating func next(from offset: Int64) throws(FileError) -> Int64? {
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

  var pageCount: UInt32

  package var pageSize: Int

  /// The log's salts, as in its header.
  package var salts: [UInt8]

  /// The last frames that readers need; `UInt32.max` if unused.
  package var readMarks: [UInt32]

  /// Reads an index; nil if it is invalid or being written.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count >= Self.length, bytes[0..<48] == bytes[48..<96] else { return nil }
    func word(_ offset: Int) -> UInt32 { (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32(8 * $1) } }
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

  /// Returns a log up to its last commit; nil if it is another log or shorter.
  package func committedPart(of log: any ByteSource) throws(FileError) -> SourcePrefix? {
    let frameLength = WriteAheadLog.frameHeaderLength + pageSize
    let length = Int64(WriteAheadLog.Header.length) + Int64(lastFrame) * Int64(frameLength)
    guard try log.bytes(at: 16, length: 8) == salts, log.count >= length else { return nil }
    return SourcePrefix(source: log, count: length)
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
