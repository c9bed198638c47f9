import Compatibility

/// The handles of a client that no thread uses at the moment.
final class CurlPool: Sendable {
  private let idle = Mutex<[CurlHandle]>([])

  private static let most = 8

  private let made = Mutex(0)

  /// How many connections were made so far.
  var connections: Int { made.withLock { $0 } }

  /// Works with a handle that no other thread has.
  ///
  /// - Throws: what the work throws, or that the library cannot be used.
  func withHandle<Value: Sendable>(
    _ body: (CurlHandle) throws(TransportFailure) -> Value
  ) throws(TransportFailure) -> Value {
    guard let handle = idle.withLock({ $0.popLast() }) ?? CurlHandle() else {
      throw TransportFailure(kind: .unusable, code: 0)
    }
    defer {
      made.withLock { $0 += handle.newConnections }
      idle.withLock { if $0.count < Self.most { $0.append(handle) } }
    }
    return try body(handle)
  }
}
