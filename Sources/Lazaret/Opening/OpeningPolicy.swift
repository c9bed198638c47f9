internal import Migration
internal import PersistentStore
internal import Platform
internal import SystemPackage

/// The app's rules for a store that does not open directly.
public struct OpeningPolicy: Sendable, Hashable {
  /// The rule for a damaged or incompatible store.
  public enum Remedy: String, Sendable, Hashable, CaseIterable {
    /// Quarantine it, salvage every record in its bytes into a new store, and open a verified copy.
    ///
    /// Takes about as long as copying the store a few times. After an interruption (killed, cancelled, disk full) the
    /// old store is whole in quarantine, and the next opening continues.
    case salvage

    /// Start with an empty store at once; ``StoreQuarantine`` recovers the records later.
    case salvageLater = "salvage-later"

    /// Quarantine it, and start empty.
    case emptyStore = "empty-store"

    /// Leave it at its path, and throw.
    case refuse
  }

  /// The rule for a sound store that lacks parts of the model in its own metadata.
  public enum RepairRule: String, Sendable, Hashable, CaseIterable {
    /// Add the missing parts on a copy and install it; the original is kept.
    case repair

    /// Open it unchanged.
    case keep

    /// Quarantine and salvage it like a damaged store.
    case quarantine

    /// Leave it, and throw.
    case refuse
  }

  /// The rule for a migration that would delete data that the app still has.
  public enum LossRule: String, Sendable, Hashable, CaseIterable {
    /// Leave it, and throw.
    case refuse

    /// Migrate it like Core Data; the original is kept.
    case migrate

    var remedy: LossRemedy { self == .refuse ? .refuse : .migrate }
  }

  /// The rule for a file that is not the app's.
  public enum ForeignRule: String, Sendable, Hashable, CaseIterable {
    /// Leave it, and throw.
    case refuse

    /// Treat it as a damaged or incompatible store.
    case replace
  }

  /// The rule for a salvage without a store that the app could open.
  public enum Fallback: String, Sendable, Hashable, CaseIterable {
    /// Start empty; the old store stays in quarantine.
    case emptyStore = "empty-store"

    /// Throw, and leave the place empty; the next opening tries again.
    case refuse
  }

  /// The rule for a store with damaged bytes, or a file that is not a store.
  public var whenDamaged: Remedy

  /// The rule for a sound store that no migration leads to the app's model.
  public var whenIncompatible: Remedy

  /// The rule for a sound store with a failed migration: missing mandatory values, duplicates, damage, a failed custom
  /// step, or models without an inferable mapping.
  ///
  /// Usually refused: a later version of the app may migrate the store. Other remedies quarantine it. A failure of the
  /// environment always throws and moves no file.
  ///
  /// It also decides about a damaged store's records that cannot be migrated; other remedies open an empty store. A
  /// refused store stays at its path, unsalvaged, if its metadata shows that no migration exists, or in quarantine with
  /// its salvaged store if only the salvage shows it. ``whenSalvageFails`` does not apply.
  public var whenMigrationFails: Remedy

  /// The rule for a migration that would delete data that the app's version still has.
  ///
  /// A refused store stays at its path and opening throws, whatever the other rules say. Entities absent from the app's
  /// version are migrated away in any case; the original is kept and not pruned until released.
  public var whenMigrationLoses: LossRule

  /// The rule for a sound store that lacks parts of its own model.
  ///
  /// Unless this is `keep`, an earlier version is first repaired on the migration's copy. A repair that would have to
  /// guess counts as a failed migration: ``whenMigrationFails`` decides.
  public var whenRepairable: RepairRule = .repair

  /// The rule for a salvage without a store that the app could open; a failure of the environment always throws.
  ///
  /// If only a migration failed, ``whenMigrationFails`` decides.
  public var whenSalvageFails: Fallback

  /// The rule for another app's sound store, or a file of another kind such as a picture, at a path without a record of
  /// the app's stores.
  ///
  /// If a store was opened, quarantined or backed up there before, the file counts as a damaged or incompatible store.
  public var whenForeign: ForeignRule = .refuse

  /// The immediate retries of a migration that failed because of the store.
  ///
  /// The next opening tries again in any case. Retries help custom steps that depend on outside state.
  public var migrationRetries: Int

  /// The depth of the examination before opening.
  ///
  /// A quick one takes milliseconds at any size and misses damage deep in a table; it turns full on damage, also if the
  /// background check found it. After a query's `SQLITE_CORRUPT` an app reopens the store with a full one.
  public var depth: RecoverableStore.Depth

  /// The minimum age of the last check of every page before the next; nil turns checks off.
  ///
  /// It runs after opening if there is a home: at the first opening, after an unclean end or an update of the app, and
  /// once per interval.
  public var checkInterval: Duration?

  /// The minimum age of the newest recovery kit before the next; nil turns kits off.
  ///
  /// A kit lets a salvage count losses exactly. It is noted after opening if there is a home.
  public var recoveryKitInterval: Duration?

  /// Creates a policy that by default only refuses to replace foreign files and stores that could not be migrated.
  public init(
    whenDamaged: Remedy = .salvage, whenIncompatible: Remedy = .salvage, whenMigrationFails: Remedy = .refuse,
    whenMigrationLoses: LossRule = .refuse,
    whenSalvageFails: Fallback = .emptyStore, migrationRetries: Int = 0, depth: RecoverableStore.Depth = .quick,
    checkInterval: Duration? = .seconds(7 * 86400), recoveryKitInterval: Duration? = .seconds(86400)
  ) {
    self.whenDamaged = whenDamaged
    self.whenIncompatible = whenIncompatible
    self.whenMigrationFails = whenMigrationFails
    self.whenMigrationLoses = whenMigrationLoses
    self.whenSalvageFails = whenSalvageFails
    self.migrationRetries = migrationRetries
    self.depth = depth
    self.checkInterval = checkInterval
    self.recoveryKitInterval = recoveryKitInterval
  }

  /// For servers: every store stays at its path unless it opens, migrates or can be repaired.
  public static let refusing = OpeningPolicy(
    whenDamaged: .refuse, whenIncompatible: .refuse, whenMigrationFails: .refuse, whenSalvageFails: .refuse)
}

extension OpeningPolicy {
  func remedy(for judgement: Judgement) -> Remedy {
    if judgement.migrationError?.kind == .wouldLose { return .refuse }
    return switch judgement.examination.verdict {
    case .damaged: whenDamaged
    case .incompatible: whenIncompatible
    case .outdated: whenMigrationFails
    case .repairable where judgement.migrationError == nil: whenRepairable == .quarantine ? .salvage : .refuse
    case .repairable: whenMigrationFails
    case .compatible, .missing, .unavailable: .emptyStore
    }
  }

  func salvage(of judgement: Judgement, since date: Timestamp) -> Receipt.Salvage? {
    switch remedy(for: judgement) {
    case .salvage: Receipt.Salvage(pendingSince: date, isWanted: true)
    case .salvageLater: Receipt.Salvage(pendingSince: date, isWanted: false)
    case .emptyStore, .refuse: nil
    }
  }

  /// Whether an opening continues a pending salvage rather than installing an empty store.
  ///
  /// - Throws: `salvage-pending` if every remedy is to refuse.
  func continuesSalvage(of stored: QuarantinedStore, at path: FilePath) throws(LazaretError) -> Bool {
    let remedies = [whenDamaged, whenIncompatible, whenMigrationFails]
    if remedies.contains(.salvage) || whenRepairable == .quarantine { return true }
    guard remedies.allSatisfy({ $0 == .refuse }) else { return false }
    throw LazaretError(
      .salvagePending, path: path,
      detail: "the store that was here lies in quarantine as \(printable(stored.id)), and its salvage was not finished",
      hint: "Salvage it with: lazaret quarantine salvage \(shellQuoted(stored.files.main))")
  }
}
