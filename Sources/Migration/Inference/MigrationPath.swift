public import ManagedObjectModel
public import Platform
internal import SystemPackage

/// The way that leads from the model a store was written with to a version of a bundle.
public struct MigrationPath: Sendable, Hashable {
  /// The model that a store was written with.
  public enum Source: Sendable, Hashable {
    /// A version of the bundle, by name.
    case version(String)

    /// A version of the bundle, and the model that the store carries: it has the same version hashes, and counts where the
    /// renaming identifiers of the version would make something go that the target has.
    case stored(version: String, model: ManagedObjectModel)

    /// Any model, such as the one in a store's cache; a version of the bundle where its hashes are those of one.
    case model(ManagedObjectModel)
  }

  /// What decides about the way besides the models.
  public struct Options: Sendable {
    /// Whether it is one step, whatever lies between.
    public var isDirect: Bool

    /// The versions that it goes through in any case, in this order.
    public var via: [String]

    /// Custom mappings; only those whose hashes are those of two versions are of use.
    public var mappings: [MappingModel]

    /// Code of the app at steps.
    public var stages: [MigrationStage]

    /// Whether a step that removes what the target still has under another renaming identifier is taken all the same.
    public var acceptsLosses: Bool

    /// Whether names decide where renaming identifiers disagree: for salvages, which keep what is there.
    package var matchesNames = false

    /// The way that loses least, by itself.
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

  /// A part of the way that goes through versions between, because one step cannot be inferred.
  public struct Detour: Sendable, Hashable {
    /// The step that cannot be inferred, such as `V1 → V3`.
    public var step: String

    /// Why not.
    public var refusals: [MigrationRefusal]

    /// What it would have lost besides.
    public var losses: [MigrationLoss]
  }

  /// The steps in the order in which they are taken; empty where the store is of the wanted version already.
  public let steps: [MigrationStep]

  /// The version it leads to.
  public let destinationName: String

  /// Where it goes through versions between, and why.
  public let detours: [Detour]

  /// The custom mappings that were given and that no step uses, with the reason, in the order of their names.
  public let unused: [UnusedMapping]

  /// No way at all: the store stays at its version.
  init(stayingAt name: String) {
    steps = []
    destinationName = name
    detours = []
    unused = []
  }

  /// Finds the way.
  ///
  /// A custom mapping or a stage on the way is always taken (of several from one version the one to the next version, else
  /// the one that leads furthest; of several between the same versions the first by name). Everything between those is one
  /// inferred step. Only where that cannot be inferred the versions between are walked, as few as lose least.
  ///
  /// A model that the bundle lacks is mapped to the wanted version directly; where that cannot be, through the newest
  /// version from which a way leads on without a loss.
  ///
  /// - Parameters:
  ///   - bundle: The versions, and what is known of their order.
  ///   - source: What the store was written with.
  ///   - destination: The name of the version it is to become one of; the current one if not given. One that is named may
  ///     be older than the store's.
  /// - Throws: `MigrationError`: `unknownVersion`, `backwards` or `newerModel` where the store is newer than the current
  ///   version and no other was named, or `notInferable` with everything that stands in the way.
  public init(
    in bundle: ModelBundle, from source: Source, to destination: String? = nil, options: Options = Options()
  ) throws(MigrationError) {
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
  /// The order in which mappings between the same versions are chosen: those that need no policy, then by name, by file.
  static func isListedBefore(_ first: MappingModel, _ second: MappingModel) -> Bool {
    let needs = [first, second].map { $0.entityMappings.contains(where: \.needsPolicy) }
    if needs[0] != needs[1] { return needs[1] }
    if first.label != second.label { return precedesByCodeUnit(first.label, second.label) }
    return precedesByCodeUnit(first.origin.path?.string ?? "", second.origin.path?.string ?? "")
  }
}

extension ModelBundle {
  /// The same bundle, with what mappings and stages tell of the order of its versions: each leads from one to a later one.
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
  /// Whether it has a name or a checksum.
  func isNamed(_ text: String) -> Bool { name == text || checksum == text }
}
