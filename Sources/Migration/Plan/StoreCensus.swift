internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// Counts records, reading each table once.
struct StoreCensus {
  struct Count: Sendable, Hashable {
    let rows: Int

    let examples: [Int64]
  }

  let layout: StoreLayout
  let side: InferenceSide

  /// Counts an entity's records, without sub-entities.
  func rows(of entityName: String, _ database: Database) throws -> Int? {
    try count(entityName, where: "", hasExamples: false, database)?.rows
  }

  /// Counts the records `o` that meet a condition (` AND …`); nil for an unknown entity.
  func count(
    _ entityName: String, where condition: String, hasExamples: Bool = true, _ database: Database
  ) throws -> Count? {
    guard let entity = layout.entity(named: entityName) else { return nil }
    return try count(
      from: "\(SQLText.identifier(entity.tableName)) AS o WHERE o.Z_ENT = \(entity.number)\(condition)",
      hasExamples: hasExamples, database)
  }

  private func count(from place: String, hasExamples: Bool = true, _ database: Database) throws -> Count {
    let rows = try database.count(from: place)
    return Count(rows: rows, examples: rows > 0 && hasExamples ? try database.examples(from: place) : [])
  }

  // MARK: Values

  func column(of path: PropertyPath, in entityName: String) -> String? {
    layout.column(of: path, in: entityName).map { "o.\($0.sqlName)" }
  }

  /// The condition that a property of the record `o` has a value or destination.
  func hasValue(_ path: PropertyPath, in entityName: String) -> String? {
    switch layout.storage(of: path.name, in: entityName) {
    case .attribute: return column(of: path, in: entityName).map { "\($0) IS NOT NULL" }
    case .toOne(let column, _, _): return "o.\(SQLText.identifier(column)) IS NOT NULL"
    case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
      let column = SQLText.identifier(column)
      return "o.Z_PK IN (SELECT p.\(column) FROM \(SQLText.identifier(table)) AS p WHERE p.\(column) IS NOT NULL)"
    case nil: return nil
    }
  }

  func destinations(of relationship: String, in entityName: String) -> String? {
    switch layout.storage(of: relationship, in: entityName) {
    case .toOne(let column, _, _): return "(o.\(SQLText.identifier(column)) IS NOT NULL)"
    case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
      return "(SELECT count(*) FROM \(SQLText.identifier(table)) AS p WHERE p.\(SQLText.identifier(column)) = o.Z_PK)"
    case .attribute, nil: return nil
    }
  }

  /// The condition that a number of `o` is outside the new type; nil for types without a range.
  ///
  /// Rounded fractions do not count.
  func isOutOfRange(_ path: PropertyPath, in entityName: String, of type: AttributeType) -> String? {
    guard let column = column(of: path, in: entityName) else { return nil }
    switch type {
    case .integer16: return "(\(column) NOT BETWEEN -32768 AND 32767 OR \(column) <> CAST(\(column) AS INTEGER))"
    case .integer32:
      return "(\(column) NOT BETWEEN -2147483648 AND 2147483647 OR \(column) <> CAST(\(column) AS INTEGER))"
    case .integer64: return "\(column) <> CAST(\(column) AS INTEGER)"
    case .boolean: return "\(column) NOT IN (0, 1)"
    case .double: return Self.hasMoreBits(column, than: 53)
    case .float:
      return "(\(column) NOT BETWEEN -3.4028234663852886e38 AND 3.4028234663852886e38 OR "
        + "\(Self.hasMoreBits(column, than: 24)))"
    case .undefined, .decimal, .string, .date, .binary, .uuid, .uri, .transformable, .objectID, .composite: return nil
    }
  }

  /// Whether an integer has more significant bits than a float keeps.
  ///
  /// The lowest has one; SQLite computes NULL for it.
  private static func hasMoreBits(_ column: String, than bits: Int) -> String {
    "(typeof(\(column)) = 'integer' AND \(column) / (\(column) & -\(column)) NOT BETWEEN -\(1 << bits) AND \(1 << bits))"
  }

  // MARK: Pairs

  /// A relationship's pairs as a table `p` with columns `a` (owner) and `b`.
  func pairs(of relationship: String, in entityName: String) -> String? {
    guard let entity = layout.entity(named: entityName) else { return nil }
    switch layout.storage(of: relationship, in: entityName) {
    case .toOne(let column, _, _):
      let column = SQLText.identifier(column)
      return "(SELECT Z_PK AS a, \(column) AS b FROM \(SQLText.identifier(entity.tableName)) "
        + "WHERE Z_ENT = \(entity.number) AND \(column) IS NOT NULL) AS p"
    case .toManyByColumn(let table, let column, _):
      let column = SQLText.identifier(column)
      return "(SELECT \(column) AS a, Z_PK AS b FROM \(SQLText.identifier(table)) WHERE \(column) IN "
        + "\(keys(of: entity))) AS p"
    case .toManyByJoinTable(let table, let own, let other, _):
      let own = SQLText.identifier(own)
      return "(SELECT \(own) AS a, \(SQLText.identifier(other)) AS b FROM \(SQLText.identifier(table)) "
        + "WHERE \(own) IN \(keys(of: entity))) AS p"
    case .attribute, nil: return nil
    }
  }

  private func keys(of entity: EntityLayout) -> String {
    "(SELECT Z_PK FROM \(SQLText.identifier(entity.tableName)) WHERE Z_ENT = \(entity.number))"
  }

  /// The records that share destinations, with the destinations' keys.
  func sharedDestinations(of relationship: String, in entityName: String, _ database: Database) throws -> Count? {
    guard let pairs = pairs(of: relationship, in: entityName) else { return nil }
    let groups = "(SELECT b AS Z_PK FROM \(pairs) GROUP BY b HAVING count(*) > 1) AS o"
    return try count(from: groups, database)
  }

  func destinations(
    of relationship: String, in entityName: String, outside numbers: [Int], _ database: Database
  ) throws -> Count? {
    guard let pairs = pairs(of: relationship, in: entityName),
      let target = side.relationship(relationship, of: entityName)?.destinationEntityName,
      let entity = layout.entity(named: target)
    else { return nil }
    let owners =
      "(SELECT DISTINCT p.a AS Z_PK FROM \(pairs) JOIN \(SQLText.identifier(entity.tableName)) AS q ON q.Z_PK = p.b "
      + "WHERE q.Z_ENT NOT IN \(numbers.sqlList)) AS o"
    return try count(from: owners, database)
  }

  /// The records of some entities in one table with equal values in columns of `o`.
  func duplicates(_ entities: [EntityLayout], columns: [String], _ database: Database) throws -> Count? {
    guard let first = entities.first, !columns.isEmpty else { return nil }
    let table = SQLText.identifier(first.tableName)
    let place = "\(table) AS o WHERE o.Z_ENT IN \(entities.map(\.number).sqlList)"
    let list = columns.joined(separator: ", ")
    // Nils are distinct, as in SQLite's unique indexes.
    let filled = columns.map { " AND \($0) IS NOT NULL" }.joined()
    let groups = "SELECT \(list) FROM \(place)\(filled) GROUP BY \(list) HAVING count(*) > 1"
    return try count(from: "\(place) AND (\(list)) IN (\(groups))", database)
  }
}

// MARK: Conditions

/// Counts records of conditions before a step.
struct ConditionCount {
  let layout: StepLayout

  /// Stops a doomed step before it starts.
  ///
  /// - Throws: `migration-data-violation` with entity, property, record count and ten primary keys.
  func refuseViolations(_ database: Database) throws {
    if let first = try sharedKeys(database).first {
      throw MigrationError(
        .dataViolation, detail: first.text,
        hint: "Have the records repaired, which sets all but the first of one key aside; the store is as it was.",
        entityName: first.entity)
    }
    if let refusal = try mirroringRefusal(database) {
      throw MigrationError(.dataViolation, detail: refusal.detail, hint: refusal.wayRound)
    }
    // The index detects duplicates without an extra pass.
    for condition in layout.mapping.conditions where condition.effect == .fails && condition.kind != .duplicateValues {
      guard let result = try StepForecast(of: layout).count(condition, database), result.rows > 0 else { continue }
      throw Self.violation(condition, rows: result.rows, examples: result.examples)
    }
  }

  /// The tables with missing or shared primary keys.
  func sharedKeys(_ database: Database) throws -> [MigrationPlan.Finding] {
    try RecordRules(layout.source).looseKeys(in: SQLSchema(database)).compactMap { key in
      let rows = try database.count(from: RecordRules.rows(key.table, where: key.isShared))
      guard rows > 0 else { return nil }
      return MigrationPlan.Finding(
        kind: DataCheck.Kind.duplicateKey.rawValue, entity: layout.source.table(named: key.table)?.rootEntityName ?? "",
        property: nil, rows: rows, examples: [],
        text: "\(counted(rows, "row")) of table \(printable(key.table)) (\(printable(key.words))) "
          + "have no primary key of their own")
    }
  }

  /// The reason a store mirrored to CloudKit can't take the step, if any.
  ///
  /// Mirroring identifies records by entity number; a reused number would assign them to another entity.
  func mirroringRefusal(_ database: Database) throws -> MigrationRefusal? {
    guard let table = try SQLSchema(database).tables.values.first(where: { StoreRebuild.isMirroring($0.name) }) else {
      return nil
    }
    var taken = Set(layout.source.entities.map(\.number))
    if try database.hasStored(["ZENTITYID"], in: "ANSCKRECORDMETADATA") {
      taken.formUnion(try Int.fetchAll(database, sql: "SELECT DISTINCT ZENTITYID FROM ANSCKRECORDMETADATA"))
    }
    let numbers = layout.numbers
    guard
      let entity = layout.destination.entities.first(where: {
        taken.contains($0.number) && numbers[$0.number] != $0.number
      })
    else { return nil }
    return MigrationRefusal(
      .foreignTable, entity: table.name, reason: "The store is mirrored to CloudKit",
      detail: "the store is mirrored to CloudKit, and entity \(printable(entity.name)) would get number "
        + "\(entity.number), under which the mirroring knows the records of another entity",
      wayRound: "Keep the entity that has the number, or choose a name that comes later in the alphabet.")
  }

  static func violation(_ condition: MigrationCondition, rows: Int, examples: [Int64]) -> MigrationError {
    let entity = printable(condition.destinationEntityName)
    let property =
      condition.destinationProperty.map { "\(entity).\(printable($0.description))" }
      ?? (condition.propertyNames.isEmpty
        ? entity : "\(entity) (\(printable(condition.propertyNames.joined(separator: ", "))))")
    let isOne = rows == 1
    let words =
      switch condition.kind {
      case .missingAttributeValue:
        "\(isOne ? "has" : "have") no value in \(property), which becomes mandatory"
      case .newMandatoryAttribute:
        "would get no value in \(property), which is new, mandatory and without a default"
      case .missingRelationship, .newMandatoryRelationship:
        "\(isOne ? "leads" : "lead") nowhere through \(property), which is mandatory"
      case .tooFewDestinations:
        "\(isOne ? "leads" : "lead") to fewer than \(condition.limit ?? 0) records through \(property)"
      case .tooManyDestinations:
        "\(isOne ? "leads" : "lead") to more than \(condition.limit ?? 0) records through \(property)"
      case .duplicateValues: "\(isOne ? "is" : "are") not unique in \(property)"
      case .recordsOfAbstractEntity: "\(isOne ? "is" : "are") of \(entity), which becomes abstract"
      case .valueOutOfRange, .severalOwners, .destinationOfOtherEntity, .newInverse, .unreadableDefault:
        "\(isOne ? "does" : "do") not fit \(property)"
      }
    return MigrationError(
      condition.kind == .duplicateValues ? .constraintViolation : .dataViolation,
      detail: "\(counted(rows, "record")) of \(entity) \(words); primary keys: \(examples.sqlList)",
      entityName: condition.destinationEntityName,
      propertyName: condition.destinationProperty?.description ?? condition.propertyNames.first,
      reason: condition.kind == .duplicateValues
        ? nil : "Validation error missing attribute values on mandatory destination attribute")
  }
}
