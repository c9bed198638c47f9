import Migration
import PersistentStore
import Platform
import SystemPackage

extension VerdictReason {
  /// No migration leads from the earlier version to the app's.
  static let notMigratableCode = "not-migratable"

  static let migrationFailedCode = "migration-failed"

  static let repairFailedCode = "repair-failed"

  /// Only SQLite saw the damage.
  static let foundBySQLiteCode = "damage-found-by-sqlite"

  /// The longest quotation of an error.
  private static let limit = 1_000

  static func notMigratable(_ error: MigrationError) -> VerdictReason {
    var words = "No migration leads from the store's version of the model to the app's: \(printable(error.detail))"
    for refusal in error.refusals.dropFirst().prefix(4) { words += "; \(printable(refusal.detail))" }
    return VerdictReason(
      notMigratableCode, words: words.prefix(limit) + reportWords(error), hint: error.hint,
      coreData: error.coreDataCode)
  }

  /// Returns the reason of a failed migration, or the repair before it.
  static func migrationFailed(_ error: MigrationError) -> VerdictReason {
    VerdictReason(
      error.isOfRepair ? repairFailedCode : migrationFailedCode,
      words: "The \(error.isOfRepair ? "repair" : "migration") of the store failed (\(error.code)): "
        + printable(error.detail).prefix(limit)
        + reportWords(error),
      hint: error.hint, coreData: error.coreDataCode)
  }

  /// Creates the reason of damage that SQLite reported; nil for other errors.
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
