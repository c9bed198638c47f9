import Backup
internal import Migration
package import PersistentStore
package import Platform
internal import Salvage
package import SystemPackage

/// The quarantined stores of a home.
package struct Quarantines: Sendable {
  package let home: FilePath
  let surroundings: Surroundings

  /// The secret keys that decrypt a salvage's backup.
  package var identities: [AgeIdentity] = []

  /// The custom mappings and options for migrating a salvaged store.
  var migration = Migrator.Options()

  package init(home: FilePath, surroundings: Surroundings = .machine) {
    self.home = home
    self.surroundings = surroundings
  }

  var fileSystem: FileSystem { surroundings.fileSystem }
  private var catalogue: QuarantineCatalogue { QuarantineCatalogue(home: home, surroundings: surroundings) }

  /// Returns the catalogue's quarantined stores, newest first.
  ///
  /// - Parameter includingMissing: includes stores without any remaining file.
  package func stores(includingMissing: Bool = false) throws -> [QuarantinedStore] {
    try catalogue.stores(includingMissing: includingMissing)
  }

  /// Returns the quarantined stores beside a store, in a folder called `Incompatible`, or in a parent of one.
  ///
  /// - Parameter includingMissing: includes stores without any remaining file.
  package func stores(at path: FilePath, includingMissing: Bool = false) throws -> [QuarantinedStore] {
    try folder(at: path).stores(includingMissing: includingMissing)
  }

  /// Returns the remains of released stores, in the catalogue's folders or a place's.
  package func released(at place: FilePath? = nil) throws -> [(store: QuarantinedStore, rest: Discarding)] {
    try (place.map { [try folder(at: $0)] } ?? catalogue.folders()).flatMap { folder in
      try folder.releasedIDs().compactMap { id in try folder.released(id).map { ($0, try folder.discarding($0)) } }
    }
  }

  /// Finds a quarantined store by name or path.
  ///
  /// - Parameter includingMissing: includes a store without any remaining file.
  /// - Throws: `not-in-quarantine`, `evidence-missing` if only a receipt remains, or `ambiguous-id` if two folders have
  ///   that name.
  package func store(_ name: FilePath, includingMissing: Bool = false) throws -> QuarantinedStore {
    try find(name, includingMissing: includingMissing).store
  }

  package func check(evidenceOf store: QuarantinedStore, _ depth: EvidenceCheck.Depth) throws -> EvidenceCheck? {
    try QuarantineFolder(store.files.folder, surroundings: surroundings).check(evidenceOf: store, depth)
  }

  /// Finds a quarantined store, or its remains.
  package func discardable(_ name: FilePath) throws -> QuarantinedStore { try findDiscardable(name).store }

  private func findDiscardable(_ name: FilePath) throws -> (folder: QuarantineFolder, store: QuarantinedStore) {
    do {
      return try find(name, includingMissing: true)
    } catch let error as LazaretError where error.kind == .notInQuarantine {
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

  package func find(
    _ name: FilePath, includingMissing: Bool = false
  ) throws -> (folder: QuarantineFolder, store: QuarantinedStore) {
    guard let last = name.lastComponent else { throw Self.notFound(name) }
    if name.components.count > 1 || name.isAbsolute {
      let folder = QuarantineFolder(try fileSystem.realPath(name.folder), surroundings: surroundings)
      // Any file's path works: the name begins with the time.
      let id = last.string.split(separator: ".").first.map(String.init) ?? last.string
      return (folder, try folder.store(named: id, includingMissing: includingMissing))
    }
    var found: [(QuarantineFolder, QuarantinedStore)] = []
    for folder in try catalogue.folders() {
      let stores = try folder.stores(includingMissing: true).filter { $0.id == last.string }
      // The lookup of a missing store throws the reason.
      found += try stores.map { (folder, try folder.store(named: $0.id, includingMissing: includingMissing)) }
    }
    guard let first = found.first else {
      guard try finishInterrupted() else { throw Self.notFound(name) }
      return try find(name, includingMissing: includingMissing)
    }
    guard found.count == 1 else { throw Self.ambiguous(name, found.map(\.1)) }
    return first
  }

  /// Finishes or takes back the moves that an earlier run left unfinished in the folders of the home.
  ///
  /// - Returns: whether there was one.
  private func finishInterrupted() throws -> Bool {
    var hasFinished = false
    for folder in try catalogue.folders() where try folder.hasInterrupted() {
      let lock = try FolderLock(folder.path.folder, in: fileSystem)
      hasFinished = try !folder.finishInterrupted().isEmpty || hasFinished
      lock.release()
    }
    return hasFinished
  }

  private static func ambiguous(_ name: FilePath, _ found: [QuarantinedStore]) -> LazaretError {
    LazaretError(
      .ambiguous, operation: "find the quarantined store", path: name,
      detail: "\(found.count) folders have a store of that name",
      hint: "Give its path instead: \(found.map { quoted($0.files.main) }.joined(separator: " or ")).")
  }

  private static func notFound(_ name: FilePath) -> LazaretError {
    LazaretError(
      .notInQuarantine, operation: "find the quarantined store", path: name,
      detail: "no store of that name is known here")
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

  /// Moves a store in any state into quarantine.
  ///
  /// - Parameters:
  ///   - model: identifies the store's version.
  ///   - reason: nil takes the examination's.
  /// - Throws: `nothing-to-quarantine`, `locked`, `in-use`, or a file system error; the store is then unchanged.
  package func add(
    _ path: FilePath, model: AppModel? = nil, reason: String? = nil, appVersion: String? = nil,
    refusesSound: Bool = false, observer: OpeningObserver = OpeningObserver()
  ) throws -> QuarantinedStore {
    let place = try StoreFileSet.locate(path, in: fileSystem)
    let lock = try FolderLock(place.folder, in: fileSystem)
    let stored = try add(
      place, model: model, reason: reason, appVersion: appVersion, refusesSound: refusesSound,
      holding: [place.folder], observer)
    lock.release()
    return stored
  }

  func add(
    _ place: StoreFileSet, model: AppModel?, reason: String?, appVersion: String?, refusesSound: Bool = false,
    holding held: [FilePath],
    makingRoomFor restored: StoreLineage.Restored? = nil, replacing: Bool = false, _ observer: OpeningObserver
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
      throw LazaretError(
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
      throw LazaretError(
        .nothingToQuarantine, operation: "quarantine the store", path: place.main, detail: "there is no such store")
    }
    // A failed write must precede any move.
    try catalogue.add(quarantine, holding: held)
    if replacing { try quarantine.noteReplacing(place) }
    return try quarantine.add(place, because: facts) { done, total in
      try observer.report(.quarantining, at: place.main, completed: done, of: total)
    }
  }

  /// Puts a quarantined store back.
  ///
  /// - Parameters:
  ///   - name: its name or path.
  ///   - destination: nil takes the original place.
  ///   - isReplacing: first quarantines a store that is there.
  /// - Returns: its place, and the store quarantined for it.
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
        holding: lockedFolders(of: store, in: folder, and: place.folder), replacing: true, OpeningObserver())
    }
    let own = QuarantineFolder(beside: place, surroundings: surroundings)
    do {
      let released = try folder.release(store.id, to: place)
      if replaced != nil { try own.endReplacing(place) }
      locks.release()
      return (released, replaced)
    } catch {
      // Put the replaced store back, now or in the next opening.
      if replaced != nil { _ = try own.finishInterrupted() }
      throw error
    }
  }

  package func discarding(_ name: FilePath) throws -> Discarding {
    let (folder, store) = try findDiscardable(name)
    return try folder.discarding(store)
  }

  /// Removes a quarantined store, or its remains, for good.
  package func discard(_ name: FilePath) throws -> QuarantinedStore {
    let (folder, store) = try findDiscardable(name)
    let locks = try lockFolders(of: store, in: folder, and: nil)
    try folder.discard(store.id)
    locks.release()
    return store
  }
}

extension Quarantines {
  /// Locks the folder that a quarantined store goes to, its original folder, and its quarantine's parent.
  ///
  /// A process that opens a store there finishes interrupted moves, and must not meet a running one.
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
  /// Whether the store is readable, though unavailable for the app.
  var isReadable: Bool { health.fileKind != nil }
}

extension Quarantines {
  /// Salvages every record in the bytes of a quarantined store into a verified store beside it.
  ///
  /// The quarantined store is only read. Repeated salvages keep earlier results; `install` takes the best.
  ///
  /// - Parameters:
  ///   - name: its name or path.
  ///   - model: the app's model; nil takes the store's own metadata.
  /// - Throws: `not-in-quarantine`; `locked` if another process is salvaging in the folder; `LazaretError` of the kinds
  ///   `salvageFailed` and `cancelled`; file system errors.
  package func salvage(
    _ name: FilePath, model: AppModel? = nil, options: QuarantineSalvageOptions = QuarantineSalvageOptions(),
    observer: OpeningObserver = OpeningObserver()
  ) throws -> QuarantineSalvage {
    let (folder, store) = try find(name)
    let lock = try folder.salvageLock(patience: 1_000)
    let work = SalvageWork(
      id: store.id, folder: folder, model: model?.knowing(migration), options: options,
      migration: SalvageMigration(migration), surroundings: surroundings, observer: observer, home: home,
      identities: identities)
    let result = try work.run()
    lock.release()
    return result
  }

  /// Installs a copy of a salvaged store, after quarantining the present one.
  ///
  /// A sound store is backed up first, unless the home's policy forbids it. After a kill, the place has the old or the
  /// salvaged store, or is empty until the next opening installs the salvaged one.
  ///
  /// - Parameters:
  ///   - name: the quarantined original, by name or path.
  ///   - destination: nil takes the original place.
  ///   - model: identifies the replaced store's version.
  /// - Returns: the store's place, and the store quarantined for it.
  /// - Throws: `not-salvaged`; `salvage-unusable`, also for a model that does not fit; `locked` or `in-use` if another
  ///   process has the store open; file system errors. The place is then unchanged.
  package func install(
    _ name: FilePath, to destination: FilePath? = nil, model: AppModel? = nil, appVersion: String? = nil
  ) throws -> (place: StoreFileSet, quarantined: QuarantinedStore?) {
    let (folder, found) = try find(name)
    let place = try destination.map { try StoreFileSet.locate($0, in: fileSystem) } ?? folder.originalPlace(of: found)
    // Report a store in use first.
    let attempt = try StoreLock(on: place, in: fileSystem)
    attempt.release()
    // What an earlier attempt left half-way is ended first; a store that it brings back is locked as a salvage is.
    let earlier = try lockFolders(of: found, in: folder, and: place.folder)
    _ = try QuarantineFolder(beside: place, surroundings: surroundings).finishInterrupted()
    earlier.release()
    _ = try Backups(home: home, surroundings: surroundings).backUp(
      place, before: .beforeInstall, appVersion: appVersion)
    let salvaging = try folder.salvageLock(patience: 1_000)
    // A salvage may wait here for the folder, but never the other way round.
    let locks = try lockFolders(of: found, in: folder, and: place.folder)
    let stored = try folder.store(named: found.id)
    let installation = SalvageInstallation(place: place, folder: folder, stored: stored, surroundings: surroundings)
    let (files, result) = try checked(installation, model)
    let mark = PendingNotice(for: place, in: fileSystem)
    let hadMark = try mark.isThere()
    try SalvageInstallation.removeHalf(of: place, in: fileSystem)
    try installation.noteAttempt()
    let staged = try installation.stage(files, result)
    // From here on the salvaged store belongs at an empty place.
    if !hadMark { try mark.write(previousID: try newestID(from: place)) }
    try installation.announce(staged)
    var replaced: QuarantinedStore?
    do {
      if !(try place.members(in: fileSystem)).isEmpty {
        replaced = try add(
          place, model: model, reason: Self.replacedWords(stored.id), appVersion: appVersion,
          holding: lockedFolders(of: stored, in: folder, and: place.folder), replacing: true, OpeningObserver())
      }
      _ = try installation.install(staged, from: files)
      if replaced != nil { try QuarantineFolder(beside: place, surroundings: surroundings).endReplacing(place) }
    } catch {
      if let replaced, try fileSystem.status(of: place.main, followingLinks: false) == nil {
        salvaging.release()
        let own = QuarantineFolder(beside: place, surroundings: surroundings)
        _ = try own.release(replaced.id, to: place)
        try own.endReplacing(place)
      }
      if try !(place.members(in: fileSystem)).isEmpty { try installation.noteAttempt(isOver: true) }
      // The mark stays while the salvaged store belongs at the empty place.
      if !hadMark, try !(place.members(in: fileSystem)).isEmpty { try mark.remove() }
      throw error
    }
    // The caller requested it, so the app's user needs no notice.
    try mark.remove()
    locks.release()
    return (place, replaced)
  }

  /// Returns the still empty place of an interrupted installation.
  ///
  /// Installing there again finishes it, and so does an app's opening.
  package func interruptedInstallation(of stored: QuarantinedStore) throws -> FilePath? {
    guard let place = stored.receipt?.salvage?.installing?.path.path,
      try fileSystem.status(of: place, followingLinks: false) == nil
    else { return nil }
    return place
  }

  /// Returns a place's newest quarantined store, which needs no new notice.
  private func newestID(from place: StoreFileSet) throws -> String? {
    try QuarantineFolder(beside: place, surroundings: surroundings).stores()
      .first { $0.receipt?.originalPath.path == place.main }?.id
  }

  private static func whatFits(_ code: String?) -> String {
    switch code {
    case Receipt.Salvage.newerAppCode: "Update the app, and salvage it with the newer model."
    case Receipt.Salvage.unlistedVersionCode: LazaretErrorKind.listVersion
    case Receipt.Salvage.notMigratedCode: "Salvage it again with a model to whose current version a migration leads."
    default: LazaretErrorKind.salvageUnusable.usualHint
    }
  }

  private static func replacedWords(_ id: String) -> String {
    "What was salvaged of the quarantined store \(id) was put in its place."
  }

  private func checked(
    _ installation: SalvageInstallation, _ model: AppModel?
  ) throws -> (files: SalvageFiles, result: Receipt.Salvage.Result) {
    guard let result = installation.stored.receipt?.salvage?.result else {
      throw LazaretError(
        .notSalvaged, operation: "install the salvaged store", path: installation.stored.files.main,
        detail: "nothing was salvaged of it yet")
    }
    guard let (files, _) = try installation.source() else {
      let failure = installation.stored.receipt?.salvage?.failure
      let words = failure.map { printable($0.words) } ?? "the salvaged store is missing"
      throw LazaretError(
        .salvageUnusable, operation: "install the salvaged store", path: installation.stored.files.main,
        detail: words.asDetail, hint: Self.whatFits(failure?.code))
    }
    guard try installation.folder.isIntact(result, files) else {
      throw LazaretError(
        .evidenceChanged, operation: "install the salvaged store", path: files.store.main,
        detail: "it has changed since it was made", hint: "Another program has written to it. Salvage it again.")
    }
    if let model {
      let examination = try Examiner(fileSystem: fileSystem).examine(
        files.store.main, model: model, options: .init(countsRecords: false))
      guard examination.verdict != .incompatible else {
        throw LazaretError(
          .salvageUnusable, operation: "install the salvaged store", path: files.store.main,
          detail: "it does not fit the model: \(examination.reason.words.dropLast())",
          hint: "Give the model that it was salvaged with; nothing was moved.")
      }
    }
    return (files, result)
  }
}

/// The locks of the folders in a move; held until this value ends.
///
/// Taken in path order, to avoid a deadlock between processes.
struct FolderLocks: ~Copyable {
  private let first: FolderLock?
  private let second: FolderLock?
  private let third: FolderLock?

  /// Takes the locks, waiting for other processes.
  ///
  /// - Parameter folders: at most three; a missing folder needs no lock.
  init(_ folders: [FilePath], in fileSystem: FileSystem) throws(FileError) {
    var real: Set<FilePath> = []
    for folder in folders where try fileSystem.status(of: folder)?.kind == .directory {
      real.insert(try fileSystem.realPath(folder))
    }
    var waiting = real.ordered { $0.string < $1.string }[...]
    func next() throws(FileError) -> FolderLock? {
      guard let folder = waiting.popFirst() else { return nil }
      return try FolderLock(folder, in: fileSystem)
    }
    let first = try next()
    let second = try next()
    let third = try next()
    self.first = first
    self.second = second
    self.third = third
  }

  /// Ends the locks.
  consuming func release() {}
}
