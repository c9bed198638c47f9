public import SystemPackage

/// A backup that a salvage takes lost records from.
public enum BackupSource: Sendable, Hashable {
  /// The newest proven backup of the store in its place in the home.
  case newest

  /// A file: a healthy store, a backup of ours of any kind, or a store packed with gzip.
  case file(FilePath)
}
