internal import ManagedObjectModel
internal import Platform

/// Matches entities and properties by renaming identifiers and names.
extension InferenceBuilder {
  mutating func matchEntities() {
    if hashes.source == hashes.destination {
      // Only unstored traits differ; every entity stays itself.
      for name in source.names {
        origins[name] = name
        images[name] = name
      }
      return
    }
    let before = identified(source, "source")
    let after = identified(destination, "destination")
    for (identifier, name) in after {
      guard let origin = before[identifier] else { continue }
      origins[name] = origin
      images[origin] = name
    }
  }

  private mutating func identified(_ side: InferenceSide, _ word: String) -> [String: String] {
    var result: [String: String] = [:]
    for name in side.names.inCodeUnitOrder() {
      guard let entity = side.entity(name) else { continue }
      guard let other = result[entity.renamingIdentifier] else {
        result[entity.renamingIdentifier] = name
        continue
      }
      refuse(
        MigrationRefusal(
          .ambiguousEntity, entity: name,
          reason: "Each \(word) entity must have a unique renaming identifier",
          detail: """
            entities "\(printable(other))" and "\(printable(name))" of the \(word) model both have the renaming \
            identifier "\(printable(entity.renamingIdentifier))"
            """,
          wayRound: "Give one of them another renaming identifier."))
    }
    return result
  }

  mutating func matchProperties(of name: String) {
    guard let origin = origins[name], let before = source.entity(origin), let after = destination.entity(name) else {
      return
    }
    let isCopy = hashes.source[origin] == hashes.destination[name]
    var pair = Pair(source: before, destination: after, isCopy: isCopy, sources: [:])
    var rest = source.properties[origin] ?? []
    var wanted = destination.properties[name] ?? []
    if isCopy {
      // Equal hashes mean equal names; swapped identifiers must not swap values.
      let byName = Dictionary(
        rest.map { ([$0.identity.isRelationship ? "r" : "a", $0.path.description], $0) },
        uniquingKeysWith: { first, _ in first })
      var taken: Set<PropertyPath> = []
      for property in wanted {
        let key = [property.identity.isRelationship ? "r" : "a", property.path.description]
        if let found = byName[key] {
          pair.sources[property.path] = found
          taken.insert(found.path)
        }
      }
      rest.removeAll { taken.contains($0.path) }
      wanted.removeAll { pair.sources[$0.path] != nil }
    }
    let byIdentity = identified(rest, of: origin, "source", isChecked: !isCopy)
    _ = identified(wanted, of: name, "destination", isChecked: !isCopy)
    var taken: Set<PropertyPath> = []
    for property in wanted {
      guard let found = byIdentity[property.identity], taken.insert(found.path).inserted else { continue }
      pair.sources[property.path] = found
    }
    if !isCopy {
      carryProperties(&pair, rest.filter { !taken.contains($0.path) })
      settleDisagreeingProperties(&pair)
    }
    for property in destination.properties[name] ?? [] where property.relationship != nil {
      guard let found = pair.sources[property.path] else { continue }
      if relationshipSources[property.key] == nil { relationshipSources[property.key] = found.key }
      continuedRelationships.insert(found.key)
    }
    pairs[name] = pair
  }

  private mutating func identified(
    _ properties: [StoredProperty], of entity: String, _ word: String, isChecked: Bool
  ) -> [StoredProperty.Identity: StoredProperty] {
    var result: [StoredProperty.Identity: StoredProperty] = [:]
    var seen: [[String]: StoredProperty] = [:]
    for property in properties {
      if result[property.identity] == nil { result[property.identity] = property }
      guard let other = seen[property.identity.identifiers] else {
        seen[property.identity.identifiers] = property
        continue
      }
      guard isChecked else { continue }
      refuse(
        MigrationRefusal(
          .ambiguousProperty, entity: entity, property: property.path,
          reason: "Each property must have a unique renaming identifier",
          detail: """
            properties "\(printable(other.path.description))" and "\(printable(property.path.description))" of entity \
            "\(printable(entity))" of the \(word) model both have the renaming identifier \
            "\(printable(property.identity.identifiers.joined(separator: ".")))"
            """,
          wayRound: "Give one of them another renaming identifier."),
        source: other, destination: property)
    }
    return result
  }
}
