package import Backup
import HTTPServer
package import Lazaret
package import Platform

/// A store known to the inspector: quarantined, live, or a backup.
package struct ListedStore: Sendable {
  package enum Kind: Sendable {
    case quarantined(QuarantinedStore, QuarantineFolder)

    /// A live store, possibly in use.
    case live(StoreFileSet)

    case backup(StoredBackup, FolderPlace)
  }

  package let id: StoreID

  package let kind: Kind

  /// The app's file name, safe to display.
  package let name: String

  /// The time of quarantine, last change or backup.
  package let date: Timestamp?

  /// The total size in bytes.
  package let bytes: Int64

  /// Whether a quarantined store's files are missing, leaving its receipt.
  package var isMissing = false

  /// Whether only the receipt exists, without a salvaged store.
  var isOnlyReceipt = false

  package var quarantined: QuarantinedStore? {
    guard case .quarantined(let store, _) = kind else { return nil }
    return store
  }

  package var backup: (backup: StoredBackup, place: FolderPlace)? {
    guard case .backup(let backup, let place) = kind else { return nil }
    return (backup, place)
  }

  /// The store's own files, which SQLite must never open; nil for backups, which need unpacking, and missing files.
  package var files: StoreFileSet? {
    switch kind {
    case .quarantined(let store, _): isMissing ? nil : store.files
    case .live(let files): files
    case .backup: nil
    }
  }

  /// The salvaged store and report, if any.
  ///
  /// The names come from the quarantine, never from the receipt.
  package var salvage: SalvageFiles? {
    guard !isOnlyReceipt, case .quarantined(let store, let folder) = kind else { return nil }
    return folder.result(of: store)
  }
}

extension ListedStore {
  /// - Throws: `evidence-missing`, `not-in-quarantine` without a receipt, or file system errors.
  func requireFiles() throws {
    guard isMissing, case .quarantined(let store, let folder) = kind else { return }
    _ = try folder.store(named: store.id)
  }

  /// - Parameter refusal: the answer for a backup.
  /// - Throws: the refusal, or as ``requireFiles()``.
  func files(orRefuse refusal: Refusal) throws -> StoreFileSet {
    try requireFiles()
    guard let files = files ?? quarantined?.files else { throw refusal }
    return files
  }
}
