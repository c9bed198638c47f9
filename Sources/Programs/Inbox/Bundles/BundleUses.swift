internal import Compatibility

/// Which bundles something of this process is working at besides the inbox itself, such as an export begun on the pages: their
/// files stay meanwhile.
package final class BundleUses: Sendable {
  private let asked = Mutex<[@Sendable (String) -> Bool]>([])

  /// Of none, until ``ask(_:)`` says who knows.
  package init() {}

  /// Adds a question that is asked from now on: whether a bundle of an identifier is being worked at.
  package func ask(_ isBeingUsed: @escaping @Sendable (String) -> Bool) {
    asked.withLock { $0.append(isBeingUsed) }
  }

  /// Whether a bundle is being worked at.
  package func isBeingUsed(_ bundle: String) -> Bool {
    asked.withLock { $0 }.contains { $0(bundle) }
  }
}
