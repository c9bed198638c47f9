/// A table as declared by `CREATE TABLE`, read without SQLite.
public struct TableDefinition: Sendable, Hashable {
  /// The name.
  public var name: String

  /// The columns in declared order.
  public var columns: [ColumnDefinition] = []

  /// The primary key's columns as declared.
  public var primaryKeyColumns: [IndexedColumn] = []

  /// Whether the primary key has unread parts, so that its columns and their order are uncertain.
  package var hasUnclearKey = false

  /// The names of the primary key's columns.
  public var primaryKey: [String] { primaryKeyColumns.compactMap(\.name) }

  /// The UNIQUE constraints before the primary key.
  var primaryKeyPlace = 0

  /// Whether the key is one INTEGER column, for which SQLite makes no index in declaration order.
  var hasIntegerKey = false

  /// The columns of the UNIQUE constraints, without the primary key.
  public var uniqueColumns: [[IndexedColumn]] = []

  /// The column names of the UNIQUE constraints, without the primary key.
  public var uniqueConstraints: [[String]] { uniqueColumns.map { $0.compactMap(\.name) } }

  /// Whether the table has no rowids, so that an index b-tree holds its rows.
  public var isWithoutRowid = false

  /// The number of CHECK constraints, including those of columns.
  public var checkCount = 0

  /// Whether rowids are never reused.
  public var isAutoincrement = false

  /// Whether the table is STRICT.
  public var isStrict = false

  /// A virtual table's module, such as `fts5`.
  public var module: String?

  /// The place of the rowid's alias column, if any.
  public var rowidAlias: Int?

  /// Whether it is a virtual table, without a b-tree.
  public var isVirtual: Bool { module != nil }

  /// Returns a column's place by name, ignoring ASCII case.
  public func column(named name: String) -> Int? { columns.firstIndex { isSameName($0.name, name) } }

  /// The column of each record field.
  ///
  /// Virtual columns are not stored. Tables without rowids store their key first, with a column repeated for several
  /// collations.
  public var storedColumns: [Int] {
    let stored = columns.indices.filter { columns[$0].generation != .virtual }
    guard isWithoutRowid else { return stored }
    let key = keyFields.compactMap { $0.name.flatMap { column(named: $0) } }
    return key + stored.filter { !key.contains($0) }
  }

  /// Returns a row's values in declared order, as SQL sees them.
  ///
  /// The rowid replaces its alias, defaults fill newer columns, and integers in REAL columns become reals. Virtual
  /// columns are NULL.
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

  /// The value in records older than the column.
  package func defaultValue(ofColumn index: Int, encoding: TextEncoding) -> Value {
    let value = columns[index].affinity.applied(to: columns[index].defaultValue ?? .null)
    guard case .text(let text) = value else { return value }
    return .text(EncodedText(text.string, encoding: encoding))
  }
}

extension TableDefinition {
  /// The stored key columns of a table without rowids, each once per collation.
  ///
  /// Source: https://sqlite.org/fileformat2.html, "Suppression of redundant columns in the PRIMARY KEY of WITHOUT ROWID
  /// tables".
  public var keyFields: [IndexedColumn] { keyFields(behind: []) }

  /// Returns the key columns that end an index's entries in a table without rowids, unless the index has them with the
  /// same collation.
  ///
  /// - Parameter columns: the index's columns.
  public func keyFields(behind columns: [IndexedColumn]) -> [IndexedColumn] {
    var fields = columns
    for key in primaryKeyColumns where key.name.flatMap({ column(named: $0) }) != nil {
      if !fields.contains(where: { isSameField($0, key) }) { fields.append(key) }
    }
    return Array(fields.dropFirst(columns.count))
  }

  /// The columns of SQLite's automatic indexes, in the order of their numbers.
  ///
  /// They follow declaration order, without duplicates. The key of a table without rowids is the table itself and
  /// absent from the schema; an integer key comes last.
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
    return one == other && isSameName(first.collation ?? collation(of: one), second.collation ?? collation(of: other))
  }

  private func collation(of column: Int) -> String { columns[column].collation ?? "BINARY" }
}

extension TableDefinition {
  /// Reads a `CREATE TABLE` or `CREATE VIRTUAL TABLE` statement; nil for others.
  ///
  /// Tolerates text that SQLite would reject.
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

  /// Reads a statement damaged before its columns.
  ///
  /// - Parameter name: the entry's name.
  init?(damagedSQL sql: String, name: String) {
    guard let start = sql.firstIndex(of: "(") else { return nil }
    var reader = TokenReader(SQLTokenizer.tokens(of: String(sql[start...])))
    guard let body = reader.takeParenthesized() else { return nil }
    self.name = name
    read(body, &reader)
    if columns.isEmpty { return nil }
  }

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
    resolvePrimaryKey(mayBeAlias: !hasDescendingKey)
  }

  /// Returns whether the column is PRIMARY KEY DESC.
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
        // `ON DELETE SET DEFAULT` declares no default.
        _ = reader.next()
      } else if token.isWord("foreign") {
        break
      }
    }
    columns.append(column)
    return isDescendingKey
  }

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
        hasUnclearKey = IndexedColumn.list(list).contains { $0.name == nil }
        // No column of a key is an expression.
        primaryKeyColumns = list.splitAtCommas.compactMap { part -> IndexedColumn? in
          guard let column = IndexedColumn.list(part).first else { return nil }
          return column.name == nil ? part.first?.name.map { IndexedColumn(name: $0) } : column
        }
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

  /// For historical reasons a column's PRIMARY KEY DESC is no rowid alias.
  private mutating func resolvePrimaryKey(mayBeAlias: Bool) {
    if isWithoutRowid, primaryKey.isEmpty { hasUnclearKey = true }
    for name in primaryKey {
      if let index = column(named: name) { columns[index].isPrimaryKey = true } else { hasUnclearKey = true }
    }
    if mayBeAlias, primaryKey.count == 1, let index = column(named: primaryKey[0]),
      isSameName(columns[index].declaredType, "integer")
    {
      hasIntegerKey = true
      if !isWithoutRowid { rowidAlias = index }
    }
  }
}

/// A column of a table, as declared.
public struct ColumnDefinition: Sendable, Hashable {
  /// When a generated column is computed.
  public enum Generation: String, Sendable, Hashable {
    /// Absent from the record.
    case virtual

    /// Present in the record.
    case stored
  }

  /// The name.
  public var name: String

  /// The declared type, words separated by one space; empty without one.
  public var declaredType: String

  /// Whether it is declared NOT NULL.
  public var isNotNull = false

  /// Whether it belongs to the primary key.
  public var isPrimaryKey = false

  /// Whether it is declared UNIQUE by itself.
  public var isUnique = false

  /// The declared collation.
  public var collation: String?

  /// The default if it is a plain literal; text is UTF-8.
  public var defaultValue: Value?

  /// Whether it has a default, readable or not.
  public var hasDefault = false

  /// The kind of generated column, if it is one.
  public var generation: Generation?

  /// The table that this column's own foreign key references.
  public var referencedTable: String?

  /// The affinity of the declared type.
  public var affinity: Affinity { Affinity(declaredType: declaredType) }
}

/// A column of an index or of a key.
public struct IndexedColumn: Sendable, Hashable {
  /// The column's name; nil for an expression.
  public var name: String?

  /// The given collation.
  public var collation: String?

  /// Whether the order is descending.
  public var isDescending = false

  /// Creates a column in ascending order.
  public init(name: String? = nil, collation: String? = nil) {
    self.name = name
    self.collation = collation
  }

  static func list(_ tokens: [SQLToken]) -> [IndexedColumn] {
    tokens.splitAtCommas.map { part in
      var rest = part
      var column = IndexedColumn()
      while let last = rest.last {
        if rest.count > 1, last.isWord("autoincrement") {
          // Only a key, which is then the rowid, may have it.
          rest.removeLast()
        } else if rest.count > 1, last.isWord("asc") || last.isWord("desc") {
          column.isDescending = last.isWord("desc")
          rest.removeLast()
        } else if rest.count > 2, rest[rest.count - 2].isWord("collate") {
          column.collation = last.name
          rest.removeLast(2)
        } else if rest.count > 2, last.isSymbol(")"), rest.first?.isSymbol("(") == true {
          // A name in parentheses is a column; anything else is an expression.
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

/// An index as declared by `CREATE INDEX`, read without SQLite.
public struct IndexDefinition: Sendable, Hashable {
  /// The name.
  public var name: String

  /// The table's name.
  public var tableName: String

  /// Whether it is UNIQUE.
  public var isUnique = false

  /// The columns in order.
  public var columns: [IndexedColumn]

  /// Whether a WHERE clause limits its rows.
  public var isPartial: Bool { condition != nil }

  /// The WHERE clause, tokens separated by one space.
  public var condition: String?

  /// An app-defined function in its expressions; only the app then knows its entries.
  public private(set) var foreignFunction: String?

  /// Reads a `CREATE INDEX` statement; nil for others.
  public init?(sql: String) {
    var reader = TokenReader(SQLTokenizer.tokens(of: sql))
    guard reader.takeWord("create") else { return nil }
    isUnique = reader.takeWord("unique")
    guard reader.takeWord("index") else { return nil }
    if reader.takeWord("if") {
      _ = reader.takeWord("not")
      _ = reader.takeWord("exists")
    }
    guard let name = reader.takeQualifiedName(), reader.takeWord("on"), let table = reader.next()?.name,
      let list = reader.takeParenthesized()
    else { return nil }
    self.name = name
    tableName = table
    columns = IndexedColumn.list(list)
    if reader.takeWord("where") { condition = reader.rest.map(\.text).joined(separator: " ") }
    let expressions = list + SQLTokenizer.tokens(of: condition ?? "")
    foreignFunction =
      zip(expressions, expressions.dropFirst()).lazy.compactMap { token, next in
        next.isSymbol("(") && !Self.knownFunctions.contains((token.name ?? "(").lowercased()) ? token.name : nil
      }.first
  }

  /// SQLite's functions allowed in indexes, and words that may precede a parenthesis.
  private static let knownFunctions = Set(
    """
    abs char coalesce concat concat_ws format glob hex if ifnull iif instr length octet_length like likelihood likely lower
    ltrim max min nullif printf quote replace round rtrim sign soundex substr substring trim typeof unhex unicode unistr
    unistr_quote unlikely upper zeroblob date datetime julianday strftime time timediff unixepoch
    json json_array json_array_length json_error_position json_extract json_insert json_object json_patch json_pretty json_quote
    json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_extract jsonb_insert jsonb_object jsonb_patch
    jsonb_remove jsonb_replace jsonb_set
    acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power radians sin
    sinh sqrt tan tanh trunc
    and or not in between is null notnull isnull case when then else end cast as collate exists escape regexp match on from (
    """.split { $0 == " " || $0 == "\n" }.map(String.init))
}
