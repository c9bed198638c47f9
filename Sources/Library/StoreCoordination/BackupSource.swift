package import Backup
package import SystemPackage

/// A backup that a salvage takes lost records from.
package enum BackupSource: Sendable, Hashable {
  /// The newest proven backup of the store in its place in the home.
  case newest

  /// A backup of the home, of this store or, where no backup of it has that name, of another.
  case backup(BackupIdentifier)

  /// A file: a healthy store, a backup of ours of any kind, or a store packed with gzip.
  case file(FilePath)
}
