internal import Foundation
internal import GRDB
public import ManagedObjectModel
public import Migration
public import PersistentStore
public import Platform
public import SystemPackage

/// A store at two versions of its model, both open, for tests of a migration.
///
/// The original is only read; both copies are in a temporary folder removed with this value, and must not outlive it.
public final class SideBySide: Sendable {
  /// The store at the earlier version.
  public let before: PersistentStore

  /// The store at the later version.
  public let after: PersistentStore

  /// The mappings of the steps between them.
  public let mappings: [MappingModel]

  private let scratch: PrivateFolder

  /// Copies a store twice and migrates each copy.
  ///
  /// - Parameters:
  ///   - store: a store of the first version or an earlier one.
  ///   - second: the later version; the current one if nil.
  ///   - mappings: mappings preferred to inferred ones where their hashes fit.
  /// - Throws: `StoreTestingError` with the code of its cause.
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
    // The files are removed regardless; open ones end with them.
    try? before.close()
    try? after.close()
  }

  /// Compares the stores by names and renaming identifiers.
  public func comparison(
    options: StoreComparison.Options = StoreComparison.Options()
  ) throws(StoreTestingError) -> StoreComparison {
    try StoreComparison(before, after, options: options)
  }

  /// Compares the later store with the mapping; nil for several steps.
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

  /// Migrates a store to a new file, or copies it at the same version.
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

/// A comparison of a migrated store with the result implied by its mapping.
///
/// Expected values are computed one at a time from source records and mapping, independently of the migrating SQL.
/// Memory grows with the pairs of relationships, not with the records.
public struct MigrationComparison: Sendable {
  /// A change permitted by the mapping.
  public struct Alteration: Sendable, Hashable, Codable {
    /// The permission.
    public var kind: MigrationCondition.Kind

    /// The destination entity.
    public var entity: String

    /// The destination property.
    public var property: String

    /// The number of values or pairs.
    public var count: Int
  }

  /// The deviations from the mapping.
  public let differences: [StoreDifference]

  /// The number of all differences.
  public let differenceCount: Int

  /// The number of compared source records.
  public let comparedRecords: Int

  /// The permitted changes: numbers that do not fit, dropped pairs.
  public let alterations: [Alteration]

  /// The destination's entities and properties made by custom steps, which are not checked.
  public let unchecked: [String]

  /// Compares a store with its source before one step.
  ///
  /// - Parameters:
  ///   - source: the earlier store, opened with the source model.
  ///   - result: the later store, opened with the destination model.
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

/// A failure of a store test.
///
/// Most take code, words and hint from a lower module.
public typealias StoreTestingError = Failure<StoreTestingErrorKind>

/// The kinds of store test failures.
public enum StoreTestingErrorKind: String, FailureKind {
  case noModel = "store-without-model"

  case newerVersion = "version-is-newer"

  /// A lower module failed; its error's code applies.
  case lowerModule = "store-testing"

  /// The default operation of a failure.
  public static let usualOperation = "test the store"

  /// The default hint of a failure.
  public var usualHint: String {
    switch self {
    case .noModel: "Open both with their models."
    case .newerVersion: "Name an earlier version, or say which one came first."
    case .lowerModule: "See the cause."
    }
  }

  /// Whether the lower module's code applies.
  public var standsForCause: Bool { self == .lowerModule }
}

extension StoreTestingError {
  /// Wraps an error of a lower module or SQLite, without SQL or record values.
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
