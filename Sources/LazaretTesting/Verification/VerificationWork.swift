internal import ManagedObjectModel
internal import Migration
internal import Platform

/// The work of a check: the ways of all versions, the steps on them, and what is told of each.
struct VerificationWork {
  private let verifier: MigrationVerifier
  private let bundle: ModelBundle

  private var options: MigrationVerifier.Options { verifier.options }

  init(_ verifier: MigrationVerifier) {
    self.verifier = verifier
    // What mappings tell of the order decides here too which versions are newer.
    bundle = verifier.bundle.knowing(verifier.options.mappings, [])
  }

  /// What was found for one piece of the check.
  private struct Found {
    var cases: [VerificationReport.Case]
    var losses: [VerificationReport.Loss]

    var outcome: VerificationReport.Outcome {
      max(cases.map(\.outcome).max() ?? .fine, losses.isEmpty ? .fine : .lossy)
    }
  }

  func report() throws -> VerificationReport {
    let ways = try ways(of: try versionsToCheck())
    let runs = Self.runs(of: ways)
    let found = Dictionary(
      zip(runs.map(\.key), try carryOut(runs)), uniquingKeysWith: { first, _ in first })
    var report = VerificationReport(
      model: bundle.name, to: bundle.current.name, seed: options.seed, rows: options.records, outcome: .fine,
      steps: [], versions: [], unreadableVersions: unreadable, uncheckedVersions: unchecked)
    for run in runs where !run.isWay {
      guard let result = found[run.key], let step = run.steps.first else { continue }
      report.steps.append(Self.told(step, run, result, ways))
    }
    report.steps += ways.filter { !$0.refusals.isEmpty }.map { Self.refused($0, to: bundle.current.name) }
    for way in ways { report.versions.append(told(way, way.keys.compactMap { found[$0] })) }
    report.outcome = (report.steps.map(\.outcome) + report.versions.map(\.outcome)).max() ?? .fine
    return report
  }

  // MARK: What is checked

  /// The versions that are not newer than the current one and differ from it.
  private func versionsToCheck() throws -> [ModelVersion] {
    let earlier = bundle.versions(upTo: bundle.current).filter { $0.versionHashes != bundle.current.versionHashes }
    guard let name = options.version else { return earlier }
    guard let version = bundle.version(named: name) else {
      throw MigrationError(
        .unknownVersion, operation: "verify the model's migrations", path: bundle.path,
        detail: """
          the model has no version "\(printable(name))"; it has \
          \(bundle.versions.map { printable($0.name) }.joined(separator: ", "))
          """)
    }
    guard !bundle.isNewer(version, than: bundle.current) else {
      let current = printable(bundle.current.name)
      throw StoreTestingError(
        .newerVersion, operation: "verify the model's migrations", path: bundle.path,
        detail: "version \"\(printable(name))\" is newer than the current one, \"\(current)\"")
    }
    return version.versionHashes == bundle.current.versionHashes ? [] : [version]
  }

  private var unreadable: [VerificationReport.UnreadableVersion] {
    bundle.unreadableVersions.map { version in
      VerificationReport.UnreadableVersion(name: version.name, code: version.error.code, detail: version.error.detail)
    }
  }

  /// The versions of which nothing is said: newer ones, and those that a given order leaves out.
  private var unchecked: [VerificationReport.UncheckedVersion] {
    guard options.version == nil else { return [] }
    return bundle.versions.filter { bundle.isNewer($0, than: bundle.current) }
      .map { VerificationReport.UncheckedVersion(name: $0.name, reason: .newer) }
      + bundle.unorderedVersions.map { VerificationReport.UncheckedVersion(name: $0.name, reason: .leftOut) }
  }

  private func ways(of versions: [ModelVersion]) throws -> [VerifiedWay] {
    // Where a step cannot be inferred, every version between is tried, which takes as long as some migrations.
    let ways = try ConcurrentWork(versions.count) { [bundle, options] number in
      guard !options.isCancelled() else { throw Self.cancelled(at: versions[number].name, bundle) }
      let way = try VerifiedWay(versions[number], in: bundle, isDirect: false, mappings: options.mappings)
      guard options.checksDirectSteps, way.steps.count > 1 else { return [way] }
      return [way, try VerifiedWay(versions[number], in: bundle, isDirect: true, mappings: options.mappings)]
    }.run(threads: options.threads)
    return ways.flatMap { $0 }
  }

  /// Each step once, in the order of the versions, and the ways whose steps depend on each other.
  private static func runs(of ways: [VerifiedWay]) -> [VerifiedRun] {
    var runs: [VerifiedRun] = []
    var keys: Set<VerifiedRun.Key> = []
    let own = Set(ways.compactMap { way in way.steps.first.map(way.key) })
    for way in ways {
      for step in way.steps where keys.insert(way.key(of: step)).inserted {
        // A step's source has the hashes of a version, and may be one that is not checked by itself.
        let known = ways.first { $0.version.name == step.sourceName }?.version
        let version =
          known
          ?? ModelVersion(name: step.sourceName ?? way.version.name, model: step.mapping.source, isCurrent: false)
        let key = way.key(of: step)
        runs.append(VerifiedRun(key: key, version: version, steps: [step], isOwn: own.contains(key)))
      }
      if way.dependsOnEarlierSteps {
        runs.append(VerifiedRun(key: .way(from: way.version.name), version: way.version, steps: way.steps))
      }
    }
    return runs
  }

  // MARK: Doing it

  private func carryOut(_ runs: [VerifiedRun]) throws -> [Found] {
    let workplace = try Workplace(options.folder, verifier.surroundings)
    let profiles = options.profiles
    let count = runs.count * profiles.count
    let begun = Mutex(0)
    let stores = try ConcurrentWork(count) { [verifier, options, bundle] number in
      let (run, profile) = (runs[number / profiles.count], profiles[number % profiles.count])
      let goesOn = begun.withLock { begun in
        defer { begun += 1 }
        return options.progress(run.version.name, profile, begun, count)
      }
      guard goesOn, !options.isCancelled() else { throw Self.cancelled(at: run.version.name, bundle) }
      return try workplace.withFolder(number) { folder in
        try CaseCheck(verifier, run, profile, in: folder, isCancelled: options.isCancelled).run()
      }
    }.run(threads: options.threads)
    return runs.indices.map { place in
      let own = stores[(place * profiles.count)..<((place + 1) * profiles.count)]
      var losses = runs[place].steps.map { LossCount($0) }
      for store in own {
        for (number, count) in store.losses.enumerated() { losses[number].add(count) }
      }
      return Found(cases: own.map(\.found), losses: losses.flatMap(\.losses))
    }
  }

  private static func cancelled(at version: String, _ bundle: ModelBundle) -> MigrationError {
    MigrationError(
      .cancelled, operation: "verify the model's migrations", path: bundle.path,
      detail: "it was cancelled at version \"\(printable(version))\"")
  }

  // MARK: What is told

  private static func told(
    _ step: MigrationStep, _ run: VerifiedRun, _ found: Found, _ ways: [VerifiedWay]
  ) -> VerificationReport.Step {
    let users = ways.filter { way in way.steps.contains { way.key(of: $0) == run.key } }
    return VerificationReport.Step(
      step: step.name, from: run.version.name, to: step.destinationName,
      direct: users.allSatisfy(\.isDirect), versions: users.map(\.version.name), outcome: found.outcome,
      losses: found.losses, refusals: [], conditions: conditions(of: step), cases: found.cases)
  }

  private static func refused(_ way: VerifiedWay, to current: String) -> VerificationReport.Step {
    let name = way.refusals.first?.step ?? ""
    return VerificationReport.Step(
      step: name.isEmpty ? "\(way.version.name) → \(current)" : name, from: way.version.name, to: current,
      direct: way.isDirect, versions: [way.version.name], outcome: .failed, losses: [], refusals: way.refusals,
      conditions: [], cases: [])
  }

  private func told(_ way: VerifiedWay, _ pieces: [Found]) -> VerificationReport.Version {
    VerificationReport.Version(
      from: way.version.name, to: bundle.current.name, direct: way.isDirect, steps: way.steps.map(\.name),
      wholeWay: way.dependsOnEarlierSteps,
      outcome: way.refusals.isEmpty ? pieces.map(\.outcome).max() ?? .fine : .failed,
      losses: pieces.flatMap(\.losses), refusals: way.refusals,
      conditions: way.steps.flatMap { step in Self.conditions(of: step).map { "\(step.name): \($0)" } },
      cases: pieces.first?.cases ?? [])
  }

  private static func conditions(of step: MigrationStep) -> [String] {
    step.mapping.conditionsWithoutInherited.map(\.text)
  }
}

/// Pieces of work that have nothing in common, several at once.
struct ConcurrentWork<Piece: Sendable>: Sendable {
  private let count: Int
  private let body: @Sendable (Int) throws -> Piece

  /// Where the work stands: the next piece, what came of those that are done, and the first failure.
  private struct State: Sendable {
    var next = 0
    var results: [Int: Piece] = [:]
    var failure: (number: Int, error: any Error)?
  }

  /// Work of several pieces, numbered from 0.
  init(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Piece) {
    self.count = count
    self.body = body
  }

  /// Does all pieces on so many threads, and returns what came of each in their order.
  ///
  /// - Throws: what the first piece that failed threw; no further piece is begun then.
  func run(threads: Int) throws -> [Piece] {
    let state = Mutex(State())
    Self.run(min(max(1, threads), max(1, count))) { [count, body] in
      while true {
        let number = state.withLock { state -> Int? in
          guard state.failure == nil, state.next < count else { return nil }
          state.next += 1
          return state.next - 1
        }
        guard let number else { return }
        do {
          let piece = try body(number)
          state.withLock { $0.results[number] = piece }
        } catch {
          state.withLock { state in
            if state.failure.map({ number < $0.number }) ?? true { state.failure = (number, error) }
          }
        }
      }
    }
    return try state.withLock { state in
      if let failure = state.failure { throw failure.error }
      return (0..<count).compactMap { state.results[$0] }
    }
  }

  /// Does the same on so many threads, and waits for all of them.
  private static func run(_ threads: Int, _ worker: @escaping @Sendable () -> Void) {
    guard threads > 1 else { return worker() }
    _ = concurrently(worker) { run(threads - 1, worker) }
  }
}

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
