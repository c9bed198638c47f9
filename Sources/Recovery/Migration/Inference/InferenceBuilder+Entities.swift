internal import ManagedObjectModel

extension InferenceBuilder {
  /// An entity that is new: it has no records, and its properties have the values of new ones.
  mutating func mapAddition(_ name: String) {
    var mapping = EntityMapping(name: "IEM_Add_\(name)", kind: .add, source: nil, destination: name)
    for property in destination.properties[name] ?? [] { mapping.propertyMappings.append(newMapping(property)) }
    mappings.append(mapping)
    addUniquenessConditions(name, nil)
  }

  /// An entity of both models.
  mutating func mapPair(_ pair: Pair) {
    let (before, after) = (pair.source.name, pair.destination.name)
    var mapping = EntityMapping(
      name: "IEM_\(pair.isCopy ? "Copy" : "Transform")_\(after)", kind: pair.isCopy ? .copy : .transform,
      source: before, destination: after)
    var continued: Set<PropertyPath> = []
    for property in destination.properties[after] ?? [] {
      guard let origin = pair.sources[property.path] else {
        mapping.propertyMappings.append(newMapping(property))
        if pair.hasRecords { addConditions(ofNew: property, pair) }
        continue
      }
      continued.insert(origin.path)
      switch (origin.content, property.content) {
      case (.attribute(let old), .attribute(let new)):
        mapping.propertyMappings.append(mapAttribute(origin, old, property, new, pair))
      case (.relationship(let old), .relationship(let new)):
        mapping.propertyMappings.append(mapRelationship(origin, old, property, new, pair))
      case (.attribute, .relationship), (.relationship, .attribute):
        // Matched by kind, so that this cannot be.
        mapping.propertyMappings.append(newMapping(property))
      }
    }
    mappings.append(mapping)
    for property in source.properties[before] ?? [] where !continued.contains(property.path) {
      addLoss(of: property, pair)
    }
    if !pair.source.isAbstract, pair.destination.isAbstract {
      conditions.append(MigrationCondition(.recordsOfAbstractEntity, source: before, destination: after))
    }
    addUniquenessConditions(after, pair)
  }

  /// The value of a property that the source has nothing for.
  func newMapping(_ property: StoredProperty) -> PropertyMapping {
    switch property.content {
    case .attribute(let attribute):
      if attribute.isDerived { return PropertyMapping(property.path, .recompute) }
      return PropertyMapping(property.path, attribute.hasReadableDefault ? .defaultValue : .null)
    case .relationship(let relationship):
      let inverse = destination.inverse(of: relationship)
      let isFilled =
        inverse.map { inverse in
          inverse.key != property.key
            && (relationshipSources[inverse.key] != nil || filledRelationships.contains(inverse.key))
        } ?? false
      return PropertyMapping(property.path, isFilled ? .inverse : .null)
    }
  }

  mutating func addConditions(ofNew property: StoredProperty, _ pair: Pair) {
    func condition(_ kind: MigrationCondition.Kind) -> MigrationCondition {
      MigrationCondition(
        kind, source: pair.source.name, destination: pair.destination.name, destinationProperty: property.path)
    }
    switch property.content {
    case .attribute(let attribute):
      guard !attribute.isDerived else { return }
      if attribute.defaultValue != nil, !attribute.hasReadableDefault {
        conditions.append(condition(.unreadableDefault))
      } else if !property.isOptional, attribute.defaultValue == nil {
        conditions.append(condition(.newMandatoryAttribute))
      }
    case .relationship(let relationship):
      guard relationship.needsDestination else { return }
      // Where the inverse fills it, only the records count that the inverse does not lead to.
      let isFilled = newMapping(property).value == .inverse
      conditions.append(condition(isFilled ? .missingRelationship : .newMandatoryRelationship))
    }
  }

  mutating func addLoss(of property: StoredProperty, _ pair: Pair) {
    guard !pair.source.isAbstract else { return }
    func loss(_ kind: MigrationLoss.Kind) -> MigrationLoss {
      MigrationLoss(
        kind, source: pair.source.name, declaredBy: property.declaringEntityName, property: property.path)
    }
    let name = property.path.name
    let isTransient =
      property.path.leaf.isEmpty
      && destination.model.lineage(of: pair.destination.name)
        .contains { $0.properties[name].map { isTransientHeir($0, of: property) } ?? false }
    switch property.content {
    case .attribute(let attribute):
      // What a derived attribute held can be computed again as long as the model says how.
      guard !attribute.isDerived else { return }
      losses.append(loss(isTransient ? .becomesTransient : .removedAttribute))
    case .relationship(let relationship):
      if let inverse = source.inverse(of: relationship), inverse.key != property.key,
        continuedRelationships.contains(inverse.key)
      {
        if relationship.isOrdered { losses.append(loss(.relationshipOrder)) }
      } else {
        losses.append(loss(isTransient ? .becomesTransient : .removedRelationship))
      }
    }
  }

  private func isTransientHeir(_ heir: Property, of property: StoredProperty) -> Bool {
    heir.traits.isTransient && (heir.relationship != nil) == property.identity.isRelationship
  }

  // MARK: Uniqueness

  /// Constraints of an entity of the destination that its records were not under before.
  mutating func addUniquenessConditions(_ name: String, _ pair: Pair?) {
    guard let entity = destination.entity(name), !entity.uniquenessConstraints.isEmpty else { return }
    // Constraints are hashed, so that those of a copied entity are the old ones.
    guard pair?.isCopy != true else { return }
    guard pair != nil || destination.family(of: name).contains(where: { origins[$0] != nil }) else { return }
    var known: Set<Set<String>> = []
    var formerNames: [String: String] = [:]
    if let pair {
      for ancestor in source.model.lineage(of: pair.source.name) {
        for constraint in ancestor.uniquenessConstraints { known.insert(Set(constraint)) }
      }
      for (path, origin) in pair.sources {
        formerNames[path.description] = origin.path.description
        // A constraint may name a composite attribute as a whole.
        formerNames[path.name] = formerNames[path.name] ?? origin.path.name
      }
    }
    for constraint in entity.uniquenessConstraints {
      let before = constraint.compactMap { formerNames[$0] }
      if before.count == constraint.count, known.contains(Set(before)) { continue }
      conditions.append(
        MigrationCondition(.duplicateValues, source: pair?.source.name, destination: name, propertyNames: constraint))
    }
  }
}

extension Attribute {
  /// Whether the default is there and of a kind that can be written into a store.
  var hasReadableDefault: Bool {
    switch defaultValue {
    case nil, .opaque: false
    default: true
    }
  }
}
