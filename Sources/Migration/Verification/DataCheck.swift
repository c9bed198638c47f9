package import GRDB
internal import ManagedObjectModel
package import PersistentStore
package import StoreFiles

/// What in the records of a store contradicts its own model: references that lead nowhere, one-sided relationships, rows
/// that break a constraint, values that are missing.
///
/// SQL on whole tables; a table or column that the store lacks is passed over, because the drift tells of it.
package struct DataCheck: Sendable {
  /// What is wrong with rows.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A to-one relationship leads to a record that is not there.
    case danglingReference = "dangling-reference"

    /// Of two to-one relationships that are each other's inverse, one leads here and the other does not lead back.
    case oneSidedRelationship = "one-sided-relationship"

    /// A row of a join table leads to a record that is not there.
    case danglingJoinRow = "dangling-join-row"

    /// A row has the values of an earlier one that only one row may have.
    case duplicate

    /// A mandatory attribute has no value.
    case missingValue = "missing-value"
  }

  /// The rows of a table with which one thing is wrong.
  package struct Finding: Sendable, Hashable {
    /// What is wrong.
    package var kind: Kind

    /// The table the rows are in.
    package var table: String

    /// The columns that are concerned.
    package var columns: [String]

    /// The property, or the properties of a constraint, after their entity and a point.
    package var property: String

    /// How many rows.
    package var count: Int

    /// The primary keys of the first of them, ascending; both columns of a join table's rows.
    package var keys: [[Int64]]
  }

  /// The most keys that a finding lists.
  package static let listLimit = 100

  /// Everything that was found, kind by kind.
  package private(set) var findings: [Finding] = []

  /// Whether nothing was found.
  package var isClean: Bool { findings.isEmpty }

  private let columns: [String: Set<String>]

  /// Checks the records of an open store.
  ///
  /// - Parameter layout: that of the store's own model.
  package init(_ database: Database, _ layout: StoreLayout) throws {
    columns = Dictionary(
      try SQLSchema(database).tables.values.map { table in
        (StoreOutline.key(table.name), Set(table.columns.map { StoreOutline.key($0.name) }))
      }, uniquingKeysWith: { first, _ in first })
    try checkReferences(database, layout)
    try checkJoinTables(database, layout)
    try checkConstraints(database, layout)
    try checkValues(database, layout)
    findings.sort { ($0.kind.place, $0.table, $0.property) < ($1.kind.place, $1.table, $1.property) }
  }

  /// Checks the records of a store without changing anything of it or beside it.
  ///
  /// - Throws: a file error, or `MigrationError` where SQLite cannot read it.
  package init(of store: StoreFileSet, layout: StoreLayout, surroundings: Surroundings = .machine) throws {
    self = try StoreView(of: store, surroundings: surroundings).read { try DataCheck($0, layout) }
  }

  // MARK: Checks

  private mutating func checkReferences(_ database: Database, _ layout: StoreLayout) throws {
    for table in layout.tables {
      for column in table.columns {
        switch column.role {
        case .toOne(let key):
          guard let relationship = layout.model.entities[key.entityName]?.properties[key.name]?.relationship,
            let target = layout.entity(named: relationship.destinationEntityName)
          else { continue }
          try checkReference(column.name, of: table.name, to: target.tableName, key, database)
          try checkInverse(of: relationship, key, column.name, table.name, target, database, layout)
        case .owner(let key):
          guard let owner = layout.entity(named: key.entityName) else { continue }
          try checkReference(column.name, of: table.name, to: owner.tableName, key, database)
        default: continue
        }
      }
    }
  }

  private mutating func checkReference(
    _ column: String, of table: String, to target: String, _ key: PropertyKey, _ database: Database
  ) throws {
    guard has(table, ["Z_PK", column]) else { return }
    try find(
      .danglingReference, table, [column], key.description, keys: ["o.Z_PK"],
      from: "\(Self.name(table)) AS o WHERE \(leadsNowhere(column, to: target))", database)
  }

  /// The inverse of a to-one relationship, where it is one too, must lead back.
  private mutating func checkInverse(
    of relationship: Relationship, _ key: PropertyKey, _ column: String, _ table: String, _ target: EntityLayout,
    _ database: Database, _ layout: StoreLayout
  ) throws {
    guard let inverse = relationship.inverseName,
      case .toOne(let back, _, _) = layout.storage(of: inverse, in: target.name), has(table, ["Z_PK", column]),
      has(target.tableName, ["Z_PK", back])
    else { return }
    try find(
      .oneSidedRelationship, table, [column], key.description, keys: ["o.Z_PK"],
      from: "\(Self.name(table)) AS o JOIN \(Self.name(target.tableName)) AS q ON q.Z_PK = o.\(Self.name(column)) "
        + "WHERE q.\(Self.name(back)) IS NOT o.Z_PK", database)
  }

  private mutating func checkJoinTables(_ database: Database, _ layout: StoreLayout) throws {
    for join in layout.joinTables {
      guard has(join.name, [join.sourceColumn, join.destinationColumn]),
        let own = layout.entity(named: join.relationship.entityName),
        let other = layout.entity(named: join.inverse.entityName)
      else { continue }
      let pair = [join.sourceColumn, join.destinationColumn]
      let keys = pair.map { "o.\(Self.name($0))" }
      try find(
        .danglingJoinRow, join.name, pair, join.relationship.description, keys: keys,
        from: "\(Self.name(join.name)) AS o WHERE \(leadsNowhere(pair[0], to: own.tableName)) "
          + "OR \(leadsNowhere(pair[1], to: other.tableName)) OR \(keys[0]) IS NULL OR \(keys[1]) IS NULL", database)
    }
  }

  private mutating func checkConstraints(_ database: Database, _ layout: StoreLayout) throws {
    for index in layout.indexes {
      guard case .uniqueness(let entity, let properties) = index.purpose else { continue }
      let names = index.columns.map(\.name)
      guard has(index.tableName, ["Z_PK"] + names) else { continue }
      let list = names.map(Self.name)
      // NULL is no value that another row could have too.
      let ranked =
        "SELECT Z_PK, row_number() OVER (PARTITION BY \(list.joined(separator: ", ")) ORDER BY Z_PK) AS place "
        + "FROM \(Self.name(index.tableName)) WHERE \(SQLText.all(list.map { "\($0) IS NOT NULL" }))"
      try find(
        .duplicate, index.tableName, names, "\(entity).\(properties.joined(separator: "+"))", keys: ["o.Z_PK"],
        from: "(\(ranked)) AS o WHERE o.place > 1", database)
    }
  }

  private mutating func checkValues(_ database: Database, _ layout: StoreLayout) throws {
    for table in layout.tables {
      for column in table.columns {
        guard case .attribute(let key, _) = column.role, has(table.name, ["Z_PK", "Z_ENT", column.name]),
          let property = layout.model.entities[key.entityName]?.properties[key.name], !property.traits.isOptional,
          property.attribute?.isDerived == false, let numbers = layout.entity(named: key.entityName)?.numbers
        else { continue }
        try find(
          .missingValue, table.name, [column.name], key.description, keys: ["o.Z_PK"],
          from: "\(Self.name(table.name)) AS o WHERE o.\(column.sqlName) IS NULL "
            + "AND o.Z_ENT BETWEEN \(numbers.lowerBound) AND \(numbers.upperBound)", database)
      }
    }
  }

  // MARK: Counting

  private mutating func find(
    _ kind: Kind, _ table: String, _ columns: [String], _ property: String, keys: [String], from source: String,
    _ database: Database
  ) throws {
    guard let count = try Int.fetchOne(database, sql: "SELECT count(*) FROM \(source)"), count > 0 else { return }
    let list = keys.joined(separator: ", ")
    let rows = try Row.fetchAll(
      database, sql: "SELECT \(list) FROM \(source) ORDER BY \(list) LIMIT \(Self.listLimit)")
    findings.append(
      Finding(
        kind: kind, table: table, columns: columns, property: property, count: count,
        keys: rows.map { row in row.databaseValues.map { Int64.fromDatabaseValue($0) ?? 0 } }))
  }

  /// The condition that a column of `o` has a key that no row of a table has; never where that table is missing.
  private func leadsNowhere(_ column: String, to table: String) -> String {
    guard has(table, ["Z_PK"]) else { return "0" }
    let column = "o.\(Self.name(column))"
    return
      "(\(column) IS NOT NULL AND NOT EXISTS (SELECT 1 FROM \(Self.name(table)) AS q WHERE q.Z_PK = \(column)))"
  }

  private func has(_ table: String, _ names: [String]) -> Bool {
    guard let found = columns[StoreOutline.key(table)] else { return false }
    return names.allSatisfy { found.contains(StoreOutline.key($0)) }
  }

  private static func name(_ name: String) -> String { SQLText.identifier(name) }
}

extension DataCheck.Kind {
  /// Its place in the order of findings.
  fileprivate var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

extension DataCheck.Finding {
  /// What is wrong, in one sentence without a full stop; no value of a record is in it.
  package var words: String {
    let rows = count == 1 ? "1 row" : "\(count) rows"
    let place = "of table \(printable(table))"
    let property = printable(property)
    return switch kind {
    case .danglingReference: "\(rows) \(place) refer through \(property) to records that are not there"
    case .oneSidedRelationship: "\(rows) \(place) refer through \(property) to records that do not refer back"
    case .danglingJoinRow: "\(rows) \(place) connect through \(property) records that are not there"
    case .duplicate: "\(rows) \(place) repeat values that \(property) allows once"
    case .missingValue: "\(rows) \(place) have no value for \(property), which is mandatory"
    }
  }
}
