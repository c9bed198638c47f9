public import StoreFiles

/// A rollback journal: the pages as they were before a transaction that may have been cut off (SQLite file format, "The
/// Rollback Journal").
///
/// It is hot where SQLite would roll it back at the next opening. Pages are not kept in memory, only where they are.
public struct RollbackJournal: Sendable {
  /// The header of the journal's first segment.
  public struct Header: Sendable, Hashable {
    /// The number of bytes of the header's fields; the header itself fills a sector.
    public static let length = 28

    /// The number of records of the first segment; 0xffffffff for as many as the file holds.
    public var storedRecordCount: UInt32

    /// The number that the records' checksums start from.
    public var nonce: UInt32

    /// The size of the database in pages before the transaction.
    public var originalPageCount: UInt32

    /// The sector size in bytes; segments begin at its multiples.
    public var sectorSize: UInt32

    /// The page size in bytes as stored.
    public var storedPageSize: UInt32
  }

  /// What the journal's beginning says about it.
  public enum State: String, Sendable, Hashable {
    /// No byte, or too few for a header.
    case empty

    /// Zeros where the header was: the transaction is over, and the file is kept for the next one.
    case finished

    /// A header, and so a transaction to roll back.
    case hot

    case invalid
  }

  /// The eight bytes that a journal's segments begin with.
  public static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

  /// The journal's bytes.
  public let source: any ByteSource

  /// What the journal's beginning says about it.
  public internal(set) var state = State.empty

  /// The first segment's header, where there is a usable one.
  public internal(set) var header: Header?

  /// The number of segments that were read.
  public internal(set) var segmentCount = 0

  /// The number of records whose checksum is right, in all segments.
  public internal(set) var recordCount = 0

  /// The name of the super-journal at the end, as bytes of a path, where the transaction spans several databases.
  public internal(set) var superJournal: [UInt8]?

  /// What is odd about the journal.
  public internal(set) var findings = Findings()

  /// Whether records of it are gone or damaged, so that not all of its transaction can be undone.
  public var isCutShort: Bool {
    findings.contains(.journalTruncated) || findings.contains(.journalRecordChecksumWrong)
      || findings.contains(.journalRecordInvalid)
  }

  /// Whether the last segment is on the disk and no other header is behind it.
  var endsWithoutHeader = false

  /// Where its last record ends.
  var end: Int64 = 0

  /// Where in the journal each page's content is.
  var pageOffsets: [UInt32: Int64] = [:]

  /// The page size; nil where there is no usable header.
  public var pageSize: Int? { header.map { Int($0.storedPageSize) } }

  /// The pages that are rolled back, in ascending order.
  public var pages: [UInt32] { pageOffsets.keys.sorted() }

  /// Where in the journal the old content of a page begins.
  public func pageOffset(of page: UInt32) -> Int64? { pageOffsets[page] }

  /// Reads a journal's headers and checks its records, in pieces.
  ///
  /// - Parameters:
  ///   - databasePageSize: used where the journal's own field is 0, as very old versions of SQLite left it.
  ///   - database: the header of the database file; without it a journal that was cut off between two segments is not seen.
  public init(
    _ source: any ByteSource, databasePageSize: Int? = nil, database: DatabaseHeader? = nil
  ) throws(FormatError) {
    self.source = source
    guard source.count > 0 else { return }
    try scan(databasePageSize: databasePageSize)
    try noteMissingSegments(database)
    superJournal = try readSuperJournal()
    if superJournal != nil { findings.note(.superJournalNamed) }
  }
}
