internal import Foundation
public import ManagedObjectModel
public import Migration
public import PersistentStore
public import Platform
public import SystemPackage

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
