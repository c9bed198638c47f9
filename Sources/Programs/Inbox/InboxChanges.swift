internal import Compatibility

/// Tells those who listen that something in the inbox has changed.
package final class InboxChanges: Sendable {
  private let listeners = Mutex<[@Sendable () -> Void]>([])

  /// Changes that no one listens to yet.
  package init() {}

  /// Calls a function at each change, from any thread; it must not wait.
  package func listen(_ listener: @escaping @Sendable () -> Void) { listeners.withLock { $0.append(listener) } }

  /// Something has changed.
  package func tell() {
    for listener in listeners.withLock({ $0 }) { listener() }
  }
}
