public import Migration

/// The result of a migration check, and the JSON of `model verify --json`.
///
/// Keys may be added, never changed; absent values are omitted.
public struct VerificationReport: Codable, Sendable, Hashable {
  /// The outcomes.
  public enum Outcome: String, Codable, Sendable, Hashable, Comparable {
    /// Every store migrates without loss.
    case fine

    /// Typical stores migrate with losses.
    case lossy

    /// Stores with certain records do not migrate.
    case conditional

    /// A version or a typical store does not migrate, or the result is wrong.
    case failed

    /// Orders outcomes, best first.
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

  /// A step's loss, regardless of records.
  public struct Loss: Codable, Sendable, Hashable {
    /// The step, such as `V1 → V2`.
    public var step: String

    /// The kind of loss.
    public var kind: MigrationLoss.Kind

    /// The source entity.
    public var entity: String

    /// The property, if any.
    public var property: String?

    /// The loss in one sentence.
    public var text: String

    /// The affected values, pairs or records of generated stores.
    public var count: Int
  }

  /// The reason why a step cannot be inferred.
  public struct Refusal: Codable, Sendable, Hashable {
    /// The step, such as `V1 → V2`.
    public var step: String

    /// The kind of refusal.
    public var kind: MigrationRefusal.Kind

    /// The entity.
    public var entity: String

    /// The property, if any.
    public var property: String?

    /// The reason in Core Data's words.
    public var reason: String

    /// The exact conflict.
    public var text: String

    /// A workaround.
    public var wayRound: String
  }

  /// A generated store and its result.
  public struct Case: Codable, Sendable, Hashable {
    /// The profile.
    public var profile: StoreProfile

    /// The number of records.
    public var records: Int

    /// The outcome; losses are listed for the version.
    public var outcome: Outcome

    /// The failed step.
    public var step: String?

    /// The error code.
    public var code: String?

    /// The error without values.
    public var detail: String?

    /// The violated condition, if that caused the failure.
    public var condition: String?

    /// The number of compared records.
    public var comparedRecords: Int

    /// The permitted changes.
    public var alterations: [MigrationComparison.Alteration]

    /// The first differences from the mappings.
    public var differences: [StoreDifference]

    /// The number of all differences.
    public var differenceCount: Int

    /// The results of custom steps, which are not checked.
    public var unchecked: [String]

    /// The violated rules of the model, as `pattern Car.plate`.
    public var notes: [String]

    /// The duration in seconds.
    public var seconds: Double
  }

  /// A step and its generated stores.
  public struct Step: Codable, Sendable, Hashable {
    /// The step, such as `V1 → V2`.
    public var step: String

    /// The source version.
    public var from: String

    /// The target version.
    public var to: String

    /// Whether it skips the versions between.
    public var direct: Bool

    /// The versions with this step.
    public var versions: [String]

    /// The outcome.
    public var outcome: Outcome

    /// The losses.
    public var losses: [Loss]

    /// The refusals.
    public var refusals: [Refusal]

    /// The conditions on records, in sentences.
    public var conditions: [String]

    /// The tested stores.
    public var cases: [Case]
  }

  /// The result of one version.
  public struct Version: Codable, Sendable, Hashable {
    /// The source version.
    public var from: String

    /// The target version.
    public var to: String

    /// Whether it skips the versions between.
    public var direct: Bool

    /// The steps, such as `V1 → V2`; empty if one is refused.
    public var steps: [String]

    /// Whether stores took all steps, because later ones depend on earlier results.
    public var wholeWay: Bool

    /// The outcome.
    public var outcome: Outcome

    /// The losses.
    public var losses: [Loss]

    /// The refusals.
    public var refusals: [Refusal]

    /// The conditions on records, in sentences.
    public var conditions: [String]

    /// The tested stores.
    public var cases: [Case]
  }

  /// A version left out of the check.
  public struct UncheckedVersion: Codable, Sendable, Hashable {
    /// The reason to leave out a version.
    public enum Reason: String, Codable, Sendable, Hashable {
      case newer

      case leftOut = "left-out"
    }

    /// The version's name.
    public var name: String

    /// The reason.
    public var reason: Reason
  }

  /// An unreadable version.
  public struct UnreadableVersion: Codable, Sendable, Hashable {
    /// The version's name.
    public var name: String

    /// The error code.
    public var code: String

    /// The error.
    public var detail: String
  }

  /// The model's name.
  public var model: String

  /// The target version.
  public var to: String

  /// The seed.
  public var seed: UInt64

  /// The number of records of each entity.
  public var rows: Int

  /// The worst outcome of the versions.
  public var outcome: Outcome

  /// The steps, oldest first; refused ones last.
  public var steps: [Step]

  /// The versions, oldest first.
  public var versions: [Version]

  /// The unreadable versions.
  public var unreadableVersions: [UnreadableVersion]

  /// The other unchecked versions.
  public var uncheckedVersions: [UncheckedVersion]
}
