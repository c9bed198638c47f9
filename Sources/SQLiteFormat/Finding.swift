internal import Platform

/// Damage, an oddity or a notable fact about a database.
///
/// It holds numbers only, never a user's values.
public struct Finding: Sendable, Hashable {
  /// The importance of a finding.
  public enum Severity: String, Sendable, Encodable {
    /// Normal in a healthy store.
    case note

    /// Unusual, with no known loss.
    case warning

    /// Content is missing, contradictory or unreadable.
    case damage
  }

  /// The kind of finding.
  public var kind: Kind

  /// The affected page.
  public var page: UInt32?

  /// The cell's place in its page's cell pointer array, from 0.
  public var cell: Int?

  /// The root page of the enclosing b-tree.
  public var root: UInt32?

  /// The expected number.
  public var expected: Int64?

  /// The number found.
  public var found: Int64?

  /// Creates a finding.
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
  /// The finding on one line.
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
  /// The kinds of findings, explained by ``words``; raw values are stable for programs.
  public enum Kind: String, Sendable, CaseIterable {
    // MARK: The database header (bytes 0 to 99 of page 1)

    case headerTruncated = "header-truncated"

    case magicMissing = "magic-missing"

    case pageSizeInvalid = "page-size-invalid"

    case reservedBytesInvalid = "reserved-bytes-invalid"

    case payloadFractionsWrong = "payload-fractions-wrong"

    case readVersionUnknown = "read-version-unknown"

    case writeVersionUnknown = "write-version-unknown"

    case schemaFormatUnknown = "schema-format-unknown"

    case encodingUnknown = "encoding-unknown"

    case expansionNotZero = "expansion-not-zero"

    case vacuumFieldsContradict = "vacuum-fields-contradict"

    case pageCountStale = "page-count-stale"

    case fileTooShort = "file-too-short"

    case fileTooLong = "file-too-long"

    case partialPage = "partial-page"

    // MARK: The write-ahead log

    case logHeaderTruncated = "wal-header-truncated"

    case logMagicWrong = "wal-magic-wrong"

    case logVersionUnknown = "wal-version-unknown"

    case logHeaderChecksumWrong = "wal-header-checksum-wrong"

    case logPageSizeInvalid = "wal-page-size-invalid"

    case logPageSizeDiffers = "wal-page-size-differs"

    case logFrameChecksumWrong = "wal-frame-checksum-wrong"

    case logFrameSaltsWrong = "wal-frame-salts-wrong"

    case logUnknownBytes = "wal-unknown-bytes"

    case logUncommittedFrames = "wal-uncommitted-frames"

    case logStaleFrames = "wal-stale-frames"

    case logPartialFrame = "wal-partial-frame"

    case logMissingPages = "wal-missing-pages"

    case logBehindDatabase = "wal-behind-database"

    case logBesideEmptyDatabase = "wal-beside-empty-database"

    // MARK: The rollback journal

    case journalFinished = "journal-finished"

    case journalHot = "journal-hot"

    case journalHeaderInvalid = "journal-header-invalid"

    /// SQLite ignores records that are there.
    case journalSegmentHeaderLost = "journal-segment-header-lost"

    case journalPageSizeDiffers = "journal-page-size-differs"

    case journalRecordChecksumWrong = "journal-record-checksum-wrong"

    case journalRecordInvalid = "journal-record-invalid"

    case journalTruncated = "journal-truncated"

    case superJournalNamed = "super-journal-named"

    /// The transaction was committed.
    case superJournalGone = "super-journal-gone"

    // MARK: Pages, cells and records

    case pageOutOfRange = "page-out-of-range"

    case pageMissing = "page-missing"

    case pageUsedTwice = "page-used-twice"

    case pageCopied = "page-copied"

    case pageKindWrong = "page-kind-wrong"

    case pageHeaderInvalid = "page-header-invalid"

    case cellPointerInvalid = "cell-pointer-invalid"

    case cellInvalid = "cell-invalid"

    case cellsOverlap = "cells-overlap"

    case freeblockInvalid = "freeblock-invalid"

    case fragmentCountWrong = "fragment-count-wrong"

    case recordMalformed = "record-malformed"

    case rowidOrder = "rowid-order"

    case treeTooDeep = "tree-too-deep"

    case treeUneven = "tree-uneven"

    case overflowTooShort = "overflow-too-short"

    case overflowTooLong = "overflow-too-long"

    case payloadTooLong = "payload-too-long"

    case tooManyGroups = "too-many-groups"

    // MARK: The database as a whole

    case freelistTrunkInvalid = "freelist-trunk-invalid"

    case freelistCountWrong = "freelist-count-wrong"

    case pointerMapWrong = "pointer-map-wrong"

    /// An orphan page.
    case pageNeverUsed = "page-never-used"

    case reservedPageUsed = "reserved-page-used"

    case indexCountDiffers = "index-count-differs"

    case indexEntriesDiffer = "index-entries-differ"

    case indexOrder = "index-order"

    case keyOrder = "key-order"

    case largestRootWrong = "largest-root-wrong"

    case schemaRowMalformed = "schema-row-malformed"

    case schemaRootInvalid = "schema-root-invalid"

    case schemaTooLarge = "schema-too-large"
  }
}

extension Finding.Kind {
  /// The meaning, without a period.
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
    case .logFrameChecksumWrong: "a frame of the write-ahead log does not match its checksum; what follows is not read"
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
      "a header of the rollback journal is damaged or gone, and SQLite would not undo all behind it"
    case .journalPageSizeDiffers: "the rollback journal's page size is not the database's"
    case .journalRecordChecksumWrong: "a record of the rollback journal does not match its checksum"
    case .journalRecordInvalid: "a record of the rollback journal names an impossible page"
    case .journalTruncated: "the rollback journal ends before its last record"
    case .superJournalNamed: "the rollback journal is part of a transaction over several databases"
    case .superJournalGone: "the super-journal is gone, so the transaction was committed and is not rolled back"
    case .pageOutOfRange: "a pointer leads outside the database"
    case .pageMissing: "the page is not in the file"
    case .pageUsedTwice: "the page is used for a second time"
    case .pageCopied: "the page holds rows of another table"
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
    case .keyOrder: "the rows of a table WITHOUT ROWID are not in the order of their key"
    case .largestRootWrong: "the header's largest root page is not the largest root page"
    case .schemaRowMalformed: "a row of the schema is malformed"
    case .schemaRootInvalid: "the schema names a root page that cannot be one"
    case .schemaTooLarge: "the schema is larger than any real one; the rest of it is not read"
    }
  }

  /// The importance.
  public var severity: Finding.Severity {
    switch self {
    case .pageCountStale, .logUncommittedFrames, .logStaleFrames, .journalFinished, .journalHot, .superJournalNamed,
      .superJournalGone:
      .note
    case .writeVersionUnknown, .expansionNotZero, .fileTooLong, .partialPage, .logHeaderTruncated, .logUnknownBytes,
      .logPartialFrame, .journalHeaderInvalid, .journalPageSizeDiffers, .tooManyGroups:
      .warning
    case .headerTruncated, .magicMissing, .pageSizeInvalid, .reservedBytesInvalid, .payloadFractionsWrong,
      .readVersionUnknown, .schemaFormatUnknown, .encodingUnknown, .vacuumFieldsContradict, .fileTooShort,
      .logMagicWrong, .logVersionUnknown, .logHeaderChecksumWrong, .logPageSizeInvalid, .logPageSizeDiffers,
      .logFrameChecksumWrong, .logFrameSaltsWrong, .logMissingPages, .logBehindDatabase, .logBesideEmptyDatabase,
      .journalRecordChecksumWrong, .journalRecordInvalid, .journalSegmentHeaderLost, .journalTruncated, .pageOutOfRange,
      .pageMissing, .pageUsedTwice, .pageCopied, .pageKindWrong, .pageHeaderInvalid, .cellPointerInvalid, .cellInvalid,
      .cellsOverlap, .freeblockInvalid, .fragmentCountWrong, .recordMalformed, .rowidOrder, .treeTooDeep, .treeUneven,
      .overflowTooShort, .overflowTooLong, .payloadTooLong, .freelistTrunkInvalid, .freelistCountWrong,
      .pointerMapWrong, .pageNeverUsed, .reservedPageUsed, .indexCountDiffers, .indexEntriesDiffer, .indexOrder,
      .keyOrder, .largestRootWrong, .schemaRowMalformed, .schemaRootInvalid, .schemaTooLarge:
      .damage
    }
  }

  /// Whether log bytes are unread and no leftovers of a restart.
  var isOfUnreadLog: Bool { Self.ofUnreadLogs.contains(self) }

  private static let ofUnreadLogs: Set<Finding.Kind> = [
    .logHeaderTruncated, .logMagicWrong, .logVersionUnknown, .logHeaderChecksumWrong, .logPageSizeInvalid,
    .logFrameChecksumWrong, .logFrameSaltsWrong, .logUnknownBytes, .logUncommittedFrames, .logPartialFrame,
  ]
}

/// Findings: all are counted, the first ones kept.
///
/// A hostile file can have a flaw per byte; ``limit`` bounds memory.
public struct Findings: Sendable {
  /// The most findings kept.
  public let limit: Int

  /// The kept findings in order.
  public private(set) var items: [Finding] = []

  /// The number of findings per kind, kept or not.
  public private(set) var counts: [Finding.Kind: Int] = [:]

  /// Creates an empty list that keeps up to `limit` findings.
  public init(limit: Int = 1000) { self.limit = max(0, limit) }

  /// The number of findings, kept or not.
  public var total: Int { counts.values.reduce(0, &+) }

  /// Whether there are no findings.
  public var isEmpty: Bool { counts.isEmpty }

  /// Whether any finding is damage.
  public var hasDamage: Bool { counts.keys.contains { $0.severity == .damage } }

  package var damage: [Finding.Kind: Int] { counts.filter { $0.key.severity == .damage } }

  /// Whether there is a finding of this kind.
  public func contains(_ kind: Finding.Kind) -> Bool { counts[kind] != nil }

  /// Returns the number of findings of this kind.
  public func count(of kind: Finding.Kind) -> Int { counts[kind] ?? 0 }

  /// Adds a finding.
  public mutating func append(_ finding: Finding) {
    counts[finding.kind, default: 0] &+= 1
    if items.count < limit { items.append(finding) }
  }

  /// Adds all findings of a list, including those only counted.
  public mutating func append(contentsOf other: Findings) {
    for (kind, count) in other.counts { counts[kind, default: 0] &+= count }
    items.append(contentsOf: other.items.prefix(max(0, limit - items.count)))
  }

  mutating func note(
    _ kind: Finding.Kind, page: UInt32? = nil, cell: Int? = nil, root: UInt32? = nil, expected: Int64? = nil,
    found: Int64? = nil
  ) {
    append(Finding(kind, page: page, cell: cell, root: root, expected: expected, found: found))
  }
}
