internal import GRDB
internal import PersistentStore

/// A column of a table, in the place that it has in the records of the table.
package struct StoredColumn: Sendable, Hashable {
  /// Its name in SQL.
  package var name: String

  /// What the records' entity calls it; nil where it belongs to none of its properties.
  package var property: String?

  /// Whether records store null in it, and its value is their rowid.
  package var isRowid: Bool
}

extension BrowsedStore {
  /// The columns of the table of a collection, in the order in which records store their values.
  package func storedColumns(of collection: RecordCollection) throws(RecordBrowsingError) -> [StoredColumn] {
    let table = Self.name(ofIdentifier: collection.tableSQL)
    let names = propertyNames(of: collection)
    return try read(limits.page) { database in
      // Generated columns that are not stored (2) and hidden ones of virtual tables (1) are in no record.
      try Row.fetchAll(
        database, sql: "SELECT name, type, pk FROM pragma_table_xinfo(?) WHERE hidden IN (0, 3) ORDER BY cid",
        arguments: [table]
      ).map { row in
        let name: String = row[0] ?? ""
        let type: String = row[1] ?? ""
        let place: Int64 = row[2] ?? 0
        return StoredColumn(
          name: name, property: names[name.uppercased()], isRowid: place == 1 && type.uppercased() == "INTEGER")
      }
    }
  }

  /// What properties are called, by their columns in capitals: the collection's own, then those of others in its table.
  private func propertyNames(of collection: RecordCollection) -> [String: String] {
    let others = collections.filter { $0.tableSQL == collection.tableSQL && $0.name != collection.name }
    var names: [String: String] = [:]
    for column in ([collection] + others).flatMap(\.columns) {
      let own = Self.name(ofIdentifier: column.sql).uppercased()
      if names[own] == nil { names[own] = column.name }
      if let entity = column.entitySQL {
        let other = Self.name(ofIdentifier: entity).uppercased()
        if names[other] == nil { names[other] = "\(column.name): entity" }
      }
    }
    return names
  }

  /// The name that an identifier of SQL stands for, quoted or not.
  private static func name(ofIdentifier sql: String) -> String {
    guard sql.count >= 2, sql.hasPrefix("\""), sql.hasSuffix("\"") else { return sql }
    return String(sql.dropFirst().dropLast()).replacing("\"\"", with: "\"")
  }
}
