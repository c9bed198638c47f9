/// A store that is open, and how it came to that.
package struct Opening: Sendable {
  /// The open store.
  package let store: PersistentStore

  /// What was found when the opening began.
  package let examination: Examination

  /// What was done, in order; empty for a store that was simply opened.
  package let events: [OpeningEvent]

  /// What to tell the app's user; nil where there is nothing to tell.
  package let notice: Notice?

  /// What goes on in the background: every page is looked at, and a recovery kit noted; nil where nothing does.
  package let backgroundPass: BackgroundPass?

  /// What records lost in a migration, because the app's version has no place for it; empty where nothing was lost.
  package var losses: [MigrationPlan.Finding] { events.flatMap { $0.migration?.losses ?? [] } }

  /// What was salvaged on the way; nil where nothing was to be.
  package var salvage: OpeningSalvage? { events.last { $0.salvage != nil }?.salvage }

  /// Whether the user has lost something, or does not have it now: an empty store, records that are gone or doubtful, or what
  /// a migration has left behind.
  package var isWithLosses: Bool { isWithLosses(besides: { _ in false }) }

  /// The same without the losses of a migration that were wanted.
  package func isWithLosses(besides isPlanned: (MigrationPlan.Finding) -> Bool) -> Bool {
    if !losses.allSatisfy(isPlanned) { return true }
    if examination.health.mayLackCommits, examination.verdict != .damaged { return true }
    guard let notice, notice.key != Notice.repairedKey else { return false }
    guard let salvage else { return true }
    return !(salvage.isInstalled && salvage.isComplete)
  }
}

extension Opening {
  /// The store that was quarantined on the way, as a file; nil where none was.
  package var quarantinedPath: FilePath? { events.last { $0.kind == .quarantine && $0.id != nil }?.path.path }
}
