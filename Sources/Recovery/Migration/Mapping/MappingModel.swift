public import ManagedObjectModel
internal import StoreFiles
public import SystemPackage

/// How a store of one model becomes a store of another: a mapping for every entity of either.
public struct MappingModel: Sendable, Hashable {
  /// Where a mapping model came from.
  public enum Origin: Sendable, Hashable {
    /// It follows from the two models.
    case inferred

    /// It was put together by a program.
    case code

    case mappingFile(FilePath)

    /// The source of one of Core Data's mapping models (`.xcmappingmodel`).
    case mappingModelSource(FilePath)

    /// A compiled mapping model of Core Data's (`.cdm`).
    case compiledMappingModel(FilePath)

    /// The file it was read from, where there is one.
    public var path: FilePath? {
      switch self {
      case .inferred, .code: nil
      case .mappingFile(let path), .mappingModelSource(let path), .compiledMappingModel(let path): path
      }
    }
  }

  /// The name, where it has one: that of the file it was read from.
  public var name: String?

  /// Where it came from.
  public var origin: Origin

  /// The model that the store was written with.
  public let source: ManagedObjectModel

  /// The model that the store becomes one of.
  public let destination: ManagedObjectModel

  /// The version hash of each entity of the source.
  public let sourceHashes: [String: VersionHash]

  /// The version hash of each entity of the destination.
  public let destinationHashes: [String: VersionHash]

  /// The mappings: those with a destination by its name, then those of entities that are gone by theirs.
  public var entityMappings: [EntityMapping]

  /// What depends on the records, so that it can only be said once they have been counted.
  public var conditions: [MigrationCondition]

  /// What the destination has no place for.
  public var losses: [MigrationLoss]

  /// The renames that only the versions between tell; empty unless it was inferred.
  public var carriedRenames: [CarriedRename]

  /// A mapping model; its mappings are put in order.
  public init(
    name: String? = nil, origin: Origin, source: ManagedObjectModel, destination: ManagedObjectModel,
    entityMappings: [EntityMapping], conditions: [MigrationCondition] = [], losses: [MigrationLoss] = [],
    carriedRenames: [CarriedRename] = []
  ) {
    self.name = name
    self.origin = origin
    self.source = source
    self.destination = destination
    sourceHashes = source.versionHashes()
    destinationHashes = destination.versionHashes()
    self.entityMappings = entityMappings.ordered(by: Self.precedes)
    self.conditions = conditions
    self.losses = losses
    self.carriedRenames = carriedRenames
  }

  /// The mapping model that was inferred; its hashes are known already.
  init(inferredBy builder: InferenceBuilder, source: ManagedObjectModel, destination: ManagedObjectModel) {
    origin = .inferred
    self.source = source
    self.destination = destination
    sourceHashes = builder.hashes.source
    destinationHashes = builder.hashes.destination
    entityMappings = builder.mappings.ordered(by: Self.precedes)
    conditions = builder.conditions
    losses = builder.losses
    carriedRenames = builder.carried
  }

  /// Whether it leads from a store with these version hashes to one with those (format section 2.3).
  public func fits(source: [String: VersionHash], destination: [String: VersionHash]) -> Bool {
    sourceHashes == source && destinationHashes == destination
  }

  /// Whether nothing of a store has to change but its metadata.
  public var isIdentity: Bool { sourceHashes == destinationHashes && entityMappings.allSatisfy { $0.kind == .copy } }

  /// The mapping of that name.
  public func entityMapping(named name: String) -> EntityMapping? { entityMappings.first { $0.name == name } }

  /// The mappings that read an entity's records; an inferred mapping model has one for each entity of the source.
  public func entityMappings(from sourceEntityName: String) -> [EntityMapping] {
    entityMappings.filter { $0.sourceEntityName == sourceEntityName }
  }

  /// The mappings that make an entity's records; an inferred mapping model has one for each entity of the destination.
  public func entityMappings(to destinationEntityName: String) -> [EntityMapping] {
    entityMappings.filter { $0.destinationEntityName == destinationEntityName }
  }

  private static func precedes(_ first: EntityMapping, _ second: EntityMapping) -> Bool {
    func key(_ mapping: EntityMapping) -> [String] {
      if let destination = mapping.destinationEntityName {
        ["0", destination, mapping.sourceEntityName ?? "", mapping.name]
      } else {
        ["1", mapping.sourceEntityName ?? "", mapping.name]
      }
    }
    for (one, other) in zip(key(first), key(second)) where one != other { return precedesByCodeUnit(one, other) }
    return false
  }
}

extension MappingModel {
  /// The first mapping from each entity of the source, for looking up many.
  package var mappingsBySource: [String: EntityMapping] {
    let pairs = entityMappings.compactMap { mapping in mapping.sourceEntityName.map { ($0, mapping) } }
    return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
  }

  /// The first mapping to each entity of the destination, for looking up many.
  package var mappingsByDestination: [String: EntityMapping] {
    let pairs = entityMappings.compactMap { mapping in mapping.destinationEntityName.map { ($0, mapping) } }
    return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
  }

  /// The conditions without those that an entity has only because an ancestor with records has it too.
  package var conditionsWithoutInherited: [MigrationCondition] {
    let all = Set(conditions)
    let byDestination = mappingsByDestination
    return conditions.filter { condition in
      guard condition.kind != .duplicateValues, let property = condition.destinationProperty else { return true }
      let lineage = destination.lineage(of: condition.destinationEntityName)
      guard let declaring = lineage.first(where: { $0.properties[property.name] != nil })?.name,
        declaring != condition.destinationEntityName, let origin = byDestination[declaring]?.sourceEntityName
      else { return true }
      var inherited = condition
      inherited.destinationEntityName = declaring
      inherited.sourceEntityName = origin
      return !all.contains(inherited)
    }
  }
}
