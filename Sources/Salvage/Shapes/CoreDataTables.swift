internal import SQLiteFormat

/// Finds Core Data's own tables if the schema that lists them is lost.
///
/// Their layouts are fixed, so rows identify them: entity numbers 16001 to 16003 are the persistent history's, and the
/// rows of `Z_PRIMARYKEY` and `Z_METADATA` are unique.
struct CoreDataTables {
  /// Returns the entity number of a persistent history table.
  static func entityNumber(ofTable name: String) -> Int64? {
    switch name.uppercased() {
    case "ACHANGE": change
    case "ATRANSACTION": transaction
    case "ATRANSACTIONSTRING": transactionString
    default: nil
    }
  }

  static let entityNumbers: Set<Int64> = [change, transaction, transactionString]

  /// Whether a schema lists one of Core Data's tables.
  static func areListed(in entries: [SchemaEntry]) -> Bool {
    entries.contains { entry in
      guard entry.kind == .table else { return false }
      if bookkeeping[entry.name.uppercased()] != nil { return true }
      let names = entry.tableDefinition?.columns.prefix(3).map(\.name) ?? []
      return names == ["Z_PK", "Z_ENT", "Z_OPT"]
    }
  }

  /// Restores the column names of Core Data's bookkeeping tables in a damaged statement of the same width.
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

  /// The most additional columns of a change: one per attribute that deleted records keep.
  private static let tombstoneLimit = 64

  private static let sample = 4

  private let reader: PageReader
  private let map: PageMap

  /// The most fields of history rows, by entity number.
  private var widths: [Int64: Int] = [:]

  /// Rows like those of `Z_PRIMARYKEY`: superentities by number.
  private var superentities: [Int64: Int64] = [:]

  private var hasMetadata = false

  private init(_ reader: PageReader, _ map: PageMap) {
    self.reader = reader
    self.map = map
  }

  static func find(_ reader: PageReader, _ map: PageMap) throws -> [SchemaEntry] {
    var tables = CoreDataTables(reader, map)
    try tables.look()
    return tables.statements.compactMap { statement in
      TableDefinition(sql: statement).map { table in
        SchemaEntry(kind: .table, name: table.name, tableName: table.name, rootPage: 0, sql: statement)
      }
    }
  }

  private mutating func look() throws {
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

  // MARK: Row formats

  /// Whether a row resembles `Z_PRIMARYKEY`: name, superentity, highest key.
  private static func isOfKeys(_ row: PageRows.Row) -> Bool {
    row.rowid > 0 && row.record.columnCount == 4 && row.record.value(at: 0)?.isNull == true
      && storage(row.record, 1) == .text && storage(row.record, 2) == .integer
      && [StorageClasses.integer, .null].contains(storage(row.record, 3))
  }

  private static func isOfHistory(_ record: Record, _ number: Int64) -> Bool {
    switch number {
    case change:
      // Kind, entity, key and transaction of a change are always present.
      return (8...(8 + tombstoneLimit)).contains(record.columnCount)
        && (3...6).allSatisfy { storage(record, $0) == .integer }
    case transaction:
      return record.columnCount == 9 && isTime(record, 3) || record.columnCount == 13 && isTime(record, 7)
    case transactionString: return record.columnCount == 4 && storage(record, 3) == .text
    default: return false
    }
  }

  /// Whether a field has a time; whole seconds are stored as integers.
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

  /// Whether every superentity is among the rows.
  private var hasKeys: Bool {
    !superentities.isEmpty && superentities.values.allSatisfy { $0 == 0 || superentities[$0] != nil }
  }

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
  /// Allows any class in a change's tombstone columns, which are declared as BLOB but keep the attributes' values.
  mutating func admitTombstones(of definition: TableDefinition) {
    guard isSame(definition.name, "ACHANGE") else { return }
    for (field, column) in definition.storedColumns.enumerated()
    where fields.indices.contains(field) && definition.columns[column].name.uppercased().hasPrefix("ZTOMBSTONE") {
      fields[field] = Field(allowed: .any, usual: .any)
    }
  }
}
