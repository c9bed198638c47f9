public import Platform

/// What a migration of a store would do: each step, how it is carried out, and what it would lose.
///
/// Records are counted in the store as it is. What a custom step makes of them only running it tells; such numbers are
/// nil.
public struct MigrationPlan: Sendable, Hashable, Codable {
  /// One step, from one version to another.
  public struct Step: Sendable, Hashable, Codable {
    /// The version it starts from; nil for a model that only the store carries.
    public var source: String?

    /// The version it leads to.
    public var destination: String

    /// The mapping that is used.
    public var mapping: Mapping

    /// Other mappings that fit as well and were not chosen.
    public var alternatives: [Mapping]

    /// How it is carried out.
    public var way: MigrationWay

    /// Why the records have to be written anew; nil where they need not be.
    public var reason: String?

    /// Every entity of either version, those with a place in the destination first.
    public var entities: [EntityPlan]

    /// What would be lost; what no record has is left out.
    public var losses: [Finding]

    /// What the step would fail on; the store would stay as it is.
    public var failures: [Finding]

    /// What it may fail on, which only carrying it out tells; empty where that is known.
    public var uncertain: [Finding] = []

    /// The code of the app that takes part in it, in words; what it makes only running it tells.
    public var code: [String] = []

    /// The app's own indexes, views and triggers that would be left behind, where that is known.
    public var leftBehind: [String] = []

    /// The step in words, such as `V1 → V2`.
    public var name: String { "\(source ?? "the store's model") → \(destination)" }
  }

  /// Where a step's mapping comes from.
  public struct Mapping: Sendable, Hashable, Codable {
    /// Where a mapping can come from.
    public enum Kind: String, Sendable, Hashable, Codable {
      /// It follows from the two models.
      case inferred

      /// It was put together by a program.
      case code

      case mappingFile = "mapping-file"

      /// One of Core Data's mapping models.
      case mappingModel = "mapping-model"
    }

    /// Where it comes from.
    public var kind: Kind

    /// Its name, where it has one.
    public var name: String?

    /// The file it was read from.
    public var path: PathText?
  }

  /// What becomes of the records of an entity.
  public struct EntityPlan: Sendable, Hashable, Codable {
    /// The entity of the source.
    public var source: String?

    /// The entity of the destination.
    public var destination: String?

    /// What is done to its records.
    public var way: EntityWay

    /// The number of records; nil where only running the steps before tells.
    public var rows: Int?

    /// The class of the policy that makes the records.
    public var policy: String?
  }

  /// Something that is lost, or that the step fails on.
  public struct Finding: Sendable, Hashable, Codable {
    /// What kind it is, such as `removed-attribute` or `missing-attribute-value`.
    public var kind: String

    /// The entity: of the source for a loss, of the destination for what depends on the records.
    public var entity: String

    /// The property, where it is about one.
    public var property: String?

    /// The records concerned; nil where only running the steps tells.
    public var rows: Int?

    /// The primary keys of the first ten of them; empty for losses of whole properties.
    public var examples: [Int64]

    /// What it is, in one sentence without a full stop.
    public var text: String

    /// The kind of what is said of a step by a mapping that was not tried.
    package static let notTried = "not-tried"
  }

  /// A reason why there is no way.
  public struct Refusal: Sendable, Hashable, Codable {
    /// The step it stands in the way of.
    public var step: String?

    /// What kind it is, such as `incompatible-types`.
    public var kind: String

    /// The number that Core Data gives it.
    public var coreDataCode: Int

    /// The entity it is about.
    public var entity: String

    /// The property it is about.
    public var property: String?

    /// The reason in Core Data's words.
    public var reason: String

    /// What exactly stands against what.
    public var detail: String

    /// A way round it.
    public var wayRound: String

    /// Whether Core Data itself refuses it, in the words of `reason`.
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

  /// A part of the way that goes through versions between, because one step cannot be inferred.
  public struct Detour: Sendable, Hashable, Codable {
    /// The step that cannot be inferred.
    public var step: String

    /// Why not.
    public var refusals: [Refusal]

    /// What that step would have lost besides, each in one sentence without a full stop.
    public var losses: [String]

    init(_ detour: MigrationPath.Detour) {
      step = detour.step
      refusals = detour.refusals.map(Refusal.init)
      losses = detour.losses.map(\.text)
    }
  }

  /// The store, as the caller names it.
  public var store: PathText

  /// The version it was written with; nil for a model that only the store carries.
  public var from: String?

  /// The version it would become one of.
  public var to: String

  /// What the store lacks of its own model and is made good first; nil where it lacks nothing.
  public var repair: RepairAccount?

  /// The steps, in order; empty where it is of that version already, or where there is no way.
  public var steps: [Step]

  /// Why there is no way, or why it is not taken; empty where it is.
  public var refusals: [Refusal]

  /// Where the way goes through versions between, and why.
  public var detours: [Detour] = []

  /// The renames that only the versions between tell, such as `V1 → V3: Car.a → Car.c`.
  public var carriedRenames: [String] = []

  /// Mappings that were given and that no step uses, each with the reason in words.
  public var unusedMappings: [String]

  /// The records of the store.
  public var rows: Int

  /// The size of its files, those of large values left out.
  public var bytes: Int64

  /// The space that is needed beside the store while it is migrated; the original stays as the backup.
  public var neededBytes: Int64

  /// The space that is free there.
  public var freeBytes: Int64

  /// Whether an earlier migration of it was interrupted; running it goes on from its last finished step.
  public var isInterrupted: Bool

  /// Whether there is anything to do.
  public var isNeeded: Bool { !steps.isEmpty || repair != nil }

  /// Whether it would come to its end: there is a way, nothing to fail on, and enough space.
  public var isPossible: Bool { refusals.isEmpty && failures.isEmpty && freeBytes >= neededBytes }

  /// Whether everything that it would come to is known: no code of the app takes part, and nothing is left open.
  public var isCertain: Bool { steps.allSatisfy { $0.code.isEmpty && $0.uncertain.isEmpty } }

  /// Everything that would be lost.
  public var losses: [Finding] { steps.flatMap(\.losses) }

  /// Everything it would fail on.
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
