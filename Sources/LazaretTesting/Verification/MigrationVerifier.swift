internal import Foundation
public import ManagedObjectModel
public import Migration
internal import PersistentStore
public import StoreFiles
public import SystemPackage

/// The check that every version of a model still migrates to the current one.
///
/// For each earlier version it generates stores of several kinds, migrates each along the chain of versions and holds
/// every record of the result against what the mappings imply. The same seed makes the same stores.
public struct MigrationVerifier: Sendable {
  /// What is checked.
  public struct Options: Sendable {
    /// The kinds of stores.
    public var profiles = StoreProfile.allCases

    /// What the generated records follow from.
    public var seed: UInt64 = 1

    /// The number of records of each entity.
    public var records = 20

    /// The only version to start from; all that are older than the current one if nil.
    public var version: String?

    /// Whether each version whose way has several steps is migrated to the current one in one step, too.
    public var checksDirectSteps = false

    /// Mappings to use in place of inferred ones where their hashes fit.
    public var mappings: [MappingModel] = []

    /// Where the stores are made and kept; nil for a temporary folder that goes afterwards.
    public var folder: FilePath?

    /// The most differences that are told for each store.
    public var limit = 20

    /// Called before each store with the version, the kind of store, its number from 0 and the number of all; false ends
    /// the check.
    public var progress: @Sendable (_ version: String, _ profile: StoreProfile, _ number: Int, _ count: Int) -> Bool = {
      _, _, _, _ in true
    }

    /// Every version, every kind of store, twenty records of each entity.
    public init() {}
  }

  let bundle: ModelBundle
  let options: Options
  let surroundings: Surroundings

  /// A check of a model.
  public init(_ bundle: ModelBundle, options: Options = Options(), surroundings: Surroundings = .machine) {
    self.bundle = bundle
    self.options = options
    self.surroundings = surroundings
  }

  /// Checks.
  ///
  /// - Throws: `StoreTestingError` where there is no such version, where the surroundings fail, or where it is ended by
  ///   `progress`. What is wrong with a migration is in the report and no error.
  public func run() throws(StoreTestingError) -> VerificationReport {
    do {
      let versions = try versionsToCheck()
      let scratch = try Workplace(options.folder, surroundings)
      var report = VerificationReport(
        model: bundle.name, to: bundle.current.name, seed: options.seed, rows: options.records, outcome: .fine,
        versions: [],
        unreadableVersions: bundle.unreadableVersions.map { version in
          VerificationReport.UnreadableVersion(
            name: version.name, code: version.error.code, detail: version.error.detail)
        })
      var jobs: [(version: ModelVersion, isDirect: Bool)] = []
      for version in versions {
        jobs.append((version, false))
        if options.checksDirectSteps, hasSeveralSteps(version) { jobs.append((version, true)) }
      }
      for (number, job) in jobs.enumerated() {
        let found = try VersionCheck(
          verifier: self, version: job.version, isDirect: job.isDirect, scratch: scratch,
          first: number * options.profiles.count, count: jobs.count * options.profiles.count
        ).run()
        report.versions.append(found)
        report.outcome = max(report.outcome, found.outcome)
      }
      return report
    } catch {
      throw StoreTestingError(error, operation: "verify the model's migrations", path: bundle.path)
    }
  }

  /// Whether the way of a version's stores has several steps, so that one step is another way.
  private func hasSeveralSteps(_ version: ModelVersion) -> Bool {
    // A way that cannot be found is a finding of the version itself.
    let path = try? MigrationPath(
      in: bundle, from: .version(version.name), options: .init(mappings: options.mappings))
    return (path?.steps.count ?? 0) > 1
  }

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
    return version.versionHashes == bundle.current.versionHashes ? [] : [version]
  }
}

/// The folder that stores are made in.
struct Workplace {
  let path: FilePath
  let isKept: Bool
  private let scratch: ScratchFolder?

  init(_ folder: FilePath?, _ surroundings: Surroundings) throws {
    if let folder {
      try surroundings.fileSystem.makeDirectory(folder)
      path = folder
      isKept = true
      scratch = nil
    } else {
      let made = try ScratchFolder(
        in: FilePath(NSTemporaryDirectory()), named: "lazaret-verify-\(surroundings.makeUUID())",
        surroundings.fileSystem)
      path = made.path
      isKept = false
      scratch = made
    }
  }

  /// Removes what one store has left, unless everything is kept.
  func tidy() throws(FileError) { try scratch?.empty() }
}
