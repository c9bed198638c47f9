internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// A step's losses and failures, counted in the store before the first step.
struct StepForecast {
  let mapping: MappingModel
  let trace: PropertyTrace

  let census: StoreCensus

  private var made = MadeValues()

  private let destination: InferenceSide

  init(_ mapping: MappingModel, after earlier: [MappingModel], census: StoreCensus) {
    self.mapping = mapping
    trace = PropertyTrace(earlier: earlier)
    self.census = census
    destination = InferenceSide(mapping.destination)
  }

  init(of layout: StepLayout, made: MadeValues = MadeValues()) {
    self.init(layout.mapping, after: [], census: StoreCensus(layout: layout.source, side: layout.sourceSide))
    self.made = made
  }

  /// The records of a source entity; nil if only running earlier steps shows them.
  func rows(of entityName: String, _ database: Database) throws -> Int? {
    switch trace.records(of: entityName) {
    case .entity(let name): try census.rows(of: name, database)
    case .none: 0
    case .unknown: nil
    }
  }

  func count(_ loss: MigrationLoss, _ database: Database) throws -> StoreCensus.Count? {
    guard let property = loss.property else {
      return try rows(of: loss.sourceEntityName, database).map { StoreCensus.Count(rows: $0, examples: []) }
    }
    if made.contains(loss.sourceEntityName, property) { return StoreCensus.Count(rows: 0, examples: []) }
    switch trace.trace(loss.sourceEntityName, property) {
    case (.entity(let name), .property(let path, _, _)):
      guard let filter = census.hasValue(path, in: name) else { return nil }
      return try census.count(name, where: " AND \(filter)", hasExamples: false, database)
    // Values the migration adds are not the user's.
    case (.none, _), (_, .none), (_, .made): return StoreCensus.Count(rows: 0, examples: [])
    case (.unknown, _), (_, .unknown): return nil
    }
  }

  /// The records of a condition; nil if only running shows them.
  func count(_ condition: MigrationCondition, _ database: Database) throws -> StoreCensus.Count? {
    guard condition.kind != .duplicateValues else { return try duplicates(condition, database) }
    guard let source = condition.sourceEntityName else { return nil }
    let none = StoreCensus.Count(rows: 0, examples: [])
    let (records, values) = trace.trace(source, condition.sourceProperty)
    guard case .entity(let name) = records else { return records == .none ? none : nil }
    if condition.kind == .newMandatoryRelationship {
      // One its inverse fills is known only afterwards.
      guard let path = condition.destinationProperty,
        mapping.entityMappings(from: source).first?.propertyMapping(of: path)?.value != .inverse
      else { return nil }
    }
    let ofAllRecords: [MigrationCondition.Kind] = [
      .newMandatoryAttribute, .newMandatoryRelationship, .recordsOfAbstractEntity, .unreadableDefault,
    ]
    if ofAllRecords.contains(condition.kind) { return try census.count(name, where: "", database) }
    guard condition.sourceProperty != nil else { return nil }
    switch values {
    case .unknown: return nil
    case .made: return none
    case .none:
      let isMissing = [.missingAttributeValue, .missingRelationship].contains(condition.kind)
      return isMissing ? try census.count(name, where: "", database) : none
    case .property(_, isFilled: true, _) where condition.kind == .missingAttributeValue: return none
    // The store lacks the converted number.
    case .property(_, _, isConverted: true) where condition.kind == .valueOutOfRange: return nil
    case .property(let path, _, _): return try count(condition, of: path, in: name, database)
    }
  }

  private func count(
    _ condition: MigrationCondition, of path: PropertyPath, in name: String, _ database: Database
  ) throws -> StoreCensus.Count? {
    let filter: String?
    switch condition.kind {
    case .missingAttributeValue: filter = census.column(of: path, in: name).map { "\($0) IS NULL" }
    case .missingRelationship: filter = census.hasValue(path, in: name).map { "NOT (\($0))" }
    case .tooFewDestinations:
      filter = census.destinations(of: path.name, in: name).map { "\($0) BETWEEN 1 AND \((condition.limit ?? 1) - 1)" }
    case .tooManyDestinations:
      filter = census.destinations(of: path.name, in: name).map { "\($0) > \(condition.limit ?? 0)" }
    case .valueOutOfRange:
      let type = newProperty(condition)?.attribute?.type
      filter = type.flatMap { census.isOutOfRange(path, in: name, of: $0) }
    case .severalOwners: return try census.sharedDestinations(of: path.name, in: name, database)
    case .destinationOfOtherEntity: return try strayDestinations(condition, of: path, in: name, database)
    case .newMandatoryAttribute, .newMandatoryRelationship, .duplicateValues, .recordsOfAbstractEntity, .newInverse,
      .unreadableDefault:
      filter = nil
    }
    return try filter.flatMap { try census.count(name, where: " AND \($0)", database) }
  }

  private func newProperty(_ condition: MigrationCondition) -> StoredProperty? {
    condition.destinationProperty.flatMap { destination.property($0, of: condition.destinationEntityName) }
  }

  /// The records with targets outside the new relationship's entity.
  private func strayDestinations(
    _ condition: MigrationCondition, of path: PropertyPath, in name: String, _ database: Database
  ) throws -> StoreCensus.Count? {
    guard let target = newProperty(condition)?.relationship?.destinationEntityName else { return nil }
    var fitting: [Int] = []
    for entity in mapping.entityMappings {
      guard let to = entity.destinationEntityName, let from = entity.sourceEntityName,
        destination.isKind(to, of: target)
      else { continue }
      switch trace.records(of: from) {
      case .entity(let origin): fitting += census.layout.entity(named: origin).map { [$0.number] } ?? []
      case .none: continue
      case .unknown: return nil
      }
    }
    for entity in census.layout.entities where !isKept(entity.name) { fitting.append(entity.number) }
    return try census.destinations(of: path.name, in: name, outside: fitting, database)
  }

  private func isKept(_ original: String) -> Bool {
    mapping.entityMappings.contains { entity in
      guard entity.destinationEntityName != nil, let source = entity.sourceEntityName else { return false }
      return trace.records(of: source) == .entity(original)
    }
  }

  private func duplicates(_ condition: MigrationCondition, _ database: Database) throws -> StoreCensus.Count? {
    var entities: [EntityLayout] = []
    var columns: [String]?
    for member in destination.family(of: condition.destinationEntityName) {
      for entity in mapping.entityMappings(to: member) {
        guard let source = entity.sourceEntityName else { continue }
        guard case .entity(let name) = trace.records(of: source) else {
          if trace.records(of: source) == .none { continue }
          return nil
        }
        var found: [String] = []
        for property in condition.propertyNames {
          // Defaults and conversions may cause duplicates.
          guard let made = entity.propertyMapping(of: PropertyPath(property)), made.keepsValues, let path = made.source,
            case .property(let origin, isFilled: false, isConverted: false) = trace.trace(source, path).values,
            let column = key(origin, in: name)
          else { return nil }
          found.append(column)
        }
        guard let layout = census.layout.entity(named: name), columns == nil || columns == found,
          entities.isEmpty || entities[0].tableName == layout.tableName
        else { return nil }
        columns = found
        entities.append(layout)
      }
    }
    return try columns.flatMap { try census.duplicates(entities, columns: $0, database) }
  }

  /// The column of a uniqueness constraint: an attribute or a to-one relationship.
  private func key(_ path: PropertyPath, in entityName: String) -> String? {
    if case .toOne(let column, _, _) = census.layout.storage(of: path.name, in: entityName) {
      return "o.\(column.sqlName)"
    }
    return census.column(of: path, in: entityName)
  }
}

/// Traces a later step's inputs to the present store.
struct PropertyTrace {
  let earlier: [MappingModel]

  enum Records: Hashable {
    case entity(String)

    /// The entity was added on the way.
    case none

    /// Only running the steps shows it.
    case unknown
  }

  enum Values: Hashable {
    /// A property of the store; `isFilled` if nil is replaced on the way, `isConverted` if numbers are converted.
    case property(PropertyPath, isFilled: Bool, isConverted: Bool = false)

    /// Added on the way without a default.
    case none

    /// Every record gets one on the way.
    case made

    case unknown
  }

  func records(of entityName: String) -> Records { trace(entityName, nil).records }

  func trace(_ entityName: String, _ path: PropertyPath?) -> (records: Records, values: Values) {
    var name = entityName
    var values = path.map { Values.property($0, isFilled: false) } ?? .none
    for mapping in earlier.reversed() {
      let sources = mapping.entityMappings(to: name).filter { $0.kind != .add }
      guard let only = sources.first else { return (.none, .none) }
      guard sources.count == 1, only.kind == .copy || only.kind == .transform, only.sourceFilter == nil,
        only.policyClassName == nil, let source = only.sourceEntityName, mapping.entityMappings(from: source).count == 1
      else { return (.unknown, .unknown) }
      name = source
      if case .property(let path, let isFilled, let isConverted) = values {
        values = Self.origin(of: path, isFilled, isConverted, in: only)
      }
    }
    return (.entity(name), values)
  }

  private static func origin(
    of path: PropertyPath, _ isFilled: Bool, _ isConverted: Bool, in mapping: EntityMapping
  ) -> Values {
    guard let property = mapping.propertyMapping(of: path) else { return .unknown }
    let isFilled = isFilled || property.replacesNilWithDefault
    switch property.value {
    case .copy(let source), .externalize(let source):
      return .property(source, isFilled: isFilled, isConverted: isConverted)
    case .convert(let source, _, _): return .property(source, isFilled: isFilled, isConverted: true)
    case .relationship(let name):
      return .property(PropertyPath(name), isFilled: isFilled, isConverted: isConverted)
    case .defaultValue: return .made
    case .null: return isFilled ? .made : .none
    case .recompute, .inverse, .destinations, .expression: return .unknown
    }
  }
}

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
      from: "\(entity.tableName.sqlName) AS o WHERE o.Z_ENT = \(entity.number)\(condition)",
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
    case .toOne(let column, _, _): return "o.\(column.sqlName) IS NOT NULL"
    case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
      let column = column.sqlName
      return "o.Z_PK IN (SELECT p.\(column) FROM \(table.sqlName) AS p WHERE p.\(column) IS NOT NULL)"
    case nil: return nil
    }
  }

  func destinations(of relationship: String, in entityName: String) -> String? {
    if case .toOne(let column, _, _) = layout.storage(of: relationship, in: entityName) {
      return "(o.\(column.sqlName) IS NOT NULL)"
    }
    return layout.destinationCount(of: relationship, in: entityName)
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
      let column = column.sqlName
      return "(SELECT Z_PK AS a, \(column) AS b FROM \(entity.tableName.sqlName) "
        + "WHERE Z_ENT = \(entity.number) AND \(column) IS NOT NULL) AS p"
    case .toManyByColumn(let table, let column, _):
      let column = column.sqlName
      return "(SELECT \(column) AS a, Z_PK AS b FROM \(table.sqlName) WHERE \(column) IN \(keys(of: entity))) AS p"
    case .toManyByJoinTable(let table, let own, let other, _):
      let own = own.sqlName
      return "(SELECT \(own) AS a, \(other.sqlName) AS b FROM \(table.sqlName) "
        + "WHERE \(own) IN \(keys(of: entity))) AS p"
    case .attribute, nil: return nil
    }
  }

  private func keys(of entity: EntityLayout) -> String {
    "(SELECT Z_PK FROM \(entity.tableName.sqlName) WHERE Z_ENT = \(entity.number))"
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
      "(SELECT DISTINCT p.a AS Z_PK FROM \(pairs) JOIN \(entity.tableName.sqlName) AS q ON q.Z_PK = p.b "
      + "WHERE q.Z_ENT NOT IN \(numbers.sqlList)) AS o"
    return try count(from: owners, database)
  }

  /// The records of some entities in one table with equal values in columns of `o`.
  func duplicates(_ entities: [EntityLayout], columns: [String], _ database: Database) throws -> Count? {
    guard let first = entities.first, !columns.isEmpty else { return nil }
    let table = first.tableName.sqlName
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
extension StepLayout {
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
    for condition in mapping.conditions where condition.effect == .fails && condition.kind != .duplicateValues {
      guard let result = try StepForecast(of: self).count(condition, database), result.rows > 0 else { continue }
      throw Self.violation(condition, rows: result.rows, examples: result.examples)
    }
  }

  /// The tables with missing or shared primary keys.
  func sharedKeys(_ database: Database) throws -> [MigrationPlan.Finding] {
    try RecordRules(source).looseKeys(in: SQLSchema(database)).compactMap { key in
      let rows = try database.count(from: RecordRules.rows(key.table, where: key.isShared))
      guard rows > 0 else { return nil }
      return MigrationPlan.Finding(
        kind: DataCheck.Kind.duplicateKey.rawValue, entity: source.table(named: key.table)?.rootEntityName ?? "",
        rows: rows,
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
    var taken = Set(source.entities.map(\.number))
    if try database.hasStored(["ZENTITYID"], in: "ANSCKRECORDMETADATA") {
      taken.formUnion(try Int.fetchAll(database, sql: "SELECT DISTINCT ZENTITYID FROM ANSCKRECORDMETADATA"))
    }
    let numbers = numbers
    guard
      let entity = destination.entities.first(where: {
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
