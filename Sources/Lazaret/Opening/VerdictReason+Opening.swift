import Migration
import PersistentStore
import Platform
import SystemPackage

extension VerdictReason {
  /// The code of an older version from which no migration leads to the app's.
  static let notMigratableCode = "not-migratable"

  /// The code of a migration that failed for a reason in the store.
  static let migrationFailedCode = "migration-failed"

  /// The code of a repair that failed for a reason in the store.
  static let repairFailedCode = "repair-failed"

  /// The code of damage that only SQLite saw.
  static let foundBySQLiteCode = "damage-found-by-sqlite"

  /// The longest text that a reason quotes of an error.
  private static let limit = 1_000

  /// No way leads from the store's version to the app's.
  static func notMigratable(_ error: MigrationError) -> VerdictReason {
    var words = "No migration leads from the store's version of the model to the app's: \(printable(error.detail))"
    for refusal in error.refusals.dropFirst().prefix(4) { words += "; \(printable(refusal.detail))" }
    return VerdictReason(
      notMigratableCode, words: words.prefix(limit) + reportWords(error), hint: error.hint,
      coreData: error.coreDataCode)
  }

  /// The migration, or the repair before it, failed for a reason in the store.
  static func migrationFailed(_ error: MigrationError) -> VerdictReason {
    VerdictReason(
      error.isOfRepair ? repairFailedCode : migrationFailedCode,
      words: "The \(error.isOfRepair ? "repair" : "migration") of the store failed (\(error.code)): "
        + printable(error.detail).prefix(limit)
        + reportWords(error),
      hint: error.hint, coreData: error.coreDataCode)
  }

  /// The damage that SQLite reported when it opened a store; nil for any other error.
  init?(damageFoundBy error: PersistentStoreError) {
    guard error.kind == .damaged || error.kind == .notADatabase else { return nil }
    self.init(
      Self.foundBySQLiteCode, words: "SQLite refuses to open the store: \(error.detail).",
      hint: Self.salvageHint, coreData: 259, sqlite: error.resultCode.map { Int($0 & 0xFF) })
  }

  private static func reportWords(_ error: MigrationError) -> String {
    guard let report = error.reportPath?.lastComponent?.string else { return "." }
    return ". Its report is \(printable(report))."
  }
}
