internal import SQLiteFormat
internal import StoreFiles

/// Finds the tables whose statements have lost the word by which a column is the rowid.
///
/// SQLite keeps no value of an `INTEGER PRIMARY KEY` in the rows, and makes no index for it. A column that is the primary key
/// by itself, has no index in a schema that is whole, and no value in any row, was one: its values are the rowids.
enum IntegerKeys {
  /// Declares these columns as what they were.
  ///
  /// - Parameters:
  ///   - entries: those of a schema that is whole.
  ///   - rows: what the rows are like, by the root pages of their tables.
  /// - Returns: what is to be said of it in the report.
  static func restore(in entries: inout [SchemaEntry], rows: [UInt32: TableRows]) -> [String] {
    var remarks: [String] = []
    for index in entries.indices where entries[index].kind == .table {
      let entry = entries[index]
      guard let sql = entry.sql, let own = entry.tableDefinition, let seen = rows[entry.rootPage], seen.hasRowids,
        !own.isWithoutRowid, own.rowidAlias == nil, let place = key(of: own),
        let field = own.storedColumns.firstIndex(of: place), seen.isAlwaysNull(field)
      else { continue }
      let automatic = entries.count { $0.kind == .index && $0.sql == nil && isSame($0.tableName, entry.name) }
      guard automatic < own.automaticIndexes.count || !own.columns[place].isPrimaryKey else { continue }
      entries[index].sql = statement(own, place, sql)
      remarks.append(
        "the column \(printable(own.columns[place].name)) of \(printable(entry.name)) is the primary key, has no index and "
          + "no value in any row: it was declared as INTEGER PRIMARY KEY, and has the rowids as its values")
    }
    return remarks
  }

  /// The column that is the primary key by itself, or of which a damaged type tells that it was: `INTEGER PRIMxRY KEY`.
  private static func key(of table: TableDefinition) -> Int? {
    if table.primaryKey.count == 1 { return table.column(named: table.primaryKey[0]) }
    guard table.primaryKey.isEmpty else { return nil }
    return table.columns.firstIndex { column in
      let words = column.declaredType.uppercased().split(separator: " ")
      return words.count == 3 && words[0] == "INTEGER" && words[2] == "KEY"
    }
  }

  /// The statement with the column as the rowid: as it is but for the type, or made anew where that does not do.
  private static func statement(_ own: TableDefinition, _ place: Int, _ sql: String) -> String {
    var wanted = own
    wanted.rowidAlias = place
    wanted.columns[place].declaredType = "INTEGER"
    let (name, type) = (own.columns[place].name, own.columns[place].declaredType)
    let words = Array("\(name) \(type)".utf8)
    let bytes = Array(sql.utf8)
    let start = bytes.indices.first {
      $0 + words.count <= bytes.count && bytes[$0..<($0 + words.count)].elementsEqual(words)
    }
    if let start, !type.isEmpty {
      let made = String(
        decoding: bytes[..<start] + Array("\(name) INTEGER".utf8) + bytes[(start + words.count)...], as: UTF8.self)
      if let read = TableDefinition(sql: made), read.rowidAlias == place, read.columns == wanted.columns { return made }
    }
    return SchemaRepair.statement(wanted)
  }
}
