public import StoreFiles

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
