public import Platform

/// The steps, methods and losses of a store's migration.
///
/// Records are counted in the present store. Counts that depend on running a custom step are nil.
public struct MigrationPlan: Sendable, Hashable, Codable {
  /// A step between two versions.
  public struct Step: Sendable, Hashable, Codable {
    /// The source version; nil for a model only the store has.
    public var source: String?

    /// The destination version.
    public var destination: String

    /// The mapping.
    public var mapping: Mapping

    /// The unchosen mappings that fit too.
    public var alternatives: [Mapping]

    /// The method.
    public var way: MigrationWay

    /// The reason for rewriting records; nil if not needed.
    public var reason: String?

    /// The entities of both versions, the destination's first.
    public var entities: [EntityPlan]

    /// The losses that affect records.
    public var losses: [Finding]

    /// The reasons it would fail, leaving the store unchanged.
    public var failures: [Finding]

    /// The possible failures that only running it decides.
    public var uncertain: [Finding] = []

    /// The app code involved; only running it shows its results.
    public var code: [String] = []

    /// The app's own indexes, views and triggers left behind, if known.
    public var leftBehind: [String] = []

    /// The step's name, such as `V1 → V2`.
    public var name: String { "\(source ?? "the store's model") → \(destination)" }
  }

  /// The origin of a step's mapping.
  public struct Mapping: Sendable, Hashable, Codable {
    /// The kind of origin.
    public enum Kind: String, Sendable, Hashable, Codable {
      case inferred

      case code

      case mappingFile = "mapping-file"

      case mappingModel = "mapping-model"
    }

    /// The kind of origin.
    public var kind: Kind

    /// The name.
    public var name: String?

    /// The file.
    public var path: PathText?
  }

  /// The treatment of an entity's records.
  public struct EntityPlan: Sendable, Hashable, Codable {
    /// The source entity.
    public var source: String?

    /// The destination entity.
    public var destination: String?

    /// The treatment of records.
    public var way: EntityWay

    /// The record count; nil if it depends on earlier steps.
    public var rows: Int?

    /// The policy class.
    public var policy: String?
  }

  /// A loss or a failure.
  public struct Finding: Sendable, Hashable, Codable {
    /// The kind, such as `removed-attribute` or `missing-attribute-value`.
    public var kind: String

    /// The source entity of a loss, the destination entity of a condition.
    public var entity: String

    /// The property.
    public var property: String?

    /// The record count; nil if it depends on running the steps.
    public var rows: Int?

    /// The first ten primary keys; empty for whole properties.
    public var examples: [Int64] = []

    /// The finding as a sentence without a full stop.
    public var text: String

    package static let notTried = "not-tried"
  }

  /// A reason that no path exists.
  public struct Refusal: Sendable, Hashable, Codable {
    /// The blocked step.
    public var step: String?

    /// The kind, such as `incompatible-types`.
    public var kind: String

    /// Core Data's error code.
    public var coreDataCode: Int

    /// The entity.
    public var entity: String

    /// The property.
    public var property: String?

    /// Core Data's wording of the reason.
    public var reason: String

    /// The conflict.
    public var detail: String

    /// A workaround.
    public var wayRound: String

    /// Whether Core Data refuses it too, in the words of `reason`.
    public var isOfCoreData: Bool

    init(_ refusal: MigrationRefusal) {
      isOfCoreData = refusal.isOfCoreData
      step = refusal.step
      kind = refusal.kind.rawValue
      coreDataCode = refusal.coreDataCode
      entity = refusal.entityName
      property = refusal.property?.description
      reason = refusal.reason
      detail = refusal.detail
      wayRound = refusal.wayRound
    }
  }

  /// A section through intermediate versions, because one step can't be inferred.
  public struct Detour: Sendable, Hashable, Codable {
    /// The step that can't be inferred.
    public var step: String

    /// The reasons.
    public var refusals: [Refusal]

    /// The further losses of that step, as sentences without a full stop.
    public var losses: [String]

    init(_ detour: MigrationPath.Detour) {
      step = detour.step
      refusals = detour.refusals.map(Refusal.init)
      losses = detour.losses.map(\.text)
    }
  }

  /// The store, as named by the caller.
  public var store: PathText

  /// The store's version; nil for a model only the store has.
  public var from: String?

  /// The target version.
  public var to: String

  /// The preceding repair, if needed.
  public var repair: RepairAccount?

  /// The steps in order; empty at the target version or without a path.
  public var steps: [Step] = []

  /// The reasons that no path exists or is taken.
  public var refusals: [Refusal] = []

  /// The sections through intermediate versions, with reasons.
  public var detours: [Detour] = []

  /// The renames only intermediate versions show, such as `V1 → V3: Car.a → Car.c`.
  public var carriedRenames: [String] = []

  /// The unused mappings with reasons.
  public var unusedMappings: [String] = []

  /// The store's record count.
  public var rows = 0

  /// The size of its files, without large values.
  public var bytes: Int64 = 0

  /// The space needed next to the store; the original stays as the backup.
  public var neededBytes: Int64 = 0

  /// The free space there.
  public var freeBytes: Int64 = 0

  /// Whether an earlier migration was interrupted; it resumes after its last finished step.
  public var isInterrupted = false

  /// Whether there is anything to do.
  public var isNeeded: Bool { !steps.isEmpty || repair != nil }

  /// Whether it would succeed: a path, no failures and enough space.
  public var isPossible: Bool { refusals.isEmpty && failures.isEmpty && freeBytes >= neededBytes }

  /// Whether the outcome is fully known, without app code or open questions.
  public var isCertain: Bool { steps.allSatisfy { $0.code.isEmpty && $0.uncertain.isEmpty } }

  /// All losses.
  public var losses: [Finding] { steps.flatMap(\.losses) }

  /// All failures.
  public var failures: [Finding] { steps.flatMap(\.failures) }
}

extension MigrationPlan.Mapping {
  init(_ mapping: MappingModel) {
    kind =
      switch mapping.origin {
      case .inferred: .inferred
      case .code: .code
      case .mappingFile: .mappingFile
      case .mappingModelSource, .compiledMappingModel: .mappingModel
      }
    name = mapping.name
    path = mapping.origin.path.map { PathText($0) }
  }
}
