internal import GRDB
internal import PersistentStore
internal import StoreFiles

/// The counting of the records that a migration's conditions are about, in the store before the step.
struct ConditionCount {
  let layout: StepLayout

  init(_ layout: StepLayout) { self.layout = layout }

  /// Stops a step that is bound to fail before it begins.
  ///
  /// - Throws: `migration-data-violation` with entity, property, the number of records and ten primary keys.
  func refuseViolations(_ database: Database) throws {
    // What must be unique is met when the index is made, which costs no pass of its own.
    for condition in layout.mapping.conditions where condition.effect == .fails && condition.kind != .duplicateValues {
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

  /// Counts the records; nil where it cannot be told from the source alone.
  func count(_ condition: MigrationCondition, _ database: Database) throws -> StoreCensus.Count? {
    try StepForecast(of: layout).count(condition, database)
  }
}
