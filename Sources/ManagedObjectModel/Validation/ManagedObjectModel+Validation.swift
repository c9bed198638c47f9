internal import Platform

extension ManagedObjectModel {
  /// Returns all contradictions and dangling references, in entity order.
  public func validate() -> [ModelFinding] {
    var findings: [ModelFinding] = []
    for (_, entity) in entities.inCodeUnitOrder() {
      findings += hierarchyFindings(entity)
      for (_, property) in entity.properties.inCodeUnitOrder() { findings += propertyFindings(property, of: entity) }
      findings += listFindings(entity)
    }
    findings += namingFindings()
    return findings
  }

  func requireSoundStructure() throws(ModelError) {
    try requireBoundedSize()
    guard let finding = validate().first(where: \.isStructural) else { return }
    throw ModelError(
      .invalid, detail: finding.detail, entityName: finding.entityName, propertyName: finding.propertyName)
  }

  /// Real models have hundreds of entities and ten levels; inherited properties count per heir.
  private func requireBoundedSize() throws(ModelError) {
    let limits = (entities: 20_000, levels: 64, properties: 500_000)
    guard entities.count <= limits.entities else {
      throw ModelError(.tooLarge, detail: "it has more than \(limits.entities) entities")
    }
    var total = 0
    for name in entities.keys.inCodeUnitOrder() {
      // Unlike `lineage`, stops early on thousands of levels.
      var levels = 0
      var next: String? = name
      while let current = next, let entity = entities[current], levels <= limits.levels {
        total += entity.properties.count + 1
        levels += 1
        next = entity.parentName
      }
      guard levels <= limits.levels else { throw inheritsTooDeeply(name, limits.levels) }
      guard total <= limits.properties else {
        throw ModelError(.tooLarge, detail: "it has more than \(limits.properties) properties")
      }
    }
  }

  private func inheritsTooDeeply(_ name: String, _ levels: Int) -> ModelError {
    var seen: Set<String> = []
    var next: String? = name
    while let current = next, let entity = entities[current] {
      guard seen.insert(current).inserted else {
        return ModelError(
          .invalid, detail: "entity \"\(printable(current))\" inherits from itself", entityName: current)
      }
      next = entity.parentName
    }
    return ModelError(.tooLarge, detail: "it inherits over more than \(levels) levels", entityName: name)
  }

  private func hierarchyFindings(_ entity: Entity) -> [ModelFinding] {
    var findings: [ModelFinding] = []
    let name = entity.name
    if name.isEmpty { findings.add(.emptyName, name, "an entity has no name") }
    if let parent = entity.parentName {
      if entities[parent] == nil {
        findings.add(
          .missingParent, name,
          "entity \"\(printable(name))\" inherits from \"\(printable(parent))\", which is not in the model")
      } else if let top = lineage(of: name).last, let beyond = top.parentName, entities[beyond] != nil {
        findings.add(.inheritanceCycle, name, "entity \"\(printable(name))\" inherits from itself")
      }
    }
    return findings
  }

  private func propertyFindings(_ property: Property, of entity: Entity) -> [ModelFinding] {
    var findings: [ModelFinding] = []
    let place = "\(printable(entity.name)).\(printable(property.name))"
    func add(_ kind: ModelFinding.Kind, _ detail: String) {
      findings.add(kind, entity.name, property: property.name, detail)
    }
    if property.name.isEmpty { add(.emptyName, "a property of entity \"\(printable(entity.name))\" has no name") }
    for ancestor in lineage(of: entity.name).dropFirst() where ancestor.properties[property.name] != nil {
      add(.overriddenProperty, "\(place) has the name of a property it inherits from \"\(printable(ancestor.name))\"")
      break
    }
    switch property {
    case .attribute(let attribute):
      if attribute.type == .undefined, !attribute.traits.isTransient {
        add(.undefinedType, "\(place) is to be stored and has no type")
      }
    case .relationship(let relationship): inverseFindings(relationship, of: entity, place, add)
    case .fetchedProperty(let fetched):
      if let name = fetched.fetchRequest?.entityName, entities[name] == nil {
        add(.missingEntity, "\(place) fetches \"\(printable(name))\", which is not in the model")
      }
    }
    return findings
  }

  private func inverseFindings(
    _ relationship: Relationship, of entity: Entity, _ place: String, _ add: (ModelFinding.Kind, String) -> Void
  ) {
    let destination = relationship.destinationEntityName
    guard entities[destination] != nil else {
      add(.missingDestination, "\(place) leads to \"\(printable(destination))\", which is not in the model")
      return
    }
    guard let inverseName = relationship.inverseName else { return }
    let holder = relationship.inverseEntityName ?? destination
    let found = lineage(of: holder).lazy.compactMap { $0.properties[inverseName] }.first?.relationship
    guard let inverse = found else {
      add(
        .missingInverse,
        "\(place) has the inverse \(printable(holder)).\(printable(inverseName)), which is no relationship of the model"
      )
      return
    }
    let isRelated =
      lineage(of: entity.name).contains { $0.name == inverse.destinationEntityName }
      || lineage(of: inverse.destinationEntityName).contains { $0.name == entity.name }
    guard inverse.inverseName == relationship.name, isRelated else {
      add(
        .mismatchedInverse,
        "\(place) has the inverse \(printable(holder)).\(printable(inverseName)), which does not lead back to it")
      return
    }
  }

  private func listFindings(_ entity: Entity) -> [ModelFinding] {
    let constrained = entity.uniquenessConstraints.flatMap { $0 }
    let indexed =
      entity.fetchIndexes.flatMap { $0.elements.compactMap(\.propertyName) } + entity.compoundIndexes.joined()
    guard !constrained.isEmpty || !indexed.isEmpty else { return [] }
    let ancestors = lineage(of: entity.name)
    var findings: [ModelFinding] = []
    for (names, what) in [(constrained, "a uniqueness constraint"), (indexed, "an index")] {
      // Constraints may name composite leaves: `address.city`.
      for name in names {
        let first = name.split(separator: ".").first.map(String.init) ?? name
        // Apple's tools index a record's identity as `self`.
        if first == "self" || ancestors.contains(where: { $0.properties[first] != nil }) { continue }
        findings.add(
          .missingProperty, entity.name, property: name,
          "\(what) of entity \"\(printable(entity.name))\" names \"\(printable(name))\", which it does not have")
      }
    }
    return findings
  }

  private func namingFindings() -> [ModelFinding] {
    var findings: [ModelFinding] = []
    for (name, members) in configurations.inCodeUnitOrder() {
      for entity in members where entities[entity] == nil {
        findings.add(
          .missingEntity, entity,
          "configuration \"\(printable(name))\" names \"\(printable(entity))\", which is not in the model")
      }
    }
    for (name, request) in fetchRequests.inCodeUnitOrder() where entities[request.entityName] == nil {
      let entity = request.entityName
      findings.add(
        .missingEntity, entity,
        "fetch request \"\(printable(name))\" fetches \"\(printable(entity))\", which is not in the model")
    }
    var identifiers: [String: String] = [:]
    for (name, entity) in entities.inCodeUnitOrder() {
      if let other = identifiers.updateValue(name, forKey: entity.renamingIdentifier) {
        findings.add(
          .ambiguousRenamingIdentifier, name,
          "entities \"\(printable(other))\" and \"\(printable(name))\" have the same renaming identifier")
      }
    }
    return findings
  }
}

extension [ModelFinding] {
  fileprivate mutating func add(
    _ kind: ModelFinding.Kind, _ entity: String, property: String? = nil, _ detail: String
  ) {
    append(ModelFinding(kind, entity: entity, property: property, detail: detail))
  }
}

/// A contradiction or dangling reference in a model.
public struct ModelFinding: Sendable, Hashable {
  /// The kind of a finding.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    case emptyName = "empty-name"
    case missingParent = "missing-parent"
    case inheritanceCycle = "inheritance-cycle"
    case missingDestination = "missing-destination"
    case missingInverse = "missing-inverse"

    /// The inverse has another destination or inverse.
    case mismatchedInverse = "mismatched-inverse"

    case overriddenProperty = "overridden-property"

    case missingProperty = "missing-property"

    case missingEntity = "missing-entity"

    case undefinedType = "undefined-type"

    /// Two entities, or properties of one entity, share it.
    case ambiguousRenamingIdentifier = "ambiguous-renaming-identifier"
  }

  /// The kind.
  public var kind: Kind

  /// The affected entity.
  public var entityName: String?

  /// The affected property.
  public var propertyName: String?

  /// A sentence without period.
  public var detail: String

  /// Creates a finding.
  public init(_ kind: Kind, entity: String? = nil, property: String? = nil, detail: String) {
    self.kind = kind
    entityName = entity
    propertyName = property
    self.detail = detail
  }

  /// Whether the model is unusable, so that loading rejects it.
  public var isStructural: Bool {
    switch kind {
    case .emptyName, .missingParent, .inheritanceCycle, .missingDestination, .missingInverse: true
    case .mismatchedInverse, .overriddenProperty, .missingProperty, .missingEntity, .undefinedType,
      .ambiguousRenamingIdentifier:
      false
    }
  }
}
