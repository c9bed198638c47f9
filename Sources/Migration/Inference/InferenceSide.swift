internal import ManagedObjectModel
internal import PersistentStore

/// One model of an inference with cached lookups.
struct InferenceSide {
  let model: ManagedObjectModel

  /// The entity names, ancestors first, else by code units.
  let names: [String]

  /// The depth-first range of an entity and its descendants.
  let ranges: [String: ClosedRange<Int>]

  let roots: [String: String]

  /// By name, inherited ones included.
  let properties: [String: [StoredProperty]]

  init(_ model: ManagedObjectModel) {
    self.model = model
    let children = Dictionary(grouping: model.entities.keys.inCodeUnitOrder()) { name in
      model.entities[name]?.parentName.flatMap { model.entities[$0] == nil ? nil : $0 }
    }
    var names: [String] = []
    var ranges: [String: ClosedRange<Int>] = [:]
    var roots: [String: String] = [:]
    for top in children[nil] ?? [] {
      var waiting = [(name: top, start: Int?.none)]
      while let next = waiting.popLast() {
        if let start = next.start {
          ranges[next.name] = start...max(start, names.count - 1)
        } else {
          waiting.append((next.name, names.count))
          names.append(next.name)
          roots[next.name] = top
          waiting += (children[next.name] ?? []).reversed().map { ($0, nil) }
        }
      }
    }
    // Entities that inherit in a cycle have no root; each stands alone.
    for name in model.entities.keys.inCodeUnitOrder() where ranges[name] == nil {
      ranges[name] = names.count...names.count
      roots[name] = name
      names.append(name)
    }
    self.names = names
    self.ranges = ranges
    self.roots = roots
    var properties: [String: [StoredProperty]] = [:]
    for name in names {
      let inherited = model.properties(of: name)
      properties[name] = inherited.keys.inCodeUnitOrder()
        .compactMap { inherited[$0] }.flatMap { StoredProperty.properties(of: $0) }
    }
    self.properties = properties
  }

  func entity(_ name: String) -> Entity? { model.entities[name] }

  func property(_ path: PropertyPath, of entity: String) -> StoredProperty? {
    properties[entity]?.first { $0.path == path }
  }

  func relationship(_ name: String, of entity: String) -> Relationship? {
    property(PropertyPath(name), of: entity)?.relationship
  }

  func isKind(_ name: String, of ancestor: String) -> Bool {
    guard let place = ranges[name]?.lowerBound, let range = ranges[ancestor] else { return false }
    return range.contains(place)
  }

  func family(of name: String) -> ArraySlice<String> {
    guard let range = ranges[name] else { return [] }
    return names[range]
  }

  func inverse(of relationship: Relationship) -> (key: PropertyKey, relationship: Relationship)? {
    guard let name = relationship.inverseName else { return nil }
    let holder = relationship.inverseEntityName ?? relationship.destinationEntityName
    for ancestor in model.lineage(of: holder) {
      guard let property = ancestor.properties[name] else { continue }
      guard let found = property.relationship, !found.traits.isTransient else { return nil }
      return (PropertyKey(entityName: ancestor.name, name: name), found)
    }
    return nil
  }
}

/// A stored attribute, composite leaf or stored relationship.
struct StoredProperty {
  enum Content {
    case attribute(Attribute)
    case relationship(Relationship)
  }

  /// The match key: kind and renaming identifier, preceded by those of enclosing composites.
  struct Identity: Hashable {
    let isRelationship: Bool
    let identifiers: [String]
  }

  let path: PropertyPath

  let declaringEntityName: String

  let identity: Identity

  let content: Content

  /// Whether it or an enclosing composite is optional.
  let isOptional: Bool

  let isMarked: Bool

  var key: PropertyKey { PropertyKey(entityName: declaringEntityName, name: path.name) }

  var attribute: Attribute? { if case .attribute(let attribute) = content { attribute } else { nil } }

  var relationship: Relationship? { if case .relationship(let relationship) = content { relationship } else { nil } }
}

extension StoredProperty {
  /// The stored parts of an inherited property: empty for transient or fetched ones, all leaves of composites.
  static func properties(of inherited: InheritedProperty) -> [StoredProperty] {
    let declaring = inherited.declaringEntityName
    switch inherited.property {
    case .fetchedProperty: return []
    case .relationship(let relationship):
      guard !relationship.traits.isTransient else { return [] }
      return [
        StoredProperty(
          path: PropertyPath(relationship.name), declaringEntityName: declaring,
          identity: Identity(isRelationship: true, identifiers: [relationship.traits.renamingIdentifier]),
          content: .relationship(relationship), isOptional: relationship.traits.isOptional, isMarked: false)
      ]
    case .attribute(let attribute): return leaves(of: attribute, declaredBy: declaring)
    }
  }

  /// Iterative, so that deep nesting can't exhaust the stack.
  private static func leaves(of attribute: Attribute, declaredBy declaring: String) -> [StoredProperty] {
    var result: [StoredProperty] = []
    var waiting = [
      (
        attribute: attribute, names: [String](), identifiers: [attribute.traits.renamingIdentifier],
        isOptional: attribute.traits.isOptional
      )
    ]
    while let step = waiting.popLast() {
      let current = step.attribute
      guard !current.traits.isTransient else { continue }
      if current.type == .composite, !current.compositeElements.isEmpty, !current.isDerived {
        waiting += current.compositeElements.reversed().map { element in
          (
            element, step.names + [element.name], step.identifiers + [element.traits.renamingIdentifier],
            step.isOptional || element.traits.isOptional
          )
        }
      } else {
        result.append(
          StoredProperty(
            path: PropertyPath(attribute.name, leaf: step.names), declaringEntityName: declaring,
            identity: Identity(isRelationship: false, identifiers: step.identifiers), content: .attribute(current),
            isOptional: step.isOptional,
            isMarked: step.names.isEmpty && current.allowsExternalBinaryDataStorage
              && (current.type == .binary || current.type == .transformable)))
      }
    }
    return result
  }
}

extension StoredProperty {
  /// Whether another property has the same kind and type or cardinality.
  func isOfKind(_ other: StoredProperty) -> Bool {
    switch (content, other.content) {
    case (.attribute(let one), .attribute(let other)): one.type == other.type && one.isDerived == other.isDerived
    case (.relationship(let one), .relationship(let other)): one.isToMany == other.isToMany
    case (.attribute, .relationship), (.relationship, .attribute): false
    }
  }
}
