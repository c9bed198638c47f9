internal import Foundation
public import ManagedObjectModel
public import Migration
public import PersistentStore
public import StoreFiles
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
