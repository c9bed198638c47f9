internal import Foundation

/// A value that one thread at a time works with.
///
/// The standard library's own type of this name needs systems that are newer than those that the library supports. This one is
/// a class, so that it can be handed to other threads as it is.
package final class Mutex<Value: ~Copyable>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  /// A lock around a value.
  package init(_ value: consuming sending Value) {
    self.value = value
  }

  /// Works with the value, which no other thread does meanwhile.
  ///
  /// The work must not lock the same value again: it would wait for itself.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
