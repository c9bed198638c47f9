package import Backup
package import Platform
package import Salvage
package import SystemPackage

/// A backup that a salvage takes lost records from, as a store that can be read.
///
/// What had to be unpacked lies among the temporary files, for its owner alone, and goes when this value ends. Keep it until
/// the salvage is done.
///
/// ```swift
/// let backup = try UnpackedBackup(.newest, of: "Stores/App.sqlite", home: home)
/// let report = try Salvager().salvage(broken, to: rescued, options: .init(donor: backup.donor))
/// withExtendedLifetime(backup) {}
/// ```
package final class UnpackedBackup: Sendable {
  /// The store.
  package let donor: SalvageDonor

  /// The backup of ours that it is; nil for any other file.
  package let id: BackupIdentifier?

  /// The recovery kit that lies in it.
  package let kit: KitSource

  private let folder: PrivateFolder?

  /// Unpacks a backup, where it is packed.
  ///
  /// - Parameters:
  ///   - source: which one.
  ///   - store: the store that is salvaged, or the place it came from.
  ///   - home: the folder with `Backups/`.
  ///   - trust: what must be known of where it is from; of the store's own backups nothing speaks for another store.
  ///   - scope: of which generation and time it must be, unless any store is trusted; as the store at the path is if nil.
  ///   - identities: the secret keys with which it is read where it is encrypted.
  ///   - isCancelled: asked now and then.
  /// - Throws: `no-such-backup`, `backup-encrypted` where no key opens it, `backup-of-other-generation`, `backup-damaged`, `no-space`,
  ///   `cancelled`, or what the file system says.
  package init(
    _ source: BackupSource, of store: FilePath, home: FilePath, trust: SalvageDonor.Trust = .sameStore,
    scope: EvidenceScope? = nil, identities: [AgeIdentity] = [], surroundings: Surroundings = .machine,
    isCancelled: @escaping @Sendable () -> Bool = { false }
  ) throws(BackupError) {
    var backups = Backups(home: home, surroundings: surroundings)
    backups.identities = identities
    let known = if let scope { scope } else { try backups.evidence(of: store) }
    let unpacking = Unpacking(
      scope: known, accepts: trust == .anyStore, alternative: home, identities: identities,
      surroundings: surroundings, isCancelled: isCancelled)
    let found: Unpacking.Store
    // What lies in the store's own place is its own, as far as nothing speaks against it.
    var isOwn = false
    switch source {
    case .newest:
      let places = try backups.places(of: store)
      let moved = try Self.elsewhere(places, in: backups)
      found = try unpacking.newest(in: moved.isEmpty ? places : moved, of: backups)
      // Of a copy somewhere else only the identifier speaks, and the salvage holds it against the store's.
      isOwn = moved.isEmpty
    case .backup(let id):
      let own = try backups.catalogs(of: store).first { $0.backups.contains { $0.id == id } }
      isOwn = own != nil
      let catalog = if let own { own } else { try backups.find(id).catalog }
      found = try unpacking.restored(id, from: catalog.place)
    case .file(let path): found = try unpacking.file(path)
    }
    let isTrusted = isOwn && trust == .sameStore
    donor = SalvageDonor(
      path: found.path, date: found.date, trust: isTrusted ? .noOtherStore : trust,
      id: found.id?.description)
    id = found.id
    kit = found.kit
    folder = found.folder
  }

  /// The places of the home that are of the same store by its identifier, where its own has no backup: of a copy that lies
  /// somewhere else, or was given another name.
  private static func elsewhere(_ own: [FolderPlace], in backups: Backups) throws(BackupError) -> [FolderPlace] {
    for place in own where try !BackupCatalog(of: place).backups.isEmpty { return [] }
    guard let uuid = own.first?.owner?.uuid else { return [] }
    return try backups.places().filter { $0.owner?.uuid == uuid }
  }

  private struct Unpacking {
    struct Store {
      var path: FilePath
      var date: Timestamp
      var id: BackupIdentifier?
      var folder: PrivateFolder?
      var kit = KitSource.none
    }

    let scope: EvidenceScope

    /// Whether a backup that the caller names is taken whatever its generation.
    let accepts: Bool

    /// The folder to unpack into where the system's own for temporary files cannot be used.
    let alternative: FilePath

    /// The secret keys for what is encrypted.
    let identities: [AgeIdentity]

    let surroundings: Surroundings
    let isCancelled: @Sendable () -> Bool
    private var fileSystem: FileSystem { surroundings.fileSystem }

    /// The newest backup that was proven, or else that proves to be whole when it is restored.
    func newest(in places: [FolderPlace], of backups: Backups) throws(BackupError) -> Store {
      var all: [(backup: StoredBackup, place: FolderPlace)] = []
      for place in places {
        for backup in try BackupCatalog(of: place).backups
        where backup.isWhole && !backup.isApart && backup.proof?.result != .failed { all.append((backup, place)) }
      }
      if places.count > 1 { all.sort { $0.backup.id > $1.backup.id } }
      let whole = all.filter { $0.backup.exclusion(from: scope) == nil }
      if whole.isEmpty, let newest = all.first?.backup, let exclusion = newest.exclusion(from: scope) {
        throw Self.refusal(newest.id, exclusion)
      }
      let ordered = whole.filter(\.backup.isProvenGood) + whole.filter { !$0.backup.isProvenGood }
      var first: BackupError?
      for (backup, place) in ordered.prefix(8) {
        do throws(BackupError) {
          return try restored(backup.id, from: place)
        } catch {
          // One that proves to be damaged is none; an environmental error is the same for all.
          guard error.kind == .damaged || error.kind == .chainBroken else { throw error }
          if first == nil { first = error }
        }
      }
      if let first { throw first }
      throw BackupError(
        .notFound, operation: "find a backup of the store", path: places.first?.path,
        detail: "there is none in its place", hint: try Self.hint(backups))
    }

    /// Where there are backups, for one who asked for those of another store or in another home.
    private static func hint(_ backups: Backups) throws(BackupError) -> String {
      let others = try backups.places().compactMap { $0.owner?.path?.text }.map { printable($0) }
      guard !others.isEmpty else { return "Name a file instead, or another home with --home." }
      return
        "The home has backups of \(others.prefix(5).joined(separator: ", ")). Name one of them by its id or its file."
    }

    /// The error for a backup that says nothing of the store.
    private static func refusal(_ id: BackupIdentifier, _ exclusion: EvidenceScope.Exclusion) -> BackupError {
      BackupError(
        .otherGeneration, operation: "take rows from backup \(id)", detail: "it \(exclusion.words)",
        hint: "Use a backup from before; if the records in this one are the right ones, name it with --trust-backup.")
    }

    /// Refuses a store that lies where a salvaged or later one is: its records are not from before the damage.
    private func check(_ path: FilePath) throws(BackupError) {
      guard !accepts, let lineage = scope.lineage else { return }
      var isOther = false
      do throws(FileError) {
        let files = try StoreFileSet.locate(path, in: fileSystem)
        if let theirs = try EvidenceScope(of: files.main, surroundings: surroundings).lineage {
          isOther = theirs.generation != lineage.generation && theirs.generation != lineage.restored?.generation
        }
        let name = files.main.lastComponent?.string ?? ""
        if QuarantineFolder.isOne(files.folder), name.contains(".salvaged") { isOther = true }
      } catch {
        throw BackupError(error)
      }
      guard isOther else { return }
      throw BackupError(
        .otherGeneration, operation: "take rows from the backup", path: path,
        detail: "it \(EvidenceScope.Exclusion.otherGeneration.words)",
        hint: "Use a backup from before; if the records in this one are the right ones, say so with --trust-backup.")
    }

    func file(_ path: FilePath) throws(BackupError) -> Store {
      let status: FileStatus
      let start: [UInt8]
      do throws(FileError) {
        guard let found = try fileSystem.status(of: path) else {
          throw FileError(.notFound, operation: "read the backup", path: path)
        }
        guard found.kind == .regular else {
          throw FileError(.notRegularFile, operation: "read the backup", path: path)
        }
        status = found
        start = try fileSystem.open(path).bytes(at: 0, length: max(PackedFileUnpacking.magicLength, Self.ageLength))
      } catch {
        throw BackupError(error)
      }
      if AgeOpener.isAge(start) { return try encrypted(path, status) }
      guard PackedFileUnpacking.compression(of: start) != nil else {
        try check(path)
        return Store(path: path, date: status.modified)
      }
      if let own = try ownBackup(path) { return own }
      let folder = try privateFolder(needing: status.size)
      let main = folder.path.appending("Backup.sqlite")
      try PackedFileUnpacking(in: fileSystem) { [isCancelled] _, _, _ in !isCancelled() }.unpack(path, to: main)
      return Store(path: main, date: status.modified, folder: folder)
    }

    /// The bytes by which a file is known to be encrypted with age.
    private static let ageLength = 64

    /// The largest part of an encrypted file that is opened at once, in bytes.
    private static let stride = 1 << 20

    /// A file of a backup of ours with the rest of its chain, or any other store that is encrypted, packed or not.
    private func encrypted(_ path: FilePath, _ status: FileStatus) throws(BackupError) -> Store {
      if let own = try ownBackup(path) { return own }
      guard !identities.isEmpty else { throw Self.locked(path) }
      let folder = try privateFolder(needing: status.size)
      let opened = folder.path.appending("Opened")
      try open(path, to: opened)
      let start: [UInt8]
      do throws(FileError) {
        start = try fileSystem.open(opened).bytes(at: 0, length: PackedFileUnpacking.magicLength)
      } catch {
        throw BackupError(error)
      }
      guard PackedFileUnpacking.compression(of: start) != nil else {
        return Store(path: opened, date: status.modified, folder: folder)
      }
      let main = folder.path.appending("Backup.sqlite")
      try PackedFileUnpacking(in: fileSystem) { [isCancelled] _, _, _ in !isCancelled() }.unpack(opened, to: main)
      return Store(path: main, date: status.modified, folder: folder)
    }

    private func open(_ path: FilePath, to target: FilePath) throws(BackupError) {
      do {
        let source = try fileSystem.open(path)
        let file = try fileSystem.create(target)
        var opener = AgeOpener(with: identities)
        var position: Int64 = 0
        while position < source.count {
          if isCancelled() {
            throw BackupError(.cancelled, operation: "read the backup", path: path, detail: "it was cancelled")
          }
          let bytes = try source.bytes(at: position, length: Self.stride)
          // A file that has become shorter meanwhile ends here, and the opener says that it is cut off.
          guard !bytes.isEmpty else { break }
          position += Int64(bytes.count)
          try file.write(try opener.open(bytes))
        }
        try file.write(try opener.finish())
        try file.commit()
      } catch let error as AgeError {
        if error.kind == .noIdentity { throw Self.locked(path) }
        throw BackupError(.damaged, because: error, operation: "read the backup", path: path)
      } catch let error as FileError {
        throw BackupError(error)
      } catch let error as BackupError {
        throw error
      } catch {
        throw BackupError(.damaged, operation: "read the backup", path: path, detail: "it cannot be decrypted")
      }
    }

    /// The error for a file whose key was not given.
    private static func locked(_ path: FilePath) -> BackupError {
      BackupError(
        .locked, operation: "read the backup", path: path,
        detail: "it is encrypted, and no key that opens it was given")
    }

    /// Restores a file of a backup of ours with the rest of its chain; nil where no manifest beside it is of it.
    private func ownBackup(_ path: FilePath) throws(BackupError) -> Store? {
      guard let name = path.lastComponent?.string,
        let id = BackupIdentifier(String(name.prefix { $0 != "." }))
      else { return nil }
      let place: FolderPlace
      do throws(FileError) {
        place = FolderPlace(try fileSystem.realPath(path.folder)).unlocked(with: identities)
      } catch {
        throw BackupError(error)
      }
      guard try BackupCatalog(of: place).backups.first(where: { $0.id == id })?.manifest != nil else { return nil }
      return try restored(id, from: place)
    }

    func restored(_ id: BackupIdentifier, from place: any BackupPlace) throws(BackupError) -> Store {
      if !accepts, let exclusion = try BackupCatalog(of: place).backup(id).exclusion(from: scope) {
        throw Self.refusal(id, exclusion)
      }
      let folder = try privateFolder(needing: 0)
      let main = folder.path.appending("Backup.sqlite")
      let options = BackupRestorer.Options { [isCancelled] _, _, _ in !isCancelled() }
      _ = try BackupRestorer(of: place, surroundings: surroundings).restore(id, to: main, options: options)
      let catalog = try BackupCatalog(of: place)
      let kit = try catalog.recoveryKit(of: try catalog.backup(id)).map { KitSource.kit($0) } ?? .none
      return Store(path: main, date: id.date, id: id, folder: folder, kit: kit)
    }

    private func privateFolder(needing bytes: Int64) throws(BackupError) -> PrivateFolder {
      do throws(FileError) {
        return try PrivateFolder(
          in: nil, or: alternative, needing: bytes, to: "unpack the backup", surroundings)
      } catch {
        throw BackupError(error)
      }
    }
  }
}
