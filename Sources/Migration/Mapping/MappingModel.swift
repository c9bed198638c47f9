package import GRDB
public import ManagedObjectModel
public import Platform
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

extension MappingModel {
  /// Whether there is more to it than any inferred mapping has: expressions, filters, policies, one entity that becomes
  /// several, or hierarchies that become one.
  public var isCustom: Bool {
    var sources: Set<String> = []
    var origins: [String: String] = [:]
    for entity in entityMappings {
      if entity.isCustom { return true }
      guard let source = entity.sourceEntityName, let destination = entity.destinationEntityName else { continue }
      if !sources.insert(source).inserted { return true }
      let (from, to) = (self.source.rootName(of: source), self.destination.rootName(of: destination))
      if let other = origins[to], other != from { return true }
      origins[to] = from
    }
    return false
  }
}

extension EntityMapping {
  /// The name of Core Data's own policy class, which does what the mapping says and nothing else.
  static let standardPolicyClassName = "NSEntityMigrationPolicy"

  /// Whether there is more to it than any inferred mapping has.
  public var isCustom: Bool {
    if kind == .custom || kind == .undefined || needsPolicy || sourceFilter != nil { return true }
    return propertyMappings.contains { property in
      switch property.value {
      case .expression, .destinations: true
      case .copy, .convert, .externalize, .defaultValue, .null, .recompute, .relationship, .inverse: false
      }
    }
  }

  /// Whether it names a policy that is not Core Data's own.
  var needsPolicy: Bool { policyClassName.map { !$0.isEmpty && $0 != Self.standardPolicyClassName } ?? false }
}

extension MappingModel {
  /// Says which records of a store of the source's model it would leave out, by its filters; the numbers are nil without
  /// a store.
  ///
  /// - Parameter referenceDate: what `NSCoreDataNow()` says, in seconds since 2001-01-01T00:00:00Z.
  /// - Throws: `mapping-invalid`, `expression-unsupported`, or `migration-data-violation` for a filter that fails for a
  ///   record.
  package func recordsLeftOut(
    in database: Database?, referenceDate: Double = 0
  ) throws -> [MigrationPlan.Finding] {
    try CustomFilters.leftOut(database, try StepLayout(self), referenceDate: referenceDate)
  }
}

extension MappingModel {
  /// Loads Core Data's own mapping models: sources (`.xcmappingmodel`) and compiled ones (`.cdm`).
  ///
  /// Each is matched against the versions of a model by the version hashes in it (format section 2.3), and what it says
  /// is translated; nothing that cannot be carried out is left for later. Entities with a policy class keep its name,
  /// and the expressions that only the policy can make are kept as text.
  ///
  /// - Parameters:
  ///   - path: one mapping model, or a folder that holds any number of them, also in folders of its own.
  ///   - bundle: the versions of the model.
  ///   - fileSystem: the file system it is read from.
  /// - Throws: a file error, or for a single file what is wrong with it: `mapping-stale` with the side and the entity
  ///   that differ, `expression-unsupported` with every expression that cannot be carried out in `refusals`, or
  ///   `mapping-invalid`. For a folder these are notes, and `mapping-missing` is thrown where it holds no mapping model.
  public static func load(
    path: FilePath, for bundle: ModelBundle, fileSystem: FileSystem = FileSystem()
  ) throws(MigrationError) -> LoadedMappingModels {
    let (files, isOne) = try MappingModelFiles(fileSystem: fileSystem).find(path)
    if isOne, let file = files.first {
      var result = LoadedMappingModels()
      try loadOne(file, bundle, fileSystem, into: &result)
      return result
    }
    guard !files.isEmpty else {
      throw MigrationError(
        .mappingMissing, operation: MappingModelFile.operation, path: path,
        detail: "the folder holds no mapping model (.xcmappingmodel or .cdm)",
        hint: "Name the mapping model or a folder that holds it.")
    }
    var result = LoadedMappingModels()
    for file in files {
      do throws(MigrationError) {
        try loadOne(file, bundle, fileSystem, into: &result)
      } catch {
        if error.isEnvironmental { throw error }
        result.notes.append(error)
      }
    }
    // The order among equals stays that of the paths.
    let ranked = result.mappings.enumerated().ordered { first, second in
      let (one, other) = (first.element.loadingRank, second.element.loadingRank)
      return one == other ? first.offset < second.offset : one.lexicographicallyPrecedes(other)
    }
    result.mappings = ranked.map(\.element)
    return result
  }

  private static func loadOne(
    _ path: FilePath, _ bundle: ModelBundle, _ fileSystem: FileSystem, into result: inout LoadedMappingModels
  ) throws(MigrationError) {
    let file = try MappingModelFile.read(path, fileSystem)
    let pair = try file.versions(in: bundle)
    var translation = MappingTranslation(file, from: pair.source.model, to: pair.destination.model)
    result.mappings.append(try translation.mappingModel())
    guard file.emptyCount > 0 else { return }
    result.notes.append(
      MigrationError(
        .mappingInvalid, operation: "use \(counted(file.emptyCount, "entry", "entries")) of the mapping model",
        path: path,
        detail: "neither an entity of the source nor one of the destination is named",
        hint: "Remove what is empty in Xcode; the others are used."))
  }

  /// What is better is smaller: the entities that are lost, then the mappings that need a policy.
  private var loadingRank: [Int] {
    [losses.count { $0.kind == .removedEntity }, entityMappings.count { $0.policyClassName != nil }]
  }
}

/// The mapping models of a file or folder that fit the versions of a model, and what is wrong with the others.
public struct LoadedMappingModels: Sendable {
  /// The mapping models that can be used.
  ///
  /// Of several that lead from the same version to the same version, the first is the one that loses the fewest
  /// entities, else the one that needs the fewest policies, else the first by path.
  public var mappings: [MappingModel] = []

  /// Why each of the other files gives no mapping: `mapping-stale`, `expression-unsupported` or `mapping-invalid`, with
  /// the file's path.
  public var notes: [MigrationError] = []
}

/// What becomes of the records of one entity: the mapping from an entity of the source to one of the destination.
///
/// It is about the records of that very entity; those of its sub-entities have mappings of their own.
public struct EntityMapping: Sendable, Hashable {
  /// The kind of mapping; raw values are Core Data's own numbers (format section 2.3).
  public enum Kind: Int, Sendable, Hashable, CaseIterable {
    /// Not said; read from mapping models that leave it open.
    case undefined = 0

    /// Carried out by a policy or by expressions.
    case custom = 1

    /// The entity is new: there are no records.
    case add = 2

    /// The entity is gone: its records are deleted.
    case remove = 3

    /// The version hashes are equal: the records stay as they are.
    case copy = 4

    /// The entity has changed: its records are rewritten.
    case transform = 5
  }

  /// The name, unique within the mapping model, such as `IEM_Transform_Car`.
  public var name: String

  /// The kind of mapping.
  public var kind: Kind

  /// The entity whose records are read; nil where the entity is new.
  public var sourceEntityName: String?

  /// The entity whose records are made; nil where the entity is gone.
  public var destinationEntityName: String?

  /// One mapping for each property that the destination stores, inherited ones included, in the order of their names.
  public var propertyMappings: [PropertyMapping]

  /// The class of the policy that carries it out, where there is one.
  public var policyClassName: String?

  /// Which of the source's records are meant; nil for all.
  public var sourceFilter: MappingExpression?

  /// Free text for custom steps.
  public var userInfo: [String: String]

  /// Maps one entity.
  public init(
    name: String, kind: Kind, source: String?, destination: String?, propertyMappings: [PropertyMapping] = [],
    policyClassName: String? = nil, sourceFilter: MappingExpression? = nil, userInfo: [String: String] = [:]
  ) {
    self.name = name
    self.kind = kind
    sourceEntityName = source
    destinationEntityName = destination
    self.propertyMappings = propertyMappings
    self.policyClassName = policyClassName
    self.sourceFilter = sourceFilter
    self.userInfo = userInfo
  }

  /// The mapping of a property of the destination.
  public func propertyMapping(of destination: PropertyPath) -> PropertyMapping? {
    propertyMappings.first { $0.destination == destination }
  }

  /// Whether the records keep their entity's name and every property its name and value.
  public var isIdentity: Bool {
    switch kind {
    case .copy, .transform: sourceEntityName == destinationEntityName && propertyMappings.allSatisfy(\.isIdentity)
    case .undefined, .custom, .add, .remove: false
    }
  }
}
