import Logging
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage

/// An empty store, complete in memory before it has a place.
struct EmptyStore {
  private let model: AppModel
  private let surroundings: Surroundings
  private let logger: Logger
  private let bytes: [UInt8]

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// The space needed beside a new store: the WAL index has 32 KiB, receipts are smaller.
  private static let reserve: Int64 = 128 << 10

  init(for model: AppModel, surroundings: Surroundings, logger: Logger) throws {
    self.model = model
    self.surroundings = surroundings
    self.logger = logger
    switch model {
    case .coreData(let bundle):
      let current = bundle.current.model
      bytes = try StoreCreation(
        model: current, uuid: surroundings.makeUUID().description, modelCache: try current.modelCache()
      ).bytes()
    case .sqlite(let script, _): bytes = try StoreCreation.bytes(of: script)
    }
  }

  /// Writes the store, verified and synced, beside a place, under the caller's folder lock.
  ///
  /// - Parameter access: the replaced store's permissions; nil limits access to the owner.
  func stage(at place: StoreFileSet, access: FileAccess? = nil) throws -> StagedStore {
    let staged = try StagedStore(bytes, for: place, in: fileSystem)
    if let access { try fileSystem.adoptAccess(of: access.usable, to: staged.path) }
    try verify(staged.path)
    // Journal, receipt and SQLite's files must fit too; a full disk must fail before any move.
    guard try fileSystem.freeSpace(at: place.folder) >= Self.reserve else {
      throw FileError(.noSpace, operation: "make room for a new store", path: place.folder)
    }
    return staged
  }

  /// Moves the staged store to its place, under the caller's folder lock.
  func install(_ staged: consuming StagedStore) throws -> OpeningEvent {
    let place = staged.target
    try staged.install()
    logger.info("created a store")
    return .created(place, for: model, at: surroundings.now())
  }

  /// Creates the store, under the caller's folder lock.
  func create(at place: StoreFileSet, access: FileAccess? = nil) throws -> OpeningEvent {
    try install(try stage(at: place, access: access))
  }

  /// Checks every page before another store makes room.
  private func verify(_ path: FilePath) throws {
    let examination = try Examiner(fileSystem: fileSystem).examine(
      path, model: model, options: .init(depth: .full, countsRecords: false))
    if examination.verdict == .unavailable { throw LazaretError(.unavailable, examination, path: path) }
    guard examination.verdict == .compatible else {
      throw LazaretError(
        .creationFailed, operation: "create the store", path: path,
        detail: "what was written is \(examination.verdict.rawValue): \(examination.reason.words)",
        details: .init(.creationFailed, examination))
    }
  }
}
