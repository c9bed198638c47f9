internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// Chooses the definition to read each table's rows by.
///
/// The store's own definition counts if it is readable and agrees with the rows of its root: tables may lack columns of
/// the model, or have others, other orders and other types. The model restores damaged names, and replaces missing or
/// contradicted definitions. A name that differs by one or two bits is the same name, damaged.
struct SchemaRepair {
  private(set) var entries: [SchemaEntry]

  /// Lowercase names of tables read by the store's own definitions.
  private(set) var settled: Set<String> = []

  /// Remarks on differences in a new store of the model.
  private(set) var remarks: [String] = []

  private let wanted: [String: TableDefinition]

  /// The model's names for differently named tables, all in lower case.
  private var renamed: [String: String] = [:]

  private static let remarkLimit = 20

  /// - Parameters:
  ///   - found: the readable entries.
  ///   - isWhole: whether the schema is complete.
  ///   - rows: the rows by root page.
  init(_ found: [SchemaEntry], isWhole: Bool, expected: ExpectedSchema, rows: [UInt32: TableRows]) {
    entries = found
    var wanted: [String: TableDefinition] = [:]
    for entry in expected.entries where entry.kind == .table {
      if let definition = entry.tableDefinition, !definition.isVirtual { wanted[entry.name.lowercased()] = definition }
    }
    self.wanted = wanted
    guard !wanted.isEmpty else { return }
    findRenamed(isWhole: isWhole, expected, rows)
    // Without it all statements are rewritten, which loses defaults but no row.
    let checker = try? StatementChecker()
    let indexed = Set(found.filter { $0.kind == .index && $0.sql == nil }.map { $0.tableName.lowercased() })
    for index in entries.indices where entries[index].kind == .table {
      let name = renamed[entries[index].name.lowercased()] ?? entries[index].name.lowercased()
      guard let table = wanted[name],
        let own = Self.reading(
          of: entries[index], table, rows[entries[index].rootPage], isWhole: isWhole,
          hasAutomaticIndex: indexed.contains(entries[index].name.lowercased()))
      else { continue }
      // Accepted statements keep their text, with defaults and generated columns. A flipped bit may leave readable
      // columns in a text that SQLite refuses.
      let isUsable = entries[index].sql.map { checker?.accepts($0) ?? false } ?? false
      let statement =
        isUsable && own == entries[index].tableDefinition ? entries[index].sql ?? "" : Self.statement(own)
      guard checker?.accepts(statement) ?? true else { continue }
      if let definition = entries[index].tableDefinition {
        for (from, to) in Self.renamedColumns(definition, table) where !Self.isNear(from, to) {
          remarks.append(
            "the column \(printable(from)) of \(printable(table.name)) stands where its model has \(printable(to)), and "
              + "was read as that")
        }
      }
      entries[index].sql = statement
      settled.insert(name)
      if isWhole, expected.layout?.tables.contains(where: { isSame($0.name, own.name) }) == true {
        remark(on: own, table)
      }
    }
    if isWhole { remarkMissingTables(expected) }
    for index in entries.indices {
      guard let near = renamed[entries[index].tableName.lowercased()], let table = wanted[near] else { continue }
      entries[index].tableName = table.name
      if entries[index].kind == .table { entries[index].name = table.name }
    }
  }

  var hasUnread: Bool {
    entries.contains { entry in
      let name = entry.name.lowercased()
      return entry.kind == .table && wanted[name] != nil && !settled.contains(name)
    }
  }

  /// Adds the model's definitions of the other expected tables.
  mutating func complete(by expected: [SchemaEntry]) {
    for entry in expected where entry.kind == .table && !settled.contains(entry.name.lowercased()) {
      guard let table = entry.tableDefinition, !table.isVirtual else { continue }
      for index in entries.indices where entries[index].kind == .table && isSame(entries[index].name, entry.name) {
        let own = entries[index].tableDefinition
        entries[index].name = table.name
        entries[index].tableName = table.name
        entries[index].sql = Self.statement(Self.completed(own, table))
      }
    }
  }

  // MARK: Names

  /// Finds the model's tables under damaged or changed names.
  private mutating func findRenamed(isWhole: Bool, _ expected: ExpectedSchema, _ rows: [UInt32: TableRows]) {
    let tables = entries.filter { $0.kind == .table }
    let present = Set(tables.map { $0.name.lowercased() })
    var missing = wanted.keys.filter { !present.contains($0) }.sorted()
    guard !missing.isEmpty else { return }
    for table in tables where wanted[table.name.lowercased()] == nil {
      guard let near = missing.firstIndex(where: { Self.isNear($0, table.name) }) else { continue }
      renamed[table.name.lowercased()] = missing.remove(at: near)
    }
    guard isWhole else { return }
    for name in missing {
      guard let table = wanted[name], let numbers = expected.entityNumbers(ofTable: table.name) else { continue }
      let columns = Set(table.columns.map { $0.name.lowercased() })
      // The entity number in every row identifies the table, whatever its name.
      let others = tables.filter { other in
        guard wanted[other.name.lowercased()] == nil, renamed[other.name.lowercased()] == nil,
          let seen = rows[other.rootPage], !seen.rows.isEmpty, let definition = other.tableDefinition
        else { return false }
        return Set(definition.columns.map { $0.name.lowercased() }) == columns
          && seen.rows.allSatisfy { $0.entity.map(numbers.contains) == true }
      }
      guard others.count == 1 else { continue }
      renamed[others[0].name.lowercased()] = name
      remarks.append(
        "the table \(printable(others[0].name)) has the rows of \(printable(table.name)), and was read as that")
    }
  }

  private mutating func remark(on own: TableDefinition, _ table: TableDefinition) {
    let missing = table.columns.map(\.name).filter { own.column(named: $0) == nil }
    guard !missing.isEmpty, remarks.count < Self.remarkLimit else { return }
    remarks.append(
      "\(printable(table.name)) lacks columns of its model (\(Self.list(missing))); they are empty in the new store, or "
        + "have the defaults of the model")
  }

  private mutating func remarkMissingTables(_ expected: ExpectedSchema) {
    guard let layout = expected.layout else { return }
    let present = Set(
      entries.filter { $0.kind == .table }.map { renamed[$0.name.lowercased()] ?? $0.name.lowercased() })
    let own = layout.tables.map(\.name) + layout.joinTables.map { expected.names.table($0.name) }
    let missing = own.filter { !present.contains($0.lowercased()) }
    guard !missing.isEmpty else { return }
    remarks.append("the store lacks tables of its model: \(Self.list(missing))")
  }

  private static func list(_ names: [String]) -> String {
    names.prefix(6).map { printable($0) }.joined(separator: ", ") + (names.count > 6 ? " and others" : "")
  }

  // MARK: Definitions

  /// Returns the store's own definition with repaired names; nil if missing or contradicted by the rows.
  private static func reading(
    of entry: SchemaEntry, _ table: TableDefinition, _ rows: TableRows?, isWhole: Bool, hasAutomaticIndex: Bool
  ) -> TableDefinition? {
    guard let sql = entry.sql, var own = entry.tableDefinition, !own.isVirtual, !own.columns.isEmpty else { return nil }
    own.name = table.name
    for (from, to) in renamedColumns(own, table) {
      guard let place = own.column(named: from) else { continue }
      own.columns[place].name = to
      renameKey(&own, from, to)
    }
    let isSameNumber = own.columns.count == table.columns.count
    heal(&own, by: table, rows, hasAutomaticIndex: hasAutomaticIndex)
    let isKnown = own.columns.allSatisfy { table.column(named: $0.name) != nil }
    // Without confirmation, columns outside the model may be damage too.
    guard rows?.rows.isEmpty == false || isWhole || isKnown && isSameNumber else { return nil }
    guard !isTorn(own, rows?.rows.isEmpty == false ? nil : sql, table) else { return nil }
    guard let rows else { return own }
    guard rows.canBe(of: own) else { return nil }
    let strange = rows.strangeShare(in: own)
    let other = completed(own, table)
    if strange > 0.1, rows.canBe(of: other), rows.strangeShare(in: other) * 2 < strange { return nil }
    return own
  }

  /// Returns renamed columns: those at the model's position with the same type.
  ///
  /// Added columns come last, so the last one proves no renaming.
  static func renamedColumns(_ own: TableDefinition, _ table: TableDefinition) -> [(from: String, to: String)] {
    guard own.columns.count == table.columns.count else { return [] }
    var result: [(from: String, to: String)] = []
    for (index, (column, wanted)) in zip(own.columns, table.columns).enumerated()
    where !isSame(column.name, wanted.name) {
      guard index < own.columns.count - 1, own.column(named: wanted.name) == nil,
        table.column(named: column.name) == nil, isSame(column.declaredType, wanted.declaredType)
      else { return [] }
      result.append((column.name, wanted.name))
    }
    return result
  }

  /// Repairs damaged names, types and keys.
  private static func heal(
    _ own: inout TableDefinition, by table: TableDefinition, _ rows: TableRows?, hasAutomaticIndex: Bool
  ) {
    var missing = table.columns.filter { own.column(named: $0.name) == nil }
    for index in own.columns.indices where table.column(named: own.columns[index].name) == nil {
      let name = own.columns[index].name
      // The space before its type may have changed.
      guard
        let near = missing.firstIndex(where: { isNear($0.name, name) || isNear("\($0.name) \($0.declaredType)", name) })
      else { continue }
      own.columns[index].name = missing.remove(at: near).name
      renameKey(&own, name, own.columns[index].name)
    }
    for index in own.columns.indices {
      guard let place = table.column(named: own.columns[index].name) else { continue }
      own.columns[index].name = table.columns[place].name
      let type = table.columns[place].declaredType
      guard !isSame(type, own.columns[index].declaredType) else { continue }
      if isNear(type, own.columns[index].declaredType) || isBetter(type, index, own, rows) {
        own.columns[index].declaredType = type
      }
    }
    if let alias = table.rowidAlias, !own.isWithoutRowid, let place = own.column(named: table.columns[alias].name),
      own.rowidAlias != place, let field = own.storedColumns.firstIndex(of: place), rows?.isAlwaysNull(field) ?? true
    {
      own.rowidAlias = place
      own.columns[place].declaredType = table.columns[alias].declaredType
      own.columns[place].isPrimaryKey = true
      own.primaryKeyColumns = [SQLiteFormat.IndexedColumn(name: own.columns[place].name)]
    }
    if own.primaryKey.isEmpty, own.uniqueConstraints.isEmpty, hasAutomaticIndex,
      table.primaryKey.allSatisfy({ own.column(named: $0) != nil })
    {
      own.primaryKeyColumns = table.primaryKeyColumns
    }
  }

  private static func renameKey(_ own: inout TableDefinition, _ from: String, _ to: String) {
    for place in own.primaryKeyColumns.indices where own.primaryKeyColumns[place].name.map({ isSame($0, from) }) == true
    {
      own.primaryKeyColumns[place].name = to
    }
    for list in own.uniqueColumns.indices {
      for place in own.uniqueColumns[list].indices
      where own.uniqueColumns[list][place].name.map({ isSame($0, from) }) == true {
        own.uniqueColumns[list][place].name = to
      }
    }
  }

  /// Whether a column's values favor another type, or do not support the declared one.
  private static func isBetter(_ type: String, _ index: Int, _ own: TableDefinition, _ rows: TableRows?) -> Bool {
    guard let rows, !rows.rows.isEmpty, let field = own.storedColumns.firstIndex(of: index) else { return true }
    return rows.strangeCount(field, own.columns[index].declaredType) > rows.strangeCount(field, type)
  }

  /// Whether a statement splits or merges columns of the model by damage.
  ///
  /// - Parameter sql: the statement; nil if rows show the number of columns.
  private static func isTorn(_ own: TableDefinition, _ sql: String?, _ table: TableDefinition) -> Bool {
    let missing = table.columns.map(\.name).filter { own.column(named: $0) == nil }
    if !missing.isEmpty, let sql {
      let columns = sql.drop { $0 != "(" }
      let words = Set(
        columns.uppercased().split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init))
      // A name in the text that names no column has lost its comma.
      if missing.contains(where: { words.contains($0.uppercased()) }) { return true }
    }
    func isJoined(_ whole: String, _ first: String, _ second: String) -> Bool {
      let (whole, first, second) = (whole.uppercased(), first.uppercased(), second.uppercased())
      return whole.count == first.count + 1 + second.count && whole.hasPrefix(first) && whole.hasSuffix(second)
    }
    for index in own.columns.indices.dropFirst() where table.column(named: own.columns[index].name) == nil {
      let (before, column) = (own.columns[index - 1], own.columns[index])
      if let place = table.column(named: before.name) {
        if isJoined(table.columns[place].declaredType, before.declaredType, column.name) { return true }
      } else if missing.contains(where: { isJoined($0, before.name, column.name) }) {
        return true
      }
    }
    return false
  }

  /// Returns the model's columns, in the store's order if they are the same.
  private static func completed(_ own: TableDefinition?, _ table: TableDefinition) -> TableDefinition {
    guard let own, own.columns.count == table.columns.count else { return table }
    var left = table.columns
    var order: [ColumnDefinition?] = own.columns.map { column in
      left.firstIndex { isSame($0.name, column.name) }.map { left.remove(at: $0) }
    }
    for index in order.indices where order[index] == nil {
      // A single remaining column must be the missing one.
      guard
        let near = left.firstIndex(where: { isNear($0.name, own.columns[index].name) }) ?? (left.count == 1 ? 0 : nil)
      else {
        var named = own
        named.name = table.name
        return named
      }
      order[index] = left.remove(at: near)
    }
    var result = table
    result.columns = order.compactMap(\.self)
    result.rowidAlias = table.rowidAlias.flatMap { result.column(named: table.columns[$0].name) }
    return result
  }

  /// Whether names of equal length differ in at most two letters, by one bit each.
  private static func isNear(_ first: String, _ second: String) -> Bool {
    // An invalid byte is one scalar.
    let one = Array(first.uppercased().unicodeScalars)
    let other = Array(second.uppercased().unicodeScalars)
    guard one.count == other.count, one.count > 3 else { return false }
    var differences = 0
    for (left, right) in zip(one, other) where left != right {
      let isFlipped = (left.value ^ right.value).nonzeroBitCount == 1
      guard isFlipped || left == "\u{fffd}" || right == "\u{fffd}" else { return false }
      differences += 1
    }
    return differences <= 2
  }
}

extension SchemaRepair {
  /// Returns a statement with every part that affects the reading of records.
  static func statement(_ table: TableDefinition) -> String {
    let alias = table.rowidAlias
    var parts = table.columns.indices.map { index in
      let column = table.columns[index]
      var text = SQLText.quotedIdentifier(column.name)
      if !column.declaredType.isEmpty { text += " \(column.declaredType)" }
      if index == alias { text += " PRIMARY KEY" }
      if column.isNotNull { text += " NOT NULL" }
      if let collation = column.collation { text += " COLLATE \(SQLText.quotedIdentifier(collation))" }
      if let literal = column.defaultValue.flatMap(literal) { text += " DEFAULT \(literal)" }
      if let generation = column.generation { text += " AS (NULL) \(generation.rawValue.uppercased())" }
      return text
    }
    func list(_ columns: [SQLiteFormat.IndexedColumn]) -> String {
      columns.compactMap { column in
        column.name.map { name in
          SQLText.quotedIdentifier(name) + (column.collation.map { " COLLATE \(SQLText.quotedIdentifier($0))" } ?? "")
        }
      }.joined(separator: ", ")
    }
    if alias == nil, !table.primaryKey.isEmpty { parts.append("PRIMARY KEY (\(list(table.primaryKeyColumns)))") }
    for constraint in table.uniqueColumns where !constraint.isEmpty { parts.append("UNIQUE (\(list(constraint)))") }
    let options = [table.isWithoutRowid ? "WITHOUT ROWID" : nil, table.isStrict ? "STRICT" : nil].compactMap(\.self)
    return "CREATE TABLE \(SQLText.quotedIdentifier(table.name)) (\(parts.joined(separator: ", ")))"
      + (options.isEmpty ? "" : " " + options.joined(separator: ", "))
  }

  private static func literal(_ value: Value) -> String? {
    switch value {
    case .null: "NULL"
    case .integer(let number): "\(number)"
    case .real(let number): number.isFinite ? "\(number)" : nil
    case .text(let text): SQLText.literal(text.string)
    case .blob(let bytes): "x'\(bytes.hexadecimal)'"
    }
  }
}

extension TableDefinition {
  /// Declares a table with the same b-trees and fields that any SQLite can make, since it evaluates nothing.
  var standIn: String {
    func list(_ columns: [SQLiteFormat.IndexedColumn]) -> String {
      columns.compactMap { column in
        column.name.map { name in
          SQLText.quotedIdentifier(name) + (column.collation.map { " COLLATE \(SQLText.quotedIdentifier($0))" } ?? "")
            + (column.isDescending ? " DESC" : "")
        }
      }.joined(separator: ", ")
    }
    var parts = columns.indices.filter { columns[$0].generation != .virtual }.map { index in
      let column = columns[index]
      var text = SQLText.quotedIdentifier(column.name)
      if index == rowidAlias {
        return text + " INTEGER PRIMARY KEY"
      }
      if !column.declaredType.isEmpty { text += " " + SQLText.quotedIdentifier(column.declaredType) }
      return text + (column.collation.map { " COLLATE \(SQLText.quotedIdentifier($0))" } ?? "")
    }
    if isWithoutRowid { parts.append("PRIMARY KEY (\(list(primaryKeyColumns)))") }
    // Automatic indexes are numbered in this order.
    parts += automaticIndexes.filter { !isWithoutRowid || $0 != primaryKeyColumns }.map { "UNIQUE (\(list($0)))" }
    return "CREATE TABLE \(SQLText.quotedIdentifier(name)) (\(parts.joined(separator: ", ")))"
      + (isWithoutRowid ? " WITHOUT ROWID" : "")
  }
}
