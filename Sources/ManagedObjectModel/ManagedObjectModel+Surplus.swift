extension ManagedObjectModel {
  /// The entities and properties that none of some other models has, as `Car` and `Car.owner`.
  ///
  /// A store whose model has any is taken for one of a newer version, and is left alone.
  package func surplus(over others: [ManagedObjectModel]) -> [String] {
    var result: [String] = []
    for (name, entity) in entities.sorted(by: { $0.key < $1.key }) {
      let counterparts = others.filter { $0.entities[name] != nil }
      if counterparts.isEmpty {
        result.append(name)
        continue
      }
      let known = Set(counterparts.flatMap { $0.properties(of: name).keys })
      result += entity.properties.keys.filter { !known.contains($0) }.sorted().map { "\(name).\($0)" }
    }
    return result
  }
}
