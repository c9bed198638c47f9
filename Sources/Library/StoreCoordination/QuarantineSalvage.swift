package import Quarantine
import Salvage
package import SystemPackage

/// A salvaged store in quarantine: what came out of a quarantined one.
package struct QuarantineSalvage: Sendable {
  /// The quarantined store, with its receipt as it is now.
  package var stored: QuarantinedStore

  /// The salvaged store.
  package var store: FilePath

  /// The report, as a file.
  package var reportPath: FilePath

  /// What was recovered and what was not.
  package var report: SalvageReport

  /// The account of it that the receipt has.
  package var result: Receipt.Salvage.Result

  /// Whether it is the one to install; false where an earlier result is better, which stays.
  package var isCurrent: Bool

  /// How it differs from the result that was the one to install before; nil where there was none.
  package var comparison: SalvageComparison?

  /// Why the app cannot open what came out; nil where it can.
  package var failure: Receipt.Reason?

  /// What came out, and why the app cannot open it where that is so, in plain sentences.
  package var words: String { [result.words, failure?.words].compactMap(\.self).joined(separator: " ") }
}

/// What a salvage of a quarantined store is to do.
package struct QuarantineSalvageOptions: Sendable, Hashable {
  /// Whether deleted records are looked for too; they are set aside.
  package var findsDeleted: Bool

  /// A backup that lost records are taken from; nil for none.
  package var backup: BackupSource?

  /// Whether records are taken from that backup even if nothing says that it is of the store.
  package var trustsBackup: Bool

  /// Live records only, unless told otherwise.
  package init(findsDeleted: Bool = false, backup: BackupSource? = nil, trustsBackup: Bool = false) {
    self.findsDeleted = findsDeleted
    self.backup = backup
    self.trustsBackup = trustsBackup
  }
}
