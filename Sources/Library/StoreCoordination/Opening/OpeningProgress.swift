import Salvage

/// How far an opening has come.
package struct OpeningProgress: Sendable, Hashable {
  /// What is being done.
  package enum Phase: String, Sendable, CaseIterable {
    /// The store is being looked at: `completed` of `total` pages, where every page is.
    case examining

    /// The store is being moved into quarantine.
    case quarantining

    /// A new store is being made, before anything is moved.
    case creating

    /// What the store lacks of its own model is being added on a copy.
    case repairing

    /// The store is being migrated: `completed` of `total` steps are done, and `step` is the one that begins.
    case migrating

    /// The quarantined store is being salvaged: `completed` of `total` thousandths are done, as far as that can be told.
    case salvaging

    /// A copy of the salvaged store is being put into the store's place.
    case installing

    /// The store is being opened with SQLite.
    case opening
  }

  /// What is being done now.
  package var phase: Phase

  /// The bytes done, of `total`; of a look at the store, pages; of a migration, the steps; of a salvage, thousandths.
  package var completed: Int64 = 0

  /// The bytes in all, or the pages, the steps, or a thousand; 0 where they are not known.
  package var total: Int64 = 0

  /// The step of a migration, such as `V1 → V2`; nil otherwise.
  package var step: String?

  /// What a salvage is doing; nil otherwise.
  package var salvagePhase: SalvagePhase?

  /// How long it will take yet, in seconds, by how long it has taken so far; nil where that cannot be told.
  package var secondsLeft: Double?

  /// How much of the phase is done, from 0 to 1; nil where that cannot be told.
  package var fraction: Double? { total > 0 ? min(1, max(0, Double(completed) / Double(total))) : nil }
}
