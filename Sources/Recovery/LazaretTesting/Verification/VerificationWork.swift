internal import Compatibility
internal import ManagedObjectModel
internal import Migration
internal import StoreFiles

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
