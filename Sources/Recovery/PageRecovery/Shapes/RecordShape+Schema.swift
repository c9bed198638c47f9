internal import SQLiteFormat

extension RecordShape {
  /// The shape of the rows of `sqlite_schema`.
  static let schema = RecordShape(
    fields: [
      Field(allowed: [.text], usual: [.text]), Field(allowed: [.text], usual: [.text]),
      Field(allowed: [.text], usual: [.text]), Field(allowed: [.integer, .null], usual: [.integer]),
      Field(allowed: [.text, .null], usual: [.text]),
    ], minimumFields: 5)

  /// The shapes of SQLite's own tables, whose columns have no types.
  static func ownTable(_ name: String) -> RecordShape? {
    let text = Field(allowed: [.text], usual: [.text])
    let textOrNull = Field(allowed: [.text, .null], usual: [.text])
    switch name.lowercased() {
    case "sqlite_sequence":
      return RecordShape(fields: [text, Field(allowed: [.integer], usual: [.integer])], minimumFields: 2)
    case "sqlite_stat1": return RecordShape(fields: [text, textOrNull, text], minimumFields: 3)
    default: return nil
    }
  }

  /// The shape of the rows of a table.
  ///
  /// - Parameters:
  ///   - isCoreData: whether the table is one that Core Data wrote, whose columns hold only what their types say.
  init(_ definition: TableDefinition, isCoreData: Bool, entityNumbers: ClosedRange<Int64>? = nil) {
    let stored = definition.storedColumns
    fields = stored.map { index in
      if index == definition.rowidAlias { return Field(allowed: [.null], usual: [.null]) }
      return Self.field(definition.columns[index], isCoreData: isCoreData, in: definition)
    }
    let lastOriginal = stored.lastIndex { !definition.canBeAdded($0) } ?? 0
    minimumFields = isCoreData ? min(2, stored.count) : max(1, lastOriginal + 1)
    isStrict = isCoreData
    if definition.isWithoutRowid { minimumFields = max(minimumFields, definition.primaryKey.count) }
    if stored.count > 1, isSame(definition.columns[stored[1]].name, "Z_ENT") { self.entityNumbers = entityNumbers }
  }

  /// The shape of the entries of an index: its columns, then the rowid or the rest of the primary key.
  init(indexOf columns: [IndexedColumn], on table: TableDefinition, isCoreData: Bool) {
    fields = columns.map { column in
      guard let name = column.name, let index = table.column(named: name) else {
        return Field(allowed: .any, usual: .any)
      }
      if index == table.rowidAlias { return Field(allowed: [.integer], usual: [.integer]) }
      return Self.field(table.columns[index], isCoreData: isCoreData, in: table)
    }
    if table.isWithoutRowid {
      for name in table.keyFields(behind: columns).compactMap(\.name) {
        if let index = table.column(named: name) { fields.append(Self.field(table.columns[index], isStrict: false)) }
      }
    } else {
      fields.append(Field(allowed: [.integer], usual: [.integer]))
    }
    minimumFields = fields.count
  }

  private static func field(_ column: ColumnDefinition, isCoreData: Bool, in table: TableDefinition) -> Field {
    // A STRICT table takes anything as it is in a column of this type (sqlite.org/stricttables.html).
    if table.isStrict, isSame(column.declaredType, "ANY") { return Field(allowed: .any, usual: .any) }
    return field(column, isStrict: isCoreData || table.isStrict)
  }

  private static func field(_ column: ColumnDefinition, isStrict: Bool) -> Field {
    let usual: StorageClasses =
      switch column.affinity {
      case .integer: [.null, .integer]
      case .real, .numeric: [.null, .integer, .real]
      case .text: [.null, .text]
      case .blob: column.declaredType.isEmpty ? .any : [.null, .blob]
      }
    if isStrict {
      // A decimal number that no double can hold may be text.
      return Field(allowed: column.affinity == .numeric ? usual.union(.text) : usual, usual: usual)
    }
    // A column of affinity TEXT turns numbers into text; the others keep what they cannot turn into their own kind.
    let allowed: StorageClasses = column.affinity == .text ? [.null, .text, .blob] : .any
    // Dates are mostly text in columns such as DATETIME, which are numeric to SQLite.
    return Field(allowed: allowed, usual: column.affinity == .numeric ? usual.union(.text) : usual)
  }
}

extension TableDefinition {
  /// Whether a column can have been added to a table that had rows (sqlite.org/lang_altertable.html).
  fileprivate func canBeAdded(_ column: Int) -> Bool {
    let (name, column) = (columns[column].name, columns[column])
    let isConstrained = (primaryKeyColumns + uniqueColumns.joined()).contains {
      $0.name.map { isSame($0, name) } ?? false
    }
    let isConstant = !column.hasDefault || column.defaultValue != nil
    return !column.isPrimaryKey && !column.isUnique && !isConstrained && column.generation != .stored && isConstant
      && (!column.isNotNull || column.defaultValue.map { !$0.isNull } ?? false)
  }
}

/// Whether two names are the same to SQLite, which takes no account of the case of ASCII letters.
package func isSame(_ first: String, _ second: String) -> Bool {
  first.utf8.elementsEqual(second.utf8) { folded($0) == folded($1) }
}

/// A name as SQLite compares it, in lower case as far as its letters are ASCII.
package func foldedName(_ name: String) -> String { String(decoding: name.utf8.map(folded), as: UTF8.self) }

private func folded(_ byte: UInt8) -> UInt8 {
  byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}
