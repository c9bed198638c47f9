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

/// A report as text for a terminal.
public struct VerificationListing: Sendable {
  private let report: VerificationReport

  /// Prepares the text.
  public init(_ report: VerificationReport) { self.report = report }

  /// The text, with a final newline.
  public var text: String {
    var lines = ["\(printable(report.model)) to \(printable(report.to)), seed \(report.seed)"]
    if report.versions.isEmpty { lines += ["", "There is no earlier version that differs from it."] }
    for step in report.steps { lines += [""] + self.lines(for: step) }
    for version in report.versions where version.wholeWay { lines += [""] + self.lines(for: version) }
    let unchecked = uncheckedLines
    if !unchecked.isEmpty { lines += [""] + unchecked }
    lines += ["", summary]
    return lines.joined(separator: "\n") + "\n"
  }

  private var summary: String {
    let isWhole = report.unreadableVersions.isEmpty && report.uncheckedVersions.isEmpty
    let every = isWhole ? "Every version" : "Every version that was checked"
    return switch report.outcome {
    case .fine: "\(every) migrates, and nothing is lost."
    case .lossy: "\(every) migrates; something is lost."
    case .conditional: "Stores with certain records do not migrate."
    case .failed: "Something does not migrate as it should."
    }
  }

  private var uncheckedLines: [String] {
    var lines = report.unreadableVersions.map {
      "\(printable($0.name)) cannot be read and was not checked [\($0.code)]"
    }
    for (reason, words) in [
      (VerificationReport.UncheckedVersion.Reason.newer, "newer than \(printable(report.to))"),
      (.leftOut, "left out of the order that was given"),
    ] {
      let names = report.uncheckedVersions.filter { $0.reason == reason }.map { printable($0.name) }
      if !names.isEmpty { lines.append("Not checked, since \(words): \(names.joined(separator: ", "))") }
    }
    return lines
  }

  private func lines(for step: VerificationReport.Step) -> [String] {
    let way = step.direct ? ", direct" : ""
    var lines = ["\(printable(step.step))\(way): \(Self.word(step.outcome))"] + Self.lines(for: step.cases)
    for refusal in step.refusals { lines.append("  refused  \(printable(refusal.text))") }
    for loss in step.losses { lines.append("  lost  \(loss.text) (\(loss.count))") }
    return lines + Self.unchecked(step.cases)
  }

  /// The results of stores over dependent steps.
  private func lines(for version: VerificationReport.Version) -> [String] {
    var lines = [
      """
      \(printable(version.from)) → \(printable(version.to)), all \(version.steps.count) steps: \
      \(Self.word(version.outcome))
      """
    ]
    lines += Self.lines(for: version.cases)
    for loss in version.losses { lines.append("  lost  \(printable(loss.step)): \(loss.text) (\(loss.count))") }
    return lines + Self.unchecked(version.cases)
  }

  /// A line for each notable store, and one for the others.
  private static func lines(for cases: [VerificationReport.Case]) -> [String] {
    var lines: [String] = []
    let quiet = cases.filter { $0.outcome == .fine && $0.alterations.isEmpty && words(for: $0).isEmpty }
    if !quiet.isEmpty {
      let count = counted(quiet.reduce(0) { $0 + $1.records }, "record")
      lines.append("  \(quiet.map(\.profile.rawValue).joined(separator: ", ")): ok, \(count)")
    }
    for found in cases where !quiet.contains(found) {
      lines.append("  \(found.profile.rawValue): \(word(found.outcome)), \(counted(found.records, "record"))")
      let words = words(for: found)
      if !words.isEmpty { lines.append("    \(printable(words))") }
      lines += found.differences.prefix(5).map { "    \($0.description)" }
      for altered in found.alterations {
        lines.append(
          "    \(altered.kind.rawValue) \(printable(altered.entity)).\(printable(altered.property)): \(altered.count)")
      }
    }
    return lines
  }

  private static func unchecked(_ cases: [VerificationReport.Case]) -> [String] {
    let names = Set(cases.flatMap(\.unchecked)).sorted().map { printable($0) }
    return names.isEmpty ? [] : ["  not compared, made by custom steps: \(names.joined(separator: ", "))"]
  }

  /// The result of one store in a sentence; empty if unremarkable.
  static func words(for found: VerificationReport.Case) -> String {
    if let detail = found.detail {
      let place = found.step.map { "\($0): " } ?? ""
      let reason = found.condition.map { "fails for stores with \(found.profile.words): \($0)" } ?? detail
      return place + reason
    }
    guard found.differenceCount > 0 else { return "" }
    return "\(counted(found.differenceCount, "difference")) from what the mapping implies"
  }

  /// Returns the result of one store, with its profile.
  public static func sentence(for found: VerificationReport.Case) -> String {
    "\(found.profile.rawValue): \(words(for: found))"
  }

  static func word(_ outcome: VerificationReport.Outcome) -> String {
    switch outcome {
    case .fine: "ok"
    case .lossy: "ok, with losses"
    case .conditional: "depends on the records"
    case .failed: "failed"
    }
  }
}
