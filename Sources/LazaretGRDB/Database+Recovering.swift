public import GRDB
public import Lazaret
internal import SystemPackage

extension DatabasePool {
  /// Prepares a store in any state, and opens it.
  ///
  /// ```swift
  /// let pool = try await DatabasePool(recovering: store) { opening in
  ///   if let notice = opening.notice { show(notice) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - store: the store; for a plain database its model is a schema file.
  ///   - opened: receives the result before GRDB opens the store.
  /// - Throws: `StoreError` and `CancellationError` of ``Lazaret/RecoverableStore/open(progress:foundDamage:)``, or
  ///   GRDB's errors.
  public convenience init(
    recovering store: RecoverableStore, configuration: Configuration = Configuration(),
    opened: (RecoverableStore.Opening) -> Void = { _ in }, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws {
    try self.init(path: await store.path(opened, progress), configuration: configuration)
  }
}

extension DatabaseQueue {
  /// Prepares a store in any state, and opens it; see
  /// ``GRDB/DatabasePool/init(recovering:configuration:opened:progress:)``.
  public convenience init(
    recovering store: RecoverableStore, configuration: Configuration = Configuration(),
    opened: (RecoverableStore.Opening) -> Void = { _ in }, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws {
    try self.init(path: await store.path(opened, progress), configuration: configuration)
  }
}

extension RecoverableStore {
  fileprivate func path(
    _ opened: (Opening) -> Void, _ progress: @escaping StoreProgress.Handler
  ) async throws -> String {
    let opening = try await open(progress: progress)
    opened(opening)
    return opening.path.string
  }
}
