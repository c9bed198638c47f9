internal import ManagedObjectModel
internal import StoreFiles
internal import SystemPackage

/// Fits a mapping model's file to two versions: what it says becomes a mapping that can be carried out.
///
/// The values of attributes follow the rules of inference, so that the same pair of attributes is copied in the same
/// way; what is no plain copy becomes SQL. Where an entity has a policy of its own, expressions that SQL cannot say are
/// kept as they are for the policy; elsewhere they are refused, all of them at once.
struct MappingTranslation {
  typealias EntityRecord = MappingModelFile.EntityRecord

  let file: MappingModelFile

  /// What the rules of inference are taken from, and where conditions and losses are gathered.
  var builder: InferenceBuilder

  let records: [String: EntityRecord]

  /// The mappings that make records of those of an entity of the source, by its name.
  let readers: [String: [EntityRecord]]

  /// Everything that cannot be carried out.
  var refusals: [MigrationRefusal] = []

  /// The properties of each entity of the source that some mapping reads.
  var used: [String: Set<PropertyPath>] = [:]

  init(_ file: MappingModelFile, from source: ManagedObjectModel, to destination: ManagedObjectModel) {
    self.file = file
    builder = InferenceBuilder(from: source, to: destination)
    readers = Dictionary(
      grouping: file.entityMappings.filter { $0.sourceName != nil && $0.destinationName != nil },
      by: { $0.sourceName ?? "" })
    records = Dictionary(file.entityMappings.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The mapping model.
  ///
  /// - Throws: `mapping-stale` where an entity is not in the versions, `expression-unsupported` with every expression
  ///   that cannot be carried out, or `mapping-invalid` where a value cannot go where it should.
  mutating func mappingModel() throws(MigrationError) -> MappingModel {
    for record in file.entityMappings { try require(record) }
    for record in file.entityMappings { noteImage(of: record) }
    for record in file.entityMappings { noteFilledRelationships(of: record) }
    var mappings: [EntityMapping] = []
    for record in file.entityMappings { mappings.append(entityMapping(record)) }
    guard refusals.isEmpty else { throw MigrationError(mappingModel: file.path, refusals: refusals) }
    addLosses()
    return MappingModel(
      name: file.name, origin: file.origin, source: builder.source.model, destination: builder.destination.model,
      entityMappings: mappings, conditions: builder.conditions, losses: builder.losses)
  }

  private func require(_ record: EntityRecord) throws(MigrationError) {
    for (name, side, word) in [
      (record.sourceName, builder.source, "source"), (record.destinationName, builder.destination, "destination"),
    ] {
      guard let name, side.entity(name) == nil else { continue }
      throw MigrationError(
        .mappingStale, operation: MappingModelFile.operation, path: file.path,
        detail: "it maps the entity \"\(printable(name))\", which the \(word) model has not", entityName: name)
    }
  }

  /// Which entity the records of another become; where they become several, that of the same name counts.
  private mutating func noteImage(of record: EntityRecord) {
    guard let source = record.sourceName, let destination = record.destinationName else { return }
    if builder.images[source] == nil || source == destination { builder.images[source] = destination }
    if builder.origins[destination] == nil || source == destination { builder.origins[destination] = source }
  }

  // MARK: Entities

  private mutating func entityMapping(_ record: EntityRecord) -> EntityMapping {
    let known = builder.conditions.count
    var mapping = EntityMapping(
      name: record.name, kind: .remove, source: record.sourceName, destination: record.destinationName,
      policyClassName: record.policyClassName, userInfo: record.userInfo)
    guard let destination = record.destinationName, let after = builder.destination.entity(destination) else {
      return mapping
    }
    var pair: InferenceBuilder.Pair?
    if let source = record.sourceName, let before = builder.source.entity(source) {
      pair = InferenceBuilder.Pair(
        source: before, destination: after,
        isCopy: builder.hashes.source[source] == builder.hashes.destination[destination], sources: [:])
      mapping.sourceFilter = filter(record)
    }
    for property in builder.destination.properties[destination] ?? [] {
      let value = propertyMapping(property, record, pair)
      if let path = value.source, let source = record.sourceName {
        used[source, default: []].insert(path)
        let origin = builder.source.properties[source]?.first { $0.path == path }
        if let origin { pair?.sources[property.path] = origin }
      }
      mapping.propertyMappings.append(value)
    }
    mapping.kind = kind(record, mapping, pair)
    if let pair, !pair.source.isAbstract, pair.destination.isAbstract {
      builder.conditions.append(
        MigrationCondition(.recordsOfAbstractEntity, source: pair.source.name, destination: destination))
    }
    builder.addUniquenessConditions(destination, pair)
    // Conditions are counted over all records of the source, and by what the mapping alone makes of them.
    if record.hasPolicy || mapping.sourceFilter != nil {
      builder.conditions.removeLast(builder.conditions.count - known)
    }
    return mapping
  }

  /// The kind: what the file says of it is Xcode's, whose compiler calls every mapping from one entity to another a copy.
  private func kind(
    _ record: EntityRecord, _ mapping: EntityMapping, _ pair: InferenceBuilder.Pair?
  ) -> EntityMapping.Kind {
    guard let pair else { return .add }
    if record.hasPolicy || mapping.propertyMappings.contains(where: { choosesOne($0, pair) }) { return .custom }
    let isCopy =
      pair.isCopy && pair.source.name == pair.destination.name && mapping.sourceFilter == nil
      && mapping.propertyMappings.allSatisfy(\.isIdentity)
    return isCopy ? .copy : .transform
  }

  /// Whether a relationship to one gets its record of one to many, which no inferred step does.
  private func choosesOne(_ property: PropertyMapping, _ pair: InferenceBuilder.Pair) -> Bool {
    guard case .relationship = property.value,
      pair.sources[property.destination]?.relationship?.isToMany == true
    else { return false }
    let known = builder.destination.properties[pair.destination.name] ?? []
    return known.first { $0.path == property.destination }?.relationship?.isToMany == false
  }

  private mutating func filter(_ record: EntityRecord) -> MappingExpression? {
    guard let source = record.sourceName else { return nil }
    let text: String
    let predicate: ModelPredicate?
    switch record.filter {
    case .all: return nil
    case .predicate(let format): (text, predicate) = (format, FormatParser.predicate(format))
    case .expression(let expression): (text, predicate) = (expression.format, nil)
    }
    if predicate == .always(true) { return nil }
    var reader = CoreDataExpressionReader(builder.source, entity: source, selfIsRecord: true)
    let obstacle: ExpressionObstacle
    do throws(ExpressionObstacle) {
      guard let predicate else { throw ExpressionObstacle("it is none that can be read") }
      let condition = try reader.condition(predicate)
      used[source, default: []].formUnion(reader.used)
      return .sql(condition.sql)
    } catch {
      obstacle = error
    }
    if !record.hasPolicy { refuse(obstacle, "the filter", record, nil) }
    return .coreData(text)
  }

  // MARK: Losses

  /// What no mapping reads is lost; of an entity with a policy it is unknown what the policy reads.
  private mutating func addLosses() {
    for name in builder.source.names {
      guard let before = builder.source.entity(name), !before.isAbstract else { continue }
      guard let mappings = readers[name], let destination = builder.images[name],
        let after = builder.destination.entity(destination)
      else {
        builder.losses.append(MigrationLoss(.removedEntity, source: name))
        continue
      }
      guard !mappings.contains(where: \.hasPolicy) else { continue }
      let pair = InferenceBuilder.Pair(source: before, destination: after, isCopy: false, sources: [:])
      for property in builder.source.properties[name] ?? [] {
        guard used[name]?.contains(property.path) != true else { continue }
        builder.addLoss(of: property, pair)
      }
    }
  }
}

extension MappingTranslation {
  /// Notes an expression that cannot be carried out.
  mutating func refuse(
    _ obstacle: ExpressionObstacle, _ what: String, _ record: EntityRecord, _ property: PropertyPath?
  ) {
    let function = obstacle.function.map { " (\(printable(String($0.prefix(200)))))" } ?? ""
    refusals.append(
      MigrationRefusal(
        .unsupportedExpression, entity: record.destinationName ?? record.sourceName ?? "", property: property,
        reason: "The expression could not be evaluated",
        detail: """
          \(what) of mapping "\(printable(record.name))" cannot be carried out: \(obstacle.reason)\(function)
          """,
        wayRound: """
          Write the expression in a mapping file as SQL, or give the mapping a policy and register it under its class \
          name.
          """))
  }

  /// What a property's expression is called in an error.
  static func expression(of property: PropertyPath) -> String {
    "the value expression for \(printable(property.description))"
  }
}

extension MigrationError {
  /// The error of a mapping model that cannot be carried out as it is; the first reason speaks for all.
  init(mappingModel path: FilePath, refusals: [MigrationRefusal]) {
    let first = refusals.first { $0.kind == .unsupportedExpression } ?? refusals.first
    let more = refusals.count > 1 ? " (and \(refusals.count - 1) more)" : ""
    self.init(
      first?.kind == .unsupportedExpression ? .expressionUnsupported : .mappingInvalid,
      operation: MappingModelFile.operation, path: path, detail: (first?.detail ?? "it does not fit") + more,
      hint: first?.wayRound, entityName: first?.entityName, propertyName: first?.property?.description,
      reason: first?.reason)
    self.refusals = refusals
  }
}
