package import StoreFiles

/// Who does the work of an order, somewhere apart.
package protocol WorkRunner: Sendable {
  /// Does it, and waits for its end.
  ///
  /// - Parameters:
  ///   - beat: called now and then while it goes on.
  ///   - isCancelled: whether it is to end at once.
  /// - Returns: nil where it was cancelled.
  func run(
    _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
  ) throws(InboxError) -> WorkResult?
}

/// Does the work in this very process: for tests alone.
package struct WorkInProcess: WorkRunner {
  private let surroundings: Surroundings

  /// A runner that protects nothing.
  package init(surroundings: Surroundings) { self.surroundings = surroundings }

  package func run(
    _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
  ) throws(InboxError) -> WorkResult? {
    BundleWork(order, surroundings: surroundings).run()
  }
}
