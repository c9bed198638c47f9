/// A table as its `CREATE TABLE` statement declares it, read without SQLite.
public struct TableDefinition: Sendable, Hashable {
  /// The name.
  public var name: String

  /// The columns in their declared order.
  public var columns: [ColumnDefinition] = []

  /// The columns of the primary key as it is declared, in its order.
  public var primaryKeyColumns: [IndexedColumn] = []

  /// The names of the primary key's columns, in the key's order.
  public var primaryKey: [String] { primaryKeyColumns.compactMap(\.name) }

  /// How many UNIQUE constraints are declared before the primary key.
  var primaryKeyPlace = 0

  /// Whether the primary key is one column of the type INTEGER, for which SQLite makes no index where it declares it.
  var hasIntegerKey = false

  /// The columns of the UNIQUE constraints as they are declared, without the primary key.
  public var uniqueColumns: [[IndexedColumn]] = []

  /// The column sets of the UNIQUE constraints, without the primary key.
  public var uniqueConstraints: [[String]] { uniqueColumns.map { $0.compactMap(\.name) } }

  /// Whether the table has no rowids: its rows are in an index b-tree.
  public var isWithoutRowid = false

  /// How many CHECK constraints are declared, those of columns included.
  public var checkCount = 0

  /// Whether no rowid is given twice.
  public var isAutoincrement = false

  /// Whether the table is STRICT.
  public var isStrict = false

  /// The module of a virtual table, such as `fts5`; nil for ordinary tables.
  public var module: String?

  /// The place of the column that is another name for the rowid, where there is one.
  public var rowidAlias: Int?

  /// Whether it is a virtual table, which has no b-tree of its own.
  public var isVirtual: Bool { module != nil }

  /// The place of a column, whose name's ASCII letters may be of either case.
  public func column(named name: String) -> Int? {
    columns.firstIndex { isSameName($0.name, name) }
  }

  /// For each field of a stored record, the place of its column.
  ///
  /// Virtual generated columns are not stored; tables without rowids store their key first, which may have a column more
  /// than once, by several collations.
  public var storedColumns: [Int] {
    let stored = columns.indices.filter { columns[$0].generation != .virtual }
    guard isWithoutRowid else { return stored }
    let key = keyFields.compactMap { $0.name.flatMap { column(named: $0) } }
    return key + stored.filter { !key.contains($0) }
  }

  /// The values of a row's columns in their declared order, as SQL would see them.
  ///
  /// The rowid stands in for its alias, defaults for columns that were added after the row was written, and integers that
  /// a REAL column stores to save space become reals. Virtual generated columns are NULL.
  public func values(of row: Row) -> [Value] {
    var values = [Value](repeating: .null, count: columns.count)
    let fields = row.record.values
    for (field, index) in storedColumns.enumerated() {
      guard field < fields.count else {
        values[index] = defaultValue(ofColumn: index, encoding: row.record.encoding)
        continue
      }
      if case .integer(let number) = fields[field], columns[index].affinity == .real {
        values[index] = .real(Double(number))
      } else {
        values[index] = fields[field]
      }
    }
    if let rowidAlias, rowidAlias < values.count { values[rowidAlias] = .integer(row.rowid) }
    return values
  }

  /// The value that a column has in records that were written before it was added.
  package func defaultValue(ofColumn index: Int, encoding: TextEncoding) -> Value {
    let value = columns[index].affinity.applied(to: columns[index].defaultValue ?? .null)
    guard case .text(let text) = value else { return value }
    return .text(EncodedText(text.string, encoding: encoding))
  }
}

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
