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

  struct Hashes {
    let source: [String: VersionHash]
    let destination: [String: VersionHash]
  }

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
    self.hashes = hashes ?? Hashes(source: source.versionHashes(), destination: destination.versionHashes())
    chain = RenameChain(from: source, through: between, to: destination)
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
  mutating func refuse(_ refusal: MigrationRefusal, source: StoredProperty? = nil, destination: StoredProperty? = nil) {
    let key = [
      refusal.kind.rawValue, source?.declaringEntityName ?? "", source?.path.description ?? "",
      destination?.declaringEntityName ?? "", destination?.path.description ?? "",
      source == nil && destination == nil ? refusal.entityName + "." + refusal.reason : "",
    ]
    guard refused.insert(key).inserted else { return }
    refusals.append(refusal)
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
          MigrationRefusal(
            .mergedHierarchies, entity: moved,
            reason: "Entities that do not share a common parent in the source cannot share one in the destination",
            detail: """
              entities "\(printable(keeper))" and "\(printable(moved))" have no common ancestor in the source and get \
              one in the destination, "\(printable(root))"
              """,
            wayRound: """
              Put a version between the two that has a new entity below "\(printable(root))" beside \
              "\(printable(moved))", copy the records over in a custom step, and remove the old entity in the version \
              after it.
              """))
      }
    }
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
