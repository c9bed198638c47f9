internal import Foundation
internal import GRDB
public import ManagedObjectModel
public import Migration
public import PersistentStore
public import Platform
public import SystemPackage

/// One store at two versions of its model, both open: what a test of a migration looks at.
///
/// Both are copies in a temporary folder, which goes when this value does; the store itself is only read.
///
/// The stores must not be used longer than this value.
public final class SideBySide: Sendable {
  /// The store at the earlier of the two versions.
  public let before: PersistentStore

  /// The store at the later one.
  public let after: PersistentStore

  /// The mappings of the steps from the one to the other.
  public let mappings: [MappingModel]

  private let scratch: PrivateFolder

  /// Copies a store twice and migrates each copy to its version.
  ///
  /// - Parameters:
  ///   - store: a store of the first version or of an earlier one.
  ///   - bundle: the model.
  ///   - first: the name of the earlier version.
  ///   - second: the name of the later one; the current version if nil.
  ///   - mappings: mappings to use in place of inferred ones where their hashes fit.
  ///   - surroundings: the file system, the clock and randomness.
  /// - Throws: `StoreTestingError` with the code of whatever stands in the way.
  public init(
    _ store: FilePath, bundle: ModelBundle, from first: String, to second: String? = nil,
    mappings: [MappingModel] = [], surroundings: Surroundings = .machine
  ) throws(StoreTestingError) {
    do {
      let second = second ?? bundle.current.name
      let path = try MigrationPath(in: bundle, from: .version(first), to: second, options: .init(mappings: mappings))
      guard let old = bundle.version(named: first), let new = bundle.version(named: second) else {
        throw MigrationError(.unknownVersion, detail: "the model has no such version")
      }
      scratch = try PrivateFolder(in: nil, to: "open a store at two versions", surroundings)
      self.mappings = path.steps.map(\.mapping)
      let copies = Copies(bundle: bundle, mappings: mappings, surroundings: surroundings)
      let earlier = try copies.make(store, at: first, as: scratch.path.appending("before.sqlite"))
      let later = try copies.make(earlier, at: second, as: scratch.path.appending("after.sqlite"))
      before = try PersistentStore(opening: earlier, model: old.model)
      after = try PersistentStore(opening: later, model: new.model)
    } catch {
      throw StoreTestingError(error, operation: "open a store at two versions", path: store)
    }
  }

  deinit {
    // The files go in any case; what is still open ends with them.
    try? before.close()
    try? after.close()
  }

  /// Compares the two stores through the names and renaming identifiers of their models.
  public func comparison(
    options: StoreComparison.Options = StoreComparison.Options()
  ) throws(StoreTestingError) -> StoreComparison {
    try StoreComparison(before, after, options: options)
  }

  /// Holds the later store against what the mapping implies; nil where there is more than one step between them.
  public func migrationComparison(
    options: StoreComparison.Options = StoreComparison.Options()
  ) throws(StoreTestingError) -> MigrationComparison? {
    guard mappings.count == 1, let mapping = mappings.first else { return nil }
    return try MigrationComparison(mapping, source: before, result: after, options: options)
  }
}

private struct Copies {
  let bundle: ModelBundle
  let mappings: [MappingModel]
  let surroundings: Surroundings

  /// Migrates a store into a file of its own, or copies it where it is of that version already.
  func make(_ store: FilePath, at version: String, as target: FilePath) throws -> FilePath {
    var options = Migrator.Options()
    options.version = version
    options.output = target
    options.mappings = mappings
    let result = try Migrator(bundle, surroundings: surroundings).migrate(store, options: options)
    if !result.isNothing { return result.store }
    let fileSystem = surroundings.fileSystem
    let (source, copy) = (try StoreFileSet.locate(store, in: fileSystem), StoreFileSet(main: target))
    for member in try source.members(in: fileSystem) {
      switch member.part {
      case .main, .wal, .journal: _ = try fileSystem.copy(member.path, to: copy.path(of: member.part))
      case .sharedMemory: continue
      case .externalData:
        let content = try fileSystem.descendants(of: member.path)
        let folder = copy.path(of: .externalData)
        try fileSystem.makeDirectory(folder)
        for name in content.folders { try fileSystem.makeDirectory(folder.appending(name)) }
        for file in content.files where file.status.kind == .regular {
          _ = try fileSystem.copy(file.path, to: folder.appending(file.relative))
        }
      }
    }
    return target
  }
}

/// The comparison of a migrated store with what its mapping implies for every record of the source.
///
/// What is expected is worked out here from the records of the source and the mapping, one value at a time, and not by the
/// SQL that migrates. Memory grows with the pairs of relationships, not with the records.
public struct MigrationComparison: Sendable {
  /// Something that the mapping says may change, and that did.
  public struct Alteration: Sendable, Hashable, Codable {
    /// What may change.
    public var kind: MigrationCondition.Kind

    /// The entity of the destination.
    public var entity: String

    /// The property of the destination.
    public var property: String

    /// The values or pairs concerned.
    public var count: Int
  }

  /// What is not as the mapping says.
  public let differences: [StoreDifference]

  /// How many differences there are, kept or not.
  public let differenceCount: Int

  /// How many records of the source were found again and compared.
  public let comparedRecords: Int

  /// What changed as the mapping says it may: numbers that do not fit, pairs that are cut.
  public let alterations: [Alteration]

  /// The entities and properties of the destination that custom steps make, so that nothing can be said of them.
  public let unchecked: [String]

  /// Compares a store with the one it was migrated from in one step.
  ///
  /// - Parameters:
  ///   - mapping: the step's mapping.
  ///   - source: the store before the step, opened with the mapping's source model.
  ///   - result: the store after it, opened with the mapping's destination model.
  ///   - options: how stores are compared.
  public init(
    _ mapping: MappingModel, source: PersistentStore, result: PersistentStore,
    options: StoreComparison.Options = StoreComparison.Options()
  ) throws(StoreTestingError) {
    do {
      var work = try MigrationComparisonWork(mapping, source, result, options)
      try work.run()
      differences = work.list.differences
      differenceCount = work.list.count
      comparedRecords = work.records
      alterations = work.alterations
      unchecked = work.unchecked.sorted(by: precedesByCodeUnit)
    } catch {
      throw StoreTestingError(error, operation: "compare a store with what it was migrated from", path: result.path)
    }
  }
}

/// A store that cannot be generated, compared or opened side by side.
///
/// Most come from a lower module and keep its code, words and hint.
public typealias StoreTestingError = Failure<StoreTestingErrorKind>

/// Why a store cannot be generated, compared or opened side by side.
public enum StoreTestingErrorKind: String, FailureKind {
  /// A store was opened without its model.
  case noModel = "store-without-model"

  /// A version of a model that is newer than the current one.
  case newerVersion = "version-is-newer"

  /// A lower module could not do its part; the code is that of its error.
  case lowerModule = "store-testing"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "test the store"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .noModel: "Open both with their models."
    case .newerVersion: "Name an earlier version, or say which one came first with --versions or a lock file."
    case .lowerModule: "See the cause."
    }
  }

  /// Whether the code is that of the lower module's error.
  public var standsForCause: Bool { self == .lowerModule }
}

extension StoreTestingError {
  /// The error of a lower module, or of SQLite; neither SQL nor values of records get into it.
  init(_ error: any Error, operation: String, path: FilePath?) {
    if let error = error as? StoreTestingError {
      self = error
      return
    }
    let cause: any ReportableError
    if let error = error as? any ReportableError {
      cause = error
    } else if let error = error as? DatabaseError {
      cause = PersistentStoreError(error, operation: operation, path: path)
    } else {
      cause = PersistentStoreError(.database, operation: operation, path: path, detail: "an unforeseen failure")
    }
    self.init(.lowerModule, because: cause, path: cause.path ?? path)
  }
}
