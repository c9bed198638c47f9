package import Migration
package import PersistentStore
internal import Platform
internal import SystemPackage

/// What an app wants done with a store that cannot simply be opened.
package struct OpeningPolicy: Sendable, Hashable {
  /// What is done with a store that is damaged, or that no way leads from to the app's model.
  package enum Remedy: String, Sendable, Hashable, CaseIterable {
    /// Quarantine it, make a clean store of every record that is still in its bytes, verify that, install a copy of it, and
    /// open that.
    ///
    /// Takes about as long as copying the store a few times. An opening that is ended meanwhile (killed, cancelled, disk full) leaves
    /// the old store whole in quarantine, and the next one goes on with its salvage.
    case salvage

    /// Quarantine it, and open an empty store at once; ``Quarantines/salvage(_:model:options:observer:)`` recovers the records
    /// later.
    case salvageLater = "salvage-later"

    /// Quarantine it, and open an empty store.
    case emptyStore = "empty-store"

    /// Leave it where it is, and throw.
    case refuse
  }

  /// What is done with a sound store that lacks something of the model that its own metadata names.
  package enum RepairRule: String, Sendable, Hashable, CaseIterable {
    /// Add what is missing on a copy, verify that, and put it into the store's place; the original is kept.
    case repair

    /// Open it as it is.
    case keep

    /// Quarantine it and salvage it, as a damaged store.
    case quarantine

    /// Leave it where it is, and throw.
    case refuse
  }

  /// What is done with a sound store that lacks something of its own model; by default it is repaired.
  ///
  /// A store of an earlier version is repaired to that version before it is migrated, on the same copy, unless this says `keep`.
  /// What cannot be made good without guessing is a failed migration: ``whenMigrationFails`` decides.
  package var whenRepairable: RepairRule = .repair

  /// What is done with a sound store whose migration would delete what the app's version still has; see ``LossRemedy``.
  ///
  /// Refused, the store stays in its place and opening throws, whatever the other rules say: it is never quarantined or
  /// replaced for it. An entity that is simply absent from the app's version is migrated away in any case; the original is
  /// kept then, and exempt from pruning until it is released.
  package var whenMigrationLoses: LossRemedy

  /// What is done where a salvage gave nothing that the app could open.
  package enum Fallback: String, Sendable, Hashable, CaseIterable {
    /// Open an empty store; the old one stays in quarantine.
    case emptyStore = "empty-store"

    /// Throw, and leave the place empty; the next opening tries again.
    case refuse
  }

  /// What is done with a file that is nothing of the app's.
  package enum ForeignRule: String, Sendable, Hashable, CaseIterable {
    /// Leave it where it is, and throw.
    case refuse

    /// Treat it as a damaged or an incompatible store.
    case replace
  }

  /// What is done with a file that is nothing of the app's, at a path where nothing says that the app ever had a store: a sound
  /// store that has nothing in common with any version of the model, or a file of another kind, such as a picture.
  ///
  /// Where a store of the path was opened, quarantined or backed up before, the path is the app's own, and the file is treated as
  /// a damaged or an incompatible store.
  package var whenForeign: ForeignRule = .refuse

  /// What is done with a store whose bytes are damaged, or that is no store at all.
  package var whenDamaged: Remedy

  /// What is done with a sound store that is not of the app's model, and that no way leads from to it.
  package var whenIncompatible: Remedy

  /// What is done with a sound store of an earlier version whose migration failed: records that lack what has become
  /// mandatory, duplicates, damage that was found on the way, a custom step that failed, models between which nothing can be
  /// inferred.
  ///
  /// The usual answer is to refuse: the store is whole, it stays in its place, and a later version of the app may migrate
  /// it. The others quarantine it. A failure of the surroundings always throws and moves nothing.
  ///
  /// It decides too what becomes of records of a damaged store that cannot be migrated: to refuse leaves that store in its place,
  /// unsalvaged, where its metadata shows that no way leads from its version, or in quarantine with what was salvaged, where only
  /// the salvage has shown it, and opening throws; the others open an empty store. ``whenSalvageFails`` has no say in it.
  package var whenMigrationFails: Remedy

  /// What is done where a salvage gave nothing that the app could open; a failure of the surroundings always throws.
  ///
  /// Where records were recovered and only their migration failed, ``whenMigrationFails`` decides.
  package var whenSalvageFails: Fallback

  /// How many times a migration that failed for a reason in the store is tried again at once, before `whenMigrationFails`
  /// decides.
  ///
  /// The next opening tries again in any case. Of use for custom steps that depend on something outside the store.
  package var migrationRetries: Int

  /// How closely a store is looked at before it is opened.
  ///
  /// A quick look costs some milliseconds whatever the size, and does not see damage deep in a table; where it meets any, every
  /// page is looked at. So it is where the background pass has found damage since the last opening. An app whose query
  /// has just failed with `SQLITE_CORRUPT` closes the store and opens it again with a full look.
  package var depth: Examination.Depth

  /// How old the last look at every page of a store is at least when the next one is taken; nil takes none.
  ///
  /// It is taken in the background after the store was opened, and only where the coordinator has a home: at the first opening,
  /// after an app that ended without closing the store, after an update of the app, and else once in this time.
  package var checkInterval: Duration?

  /// How old the newest recovery kit of a store is at least when the next one is noted; nil notes none.
  ///
  /// A kit is what a salvage would want to know of the store: with it losses are told exactly. It is noted in the background
  /// after the store was opened, and only where the coordinator has a home.
  package var recoveryKitInterval: Duration?

  /// A policy; by default nothing is refused but to replace a store that could not be migrated, and the look is quick.
  package init(
    whenDamaged: Remedy = .salvage, whenIncompatible: Remedy = .salvage, whenMigrationFails: Remedy = .refuse,
    whenMigrationLoses: LossRemedy = .refuse,
    whenSalvageFails: Fallback = .emptyStore, migrationRetries: Int = 0, depth: Examination.Depth = .quick,
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
}

extension OpeningPolicy {
  /// What the app wants done with a store that cannot be opened as it is.
  func remedy(for judgement: Judgement) -> Remedy {
    // Its migration was refused so that nothing is lost; replacing the store would lose more.
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

  /// What the receipt of a store that is about to be quarantined says of its salvage; nil where none is wanted.
  func salvage(of judgement: Judgement, since date: Timestamp) -> Receipt.Salvage? {
    switch remedy(for: judgement) {
    case .salvage: Receipt.Salvage(pendingSince: date, isWanted: true)
    case .salvageLater: Receipt.Salvage(pendingSince: date, isWanted: false)
    case .emptyStore, .refuse: nil
    }
  }

  /// Whether an opening goes on with the salvage that a quarantined store waits for; else an empty store takes the
  /// place.
  ///
  /// - Parameter home: the folder with the catalogue of quarantined stores; nil for none.
  /// - Throws: `salvage-pending` where every remedy is to refuse.
  func continuesSalvage(
    of stored: QuarantinedStore, at path: FilePath, home: FilePath?
  ) throws(LazaretError) -> Bool {
    let remedies = [whenDamaged, whenIncompatible, whenMigrationFails]
    if remedies.contains(.salvage) || whenRepairable == .quarantine { return true }
    guard remedies.allSatisfy({ $0 == .refuse }) else { return false }
    throw LazaretError(
      .salvagePending, path: path,
      detail: "the store that was here lies in quarantine as \(printable(stored.id)), and its salvage was not finished",
      hint: "Salvage it with: \(stored.command("salvage", home: home)) --model MODEL --install")
  }
}
