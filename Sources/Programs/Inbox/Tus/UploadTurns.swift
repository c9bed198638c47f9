internal import Compatibility

/// The uploads that something is being done to, each by one thread at a time.
final class UploadTurns: Sendable {
  private let busy = Mutex<Set<String>>([])

  /// Takes an upload; false where another thread has it.
  func take(_ id: String) -> Bool { busy.withLock { $0.insert(id).inserted } }

  func release(_ id: String) { busy.withLock { _ = $0.remove(id) } }

  /// Whether a thread has an upload.
  func isTaken(_ id: String) -> Bool { busy.withLock { $0.contains(id) } }
}
