import Backup
package import Migration
package import PersistentStore
package import Platform
internal import Salvage
package import SystemPackage

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
    if replacing { try quarantine.noteReplacing(place) }
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
        holding: lockedFolders(of: store, in: folder, and: place.folder), replacing: true, OpeningObserver())
    }
    let own = QuarantineFolder(beside: place, surroundings: surroundings)
    do {
      let released = try folder.release(store.id, to: place)
      if replaced != nil { try own.endReplacing(place) }
      _ = consume locks
      return (released, replaced)
    } catch {
      // What made room for it goes back to where it was, now or with the next opening.
      if replaced != nil { _ = try own.finishInterrupted() }
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

extension Quarantines {
  /// Makes a clean store of every record that is still in the bytes of a quarantined one, beside it.
  ///
  /// The quarantined store is only read. What comes out is verified, and seen to open where the model is given; it can be done
  /// again at any time: earlier results stay, and the best is the one to install. Nothing is put into an app's
  /// place: `install` does that.
  ///
  /// - Parameters:
  ///   - name: its name or path.
  ///   - model: the app's model; what the store says of itself if nil.
  /// - Throws: `not-in-quarantine`; `locked` where another process is salvaging in the folder; `LazaretError` of the kinds
  ///   `salvageFailed` and `cancelled`; what the file system says.
  package func salvage(
    _ name: FilePath, model: AppModel? = nil, options: QuarantineSalvageOptions = QuarantineSalvageOptions(),
    observer: OpeningObserver = OpeningObserver()
  ) throws -> QuarantineSalvage {
    let (folder, store) = try find(name)
    let lock = try folder.salvageLock(patience: 1_000)
    var work = SalvageWork(
      of: store.id, in: folder, model: model?.knowing(migration), options: options,
      migration: SalvageMigration(migration), surroundings: surroundings, observer: observer, home: home)
    work.identities = identities
    let result = try work.run()
    _ = consume lock
    return result
  }

  /// Puts a copy of a salvaged store into an app's place; the store that is there is quarantined first, whole.
  ///
  /// Where it is sound, a backup of it is taken before, unless the home's policy forbids it.
  ///
  /// After a kill at any moment the place has the store that was there, or the salvaged one, or is empty while the next
  /// opening puts the salvaged one there.
  ///
  /// - Parameters:
  ///   - name: the quarantined store that it was made of, by name or path.
  ///   - destination: the place; the one that the quarantined store came from if nil.
  ///   - model: the app's model, by which the receipt of the store that makes room tells its version.
  /// - Returns: where it is now, and what was quarantined for it.
  /// - Throws: `not-salvaged`, `salvage-unusable`, also for a model that does not fit the salvaged store; `locked` or `in-use` where another process has the store open; what the file
  ///   system says. The place is then as it was.
  package func install(
    _ name: FilePath, to destination: FilePath? = nil, model: AppModel? = nil, appVersion: String? = nil
  ) throws -> (place: StoreFileSet, quarantined: QuarantinedStore?) {
    let (folder, found) = try find(name)
    let place = try destination.map { try StoreFileSet.locate($0, in: fileSystem) } ?? folder.originalPlace(of: found)
    // A store that is in use is told of before anything is done.
    let attempt = try StoreLock(on: place, in: fileSystem)
    _ = consume attempt
    _ = try Backups(home: home, surroundings: surroundings).backUp(
      place, before: .beforeInstall, appVersion: appVersion)
    let salvaging = try folder.salvageLock(patience: 1_000)
    // A salvage may have to wait here for the folder, but never the other way round.
    let locks = try lockFolders(of: found, in: folder, and: place.folder)
    let stored = try folder.store(named: found.id)
    let installation = SalvageInstallation(place: place, folder: folder, stored: stored, surroundings: surroundings)
    let (files, result) = try checked(installation, model)
    let mark = PendingNotice(for: place, in: fileSystem)
    let hadMark = try mark.isThere()
    // What an earlier attempt left half-way is ended first.
    _ = try QuarantineFolder(beside: place, surroundings: surroundings).finishInterrupted()
    try SalvageInstallation.removeHalf(of: place, in: fileSystem)
    try installation.noteAttempt()
    let staged = try installation.stage(files, result)
    // From here on an empty place is one that the salvaged store belongs into.
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
        // What made room for it goes back to where it was.
        _ = consume salvaging
        let own = QuarantineFolder(beside: place, surroundings: surroundings)
        _ = try own.release(replaced.id, to: place)
        try own.endReplacing(place)
      }
      if try !(place.members(in: fileSystem)).isEmpty { try installation.noteAttempt(isOver: true) }
      // A mark that stays says that an empty place is one that the salvaged store belongs into.
      if !hadMark, try !(place.members(in: fileSystem)).isEmpty { try mark.remove() }
      throw error
    }
    // The caller that asked for it knows, and the app's user is told nothing that was not the app's doing.
    try mark.remove()
    _ = consume locks
    return (place, replaced)
  }

  /// The place that the salvaged store of a quarantined one was being put into when that was interrupted, and that has
  /// been empty since; nil where none is.
  ///
  /// Installing it there again ends it, and so does an app that opens its store there.
  package func interruptedInstallation(of stored: QuarantinedStore) throws -> FilePath? {
    guard let place = stored.receipt?.salvage?.installing?.path.path,
      try fileSystem.status(of: place, followingLinks: false) == nil
    else { return nil }
    return place
  }

  /// The newest store in quarantine that came from a place: what is there already need not be reported.
  private func newestID(from place: StoreFileSet) throws -> String? {
    try QuarantineFolder(beside: place, surroundings: surroundings).stores()
      .first { $0.receipt?.originalPath.path == place.main }?.id
  }

  /// What to do where a result is of no use to the app, by the code of the reason.
  private static func whatFits(_ code: String?) -> String {
    switch code {
    case Receipt.Salvage.newerAppCode: "Update the app, and salvage it with the newer model"
    case Receipt.Salvage.unlistedVersionCode: "Salvage it again with its version in the order (--versions, a lock file)"
    case Receipt.Salvage.notMigratedCode: "Salvage it again with a model to whose current version a migration leads"
    default: "Salvage it again with the app's current model"
    }
  }

  private static func replacedWords(_ id: String) -> String {
    "What was salvaged of the quarantined store \(id) was put in its place."
  }

  private func checked(
    _ installation: SalvageInstallation, _ model: AppModel?
  ) throws -> (files: SalvageFiles, result: Receipt.Salvage.Result) {
    let again = installation.stored.command("salvage", home: try Self.absolute(home, in: fileSystem))
    guard let result = installation.stored.receipt?.salvage?.result else {
      throw QuarantineError(
        .notSalvaged, operation: "install the salvaged store", path: installation.stored.files.main,
        detail: "nothing was salvaged of it yet", hint: "Salvage it first: \(again)")
    }
    guard let (files, _) = try installation.source() else {
      let failure = installation.stored.receipt?.salvage?.failure
      var words = failure.map { printable($0.words) } ?? "the salvaged store is missing"
      if words.hasSuffix(".") { words.removeLast() }
      throw QuarantineError(
        .salvageUnusable, operation: "install the salvaged store", path: installation.stored.files.main,
        detail: words.prefix(1).lowercased() + words.dropFirst(),
        hint: Self.whatFits(failure?.code) + ": \(again) --model MODEL")
    }
    if try installation.isChanged(files, result) {
      throw QuarantineError(
        .evidenceChanged, operation: "install the salvaged store", path: files.store.main,
        detail: "it has changed since it was made",
        hint: "Another program has written to it. Salvage it again: \(again)")
    }
    if let model {
      let examination = try Examiner(fileSystem: fileSystem).examine(
        files.store.main, model: model, options: .init(countsRecords: false))
      guard examination.verdict != .incompatible else {
        throw QuarantineError(
          .salvageUnusable, operation: "install the salvaged store", path: files.store.main,
          detail: "it does not fit the model: \(examination.reason.words.dropLast())",
          hint: "Give the model that it was salvaged with; nothing was moved.")
      }
    }
    return (files, result)
  }
}
