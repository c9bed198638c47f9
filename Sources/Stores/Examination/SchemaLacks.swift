import PersistentStore
import SQLiteFormat
import StoreFiles

/// What an app's schema has and a plain SQLite store lacks.
enum SchemaLacks {
  /// The missing parts, tables and columns first, as `cars`, `cars.owner`, `cars.owner as TEXT` where the type is another,
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

  /// The constraints that a table lacks, as far as they can be told without reading their expressions.
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

  /// The missing indexes that have a statement of their own; one of another name over the same columns stands for one.
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

  /// The missing views or triggers; their statements are not compared.
  private static func named(
    _ names: some Sequence<String>, _ kind: SchemaEntry.Kind, in found: Schema
  ) -> [String] {
    let there = Set(found.entries.filter { $0.kind == kind }.map { $0.name.lowercased() })
    return names.filter { !there.contains($0.lowercased()) }.sorted().map { "\(kind.rawValue) \($0)" }
  }
}
