internal import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// Infers a mapping: matches entities and properties, then maps each.
struct InferenceBuilder {
  struct Pair {
    let source: Entity
    let destination: Entity

    /// Whether the version hashes are equal, so that records don't change.
    let isCopy: Bool

    /// By destination path.
    var sources: [PropertyPath: StoredProperty]

    var hasRecords: Bool { !source.isAbstract && !destination.isAbstract }
  }

  let source: InferenceSide
  let destination: InferenceSide

  let hashes: Hashes

  typealias Hashes = (source: [String: VersionHash], destination: [String: VersionHash])

  /// The destination entity of each source entity.
  var images: [String: String] = [:]

  /// The source entity of each destination entity.
  var origins: [String: String] = [:]

  var pairs: [String: Pair] = [:]

  var relationshipSources: [PropertyKey: PropertyKey] = [:]

  /// The declared destination relationships that a custom mapping fills otherwise.
  var filledRelationships: Set<PropertyKey> = []

  var continuedRelationships: Set<PropertyKey> = []

  /// The sorted destination places of each concrete family.
  var familyImages: [String: (places: [Int], hasFamily: Bool)] = [:]

  var mappings: [EntityMapping] = []
  var conditions: [MigrationCondition] = []
  var losses: [MigrationLoss] = []
  private(set) var refusals: [MigrationRefusal] = []
  private var refused: Set<[String]> = []

  let chain: RenameChain

  var carried: [CarriedRename] = []

  let later: [ManagedObjectModel]

  /// The treatment of equal names with different renaming identifiers.
  let disagreement: NameDisagreement

  var carrying: Carrying

  enum Carrying {
    case all, properties, nothing
  }

  init(
    from source: ManagedObjectModel, to destination: ManagedObjectModel, through between: [ManagedObjectModel] = [],
    before later: [ManagedObjectModel] = [], disagreement: NameDisagreement = .refuse,
    carrying: Carrying = .nothing, hashes: Hashes? = nil
  ) {
    self.source = InferenceSide(source)
    self.destination = InferenceSide(destination)
    self.hashes = hashes ?? (source.versionHashes(), destination.versionHashes())
    chain = RenameChain(models: [source] + between + [destination])
    self.later = later
    self.disagreement = disagreement
    self.carrying = carrying
  }

  mutating func build() {
    matchEntities()
    if carrying == .all { carryEntities() }
    settleDisagreeingEntities()
    refuseMergedHierarchies()
    for name in destination.names { matchProperties(of: name) }
    for name in destination.names {
      if let pair = pairs[name] { mapPair(pair) } else { mapAddition(name) }
    }
    for name in source.names where images[name] == nil {
      mappings.append(EntityMapping(name: "IEM_Remove_\(name)", kind: .remove, source: name, destination: nil))
      if source.entity(name)?.isAbstract == false { losses.append(MigrationLoss(.removedEntity, source: name)) }
    }
  }

  /// Maps a destination entity as a mapping file says; the rest is inferred.
  ///
  /// - Parameter others: The file's other mappings, for relationships.
  mutating func map(
    _ destinationName: String, from sourceName: String, others: [(destination: String, source: String)]
  ) -> EntityMapping? {
    matchEntities()
    for other in others {
      if origins[other.destination] == nil { origins[other.destination] = other.source }
      if images[other.source] == nil { images[other.source] = other.destination }
    }
    origins[destinationName] = sourceName
    if images[sourceName] == nil { images[sourceName] = destinationName }
    for name in destination.names { matchProperties(of: name) }
    refusals = refusals.filter { $0.entityName == destinationName && $0.property != nil }
    guard let pair = pairs[destinationName] else { return nil }
    mapPair(pair)
    return mappings.first { $0.destinationEntityName == destinationName }
  }

  /// Records a refusal once per property, not for each inheriting entity.
  mutating func refuse(
    _ kind: MigrationRefusal.Kind, entity: String, _ source: StoredProperty? = nil,
    _ destination: StoredProperty? = nil, reason: String, detail: String, wayRound: String
  ) {
    let key = [
      kind.rawValue, source?.declaringEntityName ?? "", source?.path.description ?? "",
      destination?.declaringEntityName ?? "", destination?.path.description ?? "",
      source == nil && destination == nil ? entity + "." + reason : "",
    ]
    guard refused.insert(key).inserted else { return }
    refusals.append(
      MigrationRefusal(
        kind, entity: entity, property: destination?.path, reason: reason, detail: detail, wayRound: wayRound))
  }

  mutating func takeRefusals() -> [MigrationRefusal] {
    defer {
      refusals = []
      refused = []
    }
    return refusals
  }

  // MARK: Hierarchies

  /// Refuses new common ancestors (section 5.2).
  private mutating func refuseMergedHierarchies() {
    var groups: [String: [String: String]] = [:]
    for name in destination.names {
      guard let origin = origins[name], let before = source.roots[origin], let after = destination.roots[name] else {
        continue
      }
      // Ancestors come first, so a group's first is its topmost.
      if groups[after]?[before] == nil { groups[after, default: [:]][before] = name }
    }
    for root in groups.keys.inCodeUnitOrder() {
      guard let group = groups[root], group.count > 1 else { continue }
      let home = origins[root].flatMap { source.roots[$0] } ?? group.keys.min(by: precedesByCodeUnit) ?? ""
      let keeper = group[home] ?? root
      for other in group.keys.inCodeUnitOrder() where other != home {
        guard let moved = group[other] else { continue }
        refuse(
          .mergedHierarchies, entity: moved,
          reason: "Entities that do not share a common parent in the source cannot share one in the destination",
          detail: """
            entities "\(printable(keeper))" and "\(printable(moved))" have no common ancestor in the source and get \
            one in the destination, "\(printable(root))"
            """,
          wayRound: "Put a version between the two that has a new entity below \"\(printable(root))\" beside "
            + "\"\(printable(moved))\", copy the records over in a custom step, and remove the old entity in the "
            + "version after it.")
      }
    }
  }
}

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
        .ambiguousEntity, entity: name, reason: "Each \(word) entity must have a unique renaming identifier",
        detail: """
          entities "\(printable(other))" and "\(printable(name))" of the \(word) model both have the renaming \
          identifier "\(printable(entity.renamingIdentifier))"
          """,
        wayRound: "Give one of them another renaming identifier.")
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
        .ambiguousProperty, entity: entity, other, property,
        reason: "Each property must have a unique renaming identifier",
        detail: """
          properties "\(printable(other.path.description))" and "\(printable(property.path.description))" of entity \
          "\(printable(entity))" of the \(word) model both have the renaming identifier \
          "\(printable(property.identity.identifiers.joined(separator: ".")))"
          """,
        wayRound: "Give one of them another renaming identifier.")
    }
    return result
  }
}

/// The treatment of an entity or property of equal name and different renaming identifiers.
enum NameDisagreement {
  case refuse

  /// Removed and added, as in Core Data.
  case remove

  /// Matched by name, for salvages, which keep data.
  case match
}
