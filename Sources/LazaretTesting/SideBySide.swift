internal import Foundation

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
  /// - Throws: `PersistentStoreError` with the code of its cause.
  public init(
    _ store: FilePath, bundle: ModelBundle, from first: String, to second: String? = nil,
    mappings: [MappingModel] = [], surroundings: Surroundings = .machine
  ) throws(PersistentStoreError) {
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
      throw PersistentStoreError(testing: error, operation: "open a store at two versions", path: store)
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
  ) throws(PersistentStoreError) -> StoreComparison {
    try StoreComparison(before, after, options: options)
  }

  /// Compares the later store with the mapping; nil for several steps.
  public func migrationComparison(
    options: StoreComparison.Options = StoreComparison.Options()
  ) throws(PersistentStoreError) -> MigrationComparison? {
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
