internal import SQLiteFormat

/// Puts right what a damaged schema row says of a table, by what the model says of it.
///
/// The store's own row tells the order of the columns, which the model does not know for stores that were migrated; the
/// model tells names, types and key. A name that differs by a letter or two is the same name, damaged.
enum SchemaRepair {
  /// The entries with the statements of damaged rows replaced.
  static func repaired(_ found: [SchemaEntry], by expected: [SchemaEntry]) -> [SchemaEntry] {
    var tables: [String: TableDefinition] = [:]
    for entry in expected where entry.kind == .table {
      if let definition = entry.tableDefinition { tables[entry.name.lowercased()] = definition }
    }
    guard !tables.isEmpty else { return found }
    let present = Set(found.filter { $0.kind == .table }.map { $0.name.lowercased() })
    let missing = tables.filter { !present.contains($0.key) }
    var result = found
    var renamed: [String: String] = [:]
    for index in result.indices where result[index].kind == .table {
      var name = result[index].name.lowercased()
      if tables[name] == nil, let near = missing.keys.sorted().first(where: { isNear($0, name) }) {
        renamed[name] = near
        name = near
      }
      guard let wanted = tables[name] else { continue }
      let own = result[index].tableDefinition
      result[index].name = wanted.name
      result[index].tableName = wanted.name
      result[index].sql = statement(own, wanted)
    }
    for index in result.indices where result[index].kind == .index {
      if let near = renamed[result[index].tableName.lowercased()] { result[index].tableName = near }
    }
    return result
  }

  /// The statement to go by: the model's columns in the store's order, where they are the same columns.
  private static func statement(_ own: TableDefinition?, _ wanted: TableDefinition) -> String? {
    guard let own, own.columns.count == wanted.columns.count else {
      // Tables that were migrated have the model's columns too, so other numbers are damage.
      return rebuilt(wanted, order: wanted.columns)
    }
    var left = wanted.columns
    var order: [ColumnDefinition?] = own.columns.map { column in
      left.firstIndex { isSame($0.name, column.name) }.map { left.remove(at: $0) }
    }
    for index in order.indices where order[index] == nil {
      guard let near = left.firstIndex(where: { isNear($0.name, own.columns[index].name) }) else {
        return rebuilt(own, order: own.columns)
      }
      order[index] = left.remove(at: near)
    }
    return rebuilt(wanted, order: order.compactMap(\.self))
  }

  /// A statement with a table's name and key and columns in an order.
  private static func rebuilt(_ table: TableDefinition, order: [ColumnDefinition]) -> String {
    func quoted(_ name: String) -> String {
      "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }
    let alias = table.rowidAlias.map { table.columns[$0].name }
    var parts = order.map { column in
      quoted(column.name) + (column.declaredType.isEmpty ? "" : " \(column.declaredType)")
        + (column.name == alias ? " PRIMARY KEY" : "")
    }
    if alias == nil, !table.primaryKey.isEmpty {
      parts.append("PRIMARY KEY (\(table.primaryKey.map(quoted).joined(separator: ", ")))")
    }
    return "CREATE TABLE \(quoted(table.name)) (\(parts.joined(separator: ", ")))"
      + (table.isWithoutRowid ? " WITHOUT ROWID" : "")
  }

  /// Whether two names of the same length differ in at most two letters.
  private static func isNear(_ first: String, _ second: String) -> Bool {
    // A byte that is no longer valid is one scalar.
    let one = Array(first.lowercased().unicodeScalars)
    let other = Array(second.lowercased().unicodeScalars)
    guard one.count == other.count, one.count > 3 else { return false }
    return zip(one, other).count { $0 != $1 } <= 2
  }
}
