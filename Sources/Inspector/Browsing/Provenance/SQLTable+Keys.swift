internal import PersistentStore

extension SQLTable {
  /// A rowid name that isn't a column's, if any.
  var rowidName: String? {
    let taken = Set(columns.map { $0.name.lowercased() })
    return ["rowid", "_rowid_", "oid"].first { !taken.contains($0) }
  }

  /// The column that aliases the rowid, if any.
  var rowidAlias: String? {
    let key = columns.filter { $0.primaryKeyPosition > 0 }
    return key.count == 1 && key[0].declaredType.uppercased() == "INTEGER" ? key[0].name : nil
  }

  /// Whether another table shares a column other than the rowid.
  func sharesColumns(with other: SQLTable) -> Bool {
    let own = Set(other.columns.map { $0.name.lowercased() })
    return columns.contains { $0.name != rowidAlias && own.contains($0.name.lowercased()) }
  }
}
