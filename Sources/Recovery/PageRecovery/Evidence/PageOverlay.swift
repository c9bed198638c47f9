/// Where the newest committed image of a page is, if not in the database file.
struct PageOverlay {
  /// The image of one page.
  struct Image {
    /// The offset of the page's bytes in the log or journal.
    var offset: Int64

    /// The number of the frame or record, from 1.
    var number: Int

    /// Whether SQLite would not have read it: it is there, and the newest, and its place in a chain is broken.
    var isDoubtful: Bool
  }

  enum Source: String {
    case log = "wal"
    case journal = "journal"
  }

  var source: Source

  /// The newest image of each page.
  var images: [UInt32: Image] = [:]

  /// The number of pages that the database has with them; nil where that is not told.
  var pageCount: UInt32?

  /// The page size that the log or journal states or shows.
  var pageSize: Int

  /// The newest image of each page in a transaction that never ended; only in logs.
  var uncommitted: [UInt32: Image] = [:]

  /// Images that SQLite would not have read.
  var doubtfulCount = 0

  /// Images of transactions that never ended.
  var uncommittedCount = 0

  /// Images of other pages' older versions, committed ones.
  var supersededCount = 0

  /// Whether the log or journal had more: a frame begins behind the last whole one, or records are gone or damaged.
  var isCutOff = false

  /// Whether the database file contradicts it: it may be of another time or another store, and all of it is marked.
  var isContradicted = false

  /// What is to be said of it, in words for the report.
  var remarks: [String] = []
}
