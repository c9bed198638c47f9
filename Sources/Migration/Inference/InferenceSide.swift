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
