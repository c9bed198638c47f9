import Compatibility
import StoreCoordination

/// What was found out about stores, kept until a store changes.
///
/// A page of the inspector must not take as long as reading the store each time that it is shown.
final class StoreCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Entry {
    let members: [StoreFileSet.Member]
    let value: Value
  }

  private let entries = Mutex<[Key: Entry]>([:])
  private let capacity: Int

  /// - Parameter capacity: how much is kept at most; then all of it goes.
  init(capacity: Int) { self.capacity = capacity }

  /// What is kept of a store, where it has not changed since; nil for nothing.
  func kept(_ key: Key, of files: StoreFileSet, in fileSystem: FileSystem) throws -> Value? {
    let members = try files.members(in: fileSystem)
    return entries.withLock { entries in entries[key].flatMap { $0.members == members ? $0.value : nil } }
  }

  /// What is kept of a store, or else what is made now.
  ///
  /// - Parameter isKept: whether what was made is good for longer; of a store that was written to meanwhile nothing is.
  func value(
    _ key: Key, of files: StoreFileSet, in fileSystem: FileSystem, keepingIf isKept: (Value) -> Bool = { _ in true },
    make: () throws -> Value
  ) throws -> Value {
    let before = try files.members(in: fileSystem)
    let found = entries.withLock { entries in entries[key].flatMap { $0.members == before ? $0.value : nil } }
    if let found { return found }
    let value = try make()
    guard isKept(value), try files.members(in: fileSystem) == before else { return value }
    entries.withLock { entries in
      if entries.count >= capacity { entries.removeAll() }
      entries[key] = Entry(members: before, value: value)
    }
    return value
  }
}
