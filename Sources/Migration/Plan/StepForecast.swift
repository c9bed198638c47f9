internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore

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
    switch condition.kind {
    case .newMandatoryAttribute, .recordsOfAbstractEntity, .unreadableDefault:
      return try census.count(name, where: "", database)
    case .newMandatoryRelationship:
      // One its inverse fills is known only afterwards.
      guard let path = condition.destinationProperty,
        mapping.entityMappings(from: source).first?.propertyMapping(of: path)?.value != .inverse
      else { return nil }
      return try census.count(name, where: "", database)
    case .missingAttributeValue, .missingRelationship, .tooFewDestinations, .tooManyDestinations, .duplicateValues,
      .valueOutOfRange, .severalOwners, .destinationOfOtherEntity, .newInverse:
      break
    }
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
      return "o.\(SQLText.identifier(column))"
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
        only.policyClassName == nil, let source = only.sourceEntityName,
        mapping.entityMappings(from: source).count == 1
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
