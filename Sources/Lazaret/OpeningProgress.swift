/// How far an opening has come.
public struct OpeningProgress: Sendable, Hashable {
  /// What is being done.
  public enum Phase: String, Sendable, CaseIterable {
    case examining
    case quarantining
    case creating
    case opening
  }

  public var phase: Phase

  /// The bytes done, of `total`.
  public var completed: Int64

  /// The bytes in all; 0 where they are not known.
  public var total: Int64
}

/// Who watches an opening, and may end it.
public struct OpeningObserver: Sendable {
  /// Called now and then, on the thread that opens.
  public var progress: @Sendable (OpeningProgress) -> Void

  /// Asked now and then; true ends the opening with `cancelled`, and leaves the store as it was.
  public var isCancelled: @Sendable () -> Bool

  public init(
    progress: @escaping @Sendable (OpeningProgress) -> Void = { _ in },
    isCancelled: @escaping @Sendable () -> Bool = { Task.isCancelled }
  ) {
    self.progress = progress
    self.isCancelled = isCancelled
  }

  /// Tells how far it is, and stops where nobody wants the result any more.
  func report(
    _ phase: OpeningProgress.Phase, at path: FilePath, completed: Int64 = 0, of total: Int64 = 0
  ) throws {
    progress(OpeningProgress(phase: phase, completed: completed, total: total))
    if isCancelled() { throw LazaretError.cancelled(path) }
  }
}
