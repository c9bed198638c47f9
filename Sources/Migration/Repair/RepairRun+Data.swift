internal import GRDB
import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// Repairs records and references.
///
/// Removed data is noted in the database `aside`: records and pairs in `lazaret_set_aside_T` with reason and key,
/// changed values in `lazaret_values_changed` with table, column, row, old and new value.
extension RepairRun {
  /// Repairs records and references; missing values without a default are only reported.
  mutating func repairRecords() throws {
    guard account.scope == .data else { return }
    try requirePrimaryKeys()
    try setRepeatedKeysAside()
    try setDuplicatesAside()
    try cutDanglingReferences()
    try correctEntityNumbers()
    try removeDanglingPairs()
    try joinOneSidedRelationships()
    try giveMandatoryValues()
    if account.setAsideRows > 0 || account.changedValues > 0 { try renewDerivedValues() }
  }

  /// Rejects duplicate primary keys, because notes refer to them.
  private func requirePrimaryKeys() throws {
    for name in layout.tables.map(\.name) + layout.joinTables.map(\.name) {
      guard let table = foundTable(name), try rows(of: name) > 0 else { continue }
      let key = table.columns.filter { $0.name.uppercased() == "Z_PK" }.map { $0.declaredType.uppercased() }
      let hasRowids = try database.hasRowids(table.name, in: "main")
      let isInteger = layout.table(named: name) == nil || key.contains { $0.contains("INT") }
      guard hasRowids != true || !isInteger else { continue }
      throw Self.refused(
        "table \(printable(name)) is without the primary key of the model, so that its records cannot be told apart")
    }
  }

  func makeAsideTable() throws {
    guard account.scope == .data else { return }
    try database.execute(
      sql: """
        CREATE TABLE aside.lazaret_values_changed ("table" TEXT, "column" TEXT, "row" INTEGER, "before", "after");
        CREATE INDEX aside.lazaret_by_row ON lazaret_values_changed ("table", "column", "row")
        """)
  }

  // MARK: Changes

  /// Changes a column and notes both values.
  ///
  /// - Parameters:
  ///   - value: SQL over the row `o`.
  ///   - condition: SQL over the row `o`.
  /// - Returns: The number of rows.
  private mutating func change(
    _ column: String, of table: String, to value: String, where condition: String
  ) throws -> Int {
    let (name, key) = (table.sqlName, column.sqlName)
    let rows = "\(condition) AND o.\(key) IS NOT (\(value))"
    let earlier = try Int64.fetchOne(database, sql: "SELECT max(rowid) FROM aside.lazaret_values_changed") ?? 0
    try database.execute(
      sql: "INSERT INTO aside.lazaret_values_changed SELECT ?, ?, o.Z_PK, o.\(key), (\(value)) "
        + "FROM main.\(name) AS o NOT INDEXED WHERE \(rows)", arguments: [table, column])
    // Lookups must not see the change, so use the noted values.
    try database.execute(
      sql: "UPDATE main.\(name) AS o NOT INDEXED SET \(key) = (SELECT c.\"after\" "
        + "FROM aside.lazaret_values_changed AS c "
        + "WHERE c.\"table\" = ? AND c.\"column\" = ? AND c.\"row\" = o.Z_PK ORDER BY c.rowid DESC LIMIT 1) WHERE \(rows)",
      arguments: [table, column])
    let changed = database.changesCount
    account.changedValues += changed
    // Affinity may turn 0.0 into 0; note the stored value.
    try database.execute(
      sql: "UPDATE aside.lazaret_values_changed AS c SET \"after\" = "
        + "(SELECT o.\(key) FROM main.\(name) AS o WHERE o.Z_PK = c.\"row\") WHERE c.rowid > ?", arguments: [earlier])
    return changed
  }

  private mutating func setAside(_ table: String, _ reason: RepairAccount.Kind, where condition: String) throws -> Int {
    let (name, kept) = (table.sqlName, SQLText.quotedIdentifier("lazaret_set_aside_\(table)"))
    let rows =
      "SELECT '\(reason.rawValue)' AS lazaret_reason, o.rowid AS lazaret_key, o.* FROM main.\(name) AS o NOT INDEXED"
    let isThere = try Bool.fetchOne(
      database, sql: "SELECT count(*) > 0 FROM aside.sqlite_master WHERE name = ?",
      arguments: ["lazaret_set_aside_\(table)"])
    if isThere != true { try database.execute(sql: "CREATE TABLE aside.\(kept) AS \(rows) WHERE 0") }
    try database.execute(sql: "INSERT INTO aside.\(kept) \(rows) WHERE \(condition)")
    try database.execute(
      sql: "DELETE FROM main.\(name) WHERE rowid IN (SELECT lazaret_key FROM aside.\(kept))")
    let removed = database.changesCount
    account.setAsideRows += removed
    return removed
  }

  // MARK: Duplicates

  /// Keeps the first row of each primary key, the only one references can mean.
  private mutating func setRepeatedKeysAside() throws {
    for key in rules.looseKeys(in: found) {
      let removed = try setAside(key.table, .duplicate, where: key.isRepeated)
      note(
        .duplicate, in: key.table, key.table, changed: removed,
        "\(counted(removed, "row")) of table \(printable(key.table)) (\(printable(key.words))) "
          + "\(removed == 1 ? "is" : "are") set aside: without a primary key, or with that of another row")
    }
  }

  /// Keeps the lowest key of records that must be unique.
  private mutating func setDuplicatesAside() throws {
    for constraint in rules.constraints {
      let index = constraint.index
      let removed = try setAside(index.tableName, .duplicate, where: constraint.isRepeated)
      note(
        .duplicate, in: index.tableName, index.name, changed: removed,
        "\(counted(removed, "record")) of \(printable(constraint.entity)) are set aside: others have the same "
          + constraint.properties.map(printable).joined(separator: ", "))
    }
  }

  // MARK: References

  private mutating func cutDanglingReferences() throws {
    for reference in rules.references {
      let cut = try self.cut(reference, where: reference.leadsNowhere)
      note(
        .danglingReference, in: reference.table, reference.column, changed: cut,
        "\(counted(cut, "reference")) of \(printable(reference.key.description)) that lead to no record are cut")
    }
  }

  private mutating func correctEntityNumbers() throws {
    for reference in rules.references {
      guard let column = reference.entityColumn, let condition = reference.hasWrongEntity,
        hadColumn(column, in: reference.table)
      else { continue }
      let number = "(SELECT q.Z_ENT FROM main.\(reference.target.sqlName) AS q WHERE q.Z_PK = \(reference.place))"
      let changed = try change(column, of: reference.table, to: number, where: condition)
      note(
        .entityNumbers, in: reference.table, column, changed: changed,
        "\(counted(changed, "reference")) of \(printable(reference.key.description)) "
          + "\(changed == 1 ? "gets" : "get") the number of the entity that \(changed == 1 ? "it leads" : "they lead") to"
      )
    }
  }

  private mutating func cut(_ reference: RecordRules.Reference, where condition: String) throws -> Int {
    // Companions first: the condition is about the reference itself.
    for companion in reference.companions {
      _ = try change(companion, of: reference.table, to: "NULL", where: condition)
    }
    return try change(reference.column, of: reference.table, to: "NULL", where: condition)
  }

  private mutating func removeDanglingPairs() throws {
    for pairs in rules.pairs {
      let join = pairs.join
      let removed = try setAside(join.name, .danglingPair, where: pairs.leadNowhere)
      note(
        .danglingPair, in: join.name, join.name, changed: removed,
        "\(counted(removed, "pair")) of \(printable(join.relationship.description)) that lead to no record are set aside"
      )
    }
  }

  /// Completes one-sided relationships; cuts them if the target leads elsewhere.
  private mutating func joinOneSidedRelationships() throws {
    var joined: [String: Int] = [:]
    let mutuals = rules.mutuals
    for mutual in mutuals {
      let (one, other) = (mutual.one, mutual.other)
      // A companion's value would be invented.
      guard other.companions.isEmpty else { continue }
      let source = "(SELECT min(q.Z_PK) FROM main.\(one.table.sqlName) AS q WHERE q.\(one.column.sqlName) = o.Z_PK)"
      joined[other.column + "." + other.table, default: 0] += try change(
        other.column, of: other.table, to: source, where: "o.\(other.column.sqlName) IS NULL AND \(source) IS NOT NULL")
    }
    for mutual in mutuals {
      let one = mutual.one
      let cut = try self.cut(one, where: mutual.isOneSided)
      let total = cut + (joined[one.column + "." + one.table] ?? 0)
      note(
        .oneSidedRelationship, in: one.table, one.column, changed: total,
        "\(counted(total, "reference")) of \(printable(one.key.description)) that only one of two records had are put right"
      )
    }
  }

  // MARK: Values

  private struct MandatoryAttribute {
    let column: ColumnLayout
    let table: TableLayout
    let entity: EntityLayout
    let property: StoredProperty

    /// Nil without a default, or for unique values.
    let literal: String?

    let obstacle: String

    var condition: String { "o.Z_ENT = \(entity.number) AND o.\(column.sqlName) IS NULL" }

    var words: String { "\(printable(entity.name)).\(printable(property.path.description))" }
  }

  private var mandatoryAttributes: [MandatoryAttribute] {
    layout.tables.flatMap { table in
      table.columns.flatMap { column -> [MandatoryAttribute] in
        guard hadColumn(column.name, in: table.name), let (path, key) = path(of: column) else { return [] }
        return holders(of: path, key).compactMap { entity, property in
          guard !property.isOptional, let attribute = property.attribute, !attribute.isDerived else { return nil }
          let literal = attribute.defaultValue?.literal(isMarked: property.isMarked) ?? "NULL"
          let isUnique = mustBeUnique(column.name, in: table.name)
          return MandatoryAttribute(
            column: column, table: table, entity: entity, property: property,
            literal: literal == "NULL" || isUnique ? nil : literal,
            obstacle: literal == "NULL" ? Self.noDefault : Self.noSharedDefault)
        }
      }
    }
  }

  static let noDefault = "has no default"

  static let noSharedDefault = "must be unique, which its default is not"

  /// Whether a default would violate a model constraint or unique app index.
  func mustBeUnique(_ column: String, in table: String) -> Bool {
    let isOfModel = layout.indexes.contains { index in
      index.isUnique && index.tableName == table && index.columns.contains { $0.name == column }
    }
    return isOfModel
      || found.indexes.values.contains { index in
        index.isUnique && index.tableName.uppercased() == table.uppercased()
          && index.columns.contains { $0.uppercased() == column.uppercased() }
      }
  }

  /// Fills mandatory attributes with the model's defaults and reports those without one.
  private mutating func giveMandatoryValues() throws {
    for attribute in mandatoryAttributes {
      guard let literal = attribute.literal else {
        try tellMissingValue(attribute)
        continue
      }
      let changed = try change(
        attribute.column.name, of: attribute.table.name, to: literal, where: attribute.condition)
      note(
        .missingValue, in: attribute.table.name, attribute.column.name, changed: changed,
        "\(counted(changed, "record")) without the mandatory \(attribute.words) get its default")
    }
  }

  /// Reports mandatory attributes without value and default; changes nothing.
  mutating func tellMissingValues() throws {
    guard account.scope == .data else { return }
    for attribute in mandatoryAttributes where attribute.literal == nil { try tellMissingValue(attribute) }
  }

  private mutating func tellMissingValue(_ attribute: MandatoryAttribute) throws {
    let (table, column) = (attribute.table.name, attribute.column.name)
    let place = RecordRules.rows(table, where: attribute.condition)
    try leaveOut(.missingValue, in: table, column, rowsOf: place) { rows in
      "\(attribute.words) is mandatory and \(attribute.obstacle): \(counted(rows, "record")) have no value"
    }
  }

  /// Recomputes derived attributes, because triggers were off during the changes.
  private mutating func renewDerivedValues() throws {
    for table in layout.tables {
      for column in table.columns where hadColumn(column.name, in: table.name) {
        guard let (value, numbers) = derivation(of: column, isTimeWanted: false) else { continue }
        _ = try change(column.name, of: table.name, to: value, where: "o.Z_ENT IN \(numbers.sqlList)")
      }
    }
  }

  // MARK: Lookup

  func hasRecordsToRepair() throws -> Bool {
    guard account.scope == .data else { return false }
    let conditions =
      rules.looseKeys(in: found).map { ($0.table, $0.isRepeated) }
      + rules.constraints.map { ($0.index.tableName, $0.isRepeated) }
      + rules.references.compactMap { reference in reference.hasWrongEntity.map { (reference.table, $0) } }
      + rules.references.map { ($0.table, $0.leadsNowhere) } + rules.mutuals.map { ($0.one.table, $0.isOneSided) }
      + rules.pairs.map { ($0.join.name, $0.leadNowhere) }
      + mandatoryAttributes.filter { $0.literal != nil }.map { ($0.table.name, $0.condition) }
    return try conditions.contains { table, condition in
      let rows = RecordRules.rows(table, where: condition)
      return try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM \(rows))") == true
    }
  }
}
