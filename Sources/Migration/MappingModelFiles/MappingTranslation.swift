internal import ManagedObjectModel
internal import Platform

/// Translates a mapping model's file for two versions.
///
/// Copies follow inference; the rest becomes SQL. Other expressions are left to the entity's policy; without one all
/// are rejected together.
struct MappingTranslation {
  typealias EntityRecord = MappingModelFile.EntityRecord

  let file: MappingModelFile

  var builder: InferenceBuilder

  let records: [String: EntityRecord]

  let readers: [String: [EntityRecord]]

  var refusals: [MigrationRefusal] = []

  var used: [String: Set<PropertyPath>] = [:]

  init(_ file: MappingModelFile, from source: ManagedObjectModel, to destination: ManagedObjectModel) {
    self.file = file
    builder = InferenceBuilder(from: source, to: destination)
    readers = Dictionary(
      grouping: file.entityMappings.filter { $0.sourceName != nil && $0.destinationName != nil },
      by: { $0.sourceName ?? "" })
    records = Dictionary(file.entityMappings.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Makes the mapping model.
  ///
  /// - Throws: `mapping-stale` for an entity outside the versions, `expression-unsupported` with all such expressions,
  ///   or `mapping-invalid` for a misplaced value.
  mutating func mappingModel() throws -> MappingModel {
    for record in file.entityMappings { try require(record) }
    for record in file.entityMappings { noteImage(of: record) }
    for record in file.entityMappings { noteFilledRelationships(of: record) }
    var mappings: [EntityMapping] = []
    for record in file.entityMappings { mappings.append(entityMapping(record)) }
    guard refusals.isEmpty else {
      let unsupported = refusals.first { $0.kind == .unsupportedExpression }
      throw MigrationError(
        unsupported == nil ? .mappingInvalid : .expressionUnsupported, operation: MappingModelFile.operation,
        path: file.path, refusals: refusals, by: unsupported ?? refusals.first, otherwise: "it does not fit")
    }
    addLosses()
    return MappingModel(
      name: file.name, origin: file.origin, source: builder.source.model, destination: builder.destination.model,
      entityMappings: mappings, conditions: builder.conditions, losses: builder.losses)
  }

  private func require(_ record: EntityRecord) throws {
    for (name, side, word) in [
      (record.sourceName, builder.source, "source"), (record.destinationName, builder.destination, "destination"),
    ] {
      guard let name, side.entity(name) == nil else { continue }
      throw MigrationError(
        .mappingStale, operation: MappingModelFile.operation, path: file.path,
        detail: "it maps the entity \"\(printable(name))\", which the \(word) model has not", entityName: name)
    }
  }

  /// Notes the entity another becomes; of several, the one of the same name.
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
        if let origin = builder.source.property(path, of: source) { pair?.sources[property.path] = origin }
      }
      mapping.propertyMappings.append(value)
    }
    mapping.kind = kind(record, mapping, pair)
    if let pair, !pair.source.isAbstract, pair.destination.isAbstract {
      builder.conditions.append(
        MigrationCondition(.recordsOfAbstractEntity, source: pair.source.name, destination: destination))
    }
    builder.addUniquenessConditions(destination, pair)
    // Conditions count all source records, by the mapping alone.
    if record.hasPolicy || mapping.sourceFilter != nil {
      builder.conditions.removeLast(builder.conditions.count - known)
    }
    return mapping
  }

  /// The kind; the file's is unusable, because Xcode's compiler calls every entity mapping a copy.
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

  /// Whether a to-one takes its record from a to-many, which inference never does.
  private func choosesOne(_ property: PropertyMapping, _ pair: InferenceBuilder.Pair) -> Bool {
    guard case .relationship = property.value, pair.sources[property.destination]?.relationship?.isToMany == true
    else { return false }
    let new = builder.destination.property(property.destination, of: pair.destination.name)
    return new?.relationship?.isToMany == false
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

  /// Adds a loss for all that no mapping reads; a policy's reads are unknown.
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
  mutating func refuse(
    _ obstacle: ExpressionObstacle, _ what: String, _ record: EntityRecord, _ property: PropertyPath?
  ) {
    let function = obstacle.function.map { " (\(printable(String($0.prefix(200)))))" } ?? ""
    refusals.append(
      MigrationRefusal(
        .unsupportedExpression, entity: record.destinationName ?? record.sourceName ?? "", property: property,
        reason: "The expression could not be evaluated",
        detail: "\(what) of mapping \"\(printable(record.name))\" cannot be carried out: \(obstacle.reason)\(function)",
        wayRound: "Write the expression in a mapping file as SQL, or give the mapping a policy and register it under "
          + "its class name."))
  }

  static func expression(of property: PropertyPath) -> String {
    "the value expression for \(printable(property.description))"
  }
}

extension MappingTranslation {
  mutating func propertyMapping(
    _ property: StoredProperty, _ record: EntityRecord, _ pair: InferenceBuilder.Pair?
  ) -> PropertyMapping {
    let list = property.attribute == nil ? record.relationships : record.attributes
    let found = list.first { $0.name == property.path.description } ?? list.first { $0.name == property.path.name }
    var mapping: PropertyMapping
    if let attribute = property.attribute {
      mapping = attributeMapping(property, attribute, found, record, pair)
    } else {
      mapping = relationshipMapping(property, found, record, pair)
    }
    mapping.userInfo = found?.userInfo ?? [:]
    return mapping
  }

  private mutating func attributeMapping(
    _ property: StoredProperty, _ attribute: Attribute, _ found: MappingModelFile.PropertyRecord?,
    _ record: EntityRecord, _ pair: InferenceBuilder.Pair?
  ) -> PropertyMapping {
    if attribute.isDerived { return PropertyMapping(property.path, .recompute) }
    guard let pair else { return builder.newMapping(property) }
    switch found?.value ?? .nothing {
    case .nothing, .through: return new(property, record, pair)
    case .generated:
      guard let origin = source(property.path, of: pair) else { return new(property, record, pair) }
      return copy(origin, property, attribute, "$source.\(property.path)", record, pair)
    case .unreadable(let what): return refused(property, ExpressionObstacle("it is \(what)"), what, record)
    case .expression(.constant(.null)): return PropertyMapping(property.path, .null)
    case .expression(let expression):
      if case .keyPathOf(.variable("source"), let path) = expression,
        let origin = source(Self.path(path, appending: property.path.leaf), of: pair)
          ?? source(Self.path(path), of: pair)
      {
        return copy(origin, property, attribute, expression.format, record, pair)
      }
      return computed(property, attribute, expression, record, pair)
    }
  }

  /// The default; it may be missing where a value is required.
  private mutating func new(
    _ property: StoredProperty, _ record: EntityRecord, _ pair: InferenceBuilder.Pair
  ) -> PropertyMapping {
    // A policy may still give the value.
    if !record.hasPolicy, pair.hasRecords { builder.addConditions(ofNew: property, pair) }
    return builder.newMapping(property)
  }

  private mutating func copy(
    _ origin: StoredProperty, _ property: StoredProperty, _ attribute: Attribute, _ text: String,
    _ record: EntityRecord, _ pair: InferenceBuilder.Pair
  ) -> PropertyMapping {
    guard let old = origin.attribute else { return new(property, record, pair) }
    let mapping = builder.mapAttribute(origin, old, property, attribute, pair)
    let refused = builder.takeRefusals()
    guard !refused.isEmpty else { return mapping }
    if !record.hasPolicy {
      refusals += refused.map { refusal in
        var copy = refusal
        copy.detail = "mapping \"\(printable(record.name))\": \(refusal.detail)"
        return copy
      }
    } else {
      used[pair.source.name, default: []].insert(origin.path)
    }
    return PropertyMapping(property.path, .expression(.coreData(text)))
  }

  private mutating func computed(
    _ property: StoredProperty, _ attribute: Attribute, _ expression: ModelExpression, _ record: EntityRecord,
    _ pair: InferenceBuilder.Pair
  ) -> PropertyMapping {
    var reader = CoreDataExpressionReader(builder.source, entity: pair.source.name)
    do throws(ExpressionObstacle) {
      let value = try reader.value(expression)
      let fitting = try Self.value(value, for: attribute, isMarked: property.isMarked)
      used[pair.source.name, default: []].formUnion(reader.used)
      return PropertyMapping(
        property.path, .expression(.sql(fitting.sql)),
        replacesNilWithDefault: !property.isOptional && attribute.hasReadableDefault)
    } catch {
      used[pair.source.name, default: []].formUnion(reader.used)
      return refused(property, error, expression.format, record)
    }
  }

  /// The value in the destination's type; fractions are truncated for whole numbers.
  private static func value(
    _ value: TypedExpression, for attribute: Attribute, isMarked: Bool
  ) throws(ExpressionObstacle) -> TypedExpression {
    guard let wanted = ValueType(attribute.type), !isMarked else {
      throw ExpressionObstacle("values of type \(attribute.type.sourceName) can only be copied as they are")
    }
    switch (wanted, value.type) {
    case (_, .null), (.integer, .boolean): return value
    case (.integer, .real): return value.cast(to: "INTEGER", .integer)
    case (.boolean, .integer), (.boolean, .real): return .call("", .series(value, "<>", "0"), type: .boolean)
    case (.real, .integer), (.real, .boolean):
      return attribute.type == .decimal ? value : value.cast(to: "REAL", .real)
    default:
      guard wanted == value.type else {
        throw ExpressionObstacle(
          "it gives \(value.type.word), and the attribute is of type \(attribute.type.sourceName)")
      }
      return value
    }
  }

  /// A value left to the policy; an error without one.
  mutating func refused(
    _ property: StoredProperty, _ obstacle: ExpressionObstacle, _ text: String, _ record: EntityRecord
  ) -> PropertyMapping {
    if !record.hasPolicy { refuse(obstacle, Self.expression(of: property.path), record, property.path) }
    return PropertyMapping(property.path, .expression(.coreData(text)))
  }

  // MARK: Lookup

  private func source(_ path: PropertyPath, of pair: InferenceBuilder.Pair) -> StoredProperty? {
    builder.source.property(path, of: pair.source.name).flatMap { $0.attribute == nil ? nil : $0 }
  }

  private static func path(_ text: String, appending leaf: [String] = []) -> PropertyPath {
    let names = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    return PropertyPath(names.first ?? "", leaf: Array(names.dropFirst()) + leaf)
  }
}
