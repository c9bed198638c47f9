package import Backup
import Platform
package import Salvage
package import SystemPackage

package struct QuarantineSalvage: Sendable {
  /// With its present receipt.
  package var stored: QuarantinedStore

  package var store: FilePath

  package var reportPath: FilePath

  package var report: SalvageReport

  package var result: Receipt.Salvage.Result

  /// Whether it is the one to install; false if a better earlier result stays.
  package var isCurrent: Bool

  /// The comparison with the previous result to install.
  package var comparison: SalvageComparison?

  /// The reason why the app cannot open it.
  package var failure: Receipt.Reason?

  package var words: String { [result.words, failure?.words].compactMap(\.self).joined(separator: " ") }
}

package struct QuarantineSalvageOptions: Sendable, Hashable {
  /// Deleted records are set aside.
  var findsDeleted: Bool

  /// The donor of lost records.
  package var backup: BackupSource?

  /// Whether to use a backup even without evidence of its store.
  var trustsBackup: Bool

  package init(findsDeleted: Bool = false, backup: BackupSource? = nil, trustsBackup: Bool = false) {
    self.findsDeleted = findsDeleted
    self.backup = backup
    self.trustsBackup = trustsBackup
  }
}

/// A backup that supplies lost records.
package enum BackupSource: Sendable, Hashable {
  /// The newest verified backup in the store's place in the home.
  case newest

  /// A backup of the home: this store's or, if it has none of that name, another's.
  case backup(BackupIdentifier)

  /// A sound store, a Lazaret backup of any kind, or a store packed with gzip.
  case file(FilePath)
}

/// The installation of a salvaged store's copy at an empty place.
///
/// The caller holds the salvage lock and the folder lock. After an interruption the next run removes partial files
/// (`takeBack`), so that the place is empty or has the whole store.
struct SalvageInstallation {
  let place: StoreFileSet
  let folder: QuarantineFolder
  let stored: QuarantinedStore
  let surroundings: Surroundings

  private var fileSystem: FileSystem { surroundings.fileSystem }
  private var mark: PendingNotice { PendingNotice(for: place, in: fileSystem) }

  /// The space needed beside the copy: the WAL index has 32 KiB, receipts are smaller.
  private static let reserve: Int64 = 128 << 10

  /// Returns the receipt's usable salvaged store.
  func source() throws -> (files: SalvageFiles, result: Receipt.Salvage.Result)? {
    guard let result = stored.receipt?.salvage?.result, result.isUsable, let files = folder.result(of: stored),
      try fileSystem.status(of: files.store.main, followingLinks: false)?.kind == .regular
    else { return nil }
    return (files, result)
  }

  /// Writes the copy, synced, beside the place.
  func stage(_ files: SalvageFiles, _ result: Receipt.Salvage.Result) throws -> StagedStore {
    let staged = try StagedStore(copying: files.store.main, for: place, in: fileSystem) { digest in
      guard digest.hexadecimal == result.sha256 else {
        throw FileError(.changed, operation: "install the salvaged store", path: files.store.main)
      }
    }
    if let access = try fileSystem.access(to: stored.files.main) {
      try fileSystem.adoptAccess(of: access.usable, to: staged.path)
    }
    guard try fileSystem.freeSpace(at: place.folder) >= Self.reserve else {
      throw FileError(.noSpace, operation: "install the salvaged store", path: place.folder)
    }
    return staged
  }

  /// Announces the installation on disk.
  func announce(_ staged: borrowing StagedStore) throws {
    guard let status = try fileSystem.status(of: staged.path, followingLinks: false) else {
      throw FileError(.changed, operation: "install the salvaged store", path: staged.path)
    }
    try mark.write(.init(id: stored.id, inode: status.identity.inode))
  }

  /// Installs the staged store, large values first, and notes it on the receipt.
  func install(_ staged: consuming StagedStore, from files: SalvageFiles) throws -> QuarantinedStore {
    if let member = try place.members(in: fileSystem).first {
      throw FileError(.alreadyExists, operation: "install the salvaged store", path: member.path)
    }
    let external = files.store.path(of: .externalData)
    do {
      if try fileSystem.status(of: external, followingLinks: false)?.kind == .directory {
        try fileSystem.copyTree(external, to: place.path(of: .externalData))
        try fileSystem.synchronizeDirectory(place.folder)
      }
      try staged.put()
    } catch {
      // Report the first error; the next opening removes the rest.
      try? Self.removeHalf(of: place, in: fileSystem)
      throw error
    }
    return try note()
  }

  /// Notes an installation's start or end on the receipt.
  ///
  /// Lists of the quarantine show it: the place may be one that no app opens.
  func noteAttempt(isOver: Bool = false) throws {
    let date = surroundings.now()
    _ = try folder.update(stored.id) { receipt in
      receipt.salvage?.installing = isOver ? nil : Receipt.Release(date: date.rfc3339, path: PathText(place.main))
    }
  }

  func note() throws -> QuarantinedStore {
    let date = surroundings.now()
    return try folder.update(stored.id) { receipt in
      receipt.salvage?.state = .installed
      receipt.salvage?.date = date.rfc3339
      receipt.salvage?.isWanted = false
      receipt.salvage?.installing = nil
      receipt.salvage?.installed = Receipt.Release(date: date.rfc3339, path: PathText(place.main))
      receipt.add(Receipt.Moment(.installed, at: date, path: PathText(place.main)))
    }
  }

  /// Removes copied large values without a main file, under the caller's folder lock.
  static func removeHalf(of place: StoreFileSet, in fileSystem: FileSystem) throws {
    guard try PendingNotice(for: place, in: fileSystem).installation() != nil,
      try fileSystem.status(of: place.main, followingLinks: false) == nil
    else { return }
    try fileSystem.removeTree(place.path(of: .externalData))
  }
}
