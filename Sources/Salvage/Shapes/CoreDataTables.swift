internal import SQLiteFormat

/// The tables that Core Data makes beside those of a model, as far as the schema that lists them is lost.
///
/// Their layouts are Core Data's own, so that rows tell which of them there are: the entity numbers 16001 to 16003 are those
/// of the persistent history, and no other table has rows like those of `Z_PRIMARYKEY` and `Z_METADATA`.
struct CoreDataTables {
  /// The number of the entity of a table of the persistent history; nil for other tables.
  static func entityNumber(ofTable name: String) -> Int64? {
    switch name.uppercased() {
    case "ACHANGE": change
    case "ATRANSACTION": transaction
    case "ATRANSACTIONSTRING": transactionString
    default: nil
    }
  }

  /// The numbers of all of them.
  static let entityNumbers: Set<Int64> = [change, transaction, transactionString]

  /// Whether a schema lists a table that Core Data makes.
  static func areListed(in entries: [SchemaEntry]) -> Bool {
    entries.contains { entry in
      guard entry.kind == .table else { return false }
      if bookkeeping[entry.name.uppercased()] != nil { return true }
      let names = entry.tableDefinition?.columns.prefix(3).map(\.name) ?? []
      return names == ["Z_PK", "Z_ENT", "Z_OPT"]
    }
  }

  /// Gives tables of Core Data's own books their columns back where the damaged statement has as many.
  static func restore(in entries: inout [SchemaEntry]) {
    guard areListed(in: entries) else { return }
    for index in entries.indices where entries[index].kind == .table {
      guard let statement = bookkeeping[entries[index].name.uppercased()], let own = entries[index].tableDefinition,
        let usual = TableDefinition(sql: statement), own.columns.count == usual.columns.count,
        own.columns.map(\.name) != usual.columns.map(\.name) || own.rowidAlias != usual.rowidAlias
      else { continue }
      entries[index].sql = statement
    }
  }

  private static let bookkeeping = [
    "Z_PRIMARYKEY":
      "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
    "Z_METADATA": "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "Z_MODELCACHE": "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
  ]

  private static let change: Int64 = 16001
  private static let transaction: Int64 = 16002
  private static let transactionString: Int64 = 16003

  /// The most columns that a change can have beside those of every store: one for each attribute that deleted records keep.
  private static let tombstoneLimit = 64

  /// How many rows of a page are looked at.
  private static let sample = 4

  private let reader: PageReader
  private let map: PageMap

  /// The most fields of the rows of the history, by the number of their entity.
  private var widths: [Int64: Int] = [:]

  /// What looks like rows of `Z_PRIMARYKEY`: the superentities, by number.
  private var superentities: [Int64: Int64] = [:]

  private var hasMetadata = false

  private init(_ reader: PageReader, _ map: PageMap) {
    self.reader = reader
    self.map = map
  }

  /// The entries of those of the tables that rows tell of; they have no root pages.
  static func find(_ reader: PageReader, _ map: PageMap) throws(SalvageError) -> [SchemaEntry] {
    var tables = CoreDataTables(reader, map)
    try tables.look()
    return tables.statements.compactMap { statement in
      TableDefinition(sql: statement).map { table in
        SchemaEntry(kind: .table, name: table.name, tableName: table.name, rootPage: 0, sql: statement)
      }
    }
  }

  private mutating func look() throws(SalvageError) {
    guard map.pageCount >= 1 else { return }
    let rows = PageRows(reader)
    for page in 1...map.pageCount where map.look(page) == .tableLeaf && map.fieldCount(page) >= 3 {
      var seen: [PageRows.Row] = []
      try rows.forEach(on: page) { row in if seen.count < Self.sample { seen.append(row) } }
      // Rows of `Z_PRIMARYKEY` refer to each other, so all of them count.
      if map.fieldCount(page) == 4, seen.first.map(Self.isOfKeys) == true {
        try rows.forEach(on: page) { learnKeys($0) }
      } else {
        for row in seen { learn(row.record) }
      }
    }
  }

  private mutating func learn(_ record: Record) {
    guard record.value(at: 0)?.isNull == true else { return }
    if let number = record.value(at: 1)?.integer {
      guard Self.isOfHistory(record, number) else { return }
      widths[number] = max(widths[number] ?? 0, record.columnCount)
    } else if record.columnCount == 3, let uuid = record.value(at: 1)?.string {
      hasMetadata = hasMetadata || Self.isUUID(uuid) && Self.storage(record, 2) == .blob
    }
  }

  private mutating func learnKeys(_ row: PageRows.Row) {
    guard Self.isOfKeys(row), let above = row.record.value(at: 2)?.integer else { return }
    superentities[row.rowid] = above
  }

  // MARK: What rows are like

  /// Whether a row is like one of `Z_PRIMARYKEY`: a name, the number of the superentity, the highest key.
  private static func isOfKeys(_ row: PageRows.Row) -> Bool {
    row.rowid > 0 && row.record.columnCount == 4 && row.record.value(at: 0)?.isNull == true
      && storage(row.record, 1) == .text && storage(row.record, 2) == .integer
      && [StorageClasses.integer, .null].contains(storage(row.record, 3))
  }

  /// Whether a row is like one of the table of the history whose entity number it has.
  private static func isOfHistory(_ record: Record, _ number: Int64) -> Bool {
    switch number {
    case change:
      // The kind of the change, the entity, the key and the transaction are always there.
      return (8...(8 + tombstoneLimit)).contains(record.columnCount)
        && (3...6).allSatisfy { storage(record, $0) == .integer }
    case transaction:
      return record.columnCount == 9 && isTime(record, 3) || record.columnCount == 13 && isTime(record, 7)
    case transactionString: return record.columnCount == 4 && storage(record, 3) == .text
    default: return false
    }
  }

  /// Whether a field holds a time; a whole number of seconds is stored as an integer.
  private static func isTime(_ record: Record, _ field: Int) -> Bool {
    storage(record, field) == .real || storage(record, field) == .integer
  }

  private static func isUUID(_ text: String) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false).map(\.utf8.count)
    return parts == [8, 4, 4, 4, 12]
  }

  private static func storage(_ record: Record, _ field: Int) -> StorageClasses? {
    let types = record.serialTypes
    return types.indices.contains(field) ? StorageClasses(serialType: types[field].rawValue) : nil
  }

  // MARK: Statements

  /// Whether the rows that look like those of `Z_PRIMARYKEY` agree with each other: each superentity is one of them.
  private var hasKeys: Bool {
    !superentities.isEmpty && superentities.values.allSatisfy { $0 == 0 || superentities[$0] != nil }
  }

  /// The statements of the tables that were found, as Core Data writes them.
  private var statements: [String] {
    var result = [hasKeys ? "Z_PRIMARYKEY" : nil, hasMetadata ? "Z_METADATA" : nil].compactMap { name in
      name.flatMap { Self.bookkeeping[$0] }
    }
    let start = "( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
    if let width = widths[Self.change] {
      let tombstones = (0..<(width - 8)).map { ", ZTOMBSTONE\($0) BLOB" }.joined()
      result.append(
        "CREATE TABLE ACHANGE \(start)ZCHANGETYPE INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER, "
          + "ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB\(tombstones) )")
    }
    if let width = widths[Self.transaction] {
      let references =
        width == 9
        ? "" : "ZAUTHORTS INTEGER, ZBUNDLEIDTS INTEGER, ZCONTEXTNAMETS INTEGER, ZPROCESSIDTS INTEGER, "
      result.append(
        "CREATE TABLE ATRANSACTION \(start)\(references)ZTIMESTAMP FLOAT, ZAUTHOR VARCHAR, ZBUNDLEID VARCHAR, "
          + "ZCONTEXTNAME VARCHAR, ZPROCESSID VARCHAR, ZQUERYGEN BLOB )")
    }
    if widths[Self.transactionString] != nil {
      result.append("CREATE TABLE ATRANSACTIONSTRING \(start)ZNAME VARCHAR )")
    }
    return result
  }
}

extension RecordShape {
  /// Lets the columns of a change in which deleted records keep attributes hold values of any class: they are declared for
  /// BLOBs, and have what the attributes had.
  mutating func admitTombstones(of definition: TableDefinition) {
    guard isSame(definition.name, "ACHANGE") else { return }
    for (field, column) in definition.storedColumns.enumerated()
    where fields.indices.contains(field) && definition.columns[column].name.uppercased().hasPrefix("ZTOMBSTONE") {
      fields[field] = Field(allowed: .any, usual: .any)
    }
  }
}
