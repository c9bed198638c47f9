internal import ManagedObjectModel
internal import Migration
internal import StoreFiles

/// The way that stores of one version take to the current one.
struct VerifiedWay: Sendable {
  let version: ModelVersion

  /// Whether it is one step, whatever lies between.
  let isDirect: Bool

  /// The steps; empty where one is refused.
  let steps: [MigrationStep]

  /// Why there is no way; empty where there is one.
  let refusals: [VerificationReport.Refusal]

  /// Finds the way of a version.
  ///
  /// - Throws: `MigrationError` for anything but a step that is refused, which is a finding.
  init(_ version: ModelVersion, in bundle: ModelBundle, isDirect: Bool, mappings: [MappingModel]) throws {
    self.version = version
    self.isDirect = isDirect
    do throws(MigrationError) {
      // The version that it leads to is named: which one is newer is not asked of stores that are only imagined.
      steps = try MigrationPath(
        in: bundle, from: .version(version.name), to: bundle.current.name,
        options: .init(isDirect: isDirect, mappings: mappings)
      ).steps
      refusals = []
    } catch {
      guard error.kind == .notInferable || error.kind == .wouldLose else { throw error }
      steps = []
      refusals = error.refusals.map { refusal in
        VerificationReport.Refusal(
          step: refusal.step ?? error.step ?? "", kind: refusal.kind, entity: refusal.entityName,
          property: refusal.property?.description, reason: refusal.reason, text: refusal.detail,
          wayRound: refusal.wayRound)
      }
    }
  }

  /// Whether what becomes of a store depends on more than each step by itself.
  ///
  /// That is so where a later step is a custom one, or goes well or loses more or less with the records: those are then what
  /// the steps before have made of them, and not what a store of the version between may hold.
  var dependsOnEarlierSteps: Bool {
    steps.dropFirst().contains { step in
      guard case .inferred = step.mapping.origin else { return true }
      return !step.mapping.conditions.isEmpty
    }
  }
}

/// A piece of the check: stores of a version that take some steps.
struct VerifiedRun: Sendable {
  /// What tells the pieces apart.
  enum Key: Hashable, Sendable {
    /// A step of any ways.
    case step(from: String?, to: String)

    /// The one step of a version that leaves out what lies between.
    case direct(from: String)

    /// All steps of a version's way.
    case way(from: String)
  }

  let key: Key
  let version: ModelVersion

  /// The steps that the stores take: one, or all of a way whose steps depend on each other.
  let steps: [MigrationStep]

  /// What the names of its files begin with.
  var label: String {
    switch key {
    case .step(_, let destination): isOwn ? version.name : "\(version.name)-to-\(destination)"
    case .direct: "\(version.name)-direct"
    case .way: "\(version.name)-way"
    }
  }

  /// Whether it is the first step of its version's own way.
  var isOwn = true

  /// Whether it is a whole way, which is also taken at once.
  var isWay: Bool { steps.count > 1 }
}

extension VerifiedWay {
  /// What a step of it is told by.
  func key(of step: MigrationStep) -> VerifiedRun.Key {
    isDirect ? .direct(from: version.name) : .step(from: step.sourceName, to: step.destinationName)
  }

  /// What has to be looked at to say what becomes of its stores.
  var keys: [VerifiedRun.Key] { dependsOnEarlierSteps ? [.way(from: version.name)] : steps.map(key) }
}
