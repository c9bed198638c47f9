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

extension TableDefinition {
  /// Reads a `CREATE TABLE` or `CREATE VIRTUAL TABLE` statement; nil where it is none.
  ///
  /// Text that SQLite itself would refuse is read as far as it makes sense.
  public init?(sql: String) {
    var reader = TokenReader(SQLTokenizer.tokens(of: sql))
    guard reader.takeWord("create") else { return nil }
    _ = reader.takeWord("temp") || reader.takeWord("temporary")
    let isVirtual = reader.takeWord("virtual")
    guard reader.takeWord("table") else { return nil }
    if reader.takeWord("if") {
      _ = reader.takeWord("not")
      _ = reader.takeWord("exists")
    }
    guard let name = reader.takeQualifiedName() else { return nil }
    self.name = name
    if isVirtual {
      guard reader.takeWord("using"), let module = reader.next()?.name else { return nil }
      self.module = module
      return
    }
    guard let body = reader.takeParenthesized() else { return nil }
    read(body, &reader)
  }

  /// Reads what is left of a table's statement where the words before its columns are damaged; nil where it has no columns.
  ///
  /// - Parameter name: the name of the table, as its entry in the schema has it.
  init?(damagedSQL sql: String, name: String) {
    guard let start = sql.firstIndex(of: "(") else { return nil }
    var reader = TokenReader(SQLTokenizer.tokens(of: String(sql[start...])))
    guard let body = reader.takeParenthesized() else { return nil }
    self.name = name
    read(body, &reader)
    if columns.isEmpty { return nil }
  }

  /// Reads the columns and constraints of a table, and what follows them.
  private mutating func read(_ body: [SQLToken], _ reader: inout TokenReader) {
    while let token = reader.next() {
      if token.isWord("without"), reader.takeWord("rowid") { isWithoutRowid = true }
      if token.isWord("strict") { isStrict = true }
    }
    var hasDescendingKey = false
    for item in body.splitAtCommas {
      var reader = TokenReader(item)
      if !readTableConstraints(&reader), readColumn(&reader) { hasDescendingKey = true }
    }
    finishPrimaryKey(mayBeAlias: !hasDescendingKey)
  }

  /// Reads a column, and returns whether it is declared PRIMARY KEY DESC.
  private mutating func readColumn(_ reader: inout TokenReader) -> Bool {
    guard let name = reader.next()?.name else { return false }
    var column = ColumnDefinition(name: name, declaredType: reader.takeType())
    var isDescendingKey = false
    while let token = reader.next() {
      if token.isWord("constraint") {
        _ = reader.next()
      } else if token.isWord("primary") {
        _ = reader.takeWord("key")
        column.isPrimaryKey = true
        isDescendingKey = reader.takeWord("desc")
        primaryKeyColumns = [IndexedColumn(name: name)]
        primaryKeyPlace = uniqueColumns.count
      } else if token.isWord("not") {
        column.isNotNull = reader.takeWord("null") || column.isNotNull
      } else if token.isWord("unique") {
        column.isUnique = true
        uniqueColumns.append([IndexedColumn(name: name)])
      } else if token.isWord("collate") {
        column.collation = reader.next()?.name
      } else if token.isWord("default") {
        column.hasDefault = true
        column.defaultValue = reader.takeLiteral(keepingDigits: column.affinity == .text)
      } else if token.isWord("as") {
        _ = reader.takeParenthesized()
        column.generation = reader.takeWord("stored") ? .stored : .virtual
      } else if token.isWord("references") {
        column.referencedTable = reader.peek?.name
        reader.takeReference()
      } else if token.isWord("check") {
        checkCount += 1
        reader.takeReference()
      } else if token.isWord("autoincrement") {
        isAutoincrement = true
      } else if token.isWord("set") {
        // `ON DELETE SET DEFAULT` is no default.
        _ = reader.next()
      } else if token.isWord("foreign") {
        break
      }
    }
    columns.append(column)
    return isDescendingKey
  }

  /// Reads constraints of the table; false where the tokens are a column instead.
  private mutating func readTableConstraints(_ reader: inout TokenReader) -> Bool {
    guard let first = reader.peek,
      ["constraint", "primary", "unique", "check", "foreign"].contains(where: { first.isWord($0) })
    else { return false }
    var referring: [String] = []
    while let token = reader.next() {
      if token.isWord("constraint") {
        _ = reader.next()
      } else if token.isWord("primary") {
        _ = reader.takeWord("key")
        let list = reader.takeParenthesized() ?? []
        isAutoincrement = list.last?.isWord("autoincrement") == true
        primaryKeyColumns = IndexedColumn.list(list).filter { $0.name != nil }
        primaryKeyPlace = uniqueColumns.count
      } else if token.isWord("unique") {
        uniqueColumns.append(IndexedColumn.list(reader.takeParenthesized() ?? []).filter { $0.name != nil })
      } else if token.isWord("foreign") {
        _ = reader.takeWord("key")
        referring = IndexedColumn.list(reader.takeParenthesized() ?? []).compactMap(\.name)
      } else if token.isWord("references"), let referred = reader.peek?.name {
        if referring.count == 1, let index = column(named: referring[0]) { columns[index].referencedTable = referred }
        reader.takeReference()
      } else if token.isWord("check") {
        checkCount += 1
      } else if token.isSymbol("(") {
        reader.skipParenthesized()
      }
    }
    return true
  }

  /// Settles which columns are the key; a column's own PRIMARY KEY DESC is, for history's sake, no alias of the rowid.
  private mutating func finishPrimaryKey(mayBeAlias: Bool) {
    for name in primaryKey {
      if let index = column(named: name) { columns[index].isPrimaryKey = true }
    }
    if mayBeAlias, primaryKey.count == 1, let index = column(named: primaryKey[0]),
      isSameName(columns[index].declaredType, "integer")
    {
      hasIntegerKey = true
      if !isWithoutRowid { rowidAlias = index }
    }
  }
}

/// A column of a table, as its `CREATE TABLE` statement declares it.
public struct ColumnDefinition: Sendable, Hashable {
  /// How a generated column gets its value.
  public enum Generation: String, Sendable, Hashable {
    /// Computed when read; it is not in the record.
    case virtual

    /// Computed when written; it is in the record.
    case stored
  }

  /// The name.
  public var name: String

  /// The declared type as written, words separated by one space; empty where there is none.
  public var declaredType: String

  /// Whether it is declared NOT NULL.
  public var isNotNull = false

  /// Whether it is, or is a part of, the primary key.
  public var isPrimaryKey = false

  /// Whether it is declared UNIQUE by itself.
  public var isUnique = false

  /// The collation's name, where one is declared.
  public var collation: String?

  /// The default, where it is a plain literal; text is in UTF-8.
  public var defaultValue: Value?

  /// Whether it has a default, be it one that cannot be read here.
  public var hasDefault = false

  /// How it is generated, where it is.
  public var generation: Generation?

  /// The table whose rows it refers to, where a foreign key of this column alone is declared.
  public var referencedTable: String?

  /// The affinity of the declared type.
  public var affinity: Affinity { Affinity(declaredType: declaredType) }
}

/// A column of an index or of a key.
public struct IndexedColumn: Sendable, Hashable {
  /// The column's name; nil where an expression is indexed.
  public var name: String?

  /// The collation's name, where one is given.
  public var collation: String?

  /// Whether it is in descending order.
  public var isDescending = false

  /// A column in ascending order.
  public init(name: String? = nil, collation: String? = nil) {
    self.name = name
    self.collation = collation
  }

  /// The columns of a list between parentheses.
  static func list(_ tokens: [SQLToken]) -> [IndexedColumn] {
    tokens.splitAtCommas.map { part in
      var rest = part
      var column = IndexedColumn()
      while let last = rest.last {
        if rest.count > 1, last.isWord("autoincrement") {
          // Only a key may have it, which is then the rowid.
          rest.removeLast()
        } else if rest.count > 1, last.isWord("asc") || last.isWord("desc") {
          column.isDescending = last.isWord("desc")
          rest.removeLast()
        } else if rest.count > 2, rest[rest.count - 2].isWord("collate") {
          column.collation = last.name
          rest.removeLast(2)
        } else if rest.count > 2, last.isSymbol(")"), rest.first?.isSymbol("(") == true {
          // A name in parentheses is a column; anything else stays an expression.
          rest = Array(rest.dropFirst().dropLast())
        } else {
          break
        }
      }
      column.name = rest.count == 1 ? rest[0].name : nil
      return column
    }
  }
}
