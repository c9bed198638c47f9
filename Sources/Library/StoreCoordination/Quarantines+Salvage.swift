package import Examination
import Quarantine
package import SystemPackage

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
          holding: lockedFolders(of: stored, in: folder, and: place.folder), OpeningObserver())
      }
      _ = try installation.install(staged, from: files)
    } catch {
      if let replaced, try fileSystem.status(of: place.main, followingLinks: false) == nil {
        // What made room for it goes back to where it was.
        _ = consume salvaging
        _ = try QuarantineFolder(beside: place, surroundings: surroundings).release(replaced.id, to: place)
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
