package import Backup
package import Platform
package import Salvage
package import SystemPackage

/// A backup that supplies lost records.
package enum BackupSource: Sendable, Hashable {
  /// The newest verified backup in the store's place in the home.
  case newest

  /// A backup of the home: this store's or, if it has none of that name, another's.
  case backup(BackupIdentifier)

  /// A sound store, a Lazaret backup of any kind, or a store packed with gzip.
  case file(FilePath)
}

/// A backup as a readable store, from which a salvage takes lost records.
///
/// What is unpacked lies in files without names, which end with the donor.
///
/// ```swift
/// let backup = try UnpackedBackup(.newest, of: "Stores/App.sqlite", home: home)
/// let report = try Salvager().salvage(broken, to: rescued, options: .init(donor: backup.donor))
/// ```
package struct UnpackedBackup: Sendable {
  package let donor: SalvageDonor

  /// Nil for a foreign backup.
  package let id: BackupIdentifier?

  /// The kit in the backup.
  package let kit: KitSource

  /// Unpacks a backup if it is packed.
  ///
  /// - Parameters:
  ///   - store: the store to salvage, or its original place.
  ///   - trust: the required evidence of its origin; the store's own backups need only lack contrary evidence.
  ///   - scope: its generation and time, unless any store is trusted; nil takes those of the store at the path.
  /// - Throws: `no-such-backup`, `backup-encrypted` if no key decrypts it, `backup-of-other-generation`,
  ///   `backup-damaged`, `no-space`, `cancelled`, or file system errors.
  package init(
    _ source: BackupSource, of store: FilePath, home: FilePath, trust: SalvageDonor.Trust = .sameStore,
    scope: EvidenceScope? = nil, identities: [AgeIdentity] = [], surroundings: Surroundings = .machine,
    isCancelled: @escaping @Sendable () -> Bool = { false }
  ) throws {
    var backups = Backups(home: home, surroundings: surroundings)
    backups.identities = identities
    let known = if let scope { scope } else { try backups.evidence(of: store) }
    let unpacking = Unpacking(
      scope: known, accepts: trust == .anyStore, alternative: home, identities: identities,
      surroundings: surroundings, isCancelled: isCancelled)
    let found: Unpacking.Store
    // Backups in the store's place are its own unless evidence contradicts.
    var isOwn = false
    switch source {
    case .newest:
      let places = try backups.places(of: store)
      let moved = try Self.elsewhere(places, in: backups)
      found = try unpacking.newest(in: moved.isEmpty ? places : moved, of: backups)
      // Only the identifier links a copy elsewhere; the salvage compares it.
      isOwn = moved.isEmpty
    case .backup(let id):
      let own = try backups.catalogs(of: store).first { $0.backups.contains { $0.id == id } }
      isOwn = own != nil
      let catalog = if let own { own } else { try backups.find(id).catalog }
      found = try unpacking.restored(id, from: catalog.place)
    case .file(let path): found = try unpacking.file(path)
    }
    let isTrusted = isOwn && trust == .sameStore
    var donor = SalvageDonor(
      path: found.path, date: found.date, trust: isTrusted ? .noOtherStore : trust, id: found.id?.description)
    donor.files = found.files
    self.donor = donor
    id = found.id
    kit = found.kit
  }

  /// Returns the places of a moved or renamed copy if the store's own place has no backup.
  private static func elsewhere(_ own: [FolderPlace], in backups: Backups) throws -> [FolderPlace] {
    for place in own where try !BackupCatalog(of: place).backups.isEmpty { return [] }
    guard let uuid = own.first?.owner?.uuid else { return [] }
    return try backups.places().filter { $0.owner?.uuid == uuid }
  }

  package static let otherSource = "Name a file instead, or another home."

  private struct Unpacking {
    struct Store {
      var path: FilePath
      var files: OpenedFiles?
      var date: Timestamp
      var id: BackupIdentifier?
      var kit = KitSource.none
    }

    let scope: EvidenceScope

    /// Whether a named backup of any generation is accepted.
    let accepts: Bool

    /// The folder to unpack into without a usable temporary folder.
    let alternative: FilePath

    let identities: [AgeIdentity]

    let surroundings: Surroundings
    let isCancelled: @Sendable () -> Bool
    private var fileSystem: FileSystem { surroundings.fileSystem }

    /// Restores the newest verified backup, or else the newest complete one.
    func newest(in places: [FolderPlace], of backups: Backups) throws -> Store {
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
        do {
          return try restored(backup.id, from: place)
        } catch {
          let error = BackupError(any: error)
          // Skip a damaged backup; an environmental error affects all.
          guard error.kind == .damaged || error.kind == .chainBroken else { throw error }
          if first == nil { first = error }
        }
      }
      if let first { throw first }
      throw BackupError(
        .notFound, operation: "find a backup of the store", path: places.first?.path,
        detail: "there is none in its place", hint: try Self.hint(backups))
    }

    /// Suggests other stores' backups.
    private static func hint(_ backups: Backups) throws -> String {
      let others = try backups.places().compactMap { $0.owner?.path?.text }.map { printable($0) }
      guard !others.isEmpty else { return UnpackedBackup.otherSource }
      return
        "The home has backups of \(others.prefix(5).joined(separator: ", ")). Name one of them by its id or its file."
    }

    private static func refusal(_ id: BackupIdentifier, _ exclusion: EvidenceScope.Exclusion) -> BackupError {
      BackupError(.otherGeneration, operation: "take rows from backup \(id)", detail: "it \(exclusion.words)")
    }

    /// Rejects a salvaged or later store: its records postdate the damage.
    private func check(_ path: FilePath) throws {
      guard !accepts, let lineage = scope.lineage else { return }
      var isOther = false
      let files = try StoreFileSet.locate(path, in: fileSystem)
      if let theirs = try EvidenceScope(of: files.main, surroundings: surroundings).lineage {
        isOther = theirs.generation != lineage.generation && theirs.generation != lineage.restored?.generation
      }
      let name = files.main.lastComponent?.string ?? ""
      if QuarantineFolder.isOne(files.folder), name.contains(".salvaged") { isOther = true }
      guard isOther else { return }
      throw BackupError(
        .otherGeneration, operation: "take rows from the backup", path: path,
        detail: "it \(EvidenceScope.Exclusion.otherGeneration.words)")
    }

    func file(_ path: FilePath) throws -> Store {
      guard let status = try fileSystem.status(of: path) else {
        throw FileError(.notFound, operation: "read the backup", path: path)
      }
      guard status.kind == .regular else { throw FileError(.notRegularFile, operation: "read the backup", path: path) }
      let start = try fileSystem.open(path).bytes(at: 0, length: max(PackedFileUnpacking.magicLength, Self.ageLength))
      let isEncrypted = AgeOpener.isAge(start)
      guard isEncrypted || PackedFileUnpacking.compression(of: start) != nil else {
        try check(path)
        return Store(path: path, date: status.modified)
      }
      // A file of a backup is restored with the rest of its chain.
      if let own = try ownBackup(path) { return own }
      if isEncrypted, identities.isEmpty { throw Self.locked(path) }
      return try withName(needing: status.size) { main in
        var file = try isEncrypted ? decrypt(path, at: main) : fileSystem.open(path)
        let start = try file.bytes(at: 0, length: PackedFileUnpacking.magicLength)
        if PackedFileUnpacking.compression(of: start) != nil { file = try unpack(file, at: main) }
        return Store(path: main, files: OpenedFiles([.main: file]), date: status.modified)
      }
    }

    private func unpack(_ packed: ReadableFile, at path: FilePath) throws -> ReadableFile {
      try PackedFileUnpacking(in: fileSystem) { [isCancelled] _, _, _ in !isCancelled() }.unpack(packed, at: path)
    }

    /// The prefix that identifies age encryption, in bytes.
    private static let ageLength = 64

    /// The bytes of an encrypted file opened at once.
    private static let stride = 1 << 20

    private func decrypt(_ path: FilePath, at target: FilePath) throws -> ReadableFile {
      do {
        let source = try fileSystem.open(path)
        let file = try fileSystem.createUnnamed(target)
        var opener = AgeOpener(with: identities)
        var position: Int64 = 0
        while position < source.count {
          if isCancelled() {
            throw BackupError(.cancelled, operation: "read the backup", path: path, detail: "it was cancelled")
          }
          let bytes = try source.bytes(at: position, length: Self.stride)
          // The file was truncated meanwhile; the opener reports it.
          guard !bytes.isEmpty else { break }
          position += Int64(bytes.count)
          try file.write(try opener.open(bytes))
        }
        try file.write(try opener.finish())
        return try file.reading()
      } catch let error as FileError {
        if error.kind == .ageNoIdentity { throw Self.locked(path) }
        guard error.kind.subject == .age else { throw BackupError(error) }
        throw BackupError(.damaged, because: error, operation: "read the backup", path: path)
      } catch let error as BackupError {
        throw error
      } catch {
        throw BackupError(.damaged, operation: "read the backup", path: path, detail: "it cannot be decrypted")
      }
    }

    private static func locked(_ path: FilePath) -> BackupError {
      BackupError(
        .locked, operation: "read the backup", path: path,
        detail: "it is encrypted, and no key that opens it was given")
    }

    /// Restores a Lazaret backup file with the rest of its chain, if a manifest beside it matches.
    private func ownBackup(_ path: FilePath) throws -> Store? {
      guard let name = path.lastComponent?.string,
        let id = BackupIdentifier(String(name.prefix { $0 != "." }))
      else { return nil }
      let place = FolderPlace(try fileSystem.realPath(path.folder)).unlocked(with: identities)
      guard try BackupCatalog(of: place).backups.first(where: { $0.id == id })?.manifest != nil else { return nil }
      return try restored(id, from: place)
    }

    func restored(_ id: BackupIdentifier, from place: any BackupPlace) throws -> Store {
      if !accepts, let exclusion = try BackupCatalog(of: place).backup(id).exclusion(from: scope) {
        throw Self.refusal(id, exclusion)
      }
      return try withName(needing: 0) { main in
        let restorer = BackupRestorer(of: place, surroundings: surroundings)
        let (files, _) = try restorer.restoreUnnamed(id, at: main) { [isCancelled] _, _, _ in !isCancelled() }
        let catalog = try BackupCatalog(of: place)
        let kit = try catalog.recoveryKit(of: try catalog.backup(id)).map { KitSource.kit($0) } ?? .none
        return Store(path: main, files: files, date: id.date, id: id, kit: kit)
      }
    }

    /// Runs the body with the name that unpacked files have for a moment, in a private folder.
    private func withName(needing bytes: Int64, _ body: (FilePath) throws -> Store) throws -> Store {
      let folder = try PrivateFolder(in: nil, or: alternative, needing: bytes, to: "unpack the backup", surroundings)
      defer { withExtendedLifetime(folder) {} }
      return try body(folder.path.appending("Backup.sqlite"))
    }
  }
}
