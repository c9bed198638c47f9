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
    package var matchesNames = false

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
