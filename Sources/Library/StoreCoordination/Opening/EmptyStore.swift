import Logging

/// An empty store for the app's model, whole in memory, before it has a place.
struct EmptyStore {
  private let model: AppModel
  private let surroundings: Surroundings
  private let logger: Logger
  private let bytes: [UInt8]

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// The bytes that must be free beside a new store: the index of its write-ahead log has 32 KiB, receipts are smaller.
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
    case .sqlite(let script, _):
      bytes = try StoreCreation.bytes(of: script)
    }
  }

  /// Makes it complete, verified and on the disk beside a place.
  ///
  /// The caller holds the folder's lock.
  ///
  /// - Parameter access: that of the store that it stands in for; nil where there is none, and it is its owner's alone.
  func stage(at place: StoreFileSet, access: FileAccess? = nil) throws -> StagedStore {
    let staged = try StagedStore(bytes, for: place, in: fileSystem)
    if let access { try fileSystem.adoptAccess(of: access.usable, to: staged.path) }
    try verify(staged.path)
    // Journal, receipt and SQLite's own files have to fit too; a disk too full for them is met before anything is
    // moved.
    guard try fileSystem.freeSpace(at: place.folder) >= Self.reserve else {
      throw FileError(.noSpace, operation: "make room for a new store", path: place.folder)
    }
    return staged
  }

  /// Gives it, once staged, its place, which must be empty.
  ///
  /// The caller holds the folder's lock.
  func install(_ staged: consuming StagedStore) throws -> OpeningEvent {
    let place = staged.target
    try staged.install()
    logger.info("created a store")
    return .created(place, for: model, at: surroundings.now())
  }

  /// Puts it into an empty place.
  ///
  /// The caller holds the folder's lock.
  func create(at place: StoreFileSet, access: FileAccess? = nil) throws -> OpeningEvent {
    try install(try stage(at: place, access: access))
  }

  /// Walks over every page of it before anything makes room for it.
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
