public import Platform

/// A SQLite database read from its bytes, with WAL frames applied or a hot rollback journal undone.
///
/// It writes no bytes and trusts none. Use it from one thread at a time; several may share byte sources.
public final class Database {
  /// The database file's bytes.
  public let main: any ByteSource

  /// The given write-ahead log.
  public let writeAheadLog: WriteAheadLog?

  /// The given rollback journal.
  public let rollbackJournal: RollbackJournal?

  /// Whether reads include committed WAL frames.
  public let isLogApplied: Bool

  /// Whether reads undo a hot rollback journal.
  public let isJournalApplied: Bool

  /// The page size in bytes.
  public let pageSize: Int

  /// The page size less the reserved bytes.
  public let usableSize: Int

  /// How payloads are divided between pages.
  public let geometry: PayloadGeometry

  /// The header of page 1 as a reader sees it, if the page exists.
  public let header: DatabaseHeader?

  /// The text encoding; UTF-8 if the header has none.
  public let encoding: TextEncoding

  /// The page count by the log's last commit, the journal, the header or the file size.
  public let pageCount: UInt32

  /// The highest page with any byte; the bound of every walk.
  public let highestPage: UInt32

  /// The oddities of header, log, journal and sizes.
  public let findings: Findings

  var cache: PageCache
  var window = ReadAhead()

  /// Opens a database over bytes.
  ///
  /// `pageSize` overrides a lost header. `superJournalExists` receives the super-journal's name as bytes; by default it
  /// exists. Throws ``FileError/Kind/notADatabase`` without a page size, and reading errors.
  public init(
    main: any ByteSource, writeAheadLog: (any ByteSource)? = nil, rollbackJournal: (any ByteSource)? = nil,
    pageSize: Int? = nil, superJournalExists: (([UInt8]) -> Bool)? = nil
  ) throws(FileError) {
    let head = try main.bytes(at: 0, length: DatabaseHeader.length)
    let mainHeader = DatabaseHeader(head)
    var log: WriteAheadLog?
    if let writeAheadLog { log = try WriteAheadLog(writeAheadLog) }
    // A header counts by its magic or its resemblance.
    let sizeInFile = mainHeader.flatMap { $0.hasMagic || $0.hasUsualFractions ? $0.pageSize : nil }
    var journal: RollbackJournal?
    if let rollbackJournal {
      journal = try RollbackJournal(rollbackJournal, databasePageSize: sizeInFile, database: mainHeader)
    }
    var view = DatabaseView(mainCount: main.count)
    view.choosePageSize(given: pageSize, inFile: sizeInFile, log: log, journal: journal)
    guard let size = view.pageSize else {
      throw FileError(
        .notADatabase, operation: "read the database",
        detail: "it is \(FileKind(firstBytes: try main.bytes(at: 0, length: FileKind.sampleLength)).words)")
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
    // A destroyed header reserves no bytes.
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

  /// The pages with fixed numbers.
  public var layout: PageLayout { PageLayout(pageSize: pageSize, usableSize: usableSize) }
}

extension Database {
  /// Returns a page as a reader sees it, even beyond ``pageCount``; nil if no byte exists.
  public func page(_ number: UInt32) throws(FileError) -> Page? {
    guard number > 0, number <= highestPage else { return nil }
    if let page = cache.page(number) { return page }
    guard let page = try readPage(number) else { return nil }
    cache.insert(page)
    return page
  }

  /// Returns a b-tree page; nil if the page is missing or of another kind.
  public func bTreePage(_ number: UInt32) throws(FileError) -> BTreePage? {
    guard let page = try page(number) else { return nil }
    return BTreePage(page.bytes, number: number, geometry: geometry)
  }

  /// Returns a page's pointer map entry, if there is one.
  public func pointerMapEntry(for page: UInt32) throws(FileError) -> PointerMapEntry? {
    guard header?.isAutoVacuum == true, let map = layout.pointerMapPage(for: page), map != page,
      let content = try self.page(map)
    else { return nil }
    return PointerMapEntry(for: page, in: content.bytes.span, mapPage: map)
  }

  private func readPage(_ number: UInt32) throws(FileError) -> Page? {
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

  func pagePrefix(_ number: UInt32, length: Int, into buffer: inout [UInt8]) throws(FileError) {
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
  /// The totals of a full table scan.
  public struct ScanResult: Sendable, Hashable {
    /// The table leaves.
    public var leaves = 0

    /// The bytes of those leaves.
    public var leafBytes = 0

    /// The rows.
    public var rows = 0

    /// The columns.
    public var columns = 0

    /// The bytes of text and blobs.
    public var contentBytes = 0

    /// The unreadable cells.
    public var badCells = 0

    /// A checksum of everything read; equal for equal content.
    public var checksum: UInt64 = 0
  }

  /// Reads all rows of tables with rowids, as far as they lie on leaves.
  ///
  /// It is the fastest pass, for measuring and warming caches.
  public func scanTables() throws(FileError) -> ScanResult {
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
  /// Returns the row of a rowid; nil if absent or behind damage.
  public func row(_ rowid: Int64, root: UInt32) throws(FileError) -> Row? {
    var number = root
    var depth = 0
    while depth < BTreeWalk.maximumDepth {
      guard let page = try bTreePage(number), page.kind.isTable else { return nil }
      // The first cell not below the rowid; unreadable cells count as below.
      var low = 0
      var high = page.cellCount
      while low < high {
        let middle = (low + high) / 2
        if let cell = page.cell(at: middle), cell.rowid >= rowid { high = middle } else { low = middle + 1 }
      }
      if page.kind.isLeaf {
        guard let cell = page.cell(at: low), cell.rowid == rowid,
          let record = try record(of: cell, on: page, root: root, limit: Cell.maximumPayloadLength)
        else { return nil }
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
  /// Returns the row with the highest rowid, along the right edge; nil if the table is empty or damaged there.
  ///
  /// Reads at most `payloadLimit` bytes of its record.
  public func lastRow(root: UInt32, payloadLimit: Int = Cell.maximumPayloadLength) throws(FileError) -> Row? {
    guard let (page, index, cell) = try endCell(true, root: root, isTable: true),
      let record = try record(of: cell, on: page, root: root, limit: payloadLimit)
    else { return nil }
    return Row(rowid: cell.rowid, record: record, page: page.number, cell: index)
  }

  /// Returns an index's first and last entries, if readable.
  ///
  /// Reads at most `payloadLimit` bytes of each.
  public func indexEnds(root: UInt32, payloadLimit: Int = 512) throws(FileError) -> [Record] {
    var ends: [Record] = []
    for isLast in [false, true] {
      guard let (page, _, cell) = try endCell(isLast, root: root, isTable: false),
        let record = try record(of: cell, on: page, root: root, limit: payloadLimit)
      else { continue }
      ends.append(record)
    }
    return ends
  }

  /// Follows the left or the right edge of a tree; nil if it is empty or damaged there.
  private func endCell(
    _ isLast: Bool, root: UInt32, isTable: Bool
  ) throws(FileError) -> (page: BTreePage, index: Int, cell: Cell)? {
    var number = root
    for _ in 0..<BTreeWalk.maximumDepth {
      guard let page = try bTreePage(number), page.kind.isTable == isTable else { return nil }
      if page.kind.isLeaf {
        let index = isLast ? page.cellCount - 1 : 0
        return page.cell(at: index).map { (page, index, $0) }
      }
      guard let child = isLast ? page.rightMostChild : page.child(at: 0), child > 1 else { return nil }
      number = child
    }
    return nil
  }

  private func record(of cell: Cell, on page: BTreePage, root: UInt32, limit: Int) throws(FileError) -> Record? {
    var walk = BTreeWalk(gatheringFrom: self, root: root)
    let payload = try walk.payload(of: cell, on: page, limit: limit)
    return Record(payload: payload, payloadLength: cell.payloadLength, encoding: encoding)
  }
}

extension Database {
  /// Counts rows or entries from page headers alone.
  ///
  /// Reads only the first bytes of table leaves. Notes damage and skips what lies below.
  public func countRows(root: UInt32) throws(FileError) -> (count: Int, findings: Findings) {
    var counting = RowCounting(self, root: root)
    try counting.run()
    return (counting.count, counting.findings)
  }

  /// Counts rows for each integer in one column, such as `Z_ENT`; columns count from 0.
  ///
  /// Nil counts rows with other values or the column on an overflow page. Integers beyond 65,536 also count under nil,
  /// with a finding.
  public func countRows(
    root: UInt32, byIntegerIn column: Int
  ) throws(FileError) -> (counts: [Int64?: Int], findings: Findings) {
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

/// Counts cells, reading only interior pages whole.
private struct RowCounting {
  let database: Database
  let root: UInt32
  var count = 0
  var findings = Findings()
  private var visited = PageSet()
  private var prefix: [UInt8] = []
  private var pending: [(page: UInt32, depth: Int)]

  init(_ database: Database, root: UInt32) {
    self.database = database
    self.root = root
    pending = [(root, 0)]
  }

  mutating func run() throws(FileError) {
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

  private mutating func enqueueChildren(of number: UInt32, depth: Int) throws(FileError) {
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

/// A stretch of the file, read ahead for sequential pages.
struct ReadAhead {
  static let length = 262_144

  var bytes: [UInt8] = []

  var offset: Int64 = 0

  var lastPage: UInt32 = 0

  /// Returns a page wholly in the stretch.
  func page(at pageOffset: Int64, size: Int) -> [UInt8]? {
    let start = pageOffset &- offset
    guard start >= 0, start <= Int64(bytes.count &- size) else { return nil }
    return Array(bytes[Int(start)..<(Int(start) &+ size)])
  }
}
