package import StoreCoordination

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

  /// The files of the store itself, as evidence or live: never to be opened by SQLite; nil for a backup, which has to be unpacked.
  package var files: StoreFileSet? {
    switch kind {
    case .quarantined(let store, _): store.files
    case .live(let files): files
    case .backup: nil
    }
  }

  /// The salvaged store with its report; nil where there is none.
  ///
  /// Its names are those that the quarantine gives, whatever the receipt says.
  package var salvage: SalvageFiles? {
    guard case .quarantined(let store, let folder) = kind else { return nil }
    return folder.result(of: store)
  }
}
