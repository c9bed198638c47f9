internal import Platform

/// One difference between a schema that is expected and one that was found.
///
/// Names are compared without regard to the case of ASCII letters, as SQLite does. The order of columns and the names of
/// indexes do not count: Core Data itself changes both when it migrates.
public enum SchemaDifference: Sendable, Hashable {
  case missingTable(String)
  case unexpectedTable(String)
  case missingColumn(table: String, column: String)
  case unexpectedColumn(table: String, column: String)

  /// A column is declared with another type.
  case otherType(table: String, column: String, expected: String, found: String)

  /// An index over these columns is not there.
  case missingIndex(table: String, columns: [String], isUnique: Bool)
  case unexpectedIndex(table: String, columns: [String], isUnique: Bool)
}

extension SchemaDifference {
  /// What differs, in one sentence without a full stop.
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
  /// What another schema lacks or has more than this one, tables in the order of their names.
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
      // What is unique together is so in any order: Core Data renames a join table whose other side names it from now on, and
      // leaves the order of its key (real stores of fw 1044 and 1145).
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
