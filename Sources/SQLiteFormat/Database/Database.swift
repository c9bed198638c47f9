public import Platform

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
    if let rollbackJournal {
      journal = try RollbackJournal(rollbackJournal, databasePageSize: sizeInFile, database: mainHeader)
    }
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

extension Database {
  /// A page as a reader would see it, or nil where no byte of it exists.
  ///
  /// Pages behind ``pageCount`` are given too where the file holds them.
  public func page(_ number: UInt32) throws(FormatError) -> Page? {
    guard number > 0, number <= highestPage else { return nil }
    if let page = cache.page(number) { return page }
    guard let page = try readPage(number) else { return nil }
    cache.insert(page)
    return page
  }

  /// A page's b-tree header and cells; nil where the page does not exist or is of another kind.
  public func bTreePage(_ number: UInt32) throws(FormatError) -> BTreePage? {
    guard let page = try page(number) else { return nil }
    return BTreePage(page.bytes, number: number, geometry: geometry)
  }

  /// What the pointer map says about a page; nil where there is no pointer map, or none for this page.
  public func pointerMapEntry(for page: UInt32) throws(FormatError) -> PointerMapEntry? {
    guard header?.isAutoVacuum == true, let map = layout.pointerMapPage(for: page), map != page,
      let content = try self.page(map)
    else { return nil }
    return PointerMapEntry(for: page, in: content.bytes.span, mapPage: map)
  }

  private func readPage(_ number: UInt32) throws(FormatError) -> Page? {
    let log = isLogApplied ? writeAheadLog : nil
    let journal = isJournalApplied ? rollbackJournal : nil
    if log?.frames[number] != nil || journal?.pageOffsets[number] != nil {
      return try DatabaseView.readPage(number, size: pageSize, main: main, log: log, journal: journal)
    }
    let offset = Int64(number - 1) * Int64(pageSize)
    let isNext = window.lastPage > 0 && number > window.lastPage && number - window.lastPage <= 8
    window.lastPage = number
    if let bytes = window.page(at: offset, size: pageSize) {
      return Page(number: number, bytes: bytes, presentCount: pageSize, origin: .main(offset: offset))
    }
    if isNext {
      try main.fill(&window.bytes, at: offset, length: ReadAhead.length)
      window.offset = offset
      if let bytes = window.page(at: offset, size: pageSize) {
        return Page(number: number, bytes: bytes, presentCount: pageSize, origin: .main(offset: offset))
      }
    }
    return try DatabaseView.readPage(number, size: pageSize, main: main, log: nil, journal: nil)
  }

  /// The first bytes of a page, for looking at headers without reading whole pages.
  func pagePrefix(_ number: UInt32, length: Int, into buffer: inout [UInt8]) throws(FormatError) {
    buffer.removeAll(keepingCapacity: true)
    guard number > 0, number <= highestPage else { return }
    if isLogApplied, let log = writeAheadLog, let frame = log.frames[number],
      let offset = log.pageOffset(ofFrame: Int(frame))
    {
      try log.source.fill(&buffer, at: offset, length: length)
    } else if isJournalApplied, let journal = rollbackJournal, let offset = journal.pageOffsets[number] {
      try journal.source.fill(&buffer, at: offset, length: length)
    } else {
      try main.fill(&buffer, at: Int64(number - 1) * Int64(pageSize), length: length)
    }
  }
}

extension Database {
  /// What a scan of a whole database read.
  public struct ScanResult: Sendable, Hashable {
    /// The table leaves that were read.
    public var leaves = 0

    /// The bytes of those leaves.
    public var leafBytes = 0

    /// The rows that were read.
    public var rows = 0

    /// The columns that were read.
    public var columns = 0

    /// The bytes of text and blobs that were read.
    public var contentBytes = 0

    /// The cells that could not be read.
    public var badCells = 0

    /// A sum over everything that was read; it is the same for the same content.
    public var checksum: UInt64 = 0
  }

  /// Reads every row of every table with rowids: each rowid, record header, number, text and blob on the leaf itself.
  ///
  /// It is the fastest way through a database, for measuring and for warming caches; overflow pages are not followed.
  public func scanTables() throws(FormatError) -> ScanResult {
    var scan = LeafScan()
    var result = ScanResult()
    var roots = PageSet()
    for entry in try schema().entries where entry.kind == .table && entry.rootPage > 0 && roots.insert(entry.rootPage) {
      var walk = try BTreeWalk(database: self, root: entry.rootPage, isTable: true)
      while let page = try walk.nextPage() {
        scan.add(page)
        result.leaves += 1
        result.leafBytes += pageSize
      }
    }
    result.rows = scan.rows
    result.columns = scan.columns
    result.contentBytes = scan.contentBytes
    result.badCells = scan.badCells
    result.checksum = scan.checksum
    return result
  }
}

extension Database {
  /// The row of a rowid, found by descending from the root; nil where it is not there or damage is in the way.
  public func row(_ rowid: Int64, root: UInt32) throws(FormatError) -> Row? {
    var number = root
    var depth = 0
    while depth < BTreeWalk.maximumDepth {
      guard let page = try bTreePage(number), page.kind.isTable else { return nil }
      // The first cell whose key is not below the rowid; an unreadable one counts as below.
      var low = 0
      var high = page.cellCount
      while low < high {
        let middle = (low + high) / 2
        if let cell = page.cell(at: middle), cell.rowid >= rowid {
          high = middle
        } else {
          low = middle + 1
        }
      }
      if page.kind.isLeaf {
        guard let cell = page.cell(at: low), cell.rowid == rowid else { return nil }
        var walk = BTreeWalk(gatheringFrom: self, root: root)
        let payload = try walk.payload(of: cell, on: page, limit: Cell.maximumPayloadLength)
        guard let record = Record(payload: payload, payloadLength: cell.payloadLength, encoding: encoding) else {
          return nil
        }
        return Row(rowid: rowid, record: record, page: page.number, cell: low)
      }
      guard let child = page.child(at: low), child > 1 else { return nil }
      number = child
      depth += 1
    }
    return nil
  }
}

extension Database {
  /// The row with the highest rowid, found by descending along the right edge; nil where the table is empty or damage is in
  /// the way.
  ///
  /// Of its record no more than `payloadLimit` bytes are read.
  public func lastRow(root: UInt32, payloadLimit: Int = Cell.maximumPayloadLength) throws(FormatError) -> Row? {
    var number = root
    for _ in 0..<BTreeWalk.maximumDepth {
      guard let page = try bTreePage(number), page.kind.isTable else { return nil }
      guard page.kind.isLeaf else {
        guard page.rightMostChild > 1 else { return nil }
        number = page.rightMostChild
        continue
      }
      guard page.cellCount > 0, let cell = page.cell(at: page.cellCount - 1) else { return nil }
      var walk = BTreeWalk(gatheringFrom: self, root: root)
      let payload = try walk.payload(of: cell, on: page, limit: payloadLimit)
      guard let record = Record(payload: payload, payloadLength: cell.payloadLength, encoding: encoding) else {
        return nil
      }
      return Row(rowid: cell.rowid, record: record, page: page.number, cell: page.cellCount - 1)
    }
    return nil
  }
}

extension Database {
  /// The first and the last entry of an index, found by descending along both edges; what is empty or behind damage is left
  /// out.
  ///
  /// Of each entry no more than `payloadLimit` bytes are read.
  public func indexEnds(root: UInt32, payloadLimit: Int = 512) throws(FormatError) -> [Record] {
    var ends: [Record] = []
    for isLast in [false, true] {
      if let record = try indexEnd(isLast, root: root, payloadLimit: payloadLimit) { ends.append(record) }
    }
    return ends
  }

  private func indexEnd(_ isLast: Bool, root: UInt32, payloadLimit: Int) throws(FormatError) -> Record? {
    var number = root
    for _ in 0..<BTreeWalk.maximumDepth {
      guard let page = try bTreePage(number), !page.kind.isTable else { return nil }
      guard page.kind.isLeaf else {
        guard let child = isLast ? page.rightMostChild : page.child(at: 0), child > 1 else { return nil }
        number = child
        continue
      }
      guard page.cellCount > 0, let cell = page.cell(at: isLast ? page.cellCount - 1 : 0) else { return nil }
      var walk = BTreeWalk(gatheringFrom: self, root: root)
      let payload = try walk.payload(of: cell, on: page, limit: payloadLimit)
      return Record(payload: payload, payloadLength: cell.payloadLength, encoding: encoding)
    }
    return nil
  }
}

extension Database {
  /// The number of rows of a table, or of entries of an index, from page headers alone.
  ///
  /// Leaves of tables are not read beyond their first bytes. Damage is noted, and what lies behind it not counted.
  public func countRows(root: UInt32) throws(FormatError) -> (count: Int, findings: Findings) {
    var counting = RowCounting(self, root: root)
    try counting.run()
    return (counting.count, counting.findings)
  }

  /// The number of rows of a table for each integer in one column, such as `Z_ENT`; column 0 is the record's first.
  ///
  /// Rows whose column holds anything else, or lies on an overflow page, are counted under nil. At most 65,536
  /// different integers are told apart; rows of further ones are counted under nil too, with a finding.
  public func countRows(
    root: UInt32, byIntegerIn column: Int
  ) throws(FormatError) -> (counts: [Int64?: Int], findings: Findings) {
    var walk = try BTreeWalk(database: self, root: root, isTable: true)
    var grouped = GroupedCount(column: column)
    while let page = try walk.nextPage() {
      for index in 0..<page.cellCount {
        guard let cell = page.cell(at: index) else {
          walk.findings.note(.cellInvalid, page: page.number, cell: index, root: root)
          continue
        }
        grouped.add(cell, on: page)
      }
    }
    if grouped.hasTooMany { walk.findings.note(.tooManyGroups, root: root) }
    return (grouped.counts, walk.findings)
  }
}

/// Counts the cells of a b-tree by reading the first bytes of its pages, and inner pages whole.
private struct RowCounting {
  let database: Database
  let root: UInt32
  var count = 0
  var findings = Findings()
  private var visited = PageSet()
  private var prefix: [UInt8] = []
  /// The pages still to look at, the next one last, with their depth.
  private var pending: [(page: UInt32, depth: Int)]

  init(_ database: Database, root: UInt32) {
    self.database = database
    self.root = root
    pending = [(root, 0)]
  }

  mutating func run() throws(FormatError) {
    while let (number, depth) = pending.popLast() {
      guard number >= 1, number <= database.highestPage, number > 1 || depth == 0 else {
        findings.note(.pageOutOfRange, root: root, found: Int64(number))
        continue
      }
      guard visited.insert(number) else {
        findings.note(.pageUsedTwice, page: number, root: root)
        continue
      }
      let headerOffset = number == 1 ? DatabaseHeader.length : 0
      try database.pagePrefix(number, length: headerOffset + 8, into: &prefix)
      guard prefix.count == headerOffset + 8 else {
        findings.note(.pageMissing, page: number, root: root)
        continue
      }
      guard let kind = PageKind(rawValue: prefix[headerOffset]) else {
        findings.note(.pageKindWrong, page: number, root: root, found: Int64(prefix[headerOffset]))
        continue
      }
      let stored = prefix.span.uint16(at: headerOffset + 3) ?? 0
      let isPossible = stored <= (database.usableSize - 8) / 6
      if !isPossible { findings.note(.pageHeaderInvalid, page: number, root: root) }
      if kind.isLeaf || !kind.isTable { count += isPossible ? stored : 0 }
      if !kind.isLeaf { try enqueueChildren(of: number, depth: depth) }
    }
  }

  private mutating func enqueueChildren(of number: UInt32, depth: Int) throws(FormatError) {
    guard depth < BTreeWalk.maximumDepth else {
      findings.note(.treeTooDeep, page: number, root: root)
      return
    }
    guard let page = try database.bTreePage(number) else { return }
    pending.append((page.rightMostChild, depth + 1))
    for index in stride(from: page.cellCount - 1, through: 0, by: -1) {
      if let child = page.child(at: index) {
        pending.append((child, depth + 1))
      } else {
        findings.note(.cellPointerInvalid, page: number, cell: index, root: root)
      }
    }
  }
}
