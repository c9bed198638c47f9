/// The quarantined stores of a home: finding them, adding to them, putting them back, removing them.
package struct Quarantines: Sendable {
  /// The folder with the catalogue.
  package let home: FilePath
  let surroundings: Surroundings

  /// The secret keys with which a backup is read that a salvage takes records from, where it is encrypted.
  package var identities: [AgeIdentity] = []

  /// How what is salvaged is migrated to the app's version: custom mappings and what belongs to them.
  package var migration = Migrator.Options()

  /// The quarantined stores that the home's catalogue names.
  ///
  /// - Parameter surroundings: the file system, the clock and the source of identifiers.
  package init(home: FilePath, surroundings: Surroundings = .machine) {
    self.home = home
    self.surroundings = surroundings
  }

  var fileSystem: FileSystem { surroundings.fileSystem }
  private var catalogue: QuarantineCatalogue { QuarantineCatalogue(home: home, surroundings: surroundings) }

  /// The quarantined stores that the home's catalogue knows, newest first.
  ///
  /// - Parameter includingMissing: whether those are among them of which no file is there any more.
  package func stores(includingMissing: Bool = false) throws -> [QuarantinedStore] {
    try catalogue.stores(includingMissing: includingMissing)
  }

  /// The quarantined stores beside a store, or in a folder called `Incompatible`, or of a folder that holds one.
  ///
  /// - Parameter includingMissing: whether those are among them of which no file is there any more.
  package func stores(at path: FilePath, includingMissing: Bool = false) throws -> [QuarantinedStore] {
    try folder(at: path).stores(includingMissing: includingMissing)
  }

  /// What is left of stores that were released, in the folders that the home's catalogue knows, or in that of a place.
  package func released(at place: FilePath? = nil) throws -> [(store: QuarantinedStore, rest: Discarding)] {
    try (place.map { [try folder(at: $0)] } ?? catalogue.folders()).flatMap { folder in
      try folder.releasedIDs().compactMap { id in
        try folder.released(id).map { ($0, try folder.discarding($0)) }
      }
    }
  }

  /// The quarantined store of a name, or at a path.
  ///
  /// - Parameter includingMissing: whether one is found, too, of which no file is there any more.
  /// - Throws: `not-in-quarantine`, `evidence-missing` where only a receipt is left of it, or `ambiguous-id` where two folders
  ///   have one of that name.
  package func store(_ name: FilePath, includingMissing: Bool = false) throws -> QuarantinedStore {
    try find(name, includingMissing: includingMissing).store
  }

  /// How the files of a quarantined store are, compared with its receipt; nil where it has none.
  package func check(evidenceOf store: QuarantinedStore, _ depth: EvidenceCheck.Depth) throws -> EvidenceCheck? {
    try QuarantineFolder(store.files.folder, surroundings: surroundings).check(evidenceOf: store, depth)
  }

  /// A quarantined store, or what is left of one, which can be discarded.
  package func discardable(_ name: FilePath) throws -> QuarantinedStore { try findDiscardable(name).store }

  private func findDiscardable(_ name: FilePath) throws -> (folder: QuarantineFolder, store: QuarantinedStore) {
    do {
      return try find(name, includingMissing: true)
    } catch let error as QuarantineError where error.kind == .notFound {
      let isPath = name.components.count > 1 || name.isAbsolute
      let folders =
        isPath
        ? [QuarantineFolder(try fileSystem.realPath(name.folder), surroundings: surroundings)] : try catalogue.folders()
      let id = name.lastComponent?.string.split(separator: ".").first.map(String.init) ?? ""
      let found = try folders.compactMap { folder in try folder.released(id).map { (folder, $0) } }
      guard found.count < 2 else { throw Self.ambiguous(name, found.map(\.1)) }
      guard let first = found.first else { throw error }
      return first
    }
  }

  /// The same, and the folder that it is in.
  package func find(
    _ name: FilePath, includingMissing: Bool = false
  ) throws -> (folder: QuarantineFolder, store: QuarantinedStore) {
    guard let last = name.lastComponent else { throw Self.notFound(name) }
    if name.components.count > 1 || name.isAbsolute {
      let folder = QuarantineFolder(try fileSystem.realPath(name.folder), surroundings: surroundings)
      // The path of any of its files will do: the name begins with the time.
      let id = last.string.split(separator: ".").first.map(String.init) ?? last.string
      return (folder, try folder.store(named: id, includingMissing: includingMissing))
    }
    var found: [(QuarantineFolder, QuarantinedStore)] = []
    for folder in try catalogue.folders() {
      let stores = try folder.stores(includingMissing: true).filter { $0.id == last.string }
      // What is left of one says why it cannot be used.
      found += try stores.map { (folder, try folder.store(named: $0.id, includingMissing: includingMissing)) }
    }
    guard let first = found.first else { throw Self.notFound(name) }
    guard found.count == 1 else { throw Self.ambiguous(name, found.map(\.1)) }
    return first
  }

  private static func ambiguous(_ name: FilePath, _ found: [QuarantinedStore]) -> QuarantineError {
    QuarantineError(
      .ambiguous, operation: "find the quarantined store", path: name,
      detail: "\(found.count) folders have a store of that name",
      hint: "Give its path instead: \(found.map { quoted($0.files.main) }.joined(separator: " or ")).")
  }

  private static func notFound(_ name: FilePath) -> QuarantineError {
    QuarantineError(
      .notFound, operation: "find the quarantined store", path: name, detail: "no store of that name is known here",
      hint: "List what there is with: lazaret quarantine list. Another home is given with --home.")
  }

  private func folder(at path: FilePath) throws -> QuarantineFolder {
    let status = try fileSystem.status(of: path)
    guard status?.kind == .directory else {
      return QuarantineFolder(beside: try StoreFileSet.locate(path, in: fileSystem), surroundings: surroundings)
    }
    let real = try fileSystem.realPath(path)
    let isOne = QuarantineFolder.isOne(real)
    return QuarantineFolder(isOne ? real : real.appending(QuarantineFolder.name), surroundings: surroundings)
  }

  /// Moves a store into quarantine, whatever state it is in.
  ///
  /// - Parameters:
  ///   - model: the app's model, to tell the store's version by.
  ///   - reason: why, in words; what the examination says if nil.
  /// - Throws: `nothing-to-quarantine`, `locked`, `in-use`, or what the file system says; the store is then as it was.
  package func add(
    _ path: FilePath, model: AppModel? = nil, reason: String? = nil, appVersion: String? = nil,
    refusesSound: Bool = false, observer: OpeningObserver = OpeningObserver()
  ) throws -> QuarantinedStore {
    let place = try StoreFileSet.locate(path, in: fileSystem)
    let lock = try FolderLock(place.folder, in: fileSystem)
    let stored = try add(
      place, model: model, reason: reason, appVersion: appVersion, refusesSound: refusesSound,
      holding: [place.folder], observer)
    _ = consume lock
    return stored
  }

  /// The same, under the folder's lock.
  func add(
    _ place: StoreFileSet, model: AppModel?, reason: String?, appVersion: String?, refusesSound: Bool = false,
    holding held: [FilePath],
    makingRoomFor restored: StoreLineage.Restored? = nil, _ observer: OpeningObserver
  ) throws -> QuarantinedStore {
    let quarantine = QuarantineFolder(beside: place, surroundings: surroundings)
    _ = try quarantine.finishInterrupted()
    let examination = try Examiner(fileSystem: fileSystem).examine(
      place.main, model: model,
      options: .init(depth: .full, countsRecords: true) { done, total in
        observer.progress(OpeningProgress(phase: .examining, completed: Int64(done), total: Int64(total)))
        return !observer.isCancelled()
      })
    if examination.verdict == .unavailable, !examination.isReadable {
      throw LazaretError(.unavailable, examination, path: place.main)
    }
    if refusesSound, examination.verdict == .compatible || examination.verdict == .outdated {
      throw QuarantineError(
        .nothingToQuarantine, operation: "quarantine the store", path: place.main,
        detail: "nothing wrong was found with it, and it stays where it is",
        hint: "Quarantine it by itself where it is to be moved all the same.")
    }
    var facts = QuarantineCase(examination, appVersion: appVersion)
    facts.makesRoomFor = restored
    if let reason { facts.reason = .init(code: QuarantineCase.requestCode, words: reason) }
    if examination.verdict == .compatible || examination.verdict == .outdated, reason == nil {
      facts.reason = .init(code: QuarantineCase.requestCode, words: "It was asked for; nothing wrong was found.")
    }
    guard !(try place.members(in: fileSystem)).isEmpty else {
      throw QuarantineError(
        .nothingToQuarantine, operation: "quarantine the store", path: place.main, detail: "there is no such store")
    }
    // The catalogue first: one that cannot be written is met before anything is moved.
    try catalogue.add(quarantine, holding: held)
    return try quarantine.add(place, because: facts) { done, total in
      try observer.report(.quarantining, at: place.main, completed: done, of: total)
    }
  }

  /// Puts a quarantined store back where it came from, or elsewhere.
  ///
  /// - Parameters:
  ///   - name: its name or path.
  ///   - destination: where it goes; the place it came from if nil.
  ///   - isReplacing: whether a store that is there is quarantined first.
  /// - Returns: where it is now, and what was quarantined for it.
  package func release(
    _ name: FilePath, to destination: FilePath? = nil, replacing isReplacing: Bool = false
  ) throws -> (place: StoreFileSet, quarantined: QuarantinedStore?) {
    let (folder, store) = try find(name)
    let place = try destination.map { try StoreFileSet.locate($0, in: fileSystem) } ?? folder.originalPlace(of: store)
    let locks = try lockFolders(of: store, in: folder, and: place.folder)
    var replaced: QuarantinedStore?
    if isReplacing, !(try place.members(in: fileSystem)).isEmpty {
      try folder.verify(store)
      replaced = try add(
        place, model: nil, reason: "The quarantined store \(store.id) was put in its place.", appVersion: nil,
        holding: lockedFolders(of: store, in: folder, and: place.folder), OpeningObserver())
    }
    do {
      let released = try folder.release(store.id, to: place)
      _ = consume locks
      return (released, replaced)
    } catch {
      // What made room for it goes back to where it was.
      if let replaced {
        _ = try QuarantineFolder(beside: place, surroundings: surroundings).release(replaced.id, to: place)
      }
      throw error
    }
  }

  /// What discarding a quarantined store would remove.
  package func discarding(_ name: FilePath) throws -> Discarding {
    let (folder, store) = try findDiscardable(name)
    return try folder.discarding(store)
  }

  /// Removes a quarantined store for good, or what is left of one that was released.
  package func discard(_ name: FilePath) throws -> QuarantinedStore {
    let (folder, store) = try findDiscardable(name)
    let locks = try lockFolders(of: store, in: folder, and: nil)
    try folder.discard(store.id)
    _ = consume locks
    return store
  }
}

extension Quarantines {
  /// Takes the locks of the folder that a quarantined store goes to, of the one it came from, and of the one that holds
  /// its quarantine: a process that opens a store there finishes interrupted moves, and must not meet one that is going on.
  func lockFolders(
    of store: QuarantinedStore, in folder: QuarantineFolder, and destination: FilePath?
  ) throws(FileError) -> FolderLocks {
    try FolderLocks(lockedFolders(of: store, in: folder, and: destination), in: fileSystem)
  }

  func lockedFolders(
    of store: QuarantinedStore, in folder: QuarantineFolder, and destination: FilePath?
  ) -> [FilePath] {
    let origin = store.receipt?.originalPath.path.map(\.folder)
    return [folder.path.folder, origin, destination].compactMap(\.self)
  }
}

extension Examination {
  /// Whether the store itself could be read, though it is unavailable for the app.
  var isReadable: Bool { health.fileKind != nil }
}
