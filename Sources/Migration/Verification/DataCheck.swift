internal import Foundation
internal import GRDB
import ManagedObjectModel
package import PersistentStore
package import Platform

/// Checks references, constraints, values and files of large values against the store's own model.
///
/// It reads tables without indexes, which may differ from the rows. References to a missing table dangle; other
/// prevented checks are reported.
package struct DataCheck: Sendable, Encodable {
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The primary key is missing or shared.
    case duplicateKey = "duplicate-key"

    /// A to-one relationship's record is missing.
    case danglingReference = "dangling-reference"

    /// A reference's entity number differs from its target's.
    case wrongEntityNumber = "wrong-entity-number"

    /// A one-to-one relationship does not lead back.
    case oneSidedRelationship = "one-sided-relationship"

    /// A join table row's record is missing.
    case danglingJoinRow = "dangling-join-row"

    /// A row repeats unique values of an earlier one.
    case duplicate

    case missingValue = "missing-value"

    case missingFile = "missing-file"
  }

  /// The rows of a table with one problem.
  package struct Finding: Sendable, Hashable, Encodable {
    package var kind: Kind

    package var table: String

    var columns: [String]

    /// The property, or a constraint's properties, as `Entity.property`.
    package var property: String

    package var count: Int

    /// The first ones, ascending; both columns of a join table.
    package var keys: [[Int64]]

    /// Encodes the finding and its text, without record values.
    package func encode(to encoder: any Encoder) throws {
      try encoder.encode([
        "code": kind.rawValue, "words": words, "table": table, "columns": columns, "property": property,
        "count": count, "keys": keys,
      ])
    }
  }

  static let listLimit = 100

  /// By kind.
  package internal(set) var findings: [Finding] = []

  /// The checks prevented by missing parts, as sorted sentences without a full stop.
  package internal(set) var notChecked: [String] = []

  /// Whether everything was checked and is sound.
  package var isClean: Bool { findings.isEmpty && notChecked.isEmpty }

  /// Whether a repair of records could help.
  package var hasContradictions: Bool { findings.contains { $0.kind != .missingFile } }

  /// Whether large values' files are missing, which no repair restores.
  package var lacksFiles: Bool { findings.contains { $0.kind == .missingFile } }

  private let columns: [String: Set<String>]

  private enum CodingKeys: CodingKey { case findings, notChecked }

  /// Checks an open store's records.
  ///
  /// - Parameter layout: The layout of the store's own model.
  init(_ database: Database, _ layout: StoreLayout) throws {
    columns = Dictionary(
      try SQLSchema(database).tables.values.map { table in
        (StoreOutline.key(table.name), Set(table.columns.map { StoreOutline.key($0.name) }))
      }, uniquingKeysWith: { first, _ in first })
    let rules = RecordRules(layout)
    for key in try rules.looseKeys(in: SQLSchema(database)) {
      try find(.duplicateKey, key.table, key.columns, key.words, keys: key.columns, where: key.isShared, database)
    }
    try checkReferences(database, rules)
    try checkJoinTables(database, rules)
    try checkConstraints(database, rules)
    try checkValues(database, layout)
    sortFindings()
  }

  mutating func sortFindings() {
    findings.sort { ($0.kind.place, $0.table, $0.property) < ($1.kind.place, $1.table, $1.property) }
  }

  /// Checks a store's records and external files, without changing any file.
  ///
  /// - Throws: A file error, or `MigrationError` if SQLite can't read it.
  package init(of store: StoreFileSet, layout: StoreLayout, surroundings: Surroundings = .machine) throws {
    self = try StoreView(original: store, surroundings: surroundings).read { database in
      var check = try DataCheck(database, layout)
      try check.checkFiles(database, layout, try store.largeValueNames(in: surroundings.fileSystem))
      return check
    }
  }

  // MARK: Checks

  private mutating func checkReferences(_ database: Database, _ rules: RecordRules) throws {
    for reference in rules.references {
      let isThere = columns[StoreOutline.key(reference.target)] != nil
      guard hasToCheck(reference.table, ["Z_PK", reference.column]), !isThere || hasToCheck(reference.target, ["Z_PK"])
      else { continue }
      let condition = isThere ? reference.leadsNowhere : "\(reference.place) IS NOT NULL"
      try find(
        .danglingReference, reference.table, [reference.column], reference.key.description, where: condition, database)
    }
    for reference in rules.references {
      guard let column = reference.entityColumn, let condition = reference.hasWrongEntity,
        has(reference.table, ["Z_PK", reference.column, column]), has(reference.target, ["Z_PK", "Z_ENT"])
      else { continue }
      try find(.wrongEntityNumber, reference.table, [column], reference.key.description, where: condition, database)
    }
    for mutual in rules.mutuals {
      let (one, other) = (mutual.one, mutual.other)
      guard has(one.table, ["Z_PK", one.column]), has(other.table, ["Z_PK", other.column]) else { continue }
      try find(.oneSidedRelationship, one.table, [one.column], one.key.description, where: mutual.isOneSided, database)
    }
  }

  private mutating func checkJoinTables(_ database: Database, _ rules: RecordRules) throws {
    for pairs in rules.pairs {
      let missing = pairs.tables.filter { self.columns[StoreOutline.key($0)] == nil }
      guard hasToCheck(pairs.join.name, pairs.columns),
        pairs.tables.allSatisfy({ missing.contains($0) || hasToCheck($0, ["Z_PK"]) })
      else { continue }
      try find(
        .danglingJoinRow, pairs.join.name, pairs.columns, pairs.join.relationship.description, keys: pairs.columns,
        where: missing.isEmpty ? pairs.leadNowhere : "1", database)
    }
  }

  private mutating func checkConstraints(_ database: Database, _ rules: RecordRules) throws {
    for constraint in rules.constraints {
      let (table, columns) = (constraint.index.tableName, constraint.index.columns.map(\.name))
      guard hasToCheck(table, ["Z_PK"] + columns) else { continue }
      try find(
        .duplicate, table, columns, "\(constraint.entity).\(constraint.properties.joined(separator: "+"))",
        where: constraint.isRepeated, database)
    }
  }

  private mutating func checkValues(_ database: Database, _ layout: StoreLayout) throws {
    for table in layout.tables {
      for column in table.columns {
        guard case .attribute(let key, _) = column.role,
          let property = layout.property(key), !property.traits.isOptional,
          property.attribute?.isDerived == false, let numbers = layout.entity(named: key.entityName)?.numbers,
          hasToCheck(table.name, ["Z_PK", "Z_ENT", column.name])
        else { continue }
        try find(
          .missingValue, table.name, [column.name], key.description,
          where: "o.\(column.sqlName) IS NULL "
            + "AND o.Z_ENT BETWEEN \(numbers.lowerBound) AND \(numbers.upperBound)", database)
      }
    }
  }

  // MARK: Counting

  private mutating func find(
    _ kind: Kind, _ table: String, _ columns: [String], _ property: String, keys: [String] = ["Z_PK"],
    where condition: String, _ database: Database
  ) throws {
    let source = RecordRules.rows(table, where: condition)
    let count = try database.count(from: source)
    guard count > 0 else { return }
    let list = keys.map { "o.\($0.sqlName)" }.joined(separator: ", ")
    let rows = try Row.fetchAll(
      database, sql: "SELECT \(list) FROM \(source) ORDER BY \(list) LIMIT \(Self.listLimit)")
    findings.append(
      Finding(
        kind: kind, table: table, columns: columns, property: property, count: count,
        keys: rows.map { row in row.databaseValues.map { Int64.fromDatabaseValue($0) ?? 0 } }))
  }

  func has(_ table: String, _ names: [String]) -> Bool {
    guard let found = columns[StoreOutline.key(table)] else { return false }
    return names.allSatisfy { found.contains(StoreOutline.key($0)) }
  }

  mutating func hasToCheck(_ table: String, _ names: [String]) -> Bool {
    let found = columns[StoreOutline.key(table)]
    let missing = names.filter { found?.contains(StoreOutline.key($0)) != true }
    guard !missing.isEmpty else { return true }
    let place = "table \(printable(table))"
    let words = found == nil ? ["\(place) is not there"] : missing.map { "\(place) has no column \(printable($0))" }
    notChecked = Set(notChecked).union(words).sorted()
    return false
  }
}

extension DataCheck.Kind {
  fileprivate var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

extension DataCheck.Finding {
  /// The problem as a sentence without a full stop, without record values.
  package var words: String {
    let rows = count == 1 ? "1 row" : "\(count) rows"
    let place = "of table \(printable(table))"
    let property = printable(property)
    let (refer, have) = count == 1 ? ("refers", "has") : ("refer", "have")
    return switch kind {
    case .duplicateKey: "\(rows) \(place) \(have) no primary key of \(count == 1 ? "its" : "their") own (\(property))"
    case .wrongEntityNumber:
      "\(rows) \(place) \(have) beside \(property) the number of another entity than that of the record it leads to"
    case .danglingReference: "\(rows) \(place) \(refer) through \(property) to records that are not there"
    case .oneSidedRelationship: "\(rows) \(place) \(refer) through \(property) to records that do not refer back"
    case .danglingJoinRow:
      "\(rows) \(place) \(count == 1 ? "connects" : "connect") through \(property) records that are not there"
    case .duplicate: "\(rows) \(place) \(count == 1 ? "repeats" : "repeat") values that \(property) allows once"
    case .missingValue: "\(rows) \(place) \(have) no value for \(property), which is mandatory"
    case .missingFile: "\(rows) \(place) \(refer) through \(property) to files of large values that are not there"
    }
  }
}

extension DataCheck {
  /// The longest name of a large value's file: marker and UUID, with room for other versions.
  private static let longestName = 80

  /// Checks files of large values (format section 3.7).
  ///
  /// - Parameter files: The names of the files next to the store.
  mutating func checkFiles(_ database: Database, _ layout: StoreLayout, _ files: Set<String>) throws {
    for table in layout.tables {
      for column in table.columns {
        guard case .attribute(let key, _) = column.role, let attribute = layout.property(key)?.attribute,
          attribute.allowsExternalBinaryDataStorage, attribute.type == .binary || attribute.type == .transformable,
          let numbers = layout.entity(named: key.entityName)?.numbers,
          hasToCheck(table.name, ["Z_PK", "Z_ENT", column.name])
        else { continue }
        let name = "o.\(column.sqlName)"
        let marked = RecordRules.rows(
          table.name,
          where: "o.Z_ENT BETWEEN \(numbers.lowerBound) AND \(numbers.upperBound) AND typeof(\(name)) = 'blob' "
            + "AND length(\(name)) BETWEEN 2 AND \(Self.longestName) AND substr(\(name), 1, 1) = x'02'")
        let rows = try Row.fetchCursor(database, sql: "SELECT o.Z_PK, \(name) FROM \(marked) ORDER BY o.Z_PK")
        var (count, keys): (Int, [[Int64]]) = (0, [])
        while let row = try rows.next() {
          let values = Array(row.databaseValues)
          guard let name = Data.fromDatabaseValue(values[1]),
            !files.contains(String(decoding: name.dropFirst().prefix { $0 != 0 }, as: UTF8.self))
          else { continue }
          count += 1
          if keys.count < Self.listLimit { keys.append([Int64.fromDatabaseValue(values[0]) ?? 0]) }
        }
        guard count > 0 else { continue }
        findings.append(
          Finding(
            kind: .missingFile, table: table.name, columns: [column.name], property: key.description, count: count,
            keys: keys))
      }
    }
    sortFindings()
  }
}
