package import Backup
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
  package var findsDeleted: Bool

  /// The donor of lost records.
  package var backup: BackupSource?

  /// Whether to use a backup even without evidence of its store.
  package var trustsBackup: Bool

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
