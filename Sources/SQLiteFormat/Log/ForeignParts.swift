public import Platform

/// Evidence that a write-ahead log is not the file's own.
///
/// A log does not name its database. But page sizes match, counters only grow, no transaction replaces all tables, and
/// a Core Data store's identifier never changes.
public enum ForeignLog: Sendable, Hashable {
  case pageSize

  /// The last transaction is earlier than the file's.
  case older

  /// The log has none of the file's tables.
  case tables

  case identifier

  /// The log damages the schema or root pages; the file alone is sound.
  case roots

  /// Links between file and log pages contradict keys.
  case trees

  /// The log is of a later state or another copy: trees and indexes contradict each other; the file alone is sound.
  case state

  /// Finds evidence that the log is another's.
  ///
  /// - Parameter database: the file with its log.
  public init?(of database: Database) throws(FileError) {
    guard let sign = try Self.sign(of: database) else { return nil }
    self = sign
  }

  /// Whether the log is certainly another's; an older one may be its own.
  public var isCertain: Bool { self != .older }

  /// The evidence in a sentence.
  public var words: String {
    switch self {
    case .pageSize: "The write-ahead log beside the store belongs to another database: its pages have another size."
    case .older: "The write-ahead log beside the store is older than the store, or belongs to another database."
    case .tables:
      "The write-ahead log beside the store belongs to another database: it has none of the tables that the store has."
    case .identifier: "The write-ahead log beside the store belongs to another store: it has another identifier in it."
    case .roots:
      "The write-ahead log beside the store belongs to another database: with it the tables of the store are not where its schema says, and without it they are."
    case .trees:
      "The write-ahead log beside the store belongs to another database: the pages in it and those of the store do not fit each other."
    case .state:
      "The write-ahead log beside the store is of another state of it, as where an earlier copy of the store was put back: with it tables and indexes contradict each other, and without it all is as it should be."
    }
  }

  private static func sign(of database: Database) throws(FileError) -> ForeignLog? {
    if database.findings.contains(.logPageSizeDiffers) { return .pageSize }
    guard database.isLogApplied else { return nil }
    // Signs of another database precede those of an earlier log.
    let sign = try contradiction(in: database)
    if let sign, sign != .roots { return sign }
    if try isOlder(database) { return .older }
    if let sign { return sign }
    if try CrossingLinks(database, database.schema()).areContradicted { return .trees }
    guard try isLater(database) else { return nil }
    return try isOfOtherState(database) ? .state : nil
  }

  /// Whether the last transaction is earlier than the file's.
  private static func isOlder(_ database: Database) throws(FileError) -> Bool {
    if database.findings.contains(.logBehindDatabase) { return true }
    guard let log = database.writeAheadLog, let header = database.header,
      let main = DatabaseHeader(try database.main.bytes(at: 0, length: DatabaseHeader.length)), main.hasMagic,
      main.hasUsualFractions
    else { return false }
    if log.frames[1] != nil, header.hasMagic, EarlierImages.isEarlier(header, than: main) { return true }
    let end = log.pageCount
    let count = log.frames.keys.count { $0 <= end }
    // A complete log replaces its database, as after re-creating the store.
    guard count < Int(end) - 1 else { return false }
    let filePages = UInt32(clamping: database.main.count / Int64(database.pageSize))
    if main.isPageCountValid, main.pageCount > end, main.pageCount <= filePages,
      !EarlierImages.mayHaveShortened(end: end, images: count, isAutoVacuum: header.isAutoVacuum)
    {
      return true
    }
    guard let root = try database.schema().table(named: "Z_PRIMARYKEY")?.rootPage, root > 1, root <= filePages,
      log.frames[root] != nil, let newer = try database.bTreePage(root)
    else { return false }
    let offset = Int64(root - 1) * Int64(database.pageSize)
    let bytes = try database.main.bytes(at: offset, length: database.pageSize)
    guard let older = BTreePage(bytes, number: root, geometry: database.geometry) else { return false }
    return EarlierImages.hasLowerKeys(newer, than: older, database.encoding)
  }

  /// Compares the file alone with the file and log.
  private static func contradiction(in database: Database) throws(FileError) -> ForeignLog? {
    guard database.main.count > Int64(database.pageSize) else { return nil }
    let alone: Database
    do throws(FileError) {
      alone = try Database(main: database.main, pageSize: database.pageSize)
    } catch  where error.kind == .notADatabase {
      return nil
    }
    guard alone.header?.hasMagic == true else { return nil }
    let own = try alone.schema()
    guard !own.tables.isEmpty, !own.findings.hasDamage else { return nil }
    let laidOver = try database.schema()
    guard !laidOver.findings.hasDamage else { return try alone.rootFindings(of: own).isEmpty ? .roots : nil }
    guard !laidOver.tables.isEmpty else { return nil }
    if Set(own.tables.map(\.name)).isDisjoint(with: laidOver.tables.map(\.name)) { return .tables }
    if let identifier = try storeIdentifier(in: alone, own), let other = try storeIdentifier(in: database, laidOver),
      identifier != other
    {
      return .identifier
    }
    guard try !database.rootFindings(of: laidOver).isEmpty, try alone.rootFindings(of: own).isEmpty else { return nil }
    return .roots
  }

  private static let rowLimit = 64 << 20

  private static func storeIdentifier(in database: Database, _ schema: Schema) throws(FileError) -> String? {
    guard let table = schema.table(named: "Z_METADATA"), table.rootPage > 0, let definition = table.tableDefinition,
      let place = definition.column(named: "Z_UUID")
    else { return nil }
    var rows = try database.rows(root: table.rootPage, payloadLimit: rowLimit)
    guard let row = try rows.next() else { return nil }
    let values = definition.values(of: row)
    guard values.indices.contains(place), let text = values[place].string, text.utf8.count == 36 else { return nil }
    return text
  }
}

extension Database {
  /// Checks that root pages exist once and have the right kind.
  public func rootFindings(of schema: Schema) throws(FileError) -> Findings {
    var findings = Findings()
    var roots: Set<UInt32> = []
    for entry in schema.entries where entry.rootPage > 0 {
      if !roots.insert(entry.rootPage).inserted {
        findings.note(.pageUsedTwice, page: entry.rootPage)
        continue
      }
      guard entry.rootPage <= pageCount else {
        findings.note(.pageOutOfRange, page: entry.rootPage)
        continue
      }
      let isTable = entry.kind == .table && entry.tableDefinition?.isWithoutRowid != true
      guard let page = try bTreePage(entry.rootPage), page.isHeaderPlausible, page.kind.isTable == isTable else {
        findings.note(.pageKindWrong, page: entry.rootPage, root: entry.rootPage)
        continue
      }
    }
    return findings
  }
}

extension ForeignLog {
  /// Whether an own log belongs to another state, as after restoring an earlier file.
  ///
  /// Then the file alone is consistent, but not with the log or its first transaction. Reads every page up to three
  /// times.
  package static func isOfOtherState(_ database: Database) throws(FileError) -> Bool {
    guard database.isLogApplied, let log = database.writeAheadLog, database.main.count > 0 else { return false }
    let isLater = try isLater(database)
    // A partly unreadable log may contradict itself.
    if !isLater { guard log.isReadToItsEnd, try !database.isConsistent() else { return false } }
    let alone = try Database(main: database.main, pageSize: database.pageSize)
    guard alone.header?.hasMagic == true, try alone.isConsistent() else { return false }
    guard !isLater, let frameLength = log.frameLength, log.commitCount > 1 else { return true }
    let end = Int64(WriteAheadLog.Header.length) + Int64(log.firstCommittedFrame) * Int64(frameLength)
    // If indexes went wrong only later, the log is the app's own.
    let first = try Database(main: database.main, writeAheadLog: SourcePrefix(source: log.source, count: end))
    return try !first.isConsistent()
  }

  /// Whether the file lacks transactions before the log.
  ///
  /// Counters grow by one per transaction; the log's first is more than one above the file's.
  static func isLater(_ database: Database) throws(FileError) -> Bool {
    guard let log = database.writeAheadLog, let frame = log.firstHeaderFrame,
      let offset = log.pageOffset(ofFrame: frame),
      let main = DatabaseHeader(try database.main.bytes(at: 0, length: DatabaseHeader.length)),
      let first = DatabaseHeader(try log.source.bytes(at: offset, length: DatabaseHeader.length)),
      main.hasMagic, main.isPageCountValid, first.hasMagic, first.isPageCountValid
    else { return false }
    return Int32(bitPattern: first.changeCounter &- main.changeCounter) > 1
  }
}

extension Database {
  fileprivate func isConsistent() throws(FileError) -> Bool {
    let schema = try schema()
    guard !findings.hasDamage, !schema.findings.hasDamage, try rootFindings(of: schema).isEmpty else { return false }
    let indexes = try IndexCheck(self, schema)
    guard try checkIntegrity(countingBy: [:], visitor: indexes, progress: { _, _ in true }).isSound else {
      return false
    }
    return try indexes.compare { true }.isSound
  }
}

/// Evidence that a log is older than the file: counters that only grow are lower.
package enum EarlierImages {
  /// Compares page 1 by change counter and schema cookie.
  package static func isEarlier(_ header: DatabaseHeader, than other: DatabaseHeader) -> Bool {
    // Signed, because counters may wrap.
    Int32(bitPattern: header.changeCounter &- other.changeCounter) < 0
      || Int32(bitPattern: header.schemaCookie &- other.schemaCookie) < 0
  }

  /// Whether a log with nearly all pages, or with pointer maps, may have shortened its database.
  ///
  /// - Parameter count: the log's pages up to the end.
  package static func mayHaveShortened(end: UInt32, images count: Int, isAutoVacuum: Bool) -> Bool {
    isAutoVacuum || end < 2 || count >= Int(end) - 1
  }

  /// Whether a log's `Z_PRIMARYKEY` leaf has lower keys than the file's, and none higher.
  package static func hasLowerKeys(_ page: BTreePage, than other: BTreePage, _ encoding: TextEncoding) -> Bool {
    let older = highestKeys(other, encoding)
    var isLower = false
    for (entity, key) in highestKeys(page, encoding) {
      guard let known = older[entity], known.name == key.name else { continue }
      if key.highest > known.highest { return false }
      if key.highest < known.highest { isLower = true }
    }
    return isLower
  }

  /// Returns entity names and highest keys of a `Z_PRIMARYKEY` leaf.
  private static func highestKeys(
    _ page: BTreePage, _ encoding: TextEncoding
  ) -> [Int64: (name: String, highest: Int64)] {
    guard page.kind == .tableLeaf, page.isHeaderPlausible else { return [:] }
    var keys: [Int64: (name: String, highest: Int64)] = [:]
    for index in 0..<page.cellCount {
      guard let cell = page.cell(at: index), cell.overflowPage == nil,
        let values = page.localRecord(of: cell, encoding: encoding)?.values, values.count > 3,
        let name = values[1].string, case .integer(let highest) = values[3]
      else { continue }
      keys[cell.rowid] = (name, highest)
    }
    return keys
  }
}

/// Evidence that a rollback journal is not of the file's interrupted transaction.
///
/// A journal does not name its database. But during its transaction the file has the change counter of the journal's
/// page 1, afterwards the next one; and the old pages make the trees whole.
public enum ForeignJournal: Sendable, Hashable {
  /// Change counters or page counts differ.
  case counters

  /// Links between file and journal pages contradict keys.
  case trees

  /// Finds evidence of another database or an earlier transaction.
  ///
  /// - Parameter database: the file with its journal.
  public init?(of database: Database) throws(FileError) {
    guard database.isJournalApplied, let journal = database.rollbackJournal else { return nil }
    guard let main = DatabaseHeader(try database.main.bytes(at: 0, length: DatabaseHeader.length)) else { return nil }
    var old: DatabaseHeader?
    if let offset = journal.pageOffset(of: 1) {
      old = DatabaseHeader(try journal.source.bytes(at: offset, length: DatabaseHeader.length))
      if old == nil { return nil }
    }
    if Self.isContradicted(by: main, old: old, pageCount: journal.header?.originalPageCount) {
      self = .counters
    } else if !journal.isCutShort, try CrossingLinks(database, database.schema()).areContradicted {
      // Partly restored pages mix two states.
      self = .trees
    } else {
      return nil
    }
  }

  /// Whether the file's page 1 contradicts a journal.
  ///
  /// - Parameters:
  ///   - old: the journal's page 1, if any.
  ///   - pageCount: the journal's page count.
  package static func isContradicted(by main: DatabaseHeader, old: DatabaseHeader?, pageCount: UInt32?) -> Bool {
    guard main.hasMagic, main.hasUsualFractions, main.isPageCountValid else { return false }
    guard let old else {
      // Without page 1 in the journal the page count is unchanged.
      guard let pageCount, pageCount > 0 else { return false }
      return main.pageCount != pageCount
    }
    guard old.hasMagic, old.isPageCountValid else { return false }
    return main.changeCounter != old.changeCounter && main.changeCounter != old.changeCounter &+ 1
  }

  /// The evidence in a sentence.
  public var words: String {
    switch self {
    case .counters:
      "The rollback journal beside the store belongs to another database or to an earlier transaction: the store does not have the number of transactions or pages that it had."
    case .trees:
      "The rollback journal beside the store belongs to another database or to an earlier transaction: the pages in it and those of the store do not fit each other."
    }
  }
}

extension Database {
  /// Opens a database without a foreign log or journal.
  ///
  /// - Throws: errors of opening.
  public static func withOwnParts(
    main: any ByteSource, writeAheadLog: (any ByteSource)?, rollbackJournal: (any ByteSource)?
  ) throws(FileError) -> Database {
    let whole = try Database(main: main, writeAheadLog: writeAheadLog, rollbackJournal: rollbackJournal)
    let isLogOwn = try ForeignLog(of: whole)?.isCertain != true
    let isJournalOwn = try ForeignJournal(of: whole) == nil
    if isLogOwn && isJournalOwn { return whole }
    return try Database(
      main: main, writeAheadLog: isLogOwn ? writeAheadLog : nil, rollbackJournal: isJournalOwn ? rollbackJournal : nil)
  }
}

/// The tree links between the database file and its log or journal.
///
/// Within one database the keys below a link lie within its bounds; across databases they do not.
package struct CrossingLinks: Sendable, Hashable {
  package private(set) var fitting = 0

  /// The links to other keys or kinds of page.
  package private(set) var contradicting = 0

  package init() {}

  /// Whether file and overlay have different trees.
  package var areContradicted: Bool { contradicting > fitting }

  /// Adds a link to a table page.
  ///
  /// - Parameters:
  ///   - keys: the page's first and last rowid.
  ///   - low: the exclusive bound; nil for the first child.
  ///   - high: the inclusive bound; nil for the last child.
  package mutating func add(_ keys: (first: Int64, last: Int64), above low: Int64?, upTo high: Int64?) {
    let isWithin = low.map { keys.first > $0 } ?? true && high.map { keys.last <= $0 } ?? true
    if isWithin { fitting += 1 } else { contradicting += 1 }
  }

  /// Adds a link to an index page, which is impossible in a table.
  package mutating func addIndexPage() { contradicting += 1 }

  /// Samples the interior pages of tables.
  init(_ database: Database, _ schema: Schema) throws(FileError) {
    guard database.main.count > 0, database.isLogApplied || database.isJournalApplied else { return }
    var visited = PageSet()
    var pending: [(page: UInt32, depth: Int)] = schema.entries.reversed().compactMap { entry in
      guard entry.kind == .table, entry.rootPage > 0, entry.tableDefinition?.isWithoutRowid != true else { return nil }
      return (entry.rootPage, 0)
    }
    var looked = 0
    while let (number, depth) = pending.popLast(), looked < Self.innerPageLimit {
      guard number <= database.highestPage, visited.insert(number) else { continue }
      guard let page = try database.bTreePage(number), page.kind == .tableInterior, page.isHeaderPlausible,
        depth < BTreeWalk.maximumDepth
      else { continue }
      looked += 1
      guard let node = Node(page, last: database.highestPage) else { continue }
      try add(node, of: page, in: database)
      // All children of an interior page are of one kind.
      var hasInner = false
      for child in node.children.prefix(Self.kindSample) where !hasInner {
        hasInner = try database.bTreePage(child)?.kind == .tableInterior
      }
      if hasInner { pending += node.children.reversed().map { ($0, depth + 1) } }
    }
  }

  private static let innerPageLimit = 2048

  private static let placeLimit = 32

  private static let kindSample = 2

  private mutating func add(_ node: Node, of page: BTreePage, in database: Database) throws(FileError) {
    let isAbove = database.isLaidOver(page.number)
    let places = node.children.indices.filter { database.isLaidOver(node.children[$0]) != isAbove }
    for index in stride(from: 0, to: places.count, by: max(1, places.count / Self.placeLimit)) {
      let place = places[index]
      guard let child = try database.bTreePage(node.children[place]), child.isHeaderPlausible else { continue }
      guard child.kind.isTable else {
        addIndexPage()
        continue
      }
      guard child.cellCount > 0, let first = child.cell(at: 0), let last = child.cell(at: child.cellCount - 1) else {
        continue
      }
      add(
        (first.rowid, last.rowid), above: place == 0 ? nil : node.keys[place - 1],
        upTo: place < node.keys.count ? node.keys[place] : nil)
    }
  }
}

extension CrossingLinks {
  private struct Node {
    var children: [UInt32] = []
    var keys: [Int64] = []

    /// Returns nil for an unreadable or out-of-range child.
    init?(_ page: BTreePage, last: UInt32) {
      for index in 0..<page.cellCount {
        guard let cell = page.cell(at: index), let child = cell.leftChild, child > 1, child <= last,
          keys.last.map({ $0 < cell.rowid }) ?? true
        else { return nil }
        children.append(child)
        keys.append(cell.rowid)
      }
      guard page.rightMostChild > 1, page.rightMostChild <= last else { return nil }
      children.append(page.rightMostChild)
    }
  }
}

extension Database {
  /// Whether the log or journal provides the page.
  func isLaidOver(_ page: UInt32) -> Bool {
    isLogApplied && writeAheadLog?.frames[page] != nil || isJournalApplied && rollbackJournal?.pageOffsets[page] != nil
  }
}
