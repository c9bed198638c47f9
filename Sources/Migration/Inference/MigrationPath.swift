public import ManagedObjectModel
internal import Platform
internal import SystemPackage

/// The steps from a store's model to a version of a bundle.
public struct MigrationPath: Sendable, Hashable {
  /// The model that wrote a store.
  public enum Source: Sendable, Hashable {
    case version(String)

    /// A version and the store's model of equal hashes, used if the version's renaming identifiers would lose data.
    case stored(version: String, model: ManagedObjectModel)

    /// Any model, such as a store's cached one; a bundle's version if its hashes match.
    case model(ManagedObjectModel)
  }

  /// The choices that affect the path, next to the models.
  public struct Options: Sendable {
    /// Whether to take one step only.
    public var isDirect: Bool

    /// The versions to pass through, in order.
    public var via: [String]

    /// The custom mappings; they apply only if their hashes match two versions.
    public var mappings: [MappingModel]

    /// App code at steps.
    public var stages: [MigrationStage]

    /// Whether to take a step that removes data the target has under another renaming identifier.
    public var acceptsLosses: Bool

    /// Whether names win over renaming identifiers, for salvages.
    var matchesNames = false

    /// Makes options for the path with the least loss.
    public init(
      isDirect: Bool = false, via: [String] = [], mappings: [MappingModel] = [], stages: [MigrationStage] = [],
      acceptsLosses: Bool = false
    ) {
      self.isDirect = isDirect
      self.via = via
      self.mappings = mappings
      self.stages = stages
      self.acceptsLosses = acceptsLosses
    }
  }

  /// A section through intermediate versions, because one step can't be inferred.
  public struct Detour: Sendable, Hashable {
    /// The step that can't be inferred, such as `V1 → V3`.
    public var step: String

    /// The reasons against that step.
    public var refusals: [MigrationRefusal]

    /// The further losses of that step.
    public var losses: [MigrationLoss]
  }

  /// The steps in order; empty if the store has the wanted version.
  public let steps: [MigrationStep]

  /// The destination version.
  public let destinationName: String

  /// The sections through intermediate versions, with reasons.
  public let detours: [Detour]

  /// The unused custom mappings with reasons, by name.
  public let unused: [UnusedMapping]

  init(stayingAt name: String) {
    steps = []
    destinationName = name
    detours = []
    unused = []
  }

  /// Finds the path.
  ///
  /// Custom mappings and stages on the path are always taken: the mapping to the next version first, else the furthest;
  /// between the same versions the first by name. One inferred step covers each gap, or else the fewest intermediate
  /// versions with the least loss.
  ///
  /// A model outside the bundle is mapped to the target directly, else through the newest version that continues
  /// without loss.
  ///
  /// - Parameters:
  ///   - bundle: The versions and their known order.
  ///   - source: The model that wrote the store.
  ///   - destination: The wanted version, possibly older than the store's; the current one by default.
  /// - Throws: `MigrationError`: `unknownVersion`, `backwards`, `newerModel` if the store is newer than the current
  ///   version and no other was named, or `notInferable` with all refusals.
  public init(
    in bundle: ModelBundle, from source: Source, to destination: String? = nil, options: Options = Options()
  ) throws {
    var options = options
    options.mappings.sort(by: MappingModel.isListedBefore)
    var finder = PathFinder(bundle: bundle.knowing(options.mappings, options.stages), options: options)
    let target = try finder.version(destination ?? bundle.current.name)
    destinationName = target.name
    let start = try finder.start(source)
    if destination == nil, let name = start.name { try finder.refuseNewer(try finder.version(name)) }
    steps = try finder.steps(from: start, to: target)
    detours = finder.detours
    let steps = steps
    unused = options.mappings.filter { mapping in !steps.contains { $0.mapping == mapping } }
      .map { UnusedMapping($0, in: bundle, steps: steps) }
  }
}

extension MappingModel {
  /// Orders mappings of the same versions: without policies first, then by name and file.
  static func isListedBefore(_ first: MappingModel, _ second: MappingModel) -> Bool {
    let needs = [first, second].map { $0.entityMappings.contains(where: \.needsPolicy) }
    if needs[0] != needs[1] { return needs[1] }
    if first.label != second.label { return precedesByCodeUnit(first.label, second.label) }
    return precedesByCodeUnit(first.origin.path?.string ?? "", second.origin.path?.string ?? "")
  }
}

extension ModelBundle {
  /// Returns the bundle with the version order that mappings and stages imply.
  public func knowing(_ mappings: [MappingModel], _ stages: [MigrationStage]) -> ModelBundle {
    var pairs: [(before: String, after: String)] = []
    for mapping in mappings where mapping.sourceHashes != mapping.destinationHashes {
      for before in versions where before.versionHashes == mapping.sourceHashes {
        for after in versions where after.versionHashes == mapping.destinationHashes {
          pairs.append((before.name, after.name))
        }
      }
    }
    for stage in stages {
      guard let before = versions.first(where: { stage.source.map($0.isNamed) ?? false }),
        let after = versions.first(where: { stage.destination.map($0.isNamed) ?? false })
      else { continue }
      pairs.append((before.name, after.name))
    }
    return pairs.isEmpty ? self : knowing(pairs)
  }
}

extension ModelVersion {
  func isNamed(_ text: String) -> Bool { name == text || checksum == text }
}

/// A migration from one model version to another.
public struct MigrationStep: Sendable, Hashable {
  /// The source version; nil for a model outside the bundle, from the store's cache.
  public let sourceName: String?

  /// The destination version.
  public let destinationName: String

  /// The given custom mapping, else an inferred one.
  public let mapping: MappingModel

  /// The unchosen custom mappings of the same versions, by name.
  public let alternatives: [MappingModel]

  /// Makes a step.
  public init(
    from sourceName: String?, to destinationName: String, mapping: MappingModel, alternatives: [MappingModel] = []
  ) {
    self.sourceName = sourceName
    self.destinationName = destinationName
    self.mapping = mapping
    self.alternatives = alternatives
  }

  /// The step's name, such as `V1 → V2`.
  public var name: String { Self.name(from: sourceName, to: destinationName) }

  static func name(from source: String?, to destination: String) -> String {
    "\(source ?? "the store's model") → \(destination)"
  }
}

/// A given custom mapping that no step uses.
public struct UnusedMapping: Sendable, Hashable {
  /// The reason it is unused.
  public enum Reason: String, Sendable, Hashable, Codable {
    /// It connects versions off the path.
    case otherSteps = "other-steps"

    /// Another mapping of the same versions was chosen.
    case otherMapping = "other-mapping"

    /// Its models match no version: they changed since it was made.
    case stale
  }

  /// One side of a stale mapping, compared with the most similar version.
  public struct Side: Sendable, Hashable {
    /// The version; nil if the bundle has one of equal hashes.
    public var nearestVersion: String?

    /// The entities that differ or exist on one side only.
    public var entityNames: [String]
  }

  /// The mapping.
  public var mapping: MappingModel

  /// The reason it is unused.
  public var reason: Reason

  /// The source's differences; empty unless the mapping is stale.
  public var source = Side(nearestVersion: nil, entityNames: [])

  /// The destination's differences.
  public var destination = Side(nearestVersion: nil, entityNames: [])

  init(_ mapping: MappingModel, in bundle: ModelBundle, steps: [MigrationStep]) {
    self.mapping = mapping
    let sources = bundle.versions.map(\.versionHashes) + (steps.first.map { [$0.mapping.sourceHashes] } ?? [])
    let fitsSource = sources.contains(mapping.sourceHashes)
    let fitsDestination = bundle.versions.contains { $0.versionHashes == mapping.destinationHashes }
    if steps.contains(where: { $0.alternatives.contains(mapping) }) {
      reason = .otherMapping
    } else {
      reason = fitsSource && fitsDestination ? .otherSteps : .stale
    }
    if !fitsSource { source = Self.side(mapping.sourceHashes, bundle) }
    if !fitsDestination { destination = Self.side(mapping.destinationHashes, bundle) }
  }

  private static func side(_ hashes: [String: VersionHash], _ bundle: ModelBundle) -> Side {
    let sides = bundle.versions.map { version in
      Side(nearestVersion: version.name, entityNames: differing(hashes, version.versionHashes))
    }
    return sides.min { $0.entityNames.count < $1.entityNames.count } ?? Side(nearestVersion: nil, entityNames: [])
  }

  static func differing(_ first: [String: VersionHash], _ second: [String: VersionHash]) -> [String] {
    Set(first.keys).union(second.keys).filter { first[$0] != second[$0] }.inCodeUnitOrder()
  }

  /// The reason as a sentence without a full stop.
  public var text: String {
    let name = "mapping \"\(printable(mapping.label))\""
    switch reason {
    case .otherSteps: return "\(name) is between versions that the migration does not go between"
    case .otherMapping: return "\(name) is between the same versions as another one, which was chosen by its name"
    case .stale:
      let sides = [("source", source), ("destination", destination)].compactMap { word, side in
        side.nearestVersion.map { version in
          "its \(word) differs from \(printable(version)) in "
            + side.entityNames.prefix(10).map(printable).joined(separator: ", ")
            + (side.entityNames.count > 10 ? " and \(side.entityNames.count - 10) more" : "")
        }
      }
      return "\(name) fits no versions of the model: \(sides.joined(separator: "; "))"
    }
  }
}

extension MappingModel {
  /// The name, else the file's.
  public var label: String { name ?? origin.path?.lastComponent?.string ?? "without a name" }
}
