package import GRDB
public import ManagedObjectModel
public import Platform
public import SystemPackage

/// The mapping of a store from one model to another, covering every entity of both.
public struct MappingModel: Sendable, Hashable {
  /// The origin of a mapping model.
  public enum Origin: Sendable, Hashable {
    case inferred

    case code

    case mappingFile(FilePath)

    /// A Core Data mapping model's source (`.xcmappingmodel`).
    case mappingModelSource(FilePath)

    /// A compiled Core Data mapping model (`.cdm`).
    case compiledMappingModel(FilePath)

    /// The file it was read from.
    public var path: FilePath? {
      switch self {
      case .inferred, .code: nil
      case .mappingFile(let path), .mappingModelSource(let path), .compiledMappingModel(let path): path
      }
    }
  }

  /// The file's name, if read from one.
  public var name: String?

  /// The origin.
  public var origin: Origin

  /// The source model.
  public let source: ManagedObjectModel

  /// The destination model.
  public let destination: ManagedObjectModel

  /// The version hashes of the source entities.
  public let sourceHashes: [String: VersionHash]

  /// The version hashes of the destination entities.
  public let destinationHashes: [String: VersionHash]

  /// The entity mappings, sorted by destination, then those of removed entities.
  public var entityMappings: [EntityMapping]

  /// The conditions that only counting records can decide.
  public var conditions: [MigrationCondition]

  /// The data the destination can't hold.
  public var losses: [MigrationLoss]

  /// The renames only intermediate versions show; empty unless inferred.
  public var carriedRenames: [CarriedRename]

  /// Makes a mapping model and sorts its mappings.
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

  init(inferredBy builder: InferenceBuilder) {
    origin = .inferred
    source = builder.source.model
    destination = builder.destination.model
    sourceHashes = builder.hashes.source
    destinationHashes = builder.hashes.destination
    entityMappings = builder.mappings.ordered(by: Self.precedes)
    conditions = builder.conditions
    losses = builder.losses
    carriedRenames = builder.carried
  }

  /// Whether it leads between stores of these version hashes (format section 2.3).
  public func fits(source: [String: VersionHash], destination: [String: VersionHash]) -> Bool {
    sourceHashes == source && destinationHashes == destination
  }

  /// Whether only the store's metadata changes.
  public var isIdentity: Bool { sourceHashes == destinationHashes && entityMappings.allSatisfy { $0.kind == .copy } }

  /// Returns the mapping of that name.
  public func entityMapping(named name: String) -> EntityMapping? { entityMappings.first { $0.name == name } }

  /// Returns the mappings that read an entity; just one if inferred.
  public func entityMappings(from sourceEntityName: String) -> [EntityMapping] {
    entityMappings.filter { $0.sourceEntityName == sourceEntityName }
  }

  /// Returns the mappings that make an entity; just one if inferred.
  public func entityMappings(to destinationEntityName: String) -> [EntityMapping] {
    entityMappings.filter { $0.destinationEntityName == destinationEntityName }
  }

  private static func precedes(_ first: EntityMapping, _ second: EntityMapping) -> Bool {
    func key(_ mapping: EntityMapping) -> [String] {
      let (source, destination) = (mapping.sourceEntityName ?? "", mapping.destinationEntityName)
      return [destination == nil ? "1" : "0", destination ?? "", source, mapping.name]
    }
    for (one, other) in zip(key(first), key(second)) where one != other { return precedesByCodeUnit(one, other) }
    return false
  }
}

extension MappingModel {
  /// The first mapping from each source entity, as an index.
  var mappingsBySource: [String: EntityMapping] { mappings(by: \.sourceEntityName) }

  /// The first mapping to each destination entity, as an index.
  var mappingsByDestination: [String: EntityMapping] { mappings(by: \.destinationEntityName) }

  private func mappings(by name: KeyPath<EntityMapping, String?>) -> [String: EntityMapping] {
    let pairs = entityMappings.compactMap { mapping in mapping[keyPath: name].map { ($0, mapping) } }
    return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
  }

  /// The conditions except those a mapped ancestor has too.
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
  /// Whether it exceeds any inferred mapping: expressions, filters, policies, splits or merged hierarchies.
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
  /// Core Data's standard policy class, which only follows the mapping.
  static let standardPolicyClassName = "NSEntityMigrationPolicy"

  /// Whether it exceeds any inferred mapping.
  public var isCustom: Bool {
    if kind == .custom || kind == .undefined || needsPolicy || sourceFilter != nil { return true }
    return propertyMappings.contains { property in
      switch property.value {
      case .expression, .destinations: true
      case .copy, .convert, .externalize, .defaultValue, .null, .recompute, .relationship, .inverse: false
      }
    }
  }

  /// Whether it names a policy other than Core Data's.
  var needsPolicy: Bool { policyClassName.map { !$0.isEmpty && $0 != Self.standardPolicyClassName } ?? false }
}

extension MappingModel {
  /// Finds the records its filters would leave out; without a store, counts are nil.
  ///
  /// - Parameter referenceDate: In seconds since 2001-01-01T00:00:00Z.
  /// - Throws: `mapping-invalid`, `expression-unsupported`, or `migration-data-violation` if a filter fails for a
  ///   record.
  package func recordsLeftOut(in database: Database?, referenceDate: Double = 0) throws -> [MigrationPlan.Finding] {
    try CustomFilters.leftOut(database, try StepLayout(self), referenceDate: referenceDate)
  }
}

extension MappingModel {
  /// Loads Core Data mapping models: sources (`.xcmappingmodel`) and compiled ones (`.cdm`).
  ///
  /// Each is matched to model versions by its version hashes (format section 2.3) and fully translated. Entities keep
  /// the name of their policy class; expressions only the policy can evaluate stay text.
  ///
  /// - Parameters:
  ///   - path: A mapping model, or a folder searched recursively.
  ///   - bundle: The model versions.
  ///   - fileSystem: The file system to read.
  /// - Throws: A file error; for a single file `mapping-stale` with the differing side and entity,
  ///   `expression-unsupported` with each expression in `refusals`, or `mapping-invalid`. For a folder these become
  ///   notes, and `mapping-missing` is thrown if it has no mapping model.
  public static func load(
    path: FilePath, for bundle: ModelBundle, fileSystem: FileSystem = FileSystem()
  ) throws -> LoadedMappingModels {
    let (files, isOne) = try MappingModelFiles(fileSystem: fileSystem).find(path)
    var result = LoadedMappingModels()
    if isOne, let file = files.first {
      try loadOne(file, bundle, fileSystem, into: &result)
      return result
    }
    guard !files.isEmpty else {
      throw MigrationError(
        .mappingMissing, operation: MappingModelFile.operation, path: path,
        detail: "the folder holds no mapping model (.xcmappingmodel or .cdm)",
        hint: "Name the mapping model or a folder that holds it.")
    }
    for file in files {
      do {
        try loadOne(file, bundle, fileSystem, into: &result)
      } catch {
        let error = MigrationError(any: error)
        if error.isEnvironmental { throw error }
        result.notes.append(error)
      }
    }
    // Keep the path order among equals.
    result.mappings = result.mappings.ordered { $0.loadingRank.lexicographicallyPrecedes($1.loadingRank) }
    return result
  }

  private static func loadOne(
    _ path: FilePath, _ bundle: ModelBundle, _ fileSystem: FileSystem, into result: inout LoadedMappingModels
  ) throws {
    let file = try MappingModelFile.read(path, fileSystem)
    let pair = try file.versions(in: bundle)
    var translation = MappingTranslation(file, from: pair.source.model, to: pair.destination.model)
    result.mappings.append(try translation.mappingModel())
    guard file.emptyCount > 0 else { return }
    result.notes.append(
      MigrationError(
        .mappingInvalid, operation: "use \(counted(file.emptyCount, "entry", "entries")) of the mapping model",
        path: path, detail: "neither an entity of the source nor one of the destination is named",
        hint: "Remove what is empty in Xcode; the others are used."))
  }

  /// The rank, smallest best: lost entities, then mappings that need a policy.
  private var loadingRank: [Int] {
    [losses.count { $0.kind == .removedEntity }, entityMappings.count { $0.policyClassName != nil }]
  }
}

/// The usable mapping models of a file or folder, and the errors of the others.
public struct LoadedMappingModels: Sendable {
  /// The usable mapping models.
  ///
  /// Mappings of the same versions are sorted by fewest lost entities, then fewest policies, then path.
  public var mappings: [MappingModel] = []

  /// The errors of the other files: `mapping-stale`, `expression-unsupported` or `mapping-invalid`, with path.
  public var notes: [MigrationError] = []
}

/// The mapping from a source entity to a destination entity.
///
/// It excludes sub-entities, which have their own mappings.
public struct EntityMapping: Sendable, Hashable {
  /// The kind of mapping, with Core Data's raw values (format section 2.3).
  public enum Kind: Int, Sendable, Hashable, CaseIterable {
    /// Unspecified in the mapping model.
    case undefined = 0

    /// By a policy or expressions.
    case custom = 1

    /// A new entity, without records.
    case add = 2

    /// Records are deleted.
    case remove = 3

    /// Equal version hashes; records stay unchanged.
    case copy = 4

    /// Records are rewritten.
    case transform = 5
  }

  /// The unique name, such as `IEM_Transform_Car`.
  public var name: String

  /// The kind of mapping.
  public var kind: Kind

  /// The source entity; nil for a new entity.
  public var sourceEntityName: String?

  /// The destination entity; nil for a removed one.
  public var destinationEntityName: String?

  /// The mappings of all stored destination properties, inherited ones included, sorted by name.
  public var propertyMappings: [PropertyMapping]

  /// The policy class.
  public var policyClassName: String?

  /// The filter of source records; nil for all.
  public var sourceFilter: MappingExpression?

  /// Free text for custom steps.
  public var userInfo: [String: String]

  /// Makes an entity mapping.
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

  /// Returns the mapping of a destination property.
  public func propertyMapping(of destination: PropertyPath) -> PropertyMapping? {
    propertyMappings.first { $0.destination == destination }
  }

  /// Whether entity name, property names and values stay the same.
  public var isIdentity: Bool {
    switch kind {
    case .copy, .transform: sourceEntityName == destinationEntityName && propertyMappings.allSatisfy(\.isIdentity)
    case .undefined, .custom, .add, .remove: false
    }
  }
}

/// The source of a destination property's value.
public struct PropertyMapping: Sendable, Hashable {
  /// The source of a value.
  public enum Value: Sendable, Hashable {
    /// A source attribute's value, byte for byte.
    case copy(PropertyPath)

    /// A source attribute's number as another type.
    case convert(PropertyPath, from: AttributeType, to: AttributeType)

    /// A source attribute's value with the marker byte `0x01` of new external storage, unless nil (format section 3.7).
    case externalize(PropertyPath)

    case defaultValue

    /// Nil, or an empty relationship.
    case null

    /// A derived attribute, recomputed from the migrated records.
    case recompute

    /// The migrated destinations of a source relationship; cardinality and order follow both models.
    case relationship(String)

    /// A new relationship, filled from its existing inverse.
    case inverse

    /// An entity mapping's results for this record or its related ones.
    ///
    /// It connects the parts of a split record: `PersonToPerson` gives `address` the value `.destinations(mapping:
    /// "PersonToAddress", of: .record)`. A to-one takes the lowest primary key.
    case destinations(mapping: String, of: SourceReference)

    case expression(MappingExpression)
  }

  /// The source records meant by `destinations`.
  public enum SourceReference: Sendable, Hashable {
    case record

    case relationship(String)
  }

  /// The destination property or composite leaf.
  public var destination: PropertyPath

  /// The source of the value.
  public var value: Value

  /// Whether the destination's default replaces nil, because the attribute has become mandatory.
  public var replacesNilWithDefault: Bool

  /// Free text for custom steps.
  public var userInfo: [String: String]

  /// Makes a property mapping.
  public init(
    _ destination: PropertyPath, _ value: Value, replacesNilWithDefault: Bool = false, userInfo: [String: String] = [:]
  ) {
    self.destination = destination
    self.value = value
    self.replacesNilWithDefault = replacesNilWithDefault
    self.userInfo = userInfo
  }

  /// The source property; nil without one or for an expression.
  public var source: PropertyPath? {
    switch value {
    case .copy(let path), .convert(let path, _, _), .externalize(let path): path
    case .relationship(let name), .destinations(_, of: .relationship(let name)): PropertyPath(name)
    case .defaultValue, .null, .recompute, .inverse, .destinations, .expression: nil
    }
  }

  /// Whether it copies a property of the same name, without any change to the store.
  public var isIdentity: Bool {
    switch value {
    case .copy(let path): path == destination && !replacesNilWithDefault
    case .relationship(let name): destination == PropertyPath(name)
    case .recompute: true
    case .convert, .externalize, .defaultValue, .null, .inverse, .destinations, .expression: false
    }
  }

  /// Whether all values stay, nil included.
  var keepsValues: Bool {
    switch value {
    case .copy, .relationship: !replacesNilWithDefault
    case .convert, .externalize, .defaultValue, .null, .recompute, .inverse, .destinations, .expression: false
    }
  }
}

extension PropertyMapping.Value {
  package var word: String {
    switch self {
    case .copy: "copy"
    case .convert: "convert"
    case .externalize: "externalize"
    case .defaultValue: "default"
    case .null: "null"
    case .recompute: "recompute"
    case .relationship: "relationship"
    case .inverse: "inverse"
    case .destinations: "destinations"
    case .expression: "expression"
    }
  }
}

/// A custom mapping's expression, as written.
public enum MappingExpression: Sendable, Hashable {
  /// SQL over the source attributes' model names.
  case sql(String)

  /// Core Data's format with `$source`, `$manager` and so on (format section 5.5).
  case coreData(String)
}

/// The path of a property or composite leaf.
///
/// It is written as in Core Data: `address.city`.
public struct PropertyPath: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
  /// The property's name.
  public var name: String

  /// The names from a composite attribute to its leaf; else empty.
  public var leaf: [String]

  /// Makes the path of a property or leaf.
  public init(_ name: String, leaf: [String] = []) {
    self.name = name
    self.leaf = leaf
  }

  /// Makes the path of a plain property.
  public init(stringLiteral name: String) { self.init(name) }

  /// The names, joined by points.
  public var description: String { ([name] + leaf).joined(separator: ".") }
}
