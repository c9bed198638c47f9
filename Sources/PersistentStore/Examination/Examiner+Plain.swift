import ManagedObjectModel
import Platform
import SQLiteFormat

extension Examiner {
  /// Compares a plain store with the app's schema: every part is required.
  func judgePlain(_ schema: Schema, into examination: inout Examination, model: AppModel?) {
    guard examination.verdict != .damaged else { return }
    switch model {
    case nil:
      if schema.entries.isEmpty {
        examination.accept(.emptyDatabase)
      } else {
        examination.accept(.looksSound)
      }
    case .coreData(let bundle):
      examination.give(.incompatible, .notCoreData(isEmpty: schema.entries.isEmpty, model: bundle.name))
    case .sqlite(let script, let name):
      do {
        let expected = try SQLSchema(script)
        let missing = SchemaLacks.list(expected, in: schema)
        if missing.isEmpty {
          examination.modelVersion = name
          examination.accept(.hasSchema(name))
        } else if Self.hasNone(of: expected, in: schema) {
          examination.give(.incompatible, .otherSchema(schema.tables.map(\.name), schema: name))
        } else {
          // The app's migrator creates it when it opens the store.
          examination.health.note(
            "lacks-tables", .note, "the store lacks \(Examination.list(missing, showing: 50)) of the schema",
            count: missing.count)
          examination.accept(.lacksTables(missing, schema: name))
        }
      } catch {
        examination.give(
          .unavailable,
          VerdictReason(error.code, "The app's schema file cannot be used: \(error.detail).", hint: error.hint))
      }
    }
  }

  /// Returns whether a store has tables, but none expected.
  private static func hasNone(of expected: SQLSchema, in found: Schema) -> Bool {
    let own = found.tables.filter { !$0.name.lowercased().hasPrefix("sqlite_") }
    return !own.isEmpty && !expected.tables.isEmpty && expected.tables.keys.allSatisfy { found.table(named: $0) == nil }
  }
}

enum SchemaLacks {
  /// Returns missing parts, tables and columns first: `cars`, `cars.owner`, `cars.owner as TEXT` for another type,
  /// `index carsByOwner`, `view oldCars`.
  static func list(_ expected: SQLSchema, in found: Schema) -> [String] {
    columns(expected, in: found) + indexes(expected, in: found)
      + named(expected.triggers.keys, .trigger, in: found) + named(expected.views.keys, .view, in: found)
  }

  private static func columns(_ expected: SQLSchema, in found: Schema) -> [String] {
    var result: [String] = []
    for (name, table) in expected.tables.ordered(by: { $0.key < $1.key }) {
      guard let entry = found.table(named: name), let definition = entry.tableDefinition else {
        result.append(name)
        continue
      }
      guard !definition.isVirtual else { continue }
      for column in table.columns {
        guard let index = definition.column(named: column.name) else {
          result.append("\(name).\(column.name)")
          continue
        }
        if definition.columns[index].declaredType.uppercased() != column.declaredType.uppercased() {
          result.append("\(name).\(column.name) as \(column.declaredType)")
        }
      }
      if let wanted = TableDefinition(sql: table.statement) {
        result += constraints(wanted, in: definition, found).map { "\(name): \($0)" }
      }
    }
    return result
  }

  /// Returns missing constraints, without reading expressions.
  private static func constraints(
    _ expected: TableDefinition, in found: TableDefinition, _ schema: Schema
  ) -> [String] {
    func names(_ columns: [String]) -> String { columns.map { $0.lowercased() }.joined(separator: ", ") }
    var result: [String] = []
    if expected.isStrict, !found.isStrict { result.append("STRICT") }
    if names(expected.primaryKey) != names(found.primaryKey) {
      result.append("PRIMARY KEY (\(expected.primaryKey.joined(separator: ", ")))")
    }
    if expected.isAutoincrement, !found.isAutoincrement { result.append("AUTOINCREMENT") }
    let unique = Set(
      (found.uniqueConstraints + [found.primaryKey]).map(names)
        + schema.indexes(ofTable: found.name).compactMap(\.indexDefinition).filter { $0.isUnique && !$0.isPartial }
        .map { names($0.columns.map { $0.name ?? "" }) })
    for columns in expected.uniqueConstraints where !unique.contains(names(columns)) {
      result.append("UNIQUE (\(columns.joined(separator: ", ")))")
    }
    if expected.checkCount > found.checkCount { result.append("\(expected.checkCount - found.checkCount) CHECK") }
    for column in expected.columns {
      guard let place = found.column(named: column.name) else { continue }
      let other = found.columns[place]
      if column.isNotNull, !other.isNotNull { result.append("\(column.name) NOT NULL") }
      if column.generation != other.generation { result.append("\(column.name) as it is generated") }
      if column.referencedTable != nil, other.referencedTable == nil { result.append("\(column.name) REFERENCES") }
    }
    return result
  }

  /// Returns missing explicit indexes; another name with the same columns suffices.
  private static func indexes(_ expected: SQLSchema, in found: Schema) -> [String] {
    let there = found.entries.compactMap { entry in
      entry.kind == .index ? entry.sql.flatMap(IndexDefinition.init(sql:)) : nil
    }
    let missing = expected.indexes.values.filter { index in
      !index.name.lowercased().hasPrefix("sqlite_autoindex_") && !there.contains { stands($0, for: index) }
    }
    return missing.map { "\($0.isUnique ? "unique index" : "index") \($0.name)" }.sorted()
  }

  private static func stands(_ found: IndexDefinition, for expected: SQLIndex) -> Bool {
    guard isSame(found.tableName, expected.tableName), found.isUnique == expected.isUnique,
      found.isPartial == expected.isPartial, found.columns.count == expected.columns.count
    else { return false }
    if isSame(found.name, expected.name) { return true }
    // Conditions and expressions are not compared.
    return !expected.isPartial
      && zip(found.columns, expected.columns).allSatisfy {
        $0.name.map { [expected = $1] in isSame($0, expected) } ?? false
      }
  }

  private static func isSame(_ name: String, _ other: String) -> Bool { name.lowercased() == other.lowercased() }

  private static func named(_ names: some Sequence<String>, _ kind: SchemaEntry.Kind, in found: Schema) -> [String] {
    let there = Set(found.entries.filter { $0.kind == kind }.map { $0.name.lowercased() })
    return names.filter { !there.contains($0.lowercased()) }.sorted().map { "\(kind.rawValue) \($0)" }
  }
}
