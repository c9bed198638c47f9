internal import StoreFiles
public import SystemPackage

extension Migrator {
  /// How a store is migrated.
  public struct Options: Sendable {
    /// The version to go to; the current one if nil.
    public var version: String?

    /// Whether it is one step, whatever mappings, stages and versions lie between.
    public var isDirect = false

    /// The versions that it goes through in any case, in this order.
    public var via: [String] = []

    /// What becomes of a migration that would delete what the version it leads to still has.
    public var whenMigrationLoses = LossRemedy.refuse

    /// How much of what the store lacks of its own model is made good before it is migrated.
    public var repair = RepairScope.structure

    /// Whether it is only repaired, and stays at its version.
    var onlyRepairs = false

    /// Whether names decide where renaming identifiers disagree: for salvages, which keep what is there.
    package var matchesNames = false

    /// Where the migrated store is written; nil for the place of the original.
    public var output: FilePath?

    /// The folder that holds `Backups/`; nil for the store's own.
    public var home: FilePath?

    /// Mappings to use in place of inferred ones where their hashes fit.
    public var mappings: [MappingModel] = []

    /// Whether even what only adds and renames is carried out as a rebuild, which also makes the file compact.
    public var alwaysRebuilds = false

    /// The policies that mappings ask for.
    public var policies = MigrationPolicies()

    /// Code of the app that runs before and after steps.
    public var stages: [MigrationStage] = []

    /// Free text for policies and handlers.
    public var userInfo: [String: String] = [:]

    /// Called before each step with its name, its number from 1, and their number; false ends the migration.
    public var progress: @Sendable (_ step: String, _ number: Int, _ count: Int) -> Bool = { _, _, _ in true }

    /// Whether the migration is to end; nil does not ask.
    ///
    /// Asked twice a second, on another thread, while SQLite works on a statement, which may take minutes.
    public var isCancelled: (@Sendable () -> Bool)?

    /// Whether the home (or the store's folder) keeps records of it: a report in `Reports/` where it fails, a line in
    /// `migrations.jsonl` where it ends well.
    public var isRecorded = false

    /// To the current version, in place.
    public init() {}
  }

  /// What a migration did.
  public struct Result: Sendable, Hashable, Encodable {
    /// The migrated store.
    public var store: FilePath

    /// The original, whole, where it was replaced.
    public var backup: FilePath?

    /// What each step did; empty where the store was of the version already.
    public var steps: [StepAccount]

    /// What was made good of what the store lacked of its own model, and what stays as it is; nil without a repair.
    public var repair: RepairAccount?

    /// How many of the steps an earlier run had finished.
    public var resumedSteps: Int

    /// What it cost; nil where nothing had to be done.
    public var metrics: MigrationMetrics?

    /// The file with what a repair of records has taken out: beside the original, or the result where that is elsewhere.
    public var setAside: FilePath? {
      guard repair?.setsAside == true else { return nil }
      return (backup ?? store).sibling(suffix: RepairAccount.asideSuffix)
    }

    /// Whether there was nothing to do.
    public var isNothing: Bool { steps.isEmpty && repair?.isNothing != false }

    /// Writes where the store is now, what was done, and what it cost.
    public func encode(to encoder: any Encoder) throws {
      try encoder.encode([
        "store": PathText(store), "backup": backup.map { PathText($0) }, "resumedSteps": resumedSteps,
        "metrics": metrics, "steps": steps, "repair": repair,
      ])
    }

    /// - Parameters:
    ///   - accounts: what each step did, a repair first.
    ///   - resumed: how many of them an earlier run had finished.
    init(store: FilePath, backup: FilePath?, accounts: [StepAccount], resumed: Int) {
      self.store = store
      self.backup = backup
      steps = accounts.filter { $0.repair == nil }
      repair = accounts.lazy.compactMap(\.repair).first
      resumedSteps = max(0, resumed - (accounts.count - steps.count))
    }
  }
}
