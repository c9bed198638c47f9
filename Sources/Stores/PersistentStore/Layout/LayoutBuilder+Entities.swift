internal import ManagedObjectModel
internal import StoreFiles

extension LayoutBuilder {
  /// Refuses names that no SQL can hold.
  func checkNames() throws(PersistentStoreError) {
    func check(_ name: String) throws(PersistentStoreError) {
      if name.utf8.contains(0) { throw unstorable("the name \"\(printable(name))\" contains a zero byte") }
      if name.utf8.count > 10_000 { throw unstorable("a name is longer than 10,000 bytes") }
    }
    for (name, entity) in model.entities {
      try check(name)
      guard name == entity.name else { throw unstorable("an entity is listed under a name that is not its own") }
      for (name, property) in entity.properties {
        try check(name)
        guard name == property.name else { throw unstorable("a property is listed under a name that is not its own") }
        var elements = property.attribute?.compositeElements ?? []
        while let element = elements.popLast() {
          try check(element.name)
          elements += element.compositeElements
        }
      }
      for index in entity.fetchIndexes { try check(index.name) }
    }
  }

  /// The most generations of a hierarchy; real ones have a handful.
  static let maximumDepth = 256

  /// Numbers the entities depth-first, siblings sorted by name without regard to case (format section 3.3).
  mutating func numberEntities() throws(PersistentStoreError) {
    var children: [String: [String]] = [:]
    var roots: [String] = []
    for entity in model.entities.values {
      if let parent = entity.parentName {
        guard model.entities[parent] != nil else {
          throw unstorable("the parent of entity \"\(printable(entity.name))\" is not in the model")
        }
        children[parent, default: []].append(entity.name)
      } else {
        roots.append(entity.name)
      }
    }
    var waiting = NameOrder.withoutCase(roots).reversed().map { (name: $0, depth: 1) }
    while let (name, depth) = waiting.popLast() {
      guard depth <= Self.maximumDepth else {
        throw unstorable("entities inherit from each other more than \(Self.maximumDepth) times over")
      }
      let parentName = model.entities[name]?.parentName
      let parent = parentName.flatMap(place(of:))
      let number = entities.count + 1
      entityIndexes[name] = entities.count
      entities.append(
        EntityLayout(
          name: name, number: number, parentName: parentName, parentNumber: parent?.number ?? 0,
          rootName: parent?.rootName ?? name, lastDescendantNumber: number, tableName: ""))
      if let names = children[name] { waiting += NameOrder.withoutCase(names).reversed().map { ($0, depth + 1) } }
    }
    guard entities.count == model.entities.count else {
      throw unstorable("entities inherit from each other in a circle")
    }
    for entity in entities.reversed() where !entity.isRoot {
      let parent = entity.parentNumber - 1
      let last = entities[entity.number - 1].lastDescendantNumber
      entities[parent].lastDescendantNumber = max(entities[parent].lastDescendantNumber, last)
    }
  }
}
