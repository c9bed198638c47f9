public import GRDB
public import Lazaret
internal import SystemPackage

extension DatabasePool {
  /// Gets a store ready, whatever state it is in, and opens it.
  ///
  /// ```swift
  /// let pool = try await DatabasePool(recovering: store) { opening in
  ///   if let notice = opening.notice { show(notice) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - store: the store; for a plain database its model is a schema file.
  ///   - configuration: how GRDB opens it.
  ///   - opened: told how the store came to be ready, before GRDB opens it.
  ///   - progress: told how far it is.
  /// - Throws: `StoreError` and `CancellationError` of ``Lazaret/RecoverableStore/open(progress:foundDamage:)``, or what GRDB throws.
  public convenience init(
    recovering store: RecoverableStore, configuration: Configuration = Configuration(),
    opened: (RecoverableStore.Opening) -> Void = { _ in }, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws {
    let opening = try await store.open(progress: progress)
    opened(opening)
    try self.init(path: opening.path.string, configuration: configuration)
  }
}

extension DatabaseQueue {
  /// Gets a store ready, whatever state it is in, and opens it; see ``GRDB/DatabasePool/init(recovering:configuration:opened:progress:)``.
  public convenience init(
    recovering store: RecoverableStore, configuration: Configuration = Configuration(),
    opened: (RecoverableStore.Opening) -> Void = { _ in }, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws {
    let opening = try await store.open(progress: progress)
    opened(opening)
    try self.init(path: opening.path.string, configuration: configuration)
  }
}
