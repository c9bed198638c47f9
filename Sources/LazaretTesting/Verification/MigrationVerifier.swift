internal import Foundation
public import ManagedObjectModel
public import Migration
public import Platform
public import SystemPackage

/// The check that every version of a model still migrates to the current one.
///
/// Each step that stores of the earlier versions take is checked once, on generated stores of the version that it starts
/// from: every record of the result is held against what the mapping implies. Where a step's outcome depends on what the
/// steps before have made, stores are taken along the whole way besides. The same seed makes the same stores.
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

    /// How many stores are worked on at once; as many as the machine has processors unless said otherwise.
    public var threads = ProcessInfo.processInfo.activeProcessorCount

    /// Called before each store with its version, its kind, its number from 0 and the number of all; false ends the check.
    ///
    /// Never called twice at once.
    public var progress: @Sendable (_ version: String, _ profile: StoreProfile, _ number: Int, _ count: Int) -> Bool = {
      _, _, _, _ in true
    }

    /// Whether the check is to end; asked now and then, also while a store is migrated.
    public var isCancelled: @Sendable () -> Bool = { false }

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
      return try VerificationWork(self).report()
    } catch {
      throw StoreTestingError(error, operation: "verify the model's migrations", path: bundle.path)
    }
  }
}

/// The folder that stores are made in.
struct Workplace: Sendable {
  private let path: FilePath
  private let isKept: Bool
  private let fileSystem: FileSystem

  /// Removes the folder when nothing uses it any more.
  private let scratch: PrivateFolder?

  init(_ folder: FilePath?, _ surroundings: Surroundings) throws {
    fileSystem = surroundings.fileSystem
    if let folder {
      try surroundings.fileSystem.makeDirectory(folder)
      path = folder
      isKept = true
      scratch = nil
    } else {
      let made = try PrivateFolder(in: nil, to: "verify migrations", surroundings)
      path = made.path
      isKept = false
      scratch = made
    }
  }

  /// Gives a piece of work a folder of its own, which goes with it; the one folder where everything is kept.
  func withFolder<Value>(_ number: Int, _ body: (FilePath) throws -> Value) throws -> Value {
    guard !isKept else { return try body(path) }
    let own = try ScratchFolder(in: path, named: "\(number)", fileSystem)
    return try body(own.path)
  }
}

/// A folder for files that are not needed afterwards; it goes with everything in it.
final class ScratchFolder: Sendable {
  let path: FilePath
  private let fileSystem: FileSystem

  /// Makes a folder of its own in another one.
  init(in parent: FilePath, named name: String, _ fileSystem: FileSystem) throws {
    path = parent.appending(name)
    self.fileSystem = fileSystem
    guard try fileSystem.status(of: path, followingLinks: false) == nil else {
      throw FileError(.alreadyExists, operation: "make a temporary folder", path: path)
    }
    try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
  }

  deinit {
    // What cannot be removed now is the temporary folder's own to tidy.
    try? Self.remove(path, fileSystem)
  }

  /// Removes everything that is in it.
  func empty() throws(FileError) {
    for name in try fileSystem.entries(of: path) { try Self.remove(path.appending(name), fileSystem) }
  }

  /// Removes a file, or a folder with everything in it.
  static func remove(_ path: FilePath, _ fileSystem: FileSystem) throws(FileError) {
    guard let status = try fileSystem.status(of: path, followingLinks: false) else { return }
    guard status.kind == .directory else {
      try fileSystem.unlink(path)
      return
    }
    let content = try fileSystem.descendants(of: path)
    for file in content.files { try fileSystem.unlink(file.path) }
    for folder in content.folders.reversed() { try fileSystem.removeDirectory(path.appending(folder)) }
    try fileSystem.removeDirectory(path)
  }
}
