public import Platform

/// What shows that the write-ahead log beside a database file is not the file's own.
///
/// A log has no name of its database in it. But its pages have the database's size, a transaction only ever counts up, all
/// tables of a store never go in one transaction, and the identifier of a Core Data store never changes.
public enum ForeignLog: Sendable, Hashable {
  /// Its pages have another size than the file's.
  case pageSize

  /// It ends with an earlier transaction than the file.
  case older

  /// It has none of the tables that the file has.
  case tables

  /// It has another identifier of a Core Data store than the file.
  case identifier

  /// With it applied the schema is damaged, or tables do not begin where it says; without it all is as it should be.
  case roots

  /// Pages of the file and pages in it lead to each other, and have other keys than that says.
  case trees

  /// It is of a later state of the same database, or of another copy: with it trees and indexes contradict each other, without it
  /// all is as it should be.
  case state

  /// What shows that a database's log is another's; nil where nothing does.
  ///
  /// - Parameter database: the file with its log.
  public init?(of database: Database) throws(FormatError) {
    guard let sign = try Self.sign(of: database) else { return nil }
    self = sign
  }

  /// Whether the log is certain to be another's; one that is older may be an earlier one of the file's own.
  public var isCertain: Bool { self != .older }

  /// What it shows, in a sentence.
  public var words: String {
    switch self {
    case .pageSize:
      "The write-ahead log beside the store belongs to another database: its pages have another size."
    case .older:
      "The write-ahead log beside the store is older than the store, or belongs to another database."
    case .tables:
      "The write-ahead log beside the store belongs to another database: it has none of the tables that the store has."
    case .identifier:
      "The write-ahead log beside the store belongs to another store: it has another identifier in it."
    case .roots:
      "The write-ahead log beside the store belongs to another database: with it the tables of the store are not where its schema says, and without it they are."
    case .trees:
      "The write-ahead log beside the store belongs to another database: the pages in it and those of the store do not fit each other."
    case .state:
      "The write-ahead log beside the store is of another state of it, as where an earlier copy of the store was put back: with it tables and indexes contradict each other, and without it all is as it should be."
    }
  }

  private static func sign(of database: Database) throws(FormatError) -> ForeignLog? {
    if database.findings.contains(.logPageSizeDiffers) { return .pageSize }
    guard database.isLogApplied else { return nil }
    // What shows another database goes before what an earlier log of the same one would show too.
    let sign = try contradiction(in: database)
    if let sign, sign != .roots { return sign }
    if try isOlder(database) { return .older }
    if let sign { return sign }
    if try CrossingLinks(database, database.schema()).areContradicted { return .trees }
    guard try isLater(database) else { return nil }
    return try isOfOtherState(database) ? .state : nil
  }

  /// Whether the log ends with an earlier transaction than the file.
  private static func isOlder(_ database: Database) throws(FormatError) -> Bool {
    if database.findings.contains(.logBehindDatabase) { return true }
    guard let log = database.writeAheadLog, let header = database.header,
      let main = DatabaseHeader(try database.main.read(at: 0, length: DatabaseHeader.length)), main.hasMagic,
      main.hasUsualFractions
    else { return false }
    if log.frames[1] != nil, header.hasMagic, EarlierImages.isEarlier(header, than: main) { return true }
    let end = log.pageCount
    let count = log.frames.keys.count { $0 <= end }
    // A log that has all pages of its database is the whole of it, as where the store was made anew.
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
    let bytes = try database.main.read(at: offset, length: database.pageSize)
    guard let older = BTreePage(bytes, number: root, geometry: database.geometry) else { return false }
    return EarlierImages.hasLowerKeys(newer, than: older, database.encoding)
  }

  /// What in the file by itself contradicts what it is with its log.
  private static func contradiction(in database: Database) throws(FormatError) -> ForeignLog? {
    guard database.main.count > Int64(database.pageSize) else { return nil }
    let alone: Database
    do throws(FormatError) {
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

  /// The longest identifier's row that is read, in bytes.
  private static let rowLimit = 64 << 20

  /// The identifier of a Core Data store; nil where there is none, or it cannot be read.
  private static func storeIdentifier(in database: Database, _ schema: Schema) throws(FormatError) -> String? {
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
  /// What is wrong with the roots that a schema names: every one must be of the kind that its table or index needs.
  public func rootFindings(of schema: Schema) throws(FormatError) -> Findings {
    var findings = Findings()
    var roots: Set<UInt32> = []
    for entry in schema.entries where entry.rootPage > 0 {
      if !roots.insert(entry.rootPage).inserted {
        findings.append(Finding(.pageUsedTwice, page: entry.rootPage))
        continue
      }
      guard entry.rootPage <= pageCount else {
        findings.append(Finding(.pageOutOfRange, page: entry.rootPage))
        continue
      }
      let isTable = entry.kind == .table && entry.tableDefinition?.isWithoutRowid != true
      guard let page = try bTreePage(entry.rootPage), page.isHeaderPlausible, page.kind.isTable == isTable else {
        findings.append(Finding(.pageKindWrong, page: entry.rootPage, root: entry.rootPage))
        continue
      }
    }
    return findings
  }
}

extension ForeignLog {
  /// Whether a log that seems to be the file's own is of another state of it, as where an earlier copy of the file was put back.
  ///
  /// Then the file is consistent by itself, and not with the log, nor with the log's first transaction alone. Every page is
  /// looked at, up to three times.
  package static func isOfOtherState(_ database: Database) throws(FormatError) -> Bool {
    guard database.isLogApplied, let log = database.writeAheadLog, database.main.count > 0 else { return false }
    let isLater = try isLater(database)
    // Where a part of the log could not be read, the rest may well contradict itself.
    if !isLater { guard log.isReadToItsEnd, try !database.isConsistent() else { return false } }
    let alone = try Database(main: database.main, pageSize: database.pageSize)
    guard alone.header?.hasMagic == true, try alone.isConsistent() else { return false }
    guard !isLater, let frameLength = log.frameLength, log.commitCount > 1 else { return true }
    let end = Int64(WriteAheadLog.Header.length) + Int64(log.firstCommittedFrame) * Int64(frameLength)
    // The log of an app whose indexes went wrong only later is its own.
    let first = try Database(main: database.main, writeAheadLog: Prefix(source: log.source, count: end))
    return try !first.isConsistent()
  }

  /// Whether the file lacks transactions from before the log: its counter grows by one with each, and the first that the log
  /// has is more than one above the file's.
  static func isLater(_ database: Database) throws(FormatError) -> Bool {
    guard let log = database.writeAheadLog, let frame = log.firstHeaderFrame,
      let offset = log.pageOffset(ofFrame: frame),
      let main = DatabaseHeader(try database.main.read(at: 0, length: DatabaseHeader.length)),
      let first = DatabaseHeader(try log.source.read(at: offset, length: DatabaseHeader.length)),
      main.hasMagic, main.isPageCountValid, first.hasMagic, first.isPageCountValid
    else { return false }
    return Int32(bitPattern: first.changeCounter &- main.changeCounter) > 1
  }

  private struct Prefix: ByteSource {
    let source: any ByteSource
    let count: Int64

    func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
      guard offset >= 0, offset < count else { return 0 }
      return try source.read(at: offset, length: Int(min(Int64(length), count - offset)), into: &buffer)
    }
  }
}

extension Database {
  /// Whether every page has one use, every tree fits, and every index has the rows of its table, as far as they can be compared.
  fileprivate func isConsistent() throws(FormatError) -> Bool {
    let schema = try schema()
    guard !findings.hasDamage, !schema.findings.hasDamage, try rootFindings(of: schema).isEmpty else { return false }
    let indexes = try IndexCheck(self, schema)
    guard try checkIntegrity(countingBy: [:], visitor: indexes, progress: { _, _ in true }).isSound else {
      return false
    }
    return try indexes.finish { true }.isSound
  }
}

/// What shows that the images of a log are of an earlier time than the database file that it lies beside: what only ever
/// grows is less in them.
package enum EarlierImages {
  /// Whether a first page is of an earlier time than another one, by the counters of transactions and of schemas.
  package static func isEarlier(_ header: DatabaseHeader, than other: DatabaseHeader) -> Bool {
    // The counters may wrap, so their difference is taken as a signed number.
    Int32(bitPattern: header.changeCounter &- other.changeCounter) < 0
      || Int32(bitPattern: header.schemaCookie &- other.schemaCookie) < 0
  }

  /// Whether a log that ends at a page may have made its database shorter: it has nearly all pages, or there are pointer
  /// maps.
  ///
  /// - Parameter count: the number of pages up to the end that the log has.
  package static func mayHaveShortened(end: UInt32, images count: Int, isAutoVacuum: Bool) -> Bool {
    isAutoVacuum || end < 2 || count >= Int(end) - 1
  }

  /// Whether the highest keys on a leaf of `Z_PRIMARYKEY` that a log has are lower than those of the file, and none is
  /// higher.
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

  /// The name and the highest key of each entity on a leaf of `Z_PRIMARYKEY`.
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
