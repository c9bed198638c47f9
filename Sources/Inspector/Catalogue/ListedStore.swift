package import Backup
import HTTPServer
package import Lazaret
package import Platform

/// A store that the inspector knows: in quarantine, in its place, or backed up.
package struct ListedStore: Sendable {
  /// What kind of store it is.
  package enum Kind: Sendable {
    /// One in quarantine, and the folder that it lies in.
    case quarantined(QuarantinedStore, QuarantineFolder)

    /// One in its place, which an app may be using.
    case live(StoreFileSet)

    /// A backup, and where it is.
    case backup(StoredBackup, FolderPlace)
  }

  /// What it is called in addresses.
  package let id: StoreID

  /// What kind of store it is.
  package let kind: Kind

  /// The name of the app's file, safe to show.
  package let name: String

  /// When it was quarantined, changed last, or backed up.
  package let date: Timestamp?

  /// The size of everything of it, in bytes.
  package let bytes: Int64

  /// Whether no file of a quarantined store is there any more, and only its receipt tells of it.
  package var isMissing = false

  /// Whether nothing is there but that receipt: no salvaged store either.
  package var isOnlyReceipt = false

  /// The quarantined store; nil for any other.
  package var quarantined: QuarantinedStore? {
    guard case .quarantined(let store, _) = kind else { return nil }
    return store
  }

  /// The backup; nil for any other.
  package var backup: (backup: StoredBackup, place: FolderPlace)? {
    guard case .backup(let backup, let place) = kind else { return nil }
    return (backup, place)
  }

  /// The files of the store itself, as evidence or live: never to be opened by SQLite; nil for a backup, which has to be unpacked,
  /// and where they are missing.
  package var files: StoreFileSet? {
    switch kind {
    case .quarantined(let store, _): isMissing ? nil : store.files
    case .live(let files): files
    case .backup: nil
    }
  }

  /// The salvaged store with its report; nil where there is none, and where only the receipt is left.
  ///
  /// Its names are those that the quarantine gives, whatever the receipt says.
  package var salvage: SalvageFiles? {
    guard !isOnlyReceipt, case .quarantined(let store, let folder) = kind else { return nil }
    return folder.result(of: store)
  }
}

extension ListedStore {
  /// Refuses what needs the files of a quarantined store where they are missing.
  ///
  /// - Throws: `evidence-missing`, `not-in-quarantine` where not even the receipt is left, or what the file system says.
  func requireFiles() throws {
    guard isMissing, case .quarantined(let store, let folder) = kind else { return }
    _ = try folder.store(named: store.id)
  }

  /// The files of the store itself, for what needs them.
  ///
  /// - Parameter refusal: what is answered for a backup.
  /// - Throws: the refusal, or as ``requireFiles()``.
  func files(orRefuse refusal: Refusal) throws -> StoreFileSet {
    try requireFiles()
    guard let files = files ?? quarantined?.files else { throw refusal }
    return files
  }
}
