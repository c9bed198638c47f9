package import Backup
package import StoreFiles

/// One of the forms in which the records of a store can be looked at.
package enum StoreSide: Sendable {
  /// The bytes of a damaged or quarantined store, as far as rows can be read in them; with the digests of its files where
  /// they are known.
  case evidence(StoreFileSet, sha256: [String])

  /// A sound file that no process writes to, such as a salvaged store.
  case file(StoreFileSet)

  /// A store that an app may be using: a copy of it as of one commit.
  case live(StoreFileSet)

  case backup(BackupIdentifier, FolderPlace)
}
