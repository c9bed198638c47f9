import Platform

/// A list that several threads may add to.
final class SharedList: Sendable {
  private let storage = Mutex<[String]>([])
  var values: [String] { storage.withLock { $0 } }
  func append(_ value: String) { storage.withLock { $0.append(value) } }
}
