internal import PersistentStore
internal import SQLiteFormat

extension OutputTable {
  /// What an output table is like, and the statements that it is made and used by.
  struct Shape {
    let name: String

    /// For each field of a record that the table has a column for, the place of that column in the definition.
    let fields: [Int]

    /// How many of the store's columns it has no room for.
    let columnsLeftOut: Int

    /// The field that is another name for the rowid.
    let alias: Int?

    /// Whether rows are written with their rowids.
    let hasRowid: Bool

    /// The statement that the table is declared by.
    let statement: String

    /// The same without types, which would make other values of some: in such a table every value is kept as it is.
    let untyped: String

    /// The names of the columns as they stand in SQL, in the order of the fields.
    private let columns: [String]

    /// The fields that are the first ones of their columns: a key may have a column more than once.
    private let ownFields: [Int]

    /// A name that stands for the rowid and is no column's; nil where all three are.
    private let rowidName: String?

    private let isLive: Bool

    init(
      _ definition: TableDefinition, _ declaration: Declaration, role: OutputRole, number: String, maximumColumns: Int
    ) {
      let stored = definition.storedColumns
      let fields = Array(stored.prefix(maximumColumns))
      self.fields = fields
      columnsLeftOut = stored.count - fields.count
      isLive = role == .live
      alias = definition.rowidAlias.flatMap { alias in fields.firstIndex(of: alias) }
      hasRowid = isLive && !definition.isWithoutRowid
      name =
        declaration == .underOtherName
        ? role == .live ? "found_\(number)" : role.name("found_\(number)") : role.name(definition.name)
      let names: [String] =
        switch declaration {
        case .asDeclared, .names: fields.map { definition.columns[$0].name }
        case .tableName, .underOtherName: fields.indices.map { "c\($0)" }
        }
      let taken = Set(names.map { $0.lowercased() })
      rowidName = ["rowid", "_rowid_", "oid"].first { !taken.contains($0) }
      columns = names.map(SQLText.quotedIdentifier)
      ownFields = fields.indices.filter { fields.firstIndex(of: fields[$0]) == $0 }
      let key = isLive && !definition.isWithoutRowid ? alias : nil
      statement = Self.statement(
        definition, declaration, table: name, columns: columns, fields: fields, ownFields: ownFields, isLive: isLive,
        alias: key)
      untyped = Self.statement(
        definition, declaration, table: name, columns: columns, fields: fields, ownFields: ownFields, isLive: isLive,
        alias: key,
        hasTypes: false)
    }

    /// The statement that writes a row.
    ///
    /// The rowid is always the first parameter, bound or not, so that fields have the same numbers everywhere. A record has
    /// NULL where a column is another name for the rowid.
    var insertion: String {
      var names = ownFields.map { columns[$0] }
      var values = ownFields.map { field in
        guard field == alias else { return "?\(field + 2)" }
        return isLive ? "?1" : "coalesce(?\(field + 2), ?1)"
      }
      if let ownRowid {
        names.insert(ownRowid, at: 0)
        values.insert("?1", at: 0)
      }
      return "INSERT OR IGNORE INTO \(SQLText.quotedIdentifier(name)) (\(names.joined(separator: ", "))) "
        + "VALUES (\(values.joined(separator: ", ")))"
    }

    /// The query of a row that is exactly as a record.
    var comparison: String {
      var conditions = ownFields.filter { $0 != alias }.map { "\(columns[$0]) IS ?\($0 + 2)" }
      if let key { conditions.insert("\(key) = ?1", at: 0) }
      return "SELECT 1 FROM \(SQLText.quotedIdentifier(name)) WHERE \(SQLText.all(conditions))"
    }

    /// The query of a row of a rowid; nil where the table's rows have none.
    var lookup: String? {
      guard hasRowid else { return nil }
      return key.map { "SELECT 1 FROM \(SQLText.quotedIdentifier(name)) WHERE \($0) = ?1" }
    }

    /// What stands for the rowid of a live row.
    private var key: String? {
      guard hasRowid else { return nil }
      return alias.map { columns[$0] } ?? rowidName
    }

    /// What stands for the rowid where no column does.
    private var ownRowid: String? { hasRowid && alias == nil ? rowidName : nil }
  }
}

extension OutputTable.Shape {
  /// The statement that makes the table: names quoted, types as declared where they are words, and the key.
  private static func statement(
    _ definition: TableDefinition, _ declaration: OutputTable.Declaration, table: String, columns: [String],
    fields: [Int], ownFields: [Int], isLive: Bool, alias: Int?, hasTypes: Bool = true
  ) -> String {
    let isDeclared = declaration == .asDeclared
    // A record of a table without rowids has its key first; the table's columns keep the order that they were declared in.
    let order = isDeclared ? ownFields.sorted { fields[$0] < fields[$1] } : ownFields
    // Without a key that is known a table has rowids, which are not seen.
    let isWithoutRowid = isDeclared && isLive && definition.isWithoutRowid && !definition.primaryKey.isEmpty
    var parts = order.map { field in
      let column = definition.columns[fields[field]]
      var text = columns[field]
      if isDeclared, !column.declaredType.isEmpty, hasTypes || field == alias {
        text += " " + safeType(column.declaredType)
      } else if field == alias {
        text += " INTEGER"
      }
      if field == alias { text += " PRIMARY KEY" }
      return isWithoutRowid ? text + collate(column.collation) : text
    }
    if isWithoutRowid {
      let key = definition.primaryKeyColumns.compactMap { column in
        column.name.map { SQLText.quotedIdentifier($0) + collate(column.collation) }
      }
      parts.append("PRIMARY KEY (\(key.joined(separator: ", ")))")
    }
    return "CREATE TABLE \(SQLText.quotedIdentifier(table)) (\(parts.joined(separator: ", ")))"
      + (isWithoutRowid ? " WITHOUT ROWID" : "")
  }

  /// The words for a collation that every SQLite has; none for others.
  private static func collate(_ collation: String?) -> String {
    guard let collation, ["nocase", "rtrim", "binary"].contains(collation.lowercased()) else { return "" }
    return " COLLATE \(collation)"
  }

  /// A declared type as it may be written: its affinity matters, and nothing of it may become another part of a statement.
  private static func safeType(_ type: String) -> String {
    let isPlain = type.utf8.allSatisfy { byte in
      let letter = byte | 0x20
      return letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z") || byte >= 0x30 && byte <= 0x39
        || byte == UInt8(ascii: "_") || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "(")
        || byte == UInt8(ascii: ")") || byte == UInt8(ascii: ",")
    }
    // Outside of a size a comma or a parenthesis would end the column.
    let isBalanced = !type.contains { "(),".contains($0) } || type.range(isSizeAtEnd: ())
    let hasKeyword = type.split { $0 == " " || $0 == "(" }.contains { keywords.contains($0.uppercased()) }
    return isPlain && isBalanced && !hasKeyword && type.utf8.first.map { $0 | 0x20 >= 0x61 } == true
      ? type : SQLText.quotedIdentifier(type)
  }

  /// The words that SQLite takes for no name, and so for no part of a type (sqlite.org/lang_keywords.html, those that its
  /// grammar lets fall back to no identifier).
  private static let keywords: Set<String> = [
    "ADD", "ALL", "ALTER", "AND", "AS", "AUTOINCREMENT", "BETWEEN", "CASE", "CHECK", "COLLATE", "COMMIT", "CONSTRAINT",
    "CREATE", "DEFAULT", "DEFERRABLE", "DELETE", "DISTINCT", "DROP", "ELSE", "ESCAPE", "EXISTS", "FOREIGN", "FROM",
    "GROUP", "HAVING", "IN", "INDEX", "INSERT", "INTO", "IS", "ISNULL", "JOIN", "LIMIT", "NOT", "NOTHING", "NOTNULL",
    "NULL", "ON", "OR", "ORDER", "PRIMARY", "REFERENCES", "RETURNING", "SELECT", "SET", "TABLE", "THEN", "TO",
    "TRANSACTION", "UNION", "UNIQUE", "UPDATE", "USING", "VALUES", "WHEN", "WHERE",
  ]
}

extension String {
  /// Whether the only parentheses are those of a size at the end: `VARCHAR(255)`, `DECIMAL(10,5)`.
  fileprivate func range(isSizeAtEnd: Void) -> Bool {
    guard let open = firstIndex(of: "("), last == ")" else { return false }
    return self[index(after: open)..<index(before: endIndex)].utf8.allSatisfy {
      $0 >= 0x30 && $0 <= 0x39 || $0 == UInt8(ascii: ",")
    }
  }
}
