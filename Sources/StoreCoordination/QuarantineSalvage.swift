public import Quarantine
public import Salvage
public import SystemPackage

/// A salvaged store in quarantine: what came out of a quarantined one.
public struct QuarantineSalvage: Sendable {
  /// The quarantined store, with its receipt as it is now.
  public var stored: QuarantinedStore

  /// The salvaged store.
  public var store: FilePath

  /// The report, as a file.
  public var reportPath: FilePath

  /// What was recovered and what was not.
  public var report: SalvageReport

  /// The account of it that the receipt has.
  public var result: Receipt.Salvage.Result

  /// Whether it is the one to install; false where an earlier result is better, which stays.
  public var isCurrent: Bool

  /// How it differs from the result that was the one to install before; nil where there was none.
  public var comparison: SalvageComparison?
}

/// What a salvage of a quarantined store is to do.
public struct QuarantineSalvageOptions: Sendable, Hashable {
  /// Whether deleted records are looked for too; they are kept apart.
  public var findsDeleted: Bool

  /// A backup that lost records are taken from; nil for none.
  public var backup: BackupSource?

  /// Whether records are taken from that backup even if nothing says that it is of the store.
  public var trustsBackup: Bool

  /// Live records only, unless told otherwise.
  public init(findsDeleted: Bool = false, backup: BackupSource? = nil, trustsBackup: Bool = false) {
    self.findsDeleted = findsDeleted
    self.backup = backup
    self.trustsBackup = trustsBackup
  }
}
