internal import PersistentStore

extension SQLTable {
  /// A name that stands for the rowid and is no column's; nil where all three are.
  var rowidName: String? {
    let taken = Set(columns.map { $0.name.lowercased() })
    return ["rowid", "_rowid_", "oid"].first { !taken.contains($0) }
  }

  /// The column that is another name for the rowid, in a table that has rowids; nil where there is none.
  var rowidAlias: String? {
    let key = columns.filter { $0.primaryKeyPosition > 0 }
    return key.count == 1 && key[0].declaredType.uppercased() == "INTEGER" ? key[0].name : nil
  }

  /// Whether another table has a column of this one, besides that of the rowid.
  func sharesColumns(with other: SQLTable) -> Bool {
    let own = Set(other.columns.map { $0.name.lowercased() })
    return columns.contains { $0.name != rowidAlias && own.contains($0.name.lowercased()) }
  }
}
