extension ModelBundle {
  /// The version that a store was written with.
  ///
  /// Version hashes say nothing of renaming identifiers, defaults and indexes, so that several versions can have the same.
  /// Then the identifiers that the store notes decide, and after them the model that it carries.
  ///
  /// - Parameters:
  ///   - hashes: the version hashes in the store's metadata.
  ///   - identifiers: the version identifiers there; nil where they are not known.
  ///   - cached: the model that the store carries; one of other hashes counts for nothing.
  public func version(
    matching hashes: [String: VersionHash], identifiers: [String]? = nil, cached: ManagedObjectModel? = nil
  ) -> ModelVersion? {
    var fitting = (versions + unorderedVersions).filter { $0.versionHashes == hashes }
    guard fitting.count > 1 else { return fitting.first }
    if let identifiers {
      let same = fitting.filter { Set($0.model.versionIdentifiers) == Set(identifiers) }
      if !same.isEmpty { fitting = same }
    }
    if fitting.count > 1, let cached, cached.versionHashes() == hashes {
      let distances = fitting.map { ModelDistance(from: cached, to: $0.model) }
      if let least = distances.min() { fitting = zip(fitting, distances).filter { $1 == least }.map(\.0) }
    }
    // What is left does not differ in anything that the store tells.
    return fitting.first { $0.name == current.name }
      ?? fitting.last { !order.comes($0.name, after: current.name) } ?? fitting.last
  }
}

/// How far two models of the same version hashes are from each other in what is not hashed.
private struct ModelDistance: Comparable {
  /// The renaming identifiers that differ; they decide what a migration keeps.
  private var identifiers = 0

  /// Whatever else differs: defaults, rules, indexes, classes.
  private var others = 0

  init(from first: ManagedObjectModel, to second: ManagedObjectModel) {
    for (name, one) in first.entities {
      guard let other = second.entities[name] else { continue }
      if one.renamingIdentifier != other.renamingIdentifier { identifiers += 1 }
      if one.className != other.className { others += 1 }
      if one.fetchIndexes != other.fetchIndexes { others += 1 }
      for (key, property) in one.properties {
        guard let counterpart = other.properties[key] else { continue }
        compare(property, counterpart)
      }
    }
  }

  private mutating func compare(_ one: Property, _ other: Property) {
    if one.traits.renamingIdentifier != other.traits.renamingIdentifier { identifiers += 1 }
    if one.traits.isIndexed != other.traits.isIndexed { others += 1 }
    if one.attribute?.defaultValue != other.attribute?.defaultValue { others += 1 }
    if one.attribute?.valueTransformerName != other.attribute?.valueTransformerName { others += 1 }
    if one.relationship?.deleteRule != other.relationship?.deleteRule { others += 1 }
  }

  static func < (first: ModelDistance, second: ModelDistance) -> Bool {
    (first.identifiers, first.others) < (second.identifiers, second.others)
  }
}
