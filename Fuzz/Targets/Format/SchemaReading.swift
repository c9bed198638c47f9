internal import SQLiteFormat

/// Reads bytes as statements of a schema.
enum SchemaReading {
  static func run(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    for sql in [text, "CREATE TABLE t(" + text, "CREATE INDEX i ON t(" + text] {
      if let table = TableDefinition(sql: sql) {
        _ = table.storedColumns
        for column in table.columns { _ = column.affinity }
        let entry = SchemaEntry(kind: .table, name: "t", tableName: "t", rootPage: 2, sql: sql)
        _ = entry.tableDefinition
      }
      _ = IndexDefinition(sql: sql)
    }
    _ = Affinity(declaredType: text)
  }
}
