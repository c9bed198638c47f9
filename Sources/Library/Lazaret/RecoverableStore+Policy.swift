internal import StoreCoordination

extension RecoverableStore {
  /// What an app wants done with a store that cannot simply be opened.
  public struct Policy: Sendable, Hashable {
    /// What is done with a store that is damaged, or that no way leads from to the app's model.
    public enum Remedy: String, Sendable, Hashable, CaseIterable {
      /// Quarantine it, make a clean store of every record that is still in its bytes, and put a copy of that into its place.
      case salvage

      /// Quarantine it, and begin with an empty store at once; ``StoreQuarantine`` recovers the records later.
      case salvageLater = "salvage-later"

      /// Quarantine it, and begin with an empty store.
      case emptyStore = "empty-store"

      /// Leave it where it is, and throw.
      case refuse
    }

    /// What is done with a sound store that lacks something of its own model.
    public enum RepairRule: String, Sendable, Hashable, CaseIterable {
      /// Add what is missing on a copy, verify that, and put it into the store's place; the original is kept.
      case repair

      /// Open it as it is.
      case keep

      /// Quarantine it and salvage it, as a damaged store.
      case quarantine

      /// Leave it where it is, and throw.
      case refuse
    }

    /// What is done where a migration would delete what the app's version still has.
    public enum LossRule: String, Sendable, Hashable, CaseIterable {
      /// Leave the store as it is, and throw.
      case refuse

      /// Migrate it as Core Data would; the original is kept.
      case migrate
    }

    /// What is done with a file that is nothing of the app's.
    public enum ForeignRule: String, Sendable, Hashable, CaseIterable {
      /// Leave it where it is, and throw.
      case refuse

      /// Treat it as a damaged or an incompatible store.
      case replace
    }

    /// What is done where a salvage gave nothing that the app could open.
    public enum Fallback: String, Sendable, Hashable, CaseIterable {
      /// Begin with an empty store; the old one stays in quarantine.
      case emptyStore = "empty-store"

      /// Throw, and leave the place empty; the next opening tries again.
      case refuse
    }

    /// What is done with a store whose bytes are damaged, or that is no store at all.
    public var whenDamaged: Remedy = .salvage

    /// What is done with a sound store that is not of the app's model, and that no way leads from to it.
    public var whenIncompatible: Remedy = .salvage

    /// What is done with a sound store of an earlier version whose migration failed for a reason in it, and with records of a
    /// damaged one that cannot be migrated.
    ///
    /// Refused, a sound store stays in its place. So does a damaged one, unsalvaged, whose metadata shows that no way leads from its
    /// version; where only the salvage shows that its records cannot be migrated, what was salvaged waits in quarantine. Every
    /// other remedy begins with an empty store then.
    public var whenMigrationFails: Remedy = .refuse

    /// What is done with a sound store whose migration would delete what the app's version still has.
    public var whenMigrationLoses: LossRule = .refuse

    /// What is done with a sound store that lacks something of its own model.
    public var whenRepairable: RepairRule = .repair

    /// What is done where a salvage gave nothing that the app could open; where only a migration failed, ``whenMigrationFails``
    /// decides.
    public var whenSalvageFails: Fallback = .emptyStore

    /// What is done with a file that is nothing of the app's: a sound store of another app, or a file of another kind (a text, a
    /// picture), at a path where no store of the app's was opened, quarantined or backed up before.
    public var whenForeign: ForeignRule = .refuse

    /// How many times a migration that failed for a reason in the store is tried again at once.
    public var migrationRetries = 0

    /// How closely a store is looked at before it is opened.
    public var depth: Depth = .quick

    /// How old the last look at every page is at least when the next one is taken in the background; nil takes none.
    public var checkInterval: Duration? = .seconds(7 * 86400)

    /// How old the newest recovery kit is at least when the next one is noted in the background; nil notes none.
    public var recoveryKitInterval: Duration? = .seconds(86400)

    /// A policy by which nothing is refused but to replace a store that could not be migrated.
    public init() {}

    /// A policy by which every store stays where it is unless it can be opened as it is or repaired, for servers.
    public static var refusing: Policy {
      var policy = Policy()
      (policy.whenDamaged, policy.whenIncompatible, policy.whenMigrationFails) = (.refuse, .refuse, .refuse)
      policy.whenSalvageFails = .refuse
      return policy
    }
  }

  /// How closely a store is looked at.
  public enum Depth: String, Sendable, Hashable, CaseIterable {
    /// Header, log, schema, metadata and model: some milliseconds, whatever the size; every page where damage is met.
    case quick

    /// Every page.
    case full

    /// The same, for the modules below.
    var depth: Examination.Depth { self == .quick ? .quick : .full }
  }
}

extension RecoverableStore.Policy {
  /// The same, for the modules below.
  var policy: OpeningPolicy {
    var policy = OpeningPolicy(
      whenDamaged: whenDamaged.remedy, whenIncompatible: whenIncompatible.remedy,
      whenMigrationFails: whenMigrationFails.remedy, whenMigrationLoses: whenMigrationLoses.remedy,
      whenSalvageFails: whenSalvageFails == .refuse ? .refuse : .emptyStore, migrationRetries: migrationRetries,
      depth: depth.depth, checkInterval: checkInterval, recoveryKitInterval: recoveryKitInterval)
    policy.whenForeign = whenForeign == .refuse ? .refuse : .replace
    policy.whenRepairable =
      switch whenRepairable {
      case .repair: .repair
      case .keep: .keep
      case .quarantine: .quarantine
      case .refuse: .refuse
      }
    return policy
  }
}

extension RecoverableStore.Policy.Remedy {
  /// The same, for the modules below.
  var remedy: OpeningPolicy.Remedy {
    switch self {
    case .salvage: .salvage
    case .salvageLater: .salvageLater
    case .emptyStore: .emptyStore
    case .refuse: .refuse
    }
  }
}

extension RecoverableStore.Policy.LossRule {
  /// The same, for the modules below.
  var remedy: LossRemedy { self == .refuse ? .refuse : .migrate }
}
