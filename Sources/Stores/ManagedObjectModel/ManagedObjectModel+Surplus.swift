import StoreFiles

extension ManagedObjectModel {
  /// The entities and properties that none of some other models has, as `Car` and `Car.owner`, renames considered.
  ///
  /// A store whose model has any is taken for one of a newer version, and is left alone.
  package func surplus(over others: [ManagedObjectModel]) -> [String] {
    var result: [String] = []
    for (name, entity) in entities.ordered(by: { precedesByCodeUnit($0.key, $1.key) }) {
      let counterparts = others.flatMap { other in
        other.entities.values.filter { Self.isSame(entity.names, $0.names) }.map { other.properties(of: $0.name) }
      }
      if counterparts.isEmpty {
        result.append(name)
        continue
      }
      let known = counterparts.flatMap { properties in properties.values.map { $0.property.traits.names } }
      result += entity.properties.values
        .filter { $0.isStored }
        .filter { property in !known.contains { Self.isSame(property.traits.names, $0) } }
        .map(\.name).inCodeUnitOrder().map { "\(name).\($0)" }
    }
    return result
  }

  /// Whether two things may be one, because either has a name or an identifier of the other's.
  private static func isSame(_ first: (name: String, identifier: String), _ second: (name: String, identifier: String))
    -> Bool
  {
    first.name == second.name || first.identifier == second.identifier || first.name == second.identifier
      || first.identifier == second.name
  }
}

extension Entity {
  fileprivate var names: (name: String, identifier: String) { (name, renamingIdentifier) }
}

extension Property {
  fileprivate var isStored: Bool {
    if case .fetchedProperty = self { return false }
    return !traits.isTransient
  }
}

extension PropertyTraits {
  fileprivate var names: (name: String, identifier: String) { (name, renamingIdentifier) }
}
