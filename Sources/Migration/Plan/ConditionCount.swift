internal import GRDB
internal import PersistentStore
internal import Platform

/// Counts records of conditions before a step.
struct ConditionCount {
  let layout: StepLayout

  init(_ layout: StepLayout) { self.layout = layout }

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
      guard let result = try count(condition, database), result.rows > 0 else { continue }
      throw Self.violation(condition, rows: result.rows, examples: result.examples)
    }
  }

  /// The tables with missing or shared primary keys.
  func sharedKeys(_ database: Database) throws -> [MigrationPlan.Finding] {
    try RecordRules(layout.source).looseKeys(in: SQLSchema(database)).compactMap { key in
      let place = "FROM main.\(SQLText.identifier(key.table)) AS o NOT INDEXED WHERE \(key.isShared)"
      let rows = try Int.fetchOne(database, sql: "SELECT count(*) \(place)") ?? 0
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

  /// Counts the records; nil if the source alone can't show them.
  func count(_ condition: MigrationCondition, _ database: Database) throws -> StoreCensus.Count? {
    try StepForecast(of: layout).count(condition, database)
  }
}
