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
