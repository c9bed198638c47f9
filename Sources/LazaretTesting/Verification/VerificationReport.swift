public import Migration

/// What a check of a model's migrations found; as JSON it is what `model verify --json` prints.
///
/// Keys may be added, never changed. What is not there is left out.
public struct VerificationReport: Codable, Sendable, Hashable {
  /// How it went.
  public enum Outcome: String, Codable, Sendable, Hashable, Comparable {
    /// Every store migrates, and nothing is lost.
    case fine

    /// Every usual store migrates, and something is lost.
    case lossy

    /// Stores with certain records do not migrate.
    case conditional

    /// A version, or a store with usual records, does not migrate; or what comes out is not what it should be.
    case failed

    /// The better one comes first.
    public static func < (first: Outcome, second: Outcome) -> Bool { first.rank < second.rank }

    private var rank: Int {
      switch self {
      case .fine: 0
      case .lossy: 1
      case .conditional: 2
      case .failed: 3
      }
    }
  }

  /// Something that a step loses whatever the records are.
  public struct Loss: Codable, Sendable, Hashable {
    /// The step, such as `V1 → V2`.
    public var step: String

    /// What is lost, as in `MigrationLoss`.
    public var kind: MigrationLoss.Kind

    /// The entity of the step's source.
    public var entity: String

    /// The property, where it is about one.
    public var property: String?

    /// What is lost, in one sentence.
    public var text: String

    /// How many values, pairs or records of the generated stores were concerned.
    public var count: Int
  }

  /// A reason why a step cannot be inferred.
  public struct Refusal: Codable, Sendable, Hashable {
    /// The step, such as `V1 → V2`.
    public var step: String

    /// What stands in the way, as in `MigrationRefusal`.
    public var kind: MigrationRefusal.Kind

    /// The entity it is about.
    public var entity: String

    /// The property it is about, where it is about one.
    public var property: String?

    /// The reason in Core Data's words.
    public var reason: String

    /// What exactly stands against what.
    public var text: String

    /// A way round it.
    public var wayRound: String
  }

  /// One generated store and what became of it.
  public struct Case: Codable, Sendable, Hashable {
    /// The kind of records.
    public var profile: StoreProfile

    /// The number of records.
    public var records: Int

    /// How it went; losses are told for the whole version.
    public var outcome: Outcome

    /// The step that failed.
    public var step: String?

    /// The code of the error that it failed with.
    public var code: String?

    /// What went wrong, without values.
    public var detail: String?

    /// The condition of the mapping that the records break, where that is why it failed.
    public var condition: String?

    /// The number of records that were found in the result and compared.
    public var comparedRecords: Int

    /// What changed as the mappings say it may.
    public var alterations: [MigrationComparison.Alteration]

    /// The first differences between the result and what the mappings imply.
    public var differences: [StoreDifference]

    /// The number of all differences.
    public var differenceCount: Int

    /// What custom steps make, so that nothing can be said of it.
    public var unchecked: [String]

    /// What the model asks for and the generated records do not keep, as `pattern Car.plate`.
    public var notes: [String]

    /// How long it took, in seconds.
    public var seconds: Double
  }

  /// One step, and what became of generated stores of the version that it starts from.
  public struct Step: Codable, Sendable, Hashable {
    /// The step, such as `V1 → V2`.
    public var step: String

    /// The version that the stores are of.
    public var from: String

    /// The version that they are migrated to.
    public var to: String

    /// Whether it leaves out the versions between.
    public var direct: Bool

    /// The versions whose stores take it.
    public var versions: [String]

    /// How it went.
    public var outcome: Outcome

    /// What is lost.
    public var losses: [Loss]

    /// Why it cannot be inferred.
    public var refusals: [Refusal]

    /// What depends on the records, in sentences.
    public var conditions: [String]

    /// The stores that were tried.
    public var cases: [Case]
  }

  /// What was found for one version.
  public struct Version: Codable, Sendable, Hashable {
    /// The version that the stores are of.
    public var from: String

    /// The version that they are migrated to.
    public var to: String

    /// Whether the versions between are left out.
    public var direct: Bool

    /// The steps, such as `V1 → V2`; empty where a step is refused.
    public var steps: [String]

    /// Whether its stores were taken along all steps, because what a later one does depends on what an earlier one makes;
    /// else each step was looked at by itself.
    public var wholeWay: Bool

    /// How it went.
    public var outcome: Outcome

    /// What is lost.
    public var losses: [Loss]

    /// Why it cannot be inferred.
    public var refusals: [Refusal]

    /// What depends on the records, in sentences.
    public var conditions: [String]

    /// The stores of this version that were tried.
    public var cases: [Case]
  }

  /// A version that was not checked, and nothing is wrong with it.
  public struct UncheckedVersion: Codable, Sendable, Hashable {
    /// Why a version is not checked.
    public enum Reason: String, Codable, Sendable, Hashable {
      /// It is newer than the current one.
      case newer

      /// The order that was given leaves it out.
      case leftOut = "left-out"
    }

    /// The name of the version.
    public var name: String

    /// Why it was not checked.
    public var reason: Reason
  }

  /// A version that could not be read, so that nothing can be said of it.
  public struct UnreadableVersion: Codable, Sendable, Hashable {
    /// The name of the version.
    public var name: String

    /// The code of the error.
    public var code: String

    /// What is wrong with it.
    public var detail: String
  }

  /// The name of the model.
  public var model: String

  /// The version that everything is migrated to.
  public var to: String

  /// The seed of the generated records.
  public var seed: UInt64

  /// The number of records of each entity.
  public var rows: Int

  /// How it went on the whole: the worst of the versions.
  public var outcome: Outcome

  /// What was found for each step, oldest first; refused ones last.
  public var steps: [Step]

  /// What was found for each version, oldest first.
  public var versions: [Version]

  /// The versions that could not be read and were not checked.
  public var unreadableVersions: [UnreadableVersion]

  /// The other versions of which nothing is said.
  public var uncheckedVersions: [UncheckedVersion]
}
