extension TableDefinition {
  /// The columns of the primary key as a table without rowids stores them: each of them once for each collation
  /// (https://sqlite.org/fileformat2.html, "Suppression of redundant columns in the PRIMARY KEY of WITHOUT ROWID tables").
  public var keyFields: [IndexedColumn] { keyFields(behind: []) }

  /// The columns of the primary key that the entries of an index end with in a table without rowids: those that the index
  /// does not have by the same collation.
  ///
  /// - Parameter columns: the columns of the index.
  public func keyFields(behind columns: [IndexedColumn]) -> [IndexedColumn] {
    var fields = columns
    for key in primaryKeyColumns where key.name.flatMap({ column(named: $0) }) != nil {
      if !fields.contains(where: { isSameField($0, key) }) { fields.append(key) }
    }
    return Array(fields.dropFirst(columns.count))
  }

  /// The columns of the indexes that SQLite makes for the primary key and UNIQUE constraints, in the order of the numbers
  /// that end their names.
  ///
  /// They are numbered as they are declared, and of several with the same columns there is one. That of the primary key of
  /// a table without rowids is the table itself and stands in no schema; an integer key gets it last.
  public var automaticIndexes: [[IndexedColumn]] {
    var all = uniqueColumns
    if !primaryKeyColumns.isEmpty, rowidAlias == nil {
      all.insert(primaryKeyColumns, at: hasIntegerKey ? all.count : min(primaryKeyPlace, all.count))
    }
    var indexes: [[IndexedColumn]] = []
    for columns in all where !indexes.contains(where: { $0.elementsEqual(columns, by: isSameField) }) {
      indexes.append(columns)
    }
    return indexes
  }

  private func isSameField(_ first: IndexedColumn, _ second: IndexedColumn) -> Bool {
    guard let one = first.name.flatMap({ column(named: $0) }), let other = second.name.flatMap({ column(named: $0) })
    else { return false }
    return one == other
      && isSameName(first.collation ?? collation(of: one), second.collation ?? collation(of: other))
  }

  private func collation(of column: Int) -> String { columns[column].collation ?? "BINARY" }
}
