import Backup
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import Salvage
import SupportBundle
import SwiftModelSources

/// The options that follow the hints of the libraries, which know none.
package enum OptionHints {
  /// The options of a hint, or of the sentence that ends one.
  package static let options: KeyValuePairs<String, String> = [
    BackupErrorKind.ambiguous.usualHint: "--of",
    BackupErrorKind.encryptionMissing.usualHint: "--encrypt-to age1…, --no-encryption",
    BackupErrorKind.giveModel: "--model",
    BackupErrorKind.locked.usualHint: "--identity FILE",
    BackupErrorKind.notFound.usualHint: "--home, \(HomeOptions.variable)",
    BackupErrorKind.orWhatIsLeft: "--salvage",
    BackupErrorKind.otherGeneration.usualHint: "--trust-backup",
    BackupErrorKind.otherHome: "--home",
    BackupErrorKind.otherPath: "--to",
    BackupErrorKind.otherStore.usualHint: "--of, --other-store",
    LazaretErrorKind.givePlace: "--to",
    LazaretErrorKind.listVersion: "--versions, --lock",
    LazaretErrorKind.notInQuarantine.usualHint: "--home, \(HomeOptions.variable)",
    LazaretErrorKind.placeTaken.usualHint: "--replace, --to",
    LintListing.releasedSteps: "--all",
    MigrationErrorKind.lockInvalid.usualHint: "--write-lock",
    MigrationRefusal.acceptLoss: "--on-migration-loss migrate",
    ModelErrorKind.sourcesNotBuiltIn.usualHint: "swift build --traits SwiftSources",
    ModelErrorKind.unknownType.usualHint: "--types A,B",
    ModelLock.writeAnew: "lazaret model lint --lock <file> --write-lock --versions V1,V2",
    PersistentStoreErrorKind.newerVersion.usualHint: "--versions, --lock",
    PersistentStoreErrorKind.unknownDamage.usualHint: "lazaret damage --list",
    SalvageErrorKind.knownDonor: "--trust-backup",
    SchemaLint.freezeSources: "--version-name <name> --schema <name>",
    SchemaLint.freezeStore: "--schema <name>",
    SourceFinding.giveFlags: "--define",
    SourceFinding.givePlatform: "--platform",
    SourceFinding.nameTypes: "--types A,B",
    SupportBundleErrorKind.answer.usualHint: "--put",
    SupportBundleErrorKind.notInOutbox.usualHint: "--home, \(HomeOptions.variable)",
    SupportBundleErrorKind.store.usualHint: "--level",
    SupportBundleErrorKind.unauthorized.usualHint: "--token-file, LAZARET_TOKEN",
    SupportBundleErrorKind.wholeAddress: "--to",
    SupportBundleErrors.reportIt: "without --keep",
    UnpackedBackup.otherSource: "--home",
    VerdictReason.listVersion: "--versions, --lock",
    VerdictReason.repairRecords: "lazaret repair --data",
  ]

  /// Puts the options into the hint, before its full stop.
  package static func worded(_ hint: String) -> String {
    options.reduce(hint) { $0.replacing($1.key, with: "\($1.key.dropLast()) (\($1.value)).") }
  }
}

extension ReportableError {
  /// The error on one line, with options in its hint.
  var told: String { OptionHints.worded(description) }
}
