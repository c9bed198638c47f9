import Backup
import Platform

extension StoredBackup {
  /// What the verbs print of it.
  ///
  /// - Parameter scope: that of the store that is asked about; nil where none is.
  func payload(in place: any BackupPlace, of scope: EvidenceScope? = nil) -> JSON.Object {
    JSON.Object(
      self,
      [
        "store": place.name,
        // The path of the store from the home on; missing where it is not known.
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
