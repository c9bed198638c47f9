internal import Foundation

/// Checks that every version of a model still migrates to the current one.
///
/// Each step is checked once on generated stores of its source version: every resulting record is compared with the
/// mapping. If a step depends on earlier results, stores also take the whole path. Reproducible by seed.
public struct MigrationVerifier: Sendable {
  /// The options of a check.
  public struct Options: Sendable {
    /// The store profiles.
    public var profiles = StoreProfile.allCases

    /// The seed of the records.
    public var seed: UInt64 = 1

    /// The number of records of each entity.
    public var records = 20

    /// The only source version; every older one if nil.
    public var version: String?

    /// Whether versions several steps away are also migrated directly.
    public var checksDirectSteps = false

    /// Mappings preferred to inferred ones where their hashes fit.
    public var mappings: [MappingModel] = []

    /// The folder to keep the stores in; nil for a temporary one.
    public var folder: FilePath?

    /// The most differences reported for each store.
    public var limit = 20

    /// The number of parallel workers; by default the active processors.
    public var threads = ProcessInfo.processInfo.activeProcessorCount

    /// Called serially before each store with version, profile, index and total; false cancels.
    public var progress: @Sendable (_ version: String, _ profile: StoreProfile, _ number: Int, _ count: Int) -> Bool = {
      _, _, _, _ in true
    }

    /// Called serially as each step or way ends, with its result such as `V1 → V2: ok`, and how many of all have ended.
    public var ended: @Sendable (_ result: String, _ number: Int, _ count: Int) -> Void = { _, _, _ in }

    /// Whether to cancel; polled also during migrations.
    public var isCancelled: @Sendable () -> Bool = { false }

    /// Makes the default options.
    public init() {}
  }

  let bundle: ModelBundle
  let options: Options
  let surroundings: Surroundings

  /// Makes a check of a model.
  public init(_ bundle: ModelBundle, options: Options = Options(), surroundings: Surroundings = .machine) {
    self.bundle = bundle
    self.options = options
    self.surroundings = surroundings
  }

  /// Runs the check.
  ///
  /// - Throws: `PersistentStoreError` for an unknown version, an environmental error or a cancellation. Migration
  ///   problems are in the report.
  public func run() throws(PersistentStoreError) -> VerificationReport {
    do {
      return try VerificationWork(self).report()
    } catch {
      throw PersistentStoreError(testing: error, operation: "verify the model's migrations", path: bundle.path)
    }
  }
}

struct Workplace: Sendable {
  private let path: FilePath
  private let fileSystem: FileSystem

  /// Nil if the stores are kept.
  private let scratch: PrivateFolder?

  init(_ folder: FilePath?, _ surroundings: Surroundings) throws {
    fileSystem = surroundings.fileSystem
    if let folder {
      try fileSystem.makeDirectory(folder)
      (path, scratch) = (folder, nil)
    } else {
      let made = try PrivateFolder(in: nil, to: "verify migrations", surroundings)
      (path, scratch) = (made.path, made)
    }
  }

  /// Runs a piece of work in a temporary folder, or in the common one if the stores are kept.
  func withFolder<Value>(_ number: Int, _ body: (FilePath) throws -> Value) throws -> Value {
    guard scratch != nil else { return try body(path) }
    let own = try ScratchFolder(in: path, named: "\(number)", fileSystem)
    return try body(own.path)
  }
}

final class ScratchFolder: Sendable {
  let path: FilePath
  private let fileSystem: FileSystem

  init(in parent: FilePath, named name: String, _ fileSystem: FileSystem) throws {
    path = parent.appending(name)
    self.fileSystem = fileSystem
    guard try fileSystem.status(of: path, followingLinks: false) == nil else {
      throw FileError(.alreadyExists, operation: "make a temporary folder", path: path)
    }
    try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
  }

  deinit {
    // The parent is cleaned up anyway.
    try? fileSystem.removeTree(path)
  }
}

struct VerificationWork {
  private let verifier: MigrationVerifier
  private let bundle: ModelBundle

  private var options: MigrationVerifier.Options { verifier.options }

  init(_ verifier: MigrationVerifier) {
    self.verifier = verifier
    // The mappings' order decides here too which versions are newer.
    bundle = verifier.bundle.knowing(verifier.options.mappings, [])
  }

  private typealias Store = (found: VerificationReport.Case, losses: [LossCount])

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
    let found = Dictionary(zip(runs.map(\.key), try carryOut(runs)), uniquingKeysWith: { first, _ in first })
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

  // MARK: Versions

  /// The other versions up to the current one.
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
      throw PersistentStoreError(
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

  /// The newer versions, and those excluded by a given order.
  private var unchecked: [VerificationReport.UncheckedVersion] {
    guard options.version == nil else { return [] }
    return bundle.versions.filter { bundle.isNewer($0, than: bundle.current) }
      .map { VerificationReport.UncheckedVersion(name: $0.name, reason: .newer) }
      + bundle.unorderedVersions.map { VerificationReport.UncheckedVersion(name: $0.name, reason: .leftOut) }
  }

  private func ways(of versions: [ModelVersion]) throws -> [VerifiedWay] {
    // If a step cannot be inferred, every version between is tried, which is slow.
    let ways = try ConcurrentWork(versions.count) { [bundle, options] number in
      guard !options.isCancelled() else { throw Self.cancelled(at: versions[number].name, bundle) }
      let way = try VerifiedWay(versions[number], in: bundle, isDirect: false, mappings: options.mappings)
      guard options.checksDirectSteps, way.steps.count > 1 else { return [way] }
      return [way, try VerifiedWay(versions[number], in: bundle, isDirect: true, mappings: options.mappings)]
    }.run(threads: options.threads)
    return ways.flatMap { $0 }
  }

  /// Returns each step once in version order, and the paths with dependent steps.
  private static func runs(of ways: [VerifiedWay]) -> [VerifiedRun] {
    var runs: [VerifiedRun] = []
    var keys: Set<VerifiedRun.Key> = []
    let own = Set(ways.compactMap { way in way.steps.first.map(way.key) })
    for way in ways {
      for step in way.steps where keys.insert(way.key(of: step)).inserted {
        // The step's source may be a version that is not checked itself.
        let known = ways.first { $0.version.name == step.sourceName }?.version
        let version =
          known ?? ModelVersion(name: step.sourceName ?? way.version.name, model: step.mapping.source, isCurrent: false)
        let key = way.key(of: step)
        runs.append(VerifiedRun(key: key, version: version, steps: [step], isOwn: own.contains(key)))
      }
      if way.dependsOnEarlierSteps {
        runs.append(VerifiedRun(key: .way(from: way.version.name), version: way.version, steps: way.steps))
      }
    }
    return runs
  }

  // MARK: Running

  private func carryOut(_ runs: [VerifiedRun]) throws -> [Found] {
    let workplace = try Workplace(options.folder, verifier.surroundings)
    let profiles = options.profiles
    let count = runs.count * profiles.count
    let begun = Mutex(0)
    let open = Mutex((stores: [Int: [Store]](), ended: 0))
    let stores = try ConcurrentWork(count) { [verifier, options, bundle] number in
      let (run, profile) = (runs[number / profiles.count], profiles[number % profiles.count])
      let goesOn = begun.withLock { begun in
        defer { begun += 1 }
        return options.progress(run.version.name, profile, begun, count)
      }
      guard goesOn, !options.isCancelled() else { throw Self.cancelled(at: run.version.name, bundle) }
      let result = try workplace.withFolder(number) { folder in
        try CaseCheck(verifier: verifier, piece: run, profile: profile, folder: folder).run()
      }
      open.withLock { open in
        let place = number / profiles.count
        open.stores[place, default: []].append(result)
        guard let all = open.stores[place], all.count == profiles.count else { return }
        open.stores[place] = nil
        open.ended += 1
        let word = VerificationListing.word(Self.found(run, all).outcome)
        options.ended("\(printable(run.name)): \(word)", open.ended, runs.count)
      }
      return result
    }.run(threads: options.threads)
    return runs.indices.map { place in
      Self.found(runs[place], stores[(place * profiles.count)..<((place + 1) * profiles.count)])
    }
  }

  private static func found(_ run: VerifiedRun, _ stores: some Sequence<Store>) -> Found {
    var losses = run.steps.map { LossCount($0) }
    for store in stores {
      for (number, count) in store.losses.enumerated() { losses[number].add(count) }
    }
    return Found(cases: stores.map(\.found), losses: losses.flatMap(\.losses))
  }

  private static func cancelled(at version: String, _ bundle: ModelBundle) -> MigrationError {
    MigrationError(
      .cancelled, operation: "verify the model's migrations", path: bundle.path,
      detail: "it was cancelled at version \"\(printable(version))\"")
  }

  // MARK: Reporting

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

struct ConcurrentWork<Piece: Sendable>: Sendable {
  private let count: Int
  private let body: @Sendable (Int) throws -> Piece

  private struct State: Sendable {
    var next = 0
    var results: [Int: Piece] = [:]
    var failure: (number: Int, error: any Error)?
  }

  init(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Piece) {
    self.count = count
    self.body = body
  }

  /// Runs all pieces and returns their results in order.
  ///
  /// - Throws: the error of the first failed piece, which stops the work.
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

  private static func run(_ threads: Int, _ worker: @escaping @Sendable () -> Void) {
    guard threads > 1 else { return worker() }
    _ = concurrently(worker) { run(threads - 1, worker) }
  }
}

struct VerifiedWay: Sendable {
  let version: ModelVersion

  /// Whether it is a single step over versions between.
  let isDirect: Bool

  /// Empty if a step is refused.
  let steps: [MigrationStep]

  let refusals: [VerificationReport.Refusal]

  /// Finds the path.
  ///
  /// - Throws: `MigrationError`; a refused step is a finding instead.
  init(_ version: ModelVersion, in bundle: ModelBundle, isDirect: Bool, mappings: [MappingModel]) throws {
    self.version = version
    self.isDirect = isDirect
    do {
      // Name the target: hypothetical stores have no order of versions.
      steps = try MigrationPath(
        in: bundle, from: .version(version.name), to: bundle.current.name,
        options: .init(isDirect: isDirect, mappings: mappings)
      ).steps
      refusals = []
    } catch let error as MigrationError where error.kind == .notInferable || error.kind == .wouldLose {
      steps = []
      refusals = error.refusals.map { refusal in
        VerificationReport.Refusal(
          step: refusal.step ?? error.step ?? "", kind: refusal.kind, entity: refusal.entityName,
          property: refusal.property?.description, reason: refusal.reason, text: refusal.detail,
          wayRound: refusal.wayRound)
      }
    }
  }

  /// Whether a result depends on the combination of steps.
  ///
  /// It does if a later step is custom, or its success or losses vary with the records that earlier steps produce.
  var dependsOnEarlierSteps: Bool {
    steps.dropFirst().contains { step in
      guard case .inferred = step.mapping.origin else { return true }
      return !step.mapping.conditions.isEmpty
    }
  }
}

struct VerifiedRun: Sendable {
  enum Key: Hashable, Sendable {
    case step(from: String?, to: String)

    /// The direct step of a version.
    case direct(from: String)

    /// All steps of a version.
    case way(from: String)
  }

  let key: Key
  let version: ModelVersion

  /// One step, or all of a path with dependent steps.
  let steps: [MigrationStep]

  /// The name for readers: of the step, or of all that a version takes.
  var name: String {
    guard steps.count > 1, let last = steps.last else { return steps.first?.name ?? "" }
    return "\(version.name) → \(last.destinationName)"
  }

  var label: String {
    switch key {
    case .step(_, let destination): isOwn ? version.name : "\(version.name)-to-\(destination)"
    case .direct: "\(version.name)-direct"
    case .way: "\(version.name)-way"
    }
  }

  /// Whether it is the first step of its version's own path.
  var isOwn = true

  /// Whether it is a whole path, which is also tested in one go.
  var isWay: Bool { steps.count > 1 }
}

extension VerifiedWay {
  func key(of step: MigrationStep) -> VerifiedRun.Key {
    isDirect ? .direct(from: version.name) : .step(from: step.sourceName, to: step.destinationName)
  }

  /// The keys that determine its stores' results.
  var keys: [VerifiedRun.Key] { dependsOnEarlierSteps ? [.way(from: version.name)] : steps.map(key) }
}
