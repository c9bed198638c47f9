/// Who watches an opening, and may end it.
package struct OpeningObserver: Sendable {
  /// Called now and then, on the thread that opens.
  package var progress: @Sendable (OpeningProgress) -> Void

  /// Asked now and then; true ends the opening with `cancelled`, and leaves the store as it was, or whole in quarantine.
  ///
  /// Asked before each step of a migration; the finished steps are kept for the next opening. During a salvage the store is in
  /// quarantine already, and the next opening goes on with its salvage. Not asked any more once another store is in its
  /// place.
  package var isCancelled: @Sendable () -> Bool

  /// Called after the opening, on a thread of its own, where the background pass finds damage in the store that is open.
  ///
  /// The app goes on with the store as long as that does it good: what is in sound pages can be read. The next opening looks at
  /// every page, and does what the policy says.
  package var foundDamage: @Sendable (FoundDamage) -> Void

  /// An observer; without one of its own, the opening ends when the current task is cancelled.
  package init(
    progress: @escaping @Sendable (OpeningProgress) -> Void = { _ in },
    isCancelled: @escaping @Sendable () -> Bool = { Task.isCancelled },
    foundDamage: @escaping @Sendable (FoundDamage) -> Void = { _ in }
  ) {
    self.progress = progress
    self.isCancelled = isCancelled
    self.foundDamage = foundDamage
  }

  /// Tells how far it is, and stops where the result is not wanted any more.
  func report(
    _ phase: OpeningProgress.Phase, at path: FilePath, completed: Int64 = 0, of total: Int64 = 0
  ) throws {
    progress(OpeningProgress(phase: phase, completed: completed, total: total))
    if isCancelled() { throw LazaretError.cancelled(path) }
  }
}
