internal import ManagedObjectModel
internal import Platform

extension InferenceBuilder {
  /// Maps a new, empty entity.
  mutating func mapAddition(_ name: String) {
    var mapping = EntityMapping(name: "IEM_Add_\(name)", kind: .add, source: nil, destination: name)
    for property in destination.properties[name] ?? [] { mapping.propertyMappings.append(newMapping(property)) }
    mappings.append(mapping)
    addUniquenessConditions(name, nil)
  }

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
        // Unreachable: pairs match by kind.
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

  func newMapping(_ property: StoredProperty) -> PropertyMapping {
    switch property.content {
    case .attribute(let attribute): return Self.newMapping(property.path, attribute)
    case .relationship(let relationship):
      guard let inverse = destination.inverse(of: relationship)?.key, inverse != property.key,
        relationshipSources[inverse] != nil || filledRelationships.contains(inverse)
      else { return PropertyMapping(property.path, .null) }
      return PropertyMapping(property.path, .inverse)
    }
  }

  static func newMapping(_ path: PropertyPath, _ attribute: Attribute) -> PropertyMapping {
    PropertyMapping(path, attribute.isDerived ? .recompute : attribute.hasReadableDefault ? .defaultValue : .null)
  }

  mutating func addConditions(ofNew property: StoredProperty, _ pair: Pair) {
    switch property.content {
    case .attribute(let attribute):
      guard !attribute.isDerived else { return }
      if attribute.defaultValue != nil, !attribute.hasReadableDefault {
        addCondition(.unreadableDefault, nil, property, pair)
      } else if !property.isOptional, attribute.defaultValue == nil {
        addCondition(.newMandatoryAttribute, nil, property, pair)
      }
    case .relationship(let relationship):
      guard relationship.needsDestination else { return }
      // If the inverse fills it, count only records the inverse doesn't reach.
      let isFilled = newMapping(property).value == .inverse
      addCondition(isFilled ? .missingRelationship : .newMandatoryRelationship, nil, property, pair)
    }
  }

  mutating func addLoss(of property: StoredProperty, _ pair: Pair) {
    guard !pair.source.isAbstract else { return }
    let name = property.path.name
    let isTransient =
      property.path.leaf.isEmpty
      && destination.model.lineage(of: pair.destination.name).contains { entity in
        guard let heir = entity.properties[name] else { return false }
        return heir.traits.isTransient && (heir.relationship != nil) == property.identity.isRelationship
      }
    switch property.content {
    case .attribute(let attribute):
      // A derived attribute can be recomputed while the model defines it.
      guard !attribute.isDerived else { return }
      losses.append(loss(isTransient ? .becomesTransient : .removedAttribute, of: property, pair))
    case .relationship(let relationship):
      if let inverse = source.inverse(of: relationship), inverse.key != property.key,
        continuedRelationships.contains(inverse.key)
      {
        if relationship.isOrdered { losses.append(loss(.relationshipOrder, of: property, pair)) }
      } else {
        losses.append(loss(isTransient ? .becomesTransient : .removedRelationship, of: property, pair))
      }
    }
  }

  func loss(_ kind: MigrationLoss.Kind, of property: StoredProperty, _ pair: Pair) -> MigrationLoss {
    MigrationLoss(kind, source: pair.source.name, declaredBy: property.declaringEntityName, property: property.path)
  }

  // MARK: Uniqueness

  mutating func addUniquenessConditions(_ name: String, _ pair: Pair?) {
    guard let entity = destination.entity(name), !entity.uniquenessConstraints.isEmpty else { return }
    // Constraints are hashed, so a copied entity keeps them.
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
        // A constraint may name a whole composite attribute.
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
  /// Whether a store can hold the default.
  var hasReadableDefault: Bool {
    switch defaultValue {
    case nil, .opaque: false
    default: true
    }
  }
}

/// Renames that two models alone don't show, and equal names with different renaming identifiers.
extension InferenceBuilder {
  // MARK: Carried renames

  /// Matches entities renamed through versions.
  mutating func carryEntities() {
    var found: [String: [String]] = [:]
    for name in source.names where images[name] == nil {
      guard let names = chain.names(of: name), let last = names.last, origins[last] == nil,
        destination.entity(last) != nil, last == name || source.entity(last) == nil || images[last] != nil
      else { continue }
      found[last, default: []].append(name)
    }
    for (last, names) in found.inCodeUnitOrder() {
      // A merge of two is no rename.
      guard names.count == 1, let name = names.first else { continue }
      origins[last] = name
      images[name] = last
      carried.append(CarriedRename(sourceEntityName: name, destinationEntityName: last))
    }
  }

  /// Matches properties of equal type renamed through versions.
  mutating func carryProperties(_ pair: inout Pair, _ unmatched: [StoredProperty]) {
    guard carrying != .nothing, !unmatched.isEmpty else { return }
    guard let names = chain.names(of: pair.source.name), names.last == pair.destination.name else { return }
    // A property whose name the source has too is no other's heir.
    let open = (destination.properties[pair.destination.name] ?? []).filter { property in
      pair.sources[property.path] == nil && !unmatched.contains { $0.path == property.path && $0.isOfKind(property) }
    }
    guard !open.isEmpty else { return }
    var found: [PropertyPath: [StoredProperty]] = [:]
    for property in unmatched {
      guard let name = chain.destinationName(of: property.path.name, entities: names),
        let heir = open.first(where: { $0.path == PropertyPath(name, leaf: property.path.leaf) }),
        heir.isOfKind(property)
      else { continue }
      found[heir.path, default: []].append(property)
    }
    for (path, properties) in found.ordered(by: { precedesByCodeUnit($0.key.description, $1.key.description) }) {
      guard properties.count == 1, let property = properties.first else { continue }
      pair.sources[path] = property
      carried.append(
        CarriedRename(
          sourceEntityName: pair.source.name, destinationEntityName: pair.destination.name,
          sourceProperty: property.path, destinationProperty: path))
    }
  }

  // MARK: One name, two identifiers

  /// Refuses unmatched entities of one name; their records would be deleted.
  mutating func settleDisagreeingEntities() {
    guard disagreement != .remove else { return }
    for name in source.names where images[name] == nil && origins[name] == nil {
      guard let before = source.entity(name), let after = destination.entity(name) else { continue }
      if disagreement == .match {
        origins[name] = name
        images[name] = name
        continue
      }
      refuse(
        .disagreeingIdentifiers, entity: name, reason: "The entity has another renaming identifier in the destination",
        detail: Self.disagreement(
          "entity \"\(printable(name))\"", before.renamingIdentifier, after.renamingIdentifier, "all its records"),
        wayRound: Self.wayRound)
    }
  }

  /// Refuses same-named properties of equal type left unmatched; matches those with a new identifier that only gives a
  /// later name.
  mutating func settleDisagreeingProperties(_ pair: inout Pair) {
    guard !pair.source.isAbstract else { return }
    let continued = Set(pair.sources.values.map(\.path))
    let before = Dictionary(
      (source.properties[pair.source.name] ?? []).map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
    for property in destination.properties[pair.destination.name] ?? [] where pair.sources[property.path] == nil {
      guard let old = before[property.path], !continued.contains(old.path), property.isOfKind(old),
        old.attribute?.isDerived != true
      else { continue }
      if disagreement == .match || leadsForward(property, old, pair) {
        pair.sources[property.path] = old
        continue
      }
      guard disagreement == .refuse else { continue }
      let name = "\(printable(pair.destination.name)).\(printable(property.path.description))"
      refuse(
        .disagreeingIdentifiers, entity: pair.destination.name, old, property,
        reason: "The property has another renaming identifier in the destination",
        detail: Self.disagreement(
          "\(old.relationship == nil ? "attribute" : "relationship") \(name)",
          old.identity.identifiers.joined(separator: "."), property.identity.identifiers.joined(separator: "."),
          "its values"), wayRound: Self.wayRound)
    }
  }

  /// Whether an identifier prepares a later rename.
  private func leadsForward(_ property: StoredProperty, _ old: StoredProperty, _ pair: Pair) -> Bool {
    guard old.identity.identifiers == [old.path.name], property.path.leaf.isEmpty,
      let identifier = property.identity.identifiers.first
    else { return false }
    return later.contains { model in
      model.properties(of: pair.destination.name).values.contains { other in
        other.property.name == identifier || other.property.traits.explicitRenamingIdentifier == identifier
      }
    }
  }

  private static func disagreement(_ what: String, _ before: String, _ after: String, _ goes: String) -> String {
    "\(what) is in both versions, but its renaming identifier is \"\(printable(before))\" in the older one and "
      + "\"\(printable(after))\" in the newer one, so that \(goes) would be deleted"
  }

  private static let wayRound = """
    Give it the same renaming identifier in both versions, or give a mapping for the step. If the old data is meant to go, \
    \(MigrationRefusal.acceptLoss)
    """
}
