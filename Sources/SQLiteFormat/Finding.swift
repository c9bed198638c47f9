/// Something about a database that a careful reader would mention: damage, an oddity, or a fact worth knowing.
///
/// It holds numbers only, never a value of a user's record.
public struct Finding: Sendable, Hashable {
  /// How much a finding matters.
  public enum Severity: String, Sendable, Encodable {
    /// Worth knowing, and normal in a healthy store.
    case note

    /// Unusual; nothing is known to be lost by it.
    case warning

    /// Content is missing, contradictory or unreadable.
    case damage
  }

  /// What was found.
  public var kind: Kind

  /// The page it was found on, where it is about a page.
  public var page: UInt32?

  /// The place of the cell in its page's cell pointer array, counted from 0, where it is about a cell.
  public var cell: Int?

  /// The root page of the b-tree that led there.
  public var root: UInt32?

  /// The number that should have been there.
  public var expected: Int64?

  /// The number that was there.
  public var found: Int64?

  /// A finding of the given kind and place.
  public init(
    _ kind: Kind, page: UInt32? = nil, cell: Int? = nil, root: UInt32? = nil, expected: Int64? = nil,
    found: Int64? = nil
  ) {
    self.kind = kind
    self.page = page
    self.cell = cell
    self.root = root
    self.expected = expected
    self.found = found
  }
}

extension Finding: CustomStringConvertible {
  /// The finding on one line, in plain words.
  public var description: String {
    var text = ""
    if let page { text += "page \(page)" }
    if let cell { text += text.isEmpty ? "cell \(cell)" : ", cell \(cell)" }
    if let root, root != page { text += text.isEmpty ? "tree \(root)" : " of tree \(root)" }
    if !text.isEmpty { text += ": " }
    text += kind.words
    switch (expected, found) {
    case (let expected?, let found?): text += " (expected \(expected), found \(found))"
    case (let expected?, nil): text += " (expected \(expected))"
    case (nil, let found?): text += " (\(found))"
    case (nil, nil): break
    }
    return text
  }
}

extension Finding {
  /// What can be found; the raw value is a stable word for programs.
  public enum Kind: String, Sendable, CaseIterable {
    // MARK: The database header (bytes 0 to 99 of page 1)

    /// The file ends inside its 100-byte header.
    case headerTruncated = "header-truncated"

    /// The file does not begin with SQLite's magic string.
    case magicMissing = "magic-missing"

    /// The header's page size is not a power of two from 512 to 65536.
    case pageSizeInvalid = "page-size-invalid"

    /// The header reserves so much of each page that fewer than 480 bytes remain.
    case reservedBytesInvalid = "reserved-bytes-invalid"

    /// The header's payload fractions are not 64, 32 and 32.
    case payloadFractionsWrong = "payload-fractions-wrong"

    /// The header asks for a file format that this reader does not know.
    case readVersionUnknown = "read-version-unknown"

    /// The header's write version is unknown, so the database is read-only.
    case writeVersionUnknown = "write-version-unknown"

    /// The header's schema format is not 1 to 4.
    case schemaFormatUnknown = "schema-format-unknown"

    /// The header's text encoding is not 1, 2 or 3.
    case encodingUnknown = "encoding-unknown"

    /// Bytes of the header that are reserved for expansion are not zero.
    case expansionNotZero = "expansion-not-zero"

    /// Incremental vacuum is set but there is no largest root page.
    case vacuumFieldsContradict = "vacuum-fields-contradict"

    /// The header's page count is out of date, so the file's size decides.
    case pageCountStale = "page-count-stale"

    /// The file is shorter than its page count says.
    case fileTooShort = "file-too-short"

    /// The file is longer than its page count says.
    case fileTooLong = "file-too-long"

    /// The file does not end at a page's end.
    case partialPage = "partial-page"

    // MARK: The write-ahead log

    /// The write-ahead log ends inside its header.
    case logHeaderTruncated = "wal-header-truncated"

    /// The write-ahead log does not begin with its magic number.
    case logMagicWrong = "wal-magic-wrong"

    /// The write-ahead log's format version is not 3007000.
    case logVersionUnknown = "wal-version-unknown"

    /// The write-ahead log's header does not match its checksum.
    case logHeaderChecksumWrong = "wal-header-checksum-wrong"

    /// The write-ahead log's page size is not a power of two from 512 to 65536.
    case logPageSizeInvalid = "wal-page-size-invalid"

    /// The write-ahead log's page size is not the database's: it belongs to another database.
    case logPageSizeDiffers = "wal-page-size-differs"

    /// A frame of the write-ahead log does not match its checksum; what follows is not read.
    case logFrameChecksumWrong = "wal-frame-checksum-wrong"

    /// A frame of the write-ahead log has its checksum and other salts than the header, so that it and what follows is not
    /// read.
    case logFrameSaltsWrong = "wal-frame-salts-wrong"

    /// Bytes of the write-ahead log are no frame of it.
    case logUnknownBytes = "wal-unknown-bytes"

    /// Frames at the end of the write-ahead log were never committed.
    case logUncommittedFrames = "wal-uncommitted-frames"

    /// Behind the write-ahead log's end are frames of an earlier round.
    case logStaleFrames = "wal-stale-frames"

    /// The write-ahead log does not end at a frame's end.
    case logPartialFrame = "wal-partial-frame"

    /// Pages that the write-ahead log's last commit counts are neither in it nor in the database.
    case logMissingPages = "wal-missing-pages"

    /// The database's change counter is ahead of the write-ahead log's: the log is older, or another database's.
    case logBehindDatabase = "wal-behind-database"

    /// The database file is empty but its write-ahead log is not; SQLite would delete the log.
    case logBesideEmptyDatabase = "wal-beside-empty-database"

    // MARK: The rollback journal

    /// The rollback journal's header is zeroed: its transaction is over.
    case journalFinished = "journal-finished"

    /// The rollback journal is hot: a transaction was cut off and is rolled back when reading.
    case journalHot = "journal-hot"

    /// The rollback journal does not begin with a usable header, so SQLite ignores it.
    case journalHeaderInvalid = "journal-header-invalid"

    /// The header of a later segment of the rollback journal is gone; SQLite undoes nothing behind it.
    case journalSegmentHeaderLost = "journal-segment-header-lost"

    /// The rollback journal's page size is not the database's.
    case journalPageSizeDiffers = "journal-page-size-differs"

    /// A record of the rollback journal does not match its checksum; what follows is not used.
    case journalRecordChecksumWrong = "journal-record-checksum-wrong"

    /// A record of the rollback journal names an impossible page; what follows is not used.
    case journalRecordInvalid = "journal-record-invalid"

    /// The rollback journal ends before its last record.
    case journalTruncated = "journal-truncated"

    /// The rollback journal is part of a transaction over several databases.
    case superJournalNamed = "super-journal-named"

    /// The super-journal is gone, so the transaction was committed and is not rolled back.
    case superJournalGone = "super-journal-gone"

    // MARK: Pages, cells and records

    /// A pointer leads outside the database.
    case pageOutOfRange = "page-out-of-range"

    /// The page is not in the file.
    case pageMissing = "page-missing"

    /// The page is used for a second time.
    case pageUsedTwice = "page-used-twice"

    /// The page is a copy of another table's, whose rows it holds.
    case pageCopied = "page-copied"

    /// The page is not of the kind that belongs there.
    case pageKindWrong = "page-kind-wrong"

    /// The page's header is impossible.
    case pageHeaderInvalid = "page-header-invalid"

    /// The cell's pointer leads outside the page's content.
    case cellPointerInvalid = "cell-pointer-invalid"

    /// The cell does not fit on the page.
    case cellInvalid = "cell-invalid"

    /// Cells or free blocks overlap.
    case cellsOverlap = "cells-overlap"

    /// The chain of free blocks is broken.
    case freeblockInvalid = "freeblock-invalid"

    /// The page's count of fragmented bytes is wrong.
    case fragmentCountWrong = "fragment-count-wrong"

    /// The record does not fit its own header.
    case recordMalformed = "record-malformed"

    /// Rowids are not in ascending order.
    case rowidOrder = "rowid-order"

    /// The b-tree is deeper than a b-tree can be.
    case treeTooDeep = "tree-too-deep"

    /// The b-tree's leaves are not all at the same depth.
    case treeUneven = "tree-uneven"

    /// The overflow chain ends before its payload.
    case overflowTooShort = "overflow-too-short"

    /// The overflow chain goes on behind its payload.
    case overflowTooLong = "overflow-too-long"

    /// The payload is longer than the database.
    case payloadTooLong = "payload-too-long"

    /// The column has more distinct values than are counted.
    case tooManyGroups = "too-many-groups"

    // MARK: The database as a whole

    /// A freelist trunk counts more leaves than fit on it.
    case freelistTrunkInvalid = "freelist-trunk-invalid"

    /// The freelist is not as long as the header says.
    case freelistCountWrong = "freelist-count-wrong"

    /// The pointer map says something else about the page.
    case pointerMapWrong = "pointer-map-wrong"

    /// The page belongs to nothing.
    case pageNeverUsed = "page-never-used"

    /// A pointer-map page or the lock-byte page is used for something else.
    case reservedPageUsed = "reserved-page-used"

    /// An index does not have as many entries as its table has rows.
    case indexCountDiffers = "index-count-differs"

    /// The entries of an index are not those that its table's rows should have.
    case indexEntriesDiffer = "index-entries-differ"

    /// The entries of an index are not in order.
    case indexOrder = "index-order"

    /// The header's largest root page is not the largest root page.
    case largestRootWrong = "largest-root-wrong"

    /// A row of the schema is malformed.
    case schemaRowMalformed = "schema-row-malformed"

    /// The schema names a root page that cannot be one.
    case schemaRootInvalid = "schema-root-invalid"

    /// The schema is larger than any real one; the rest of it is not read.
    case schemaTooLarge = "schema-too-large"
  }
}

extension Finding.Kind {
  /// What it means, in plain words without a full stop.
  public var words: String {
    switch self {
    case .headerTruncated: "the file ends inside its 100-byte header"
    case .magicMissing: "the file does not begin with SQLite's magic string"
    case .pageSizeInvalid: "the header's page size is not a power of two from 512 to 65536"
    case .reservedBytesInvalid: "the header reserves so much of each page that fewer than 480 bytes remain"
    case .payloadFractionsWrong: "the header's payload fractions are not 64, 32 and 32"
    case .readVersionUnknown: "the header asks for a file format that this reader does not know"
    case .writeVersionUnknown: "the header's write version is unknown, so the database is read-only"
    case .schemaFormatUnknown: "the header's schema format is not 1 to 4"
    case .encodingUnknown: "the header's text encoding is not 1, 2 or 3"
    case .expansionNotZero: "bytes of the header that are reserved for expansion are not zero"
    case .vacuumFieldsContradict: "incremental vacuum is set but there is no largest root page"
    case .pageCountStale: "the header's page count is out of date, so the file's size decides"
    case .fileTooShort: "the file is shorter than its page count says"
    case .fileTooLong: "the file is longer than its page count says"
    case .partialPage: "the file does not end at a page's end"
    case .logHeaderTruncated: "the write-ahead log ends inside its header"
    case .logMagicWrong: "the write-ahead log does not begin with its magic number"
    case .logVersionUnknown: "the write-ahead log's format version is not 3007000"
    case .logHeaderChecksumWrong: "the write-ahead log's header does not match its checksum"
    case .logPageSizeInvalid: "the write-ahead log's page size is not a power of two from 512 to 65536"
    case .logPageSizeDiffers: "the write-ahead log's page size is not the database's: it belongs to another database"
    case .logFrameChecksumWrong:
      "a frame of the write-ahead log does not match its checksum; what follows is not read"
    case .logFrameSaltsWrong:
      "a frame of the write-ahead log has other salts than its header; it and what follows is not read"
    case .logUnknownBytes: "bytes of the write-ahead log are no frames of it"
    case .logUncommittedFrames: "frames at the end of the write-ahead log were never committed"
    case .logStaleFrames: "behind the write-ahead log's end are frames of an earlier round"
    case .logPartialFrame: "the write-ahead log does not end at a frame's end"
    case .logMissingPages: "pages that the write-ahead log's last commit counts are neither in it nor in the database"
    case .logBehindDatabase:
      "the database's change counter is ahead of the write-ahead log's: the log is older, or another database's"
    case .logBesideEmptyDatabase:
      "the database file is empty but its write-ahead log is not; SQLite would delete the log"
    case .journalFinished: "the rollback journal's header is zeroed: its transaction is over"
    case .journalHot: "the rollback journal is hot: a transaction was cut off and is rolled back when reading"
    case .journalHeaderInvalid: "the rollback journal does not begin with a usable header, so SQLite ignores it"
    case .journalSegmentHeaderLost:
      "a later header of the rollback journal is gone, and SQLite undoes nothing behind it"
    case .journalPageSizeDiffers: "the rollback journal's page size is not the database's"
    case .journalRecordChecksumWrong:
      "a record of the rollback journal does not match its checksum"
    case .journalRecordInvalid: "a record of the rollback journal names an impossible page"
    case .journalTruncated: "the rollback journal ends before its last record"
    case .superJournalNamed: "the rollback journal is part of a transaction over several databases"
    case .superJournalGone: "the super-journal is gone, so the transaction was committed and is not rolled back"
    case .pageOutOfRange: "a pointer leads outside the database"
    case .pageMissing: "the page is not in the file"
    case .pageUsedTwice: "the page is used for a second time"
    case .pageCopied: "the page is a copy of another table's, whose rows it holds"
    case .pageKindWrong: "the page is not of the kind that belongs there"
    case .pageHeaderInvalid: "the page's header is impossible"
    case .cellPointerInvalid: "the cell's pointer leads outside the page's content"
    case .cellInvalid: "the cell does not fit on the page"
    case .cellsOverlap: "cells or free blocks overlap"
    case .freeblockInvalid: "the chain of free blocks is broken"
    case .fragmentCountWrong: "the page's count of fragmented bytes is wrong"
    case .recordMalformed: "the record does not fit its own header"
    case .rowidOrder: "rowids are not in ascending order"
    case .treeTooDeep: "the b-tree is deeper than a b-tree can be"
    case .treeUneven: "the b-tree's leaves are not all at the same depth"
    case .overflowTooShort: "the overflow chain ends before its payload"
    case .overflowTooLong: "the overflow chain goes on behind its payload"
    case .payloadTooLong: "the payload is longer than the database"
    case .tooManyGroups: "the column has more distinct values than are counted"
    case .freelistTrunkInvalid: "a freelist trunk counts more leaves than fit on it"
    case .freelistCountWrong: "the freelist is not as long as the header says"
    case .pointerMapWrong: "the pointer map says something else about the page"
    case .pageNeverUsed: "a page belongs to no table or index, and is not free"
    case .reservedPageUsed: "a pointer-map page or the lock-byte page is used for something else"
    case .indexCountDiffers: "an index does not have as many entries as its table has rows"
    case .indexEntriesDiffer: "the entries of an index are not those that its table's rows should have"
    case .indexOrder: "the entries of an index are not in order"
    case .largestRootWrong: "the header's largest root page is not the largest root page"
    case .schemaRowMalformed: "a row of the schema is malformed"
    case .schemaRootInvalid: "the schema names a root page that cannot be one"
    case .schemaTooLarge: "the schema is larger than any real one; the rest of it is not read"
    }
  }

  /// How much it matters.
  public var severity: Finding.Severity {
    switch self {
    case .pageCountStale,
      .logUncommittedFrames,
      .logStaleFrames,
      .journalFinished,
      .journalHot,
      .superJournalNamed,
      .superJournalGone:
      .note
    case .writeVersionUnknown,
      .expansionNotZero,
      .fileTooLong,
      .partialPage,
      .logHeaderTruncated,
      .logUnknownBytes,
      .logPartialFrame,
      .journalHeaderInvalid,
      .journalPageSizeDiffers,
      .tooManyGroups:
      .warning
    case .headerTruncated, .magicMissing, .pageSizeInvalid, .reservedBytesInvalid, .payloadFractionsWrong,
      .readVersionUnknown, .schemaFormatUnknown, .encodingUnknown, .vacuumFieldsContradict, .fileTooShort,
      .logMagicWrong, .logVersionUnknown, .logHeaderChecksumWrong, .logPageSizeInvalid, .logPageSizeDiffers,
      .logFrameChecksumWrong, .logFrameSaltsWrong, .logMissingPages, .logBehindDatabase, .logBesideEmptyDatabase,
      .journalRecordChecksumWrong, .journalRecordInvalid, .journalSegmentHeaderLost, .journalTruncated, .pageOutOfRange,
      .pageMissing,
      .pageUsedTwice, .pageCopied, .pageKindWrong, .pageHeaderInvalid, .cellPointerInvalid, .cellInvalid, .cellsOverlap,
      .freeblockInvalid, .fragmentCountWrong, .recordMalformed, .rowidOrder, .treeTooDeep, .treeUneven,
      .overflowTooShort, .overflowTooLong, .payloadTooLong, .freelistTrunkInvalid, .freelistCountWrong,
      .pointerMapWrong, .pageNeverUsed, .reservedPageUsed, .indexCountDiffers, .indexEntriesDiffer, .indexOrder,
      .largestRootWrong, .schemaRowMalformed, .schemaRootInvalid, .schemaTooLarge:
      .damage
    }
  }

  /// Whether it tells of bytes in a log that are not part of what a reader sees, and not left from an earlier round.
  package var isOfUnreadLog: Bool { Self.ofUnreadLogs.contains(self) }

  private static let ofUnreadLogs: Set<Finding.Kind> = [
    .logHeaderTruncated, .logMagicWrong, .logVersionUnknown, .logHeaderChecksumWrong, .logPageSizeInvalid,
    .logFrameChecksumWrong, .logFrameSaltsWrong, .logUnknownBytes, .logUncommittedFrames, .logPartialFrame,
  ]
}
