package import SystemPackage

/// One step that is about to be taken on the file system.
package struct FileOperation: Sendable, Hashable {
  /// What kind of step.
  package enum Kind: String, Sendable, CaseIterable {
    case status
    case list
    case open
    case read
    case lock
    case create
    case write
    case truncate
    case synchronize
    case synchronizeDirectory
    case link
    case rename
    case unlink
    case makeDirectory
    case removeDirectory

    /// Whether the step changes what is on the disk.
    package var isWrite: Bool {
      switch self {
      case .status, .list, .open, .read, .lock: false
      case .create, .write, .truncate, .synchronize, .synchronizeDirectory, .link, .rename, .unlink, .makeDirectory,
        .removeDirectory:
        true
      }
    }
  }

  package var kind: Kind
  package var path: FilePath
}
