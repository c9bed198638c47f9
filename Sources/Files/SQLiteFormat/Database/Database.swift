public import StoreFiles

/// A SQLite database read from its bytes: the file, with the committed part of its write-ahead log laid over it, or
/// with a hot rollback journal undone.
///
/// Nothing is written, and nothing is trusted. Use a database from one thread at a time; several databases over the same
/// byte sources can be used at once.
public final class Database {
  /// The database file's bytes.
  public let main: any ByteSource

  /// The write-ahead log, where one was given.
  public let writeAheadLog: WriteAheadLog?

  /// The rollback journal, where one was given.
  public let rollbackJournal: RollbackJournal?

  /// Whether committed frames of the write-ahead log are part of what is read.
  public let isLogApplied: Bool

  /// Whether the rollback journal is hot and undone in what is read.
  public let isJournalApplied: Bool

  /// The page size in bytes.
  public let pageSize: Int

  /// The usable bytes of a page: the page size less the reserved bytes.
  public let usableSize: Int

  /// How payloads are divided between pages.
  public let geometry: PayloadGeometry

  /// The header of page 1 as a reader sees it; nil where there is no page 1.
  public let header: DatabaseHeader?

  /// The encoding of all text; UTF-8 where the header does not tell.
  public let encoding: TextEncoding

  /// The number of pages that a reader counts: by the log's last commit, the journal, the header, or the file's size.
  public let pageCount: UInt32

  /// The highest page number of which any byte exists; the bound of every walk.
  public let highestPage: UInt32

  /// What is odd about header, log, journal and sizes.
  public let findings: Findings

  var cache: PageCache
  var window = ReadAhead()

  /// Opens a database over bytes.
  ///
  /// `pageSize` overrides what the header says, for files whose header is lost. `superJournalExists` is asked, with the
  /// name's bytes, whether the super-journal that the rollback journal names is there; without it, it is taken to be.
  /// Throws ``FormatError/Kind/notADatabase`` where no page size can be told, and reading errors.
  public init(
    main: any ByteSource, writeAheadLog: (any ByteSource)? = nil, rollbackJournal: (any ByteSource)? = nil,
    pageSize: Int? = nil, superJournalExists: (([UInt8]) -> Bool)? = nil
  ) throws(FormatError) {
    let head = try main.read(at: 0, length: DatabaseHeader.length)
    let mainHeader = DatabaseHeader(head)
    var log: WriteAheadLog?
    if let writeAheadLog { log = try WriteAheadLog(writeAheadLog) }
    // The page size of a header counts where the magic is right, or where all else looks like a header.
    let sizeInFile = mainHeader.flatMap { $0.hasMagic || $0.hasUsualFractions ? $0.pageSize : nil }
    var journal: RollbackJournal?
    if let rollbackJournal { journal = try RollbackJournal(rollbackJournal, databasePageSize: sizeInFile) }
    var view = DatabaseView(mainCount: main.count)
    view.choosePageSize(given: pageSize, inFile: sizeInFile, log: log, journal: journal)
    guard let size = view.pageSize else {
      throw FormatError(
        .notADatabase, operation: "read the database",
        detail: "it is \(FileKind(firstBytes: try main.read(at: 0, length: FileKind.sampleLength)).words)")
    }
    view.chooseOverlays(log: log, journal: journal, superJournalExists: superJournalExists)

    self.main = main
    self.writeAheadLog = log
    self.rollbackJournal = journal
    self.isLogApplied = view.isLogApplied
    self.isJournalApplied = view.isJournalApplied
    self.pageSize = size
    cache = PageCache(pageSize: size)
    let first = try DatabaseView.readPage(
      1, size: size, main: main, log: view.isLogApplied ? log : nil, journal: view.isJournalApplied ? journal : nil)
    header = first.flatMap { DatabaseHeader($0.bytes) }
    // A destroyed header reserves nothing.
    if let header, header.hasMagic || header.hasUsualFractions, size - Int(header.reservedBytes) >= 480 {
      usableSize = size - Int(header.reservedBytes)
    } else {
      usableSize = size
    }
    geometry = PayloadGeometry(usableSize: usableSize)
    encoding = header?.encoding ?? .utf8
    view.countPages(header: header, mainHeader: mainHeader, log: log, journal: journal)
    pageCount = view.pageCount
    highestPage = view.highestPage
    findings = view.findings
  }

  /// The places of pages that are known by their number.
  public var layout: PageLayout { PageLayout(pageSize: pageSize, usableSize: usableSize) }
}
