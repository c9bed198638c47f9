import Foundation
import Synchronization

/// The user's wish to stop, by Ctrl-C: the first time the work is asked to end and leaves nothing behind, the second time
/// the process ends at once.
final class Interruption: Sendable {
  private static let isWished = Atomic<Bool>(false)

  /// Listens from now on.
  init() {
    Self.isWished.store(false, ordering: .relaxed)
    _ = signal(SIGINT) { _ in
      Interruption.isWished.store(true, ordering: .relaxed)
      _ = signal(SIGINT, SIG_DFL)
    }
  }

  deinit { _ = signal(SIGINT, SIG_DFL) }

  /// Whether the work should end.
  var isWished: Bool { Self.isWished.load(ordering: .relaxed) }
}
