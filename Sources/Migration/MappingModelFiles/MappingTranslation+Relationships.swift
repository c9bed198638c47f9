internal import ManagedObjectModel
internal import Platform

extension MappingTranslation {
  /// A relationship expression's request to the migration manager.
  private enum Request {
    case nothing

    /// The migrated targets of a source relationship.
    case relationship(StoredProperty)

    /// A mapping's results for the record or its related ones.
    case destinations(EntityRecord, StoredProperty?)
  }

  mutating func relationshipMapping(
    _ property: StoredProperty, _ found: MappingModelFile.PropertyRecord?, _ record: EntityRecord,
    _ pair: InferenceBuilder.Pair?
  ) -> PropertyMapping {
    guard let pair, let relationship = property.relationship else { return builder.newMapping(property) }
    do throws(ExpressionObstacle) {
      switch try request(property, found, record) {
      case .nothing:
        if !record.hasPolicy, pair.hasRecords { builder.addConditions(ofNew: property, pair) }
        return builder.newMapping(property)
      case .relationship(let origin): return take(origin, property, relationship, record, pair)
      case .destinations(let other, let origin):
        return try destinations(of: other, origin, property, relationship, record)
      }
    } catch {
      return refused(property, error, Self.text(found), record)
    }
  }

  private mutating func take(
    _ origin: StoredProperty, _ property: StoredProperty, _ relationship: Relationship, _ record: EntityRecord,
    _ pair: InferenceBuilder.Pair
  ) -> PropertyMapping {
    guard let old = origin.relationship else { return builder.newMapping(property) }
    let mapping = builder.mapRelationship(origin, old, property, relationship, pair)
    let refused = builder.takeRefusals()
    guard !refused.isEmpty else { return mapping }
    used[pair.source.name, default: []].insert(origin.path)
    // The first record is kept; dropped ones are counted later.
    if !record.hasPolicy {
      refusals += refused.filter { $0.kind != .toManyToOne }
      return mapping
    }
    return PropertyMapping(property.path, .expression(.coreData("$source.\(origin.path)")))
  }

  private func destinations(
    of other: EntityRecord, _ origin: StoredProperty?, _ property: StoredProperty, _ relationship: Relationship,
    _ record: EntityRecord
  ) throws(ExpressionObstacle) -> PropertyMapping {
    guard let made = other.destinationName, builder.destination.isKind(made, of: relationship.destinationEntityName)
    else {
      throw ExpressionObstacle(
        "mapping \"\(printable(other.name))\" makes no records of entity "
          + "\"\(printable(relationship.destinationEntityName))\"")
    }
    let reference = origin.map { PropertyMapping.SourceReference.relationship($0.path.name) } ?? .record
    return PropertyMapping(property.path, .destinations(mapping: other.name, of: reference))
  }

  // MARK: Requests

  /// Notes the filled destination relationships, which fill their inverses.
  mutating func noteFilledRelationships(of record: EntityRecord) {
    guard let source = record.sourceName, let destination = record.destinationName, builder.source.entity(source) != nil
    else { return }
    for property in builder.destination.properties[destination] ?? [] where property.relationship != nil {
      let found = record.relationships.first { $0.name == property.path.name }
      // Errors are reported on translation.
      guard let request = try? request(property, found, record) else { continue }
      switch request {
      case .nothing: continue
      case .relationship(let origin):
        if builder.relationshipSources[property.key] == nil { builder.relationshipSources[property.key] = origin.key }
        builder.continuedRelationships.insert(origin.key)
      case .destinations(_, let origin):
        builder.filledRelationships.insert(property.key)
        if let origin { builder.continuedRelationships.insert(origin.key) }
      }
    }
  }

  private func request(
    _ property: StoredProperty, _ found: MappingModelFile.PropertyRecord?, _ record: EntityRecord
  ) throws(ExpressionObstacle) -> Request {
    switch found?.value ?? .nothing {
    case .nothing: return .nothing
    case .unreadable(let what): throw ExpressionObstacle("it is \(what)")
    case .generated:
      guard let origin = sourceRelationship(property.path.name, record) else { return .nothing }
      return generated(origin, property)
    case .through(let mapping, let keyPath):
      let origin = try sourceRelationship(ofKeyPath: keyPath ?? property.path.name, record)
      guard let mapping else { return origin.map { generated($0, property) } ?? .nothing }
      return try self.destinations(named: mapping, origin)
    case .expression(let expression): return try request(expression, record)
    }
  }

  private func request(_ expression: ModelExpression, _ record: EntityRecord) throws(ExpressionObstacle) -> Request {
    if expression == .constant(.null) { return .nothing }
    if case .keyPathOf(.variable("source"), let path) = expression {
      throw ExpressionObstacle("\(printable(path)) leads to records of the source, not to what has become of them")
    }
    if case .method(.variable("manager"), let selector, let arguments) = expression, arguments.count == 2,
      case .constant(.string(let name)) = arguments[0]
    {
      switch selector {
      case "destinationInstancesForEntityMappingNamed:sourceInstances:":
        return try destinations(named: name, try reference(arguments[1], record))
      case "destinationInstancesForSourceRelationshipNamed:sourceInstances:":
        // The name only gives the entity; the second argument gives the records.
        guard let origin = try reference(arguments[1], record) else {
          throw ExpressionObstacle("it names a relationship and gives the record itself", in: selector)
        }
        return .relationship(origin)
      default: break
      }
    }
    throw ExpressionObstacle("it asks for records in a way not known", in: Self.function(of: expression))
  }

  private func destinations(named name: String, _ origin: StoredProperty?) throws(ExpressionObstacle) -> Request {
    guard let other = records[name] else {
      throw ExpressionObstacle("there is no mapping called \"\(printable(name))\"")
    }
    guard let origin, let relationship = origin.relationship else { return .destinations(other, nil) }
    // Without another mapping it is a plain relationship.
    let readers = readers(of: relationship.destinationEntityName)
    let isPlain = readers.allSatisfy { $0.name == name } && concreteFamily(of: relationship) == [other.sourceName]
    return isPlain ? .relationship(origin) : .destinations(other, origin)
  }

  /// The expression Xcode's compiler makes for an unmapped relationship.
  ///
  /// It requests the related entity's results, by mapping name if there is only one, as seen in a compiled model and
  /// its source. For a split entity it means the mapping to the destination's entity.
  private func generated(_ origin: StoredProperty, _ property: StoredProperty) -> Request {
    guard let old = origin.relationship, let new = property.relationship else { return .nothing }
    let readers = readers(of: old.destinationEntityName)
    let sources = readers.compactMap(\.sourceName)
    guard Set(sources).count < sources.count else { return .relationship(origin) }
    let fitting = readers.filter { reader in
      reader.destinationName.map { builder.destination.isKind($0, of: new.destinationEntityName) } ?? false
    }
    guard fitting.count == 1, let only = fitting.first else { return .relationship(origin) }
    return .destinations(only, origin)
  }

  private func readers(of entity: String) -> [EntityRecord] {
    builder.source.family(of: entity).flatMap { readers[$0] ?? [] }
  }

  private func concreteFamily(of relationship: Relationship) -> [String] {
    builder.source.family(of: relationship.destinationEntityName)
      .filter { builder.source.entity($0)?.isAbstract == false }
  }

  // MARK: Lookup

  private func reference(
    _ expression: ModelExpression, _ record: EntityRecord
  ) throws(ExpressionObstacle) -> StoredProperty? {
    // Xcode's editor also writes an array of the source alone.
    if expression == .variable("source") || expression == .aggregate([.variable("source")]) { return nil }
    guard case .keyPathOf(.variable("source"), let path) = expression else {
      throw ExpressionObstacle(
        "the records that it starts from are not those of $source", in: Self.function(of: expression))
    }
    return try sourceRelationship(ofKeyPath: path, record)
  }

  /// The relationship at the end of a key path, with or without `$source`; nil for the record itself.
  private func sourceRelationship(
    ofKeyPath keyPath: String, _ record: EntityRecord
  ) throws(ExpressionObstacle) -> StoredProperty? {
    if keyPath == "$source" { return nil }
    let name = keyPath.hasPrefix("$source.") ? String(keyPath.dropFirst(8)) : keyPath
    guard !name.contains(".") else {
      throw ExpressionObstacle("it follows the key path \(printable(name)) over more than one relationship")
    }
    guard let found = sourceRelationship(name, record) else {
      throw ExpressionObstacle(
        "the source stores no relationship \(printable(record.sourceName ?? "")).\(printable(name))")
    }
    return found
  }

  private func sourceRelationship(_ name: String, _ record: EntityRecord) -> StoredProperty? {
    guard let source = record.sourceName else { return nil }
    return builder.source.properties[source]?.first { $0.path == PropertyPath(name) && $0.relationship != nil }
  }

  static func function(of expression: ModelExpression) -> String {
    switch expression {
    case .function(let selector, _), .method(_, let selector, _): selector
    case .conditional: "TERNARY"
    case .fetch: "FETCH"
    case .opaque(let className): className
    case .constant, .selfObject, .variable, .keyPath, .keyPathOf, .aggregate: expression.format
    }
  }

  private static func text(_ found: MappingModelFile.PropertyRecord?) -> String {
    switch found?.value ?? .nothing {
    case .expression(let expression): expression.format
    case .through(let mapping, let keyPath):
      "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"\(mapping ?? "")\", "
        + "\(keyPath ?? ""))"
    case .unreadable(let what): what
    case .generated, .nothing: ""
    }
  }
}
