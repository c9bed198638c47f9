internal import Platform

/// A difference between expected and found schema.
///
/// Names ignore ASCII case, as in SQLite. Column order and index names do not count: Core Data changes both in
/// migrations.
public enum SchemaDifference: Sendable, Hashable {
  case missingTable(String)
  case unexpectedTable(String)
  case missingColumn(table: String, column: String)
  case unexpectedColumn(table: String, column: String)

  case otherType(table: String, column: String, expected: String, found: String)

  /// An index over these columns is missing.
  case missingIndex(table: String, columns: [String], isUnique: Bool)
  case unexpectedIndex(table: String, columns: [String], isUnique: Bool)
}

extension SchemaDifference {
  /// The difference in one sentence without a period.
  public var text: String {
    switch self {
    case .missingTable(let table): "table \(printable(table)) is missing"
    case .unexpectedTable(let table): "table \(printable(table)) is not the model's"
    case .missingColumn(let table, let column): "column \(printable(column)) of table \(printable(table)) is missing"
    case .unexpectedColumn(let table, let column):
      "column \(printable(column)) of table \(printable(table)) is not the model's"
    case .otherType(let table, let column, let expected, let found):
      """
      column \(printable(column)) of table \(printable(table)) is declared as \(printable(found)), not as \
      \(printable(expected))
      """
    case .missingIndex(let table, let columns, let isUnique):
      "the \(isUnique ? "unique " : "")index of table \(printable(table)) over \(Self.list(columns)) is missing"
    case .unexpectedIndex(let table, let columns, let isUnique):
      "the \(isUnique ? "unique " : "")index of table \(printable(table)) over \(Self.list(columns)) is not the model's"
    }
  }

  private static func list(_ columns: [String]) -> String { columns.map(printable).joined(separator: ", ") }
}

extension SQLSchema {
  /// Returns the differences of another schema, tables sorted by name.
  public func differences(to found: SQLSchema) -> [SchemaDifference] {
    let expectedTables = Self.byKey(tables)
    let foundTables = Self.byKey(found.tables)
    var result: [SchemaDifference] = []
    for (key, expected) in expectedTables.ordered(by: { $0.key < $1.key }) {
      guard let other = foundTables[key] else {
        result.append(.missingTable(expected.name))
        continue
      }
      result += Self.differences(between: expected, and: other)
      result += Self.differences(
        between: indexes.values.filter { Self.key($0.tableName) == key },
        and: found.indexes.values.filter { Self.key($0.tableName) == key }, table: expected.name)
    }
    for (key, other) in foundTables.ordered(by: { $0.key < $1.key }) where expectedTables[key] == nil {
      result.append(.unexpectedTable(other.name))
    }
    return result
  }

  private static func differences(between expected: SQLTable, and found: SQLTable) -> [SchemaDifference] {
    let foundColumns = Dictionary(found.columns.map { (key($0.name), $0) }, uniquingKeysWith: { first, _ in first })
    let expectedNames = Set(expected.columns.map { key($0.name) })
    var result: [SchemaDifference] = []
    for column in expected.columns {
      guard let other = foundColumns[key(column.name)] else {
        result.append(.missingColumn(table: expected.name, column: column.name))
        continue
      }
      if key(column.declaredType) != key(other.declaredType) {
        result.append(
          .otherType(
            table: expected.name, column: column.name, expected: column.declaredType, found: other.declaredType))
      }
    }
    for column in found.columns where !expectedNames.contains(key(column.name)) {
      result.append(.unexpectedColumn(table: expected.name, column: column.name))
    }
    return result
  }

  private static func differences(
    between expected: [SQLIndex], and found: [SQLIndex], table: String
  ) -> [SchemaDifference] {
    struct Shape: Hashable {
      let columns: [String]
      let isUnique: Bool
    }
    func shapes(_ indexes: [SQLIndex]) -> Set<Shape> {
      // The order in a unique set is irrelevant: Core Data renames a join table when the other side becomes the naming
      // one, but keeps its key's order (real stores of fw 1044 and 1145).
      Set(
        indexes.map {
          Shape(columns: $0.isUnique ? $0.columns.map(key).sorted() : $0.columns.map(key), isUnique: $0.isUnique)
        })
    }
    func ordered(_ shapes: Set<Shape>) -> [Shape] {
      shapes.ordered {
        ($0.columns.joined(separator: ","), $0.isUnique ? 1 : 0) < (
          $1.columns.joined(separator: ","), $1.isUnique ? 1 : 0
        )
      }
    }
    let wanted = shapes(expected)
    let there = shapes(found)
    return ordered(wanted.subtracting(there)).map {
      .missingIndex(table: table, columns: $0.columns, isUnique: $0.isUnique)
    }
      + ordered(there.subtracting(wanted)).map {
        .unexpectedIndex(table: table, columns: $0.columns, isUnique: $0.isUnique)
      }
  }

  private static func byKey(_ tables: [String: SQLTable]) -> [String: SQLTable] {
    Dictionary(tables.map { (key($0), $1) }, uniquingKeysWith: { first, _ in first })
  }

  private static func key(_ name: String) -> String {
    String(decoding: name.utf8.map { (0x61...0x7A).contains($0) ? $0 &- 32 : $0 }, as: UTF8.self)
  }
}
