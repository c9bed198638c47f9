import Platform
import SystemPackage

/// The quarantine of one place.
struct PlaceQuarantine {
  let place: StoreFileSet
  let surroundings: Surroundings

  var home: FilePath?

  private var fileSystem: FileSystem { surroundings.fileSystem }
  private var mark: PendingNotice { PendingNotice(for: place, in: fileSystem) }

  var folder: QuarantineFolder { QuarantineFolder(beside: place, surroundings: surroundings) }

  // MARK: Looking

  func newest() throws -> QuarantinedStore? {
    try folder.stores().first { $0.receipt?.originalPath.path == place.main }
  }

  /// Returns the store with a pending salvage or installation.
  func waiting() throws -> QuarantinedStore? {
    let installing = try mark.installation()?.id
    return try folder.stores().first { stored in
      guard let salvage = stored.receipt?.salvage, stored.receipt?.originalPath.path == place.main else {
        return stored.id == installing && stored.receipt?.salvage?.result?.isUsable == true
      }
      return salvage.isWanted || stored.id == installing && salvage.result?.isUsable == true
    }
  }

  func isWaiting(_ id: String) throws -> Bool {
    do {
      let now = try folder.store(named: id)
      let installing = try mark.installation()?.id
      return now.receipt?.salvage?.isWanted == true || installing == id
    } catch let error as LazaretError where error.kind == .notInQuarantine || error.kind == .evidenceMissing {
      return false
    }
  }

  /// Returns an earlier run's unreported events; the caller does not hold the folder lock.
  func untold() throws -> [OpeningEvent] {
    guard try mark.isThere() else { return [] }
    if let stored = try endedInstallation() { return [found(stored), .salvaged(stored, at: surroundings.now())] }
    guard let stored = try newest(), try stored.id != mark.previousID() else { return [] }
    return [found(stored)]
  }

  func found(_ stored: QuarantinedStore) -> OpeningEvent { .foundInQuarantine(stored, at: surroundings.now()) }

  /// Completes the receipt of a killed run's installation.
  ///
  /// - Returns: the salvaged original, if any.
  private func endedInstallation() throws -> QuarantinedStore? {
    guard let installing = try mark.installation(),
      let main = try fileSystem.status(of: place.main, followingLinks: false), main.identity.inode == installing.inode,
      let stored = try folder.stores().first(where: { $0.id == installing.id })
    else { return nil }
    if stored.receipt?.salvage?.state == .installed { return stored }
    let lock = try folder.salvageLock(patience: 10_000)
    // That run may not have noted it yet.
    var now = try folder.store(named: stored.id)
    if now.receipt?.salvage?.state != .installed {
      now = try SalvageInstallation(place: place, folder: folder, stored: now, surroundings: surroundings).note()
    }
    lock.release()
    return now
  }

  // MARK: Moving

  /// Marks a pending notice and moves the place's files into quarantine, under the caller's folder lock.
  ///
  /// - Parameter progress: gets the bytes done and the total; its error undoes the move.
  /// - Throws: the first error; the store is then at its path.
  func add(because facts: QuarantineCase, progress: (Int64, Int64) throws -> Void) throws -> QuarantinedStore {
    // A failed write must precede any move.
    if let home { try QuarantineCatalogue(home: home, surroundings: surroundings).add(folder, holding: [place.folder]) }
    try mark.write(previousID: try newest()?.id)
    do {
      return try folder.add(place, because: facts, progress: progress)
    } catch {
      // Report the first error; a leftover mark is harmless.
      try? mark.remove()
      throw error
    }
  }

  /// Notes an installed empty store, so that no opening continues the salvage, under the caller's salvage lock.
  func stopWaiting(_ id: String) throws -> QuarantinedStore {
    let date = surroundings.now()
    return try folder.update(id) { receipt in
      receipt.salvage?.isWanted = false
      receipt.add(Receipt.Moment(.replaced, at: date, words: "An empty store was created.", path: PathText(place.main)))
    }
  }
}

/// The mark of a replaced store with an undelivered notice.
///
/// The file `.NAME.replaced` lies beside the store from before the move until the notice is returned, so that a kill
/// cannot leave a user with an unexplained empty store. It also names a salvaged store before its installation.
struct PendingNotice {
  struct Installation: Equatable {
    /// The quarantine name of the salvaged original.
    var id: String

    /// The inode number of the file that gets the store's name.
    var inode: UInt64
  }

  private let path: FilePath
  private let fileSystem: FileSystem

  init(for place: StoreFileSet, in fileSystem: FileSystem) {
    path = place.main.hiddenSibling(suffix: ".replaced")
    self.fileSystem = fileSystem
  }

  func isThere() throws -> Bool { try fileSystem.status(of: path, followingLinks: false) != nil }

  /// Returns the quarantine's newest store before the replacement.
  func previousID() throws -> String? {
    let line = try lines().first
    return line?.isEmpty == false ? line : nil
  }

  func installation() throws -> Installation? {
    guard try isThere() else { return nil }
    let words = try lines().dropFirst().first?.split(separator: " ") ?? []
    guard words.count == 3, words[0] == "installing", let inode = UInt64(words[2]) else { return nil }
    return Installation(id: String(words[1]), inode: inode)
  }

  private func lines() throws -> [String] {
    do throws(FileError) {
      return String(decoding: try fileSystem.contents(of: path, limit: 400), as: UTF8.self)
        .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    } catch {
      guard error.kind == .notFound else { throw error }
      return []
    }
  }

  /// Writes the mark, under the caller's folder lock.
  func write(previousID: String?) throws {
    try fileSystem.writeAtomically(Array((previousID ?? "").utf8), to: path, replacing: true)
  }

  /// Adds a salvaged store before its installation, under the caller's folder lock.
  func write(_ installation: Installation) throws {
    let previous = try isThere() ? try previousID() ?? "" : ""
    let text = "\(previous)\ninstalling \(installation.id) \(installation.inode)"
    try fileSystem.writeAtomically(Array(text.utf8), to: path, replacing: true)
  }

  func remove() throws { try fileSystem.unlink(path) }
}
