internal import ManagedObjectModel
internal import PersistentStore

/// One of the two models of an inference, with what is looked up in it again and again.
struct InferenceSide {
  let model: ManagedObjectModel

  /// The names of the entities, each after its ancestors, else in the order of their code units.
  let names: [String]

  /// The place of each entity in depth-first order, and that of its last descendant: its descendants are one range.
  let ranges: [String: ClosedRange<Int>]

  /// The root of each entity's hierarchy.
  let roots: [String: String]

  /// What the records of each entity store, inherited properties included, by name.
  let properties: [String: [StoredProperty]]

  init(_ model: ManagedObjectModel) {
    self.model = model
    var children: [String: [String]] = [:]
    var tops: [String] = []
    for name in model.entities.keys.inCodeUnitOrder() {
      if let parent = model.entities[name]?.parentName, model.entities[parent] != nil {
        children[parent, default: []].append(name)
      } else {
        tops.append(name)
      }
    }
    var names: [String] = []
    var ranges: [String: ClosedRange<Int>] = [:]
    var roots: [String: String] = [:]
    for top in tops {
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
    // Entities that inherit from each other in a circle hang below no top; each stands for itself.
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

  /// Whether an entity is another one or inherits from it.
  func isKind(_ name: String, of ancestor: String) -> Bool {
    guard let place = ranges[name]?.lowerBound, let range = ranges[ancestor] else { return false }
    return range.contains(place)
  }

  /// The names of an entity and all that inherit from it.
  func family(of name: String) -> ArraySlice<String> {
    guard let range = ranges[name] else { return [] }
    return names[range]
  }

  /// The stored inverse of a relationship, by the entity that declares it.
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
