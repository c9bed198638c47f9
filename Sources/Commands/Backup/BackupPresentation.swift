import Backup
import Platform

extension StoredBackup {
  /// Returns the JSON of a backup.
  ///
  /// - Parameter scope: the evidence scope of the queried store.
  func payload(in place: any BackupPlace, of scope: EvidenceScope? = nil) -> JSON.Object {
    JSON.Object(
      self,
      [
        "store": place.name,
        // The store's path relative to the home, if known.
        "path": place.owner?.path, "folder": place.shownLocation,
        "exclusion": scope.flatMap { exclusion(from: $0)?.rawValue },
      ])
  }
}

extension BackupManifest.Kind {
  func words(of manifest: BackupManifest) -> String {
    switch self {
    case .full: "full"
    case .delta: "changes since \(manifest.parent?.description ?? "?")"
    case .evidence: "evidence"
    case .original: "the original that a migration kept"
    }
  }
}
