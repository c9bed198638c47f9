internal import GRDB
internal import PersistentStore
internal import StoreFiles

/// The counting of the records that a migration's conditions are about, in the store before the step.
struct ConditionCount {
  /// The records that a condition is about.
  struct Result {
    let rows: Int

    /// The first ten primary keys.
    let examples: [Int64]
  }

  let layout: StepLayout

  init(_ layout: StepLayout) { self.layout = layout }

  /// Stops a step that is bound to fail before it begins.
  ///
  /// - Throws: `migration-data-violation` with entity, property, the number of records and ten primary keys.
  func refuseViolations(_ database: Database) throws {
    for condition in layout.mapping.conditions where condition.effect == .fails {
      guard let result = try count(condition, database), result.rows > 0 else { continue }
      throw Self.violation(condition, rows: result.rows, examples: result.examples)
    }
  }

  /// The error that names the records which do not fit.
  static func violation(_ condition: MigrationCondition, rows: Int, examples: [Int64]) -> MigrationError {
    let entity = printable(condition.destinationEntityName)
    let property =
      condition.destinationProperty.map { "\(entity).\(printable($0.description))" }
      ?? (condition.propertyNames.isEmpty
        ? entity : "\(entity) (\(printable(condition.propertyNames.joined(separator: ", "))))")
    let words =
      switch condition.kind {
      case .missingAttributeValue: "have no value in \(property), which becomes mandatory"
      case .newMandatoryAttribute: "would get no value in \(property), which is new, mandatory and without a default"
      case .missingRelationship, .newMandatoryRelationship: "lead nowhere through \(property), which is mandatory"
      case .tooFewDestinations: "lead to fewer than \(condition.limit ?? 0) records through \(property)"
      case .tooManyDestinations: "lead to more than \(condition.limit ?? 0) records through \(property)"
      case .duplicateValues: "are not unique in \(property)"
      case .recordsOfAbstractEntity: "are of \(entity), which becomes abstract"
      default: "do not fit \(property)"
      }
    return MigrationError(
      condition.kind == .duplicateValues ? .constraintViolation : .dataViolation,
      detail: "\(rows) record\(rows == 1 ? "" : "s") of \(entity) \(words); primary keys: \(examples.sqlList)",
      entityName: condition.destinationEntityName,
      propertyName: condition.destinationProperty?.description ?? condition.propertyNames.first,
      reason: condition.kind == .duplicateValues
        ? nil : "Validation error missing attribute values on mandatory destination attribute")
  }

  /// Counts the records; nil where it cannot be told from the source alone.
  func count(_ condition: MigrationCondition, _ database: Database) throws -> Result? {
    guard let name = condition.sourceEntityName, let entity = layout.source.entity(named: name) else { return nil }
    guard let filter = filter(condition, name) else { return nil }
    let place = "FROM \(SQLText.identifier(entity.tableName)) AS o WHERE o.Z_ENT = \(entity.number)\(filter)"
    let rows = try Int.fetchOne(database, sql: "SELECT count(*) \(place)") ?? 0
    let keys = rows == 0 ? [] : try Int64.fetchAll(database, sql: "SELECT o.Z_PK \(place) ORDER BY o.Z_PK LIMIT 10")
    return Result(rows: rows, examples: keys)
  }

  /// What must hold of the record `o` beyond its entity.
  private func filter(_ condition: MigrationCondition, _ entityName: String) -> String? {
    switch condition.kind {
    case .newMandatoryAttribute, .recordsOfAbstractEntity: return ""
    case .newMandatoryRelationship:
      // One that its inverse fills can only be told afterwards.
      guard let route = layout.routes.first(where: { $0.source.name == entityName }),
        let path = condition.destinationProperty
      else { return nil }
      return route.mapping.propertyMapping(of: path)?.value == .inverse ? nil : ""
    case .missingAttributeValue:
      guard let path = condition.sourceProperty,
        let route = layout.routes.first(where: { $0.source.name == entityName })
      else { return nil }
      return " AND \(layout.column(of: path, route)) IS NULL"
    case .missingRelationship:
      return condition.sourceProperty.flatMap { count(of: $0.name, entityName) }.map { " AND \($0) = 0" }
    case .tooFewDestinations:
      return condition.sourceProperty.flatMap { count(of: $0.name, entityName) }
        .map { " AND \($0) BETWEEN 1 AND \((condition.limit ?? 1) - 1)" }
    case .tooManyDestinations:
      return condition.sourceProperty.flatMap { count(of: $0.name, entityName) }.map {
        " AND \($0) > \(condition.limit ?? 0)"
      }
    case .duplicateValues, .valueOutOfRange, .severalOwners, .destinationOfOtherEntity, .newInverse, .unreadableDefault:
      return nil
    }
  }

  /// The number of records that a relationship of the record `o` leads to.
  private func count(of relationship: String, _ entityName: String) -> String? {
    switch layout.source.storage(of: relationship, in: entityName) {
    case .toOne(let column, _, _): return "(o.\(SQLText.identifier(column)) IS NOT NULL)"
    case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
      return "(SELECT count(*) FROM \(SQLText.identifier(table)) AS p WHERE p.\(SQLText.identifier(column)) = o.Z_PK)"
    case .attribute, nil: return nil
    }
  }
}
