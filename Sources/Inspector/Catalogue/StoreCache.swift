import Dispatch
internal import Lazaret
package import PersistentStore
internal import Platform
import SQLiteFormat
package import SystemPackage

final class ExaminationCache: Sendable {
  private struct Key: Hashable {
    let store: FilePath
    let model: String?
    let countsRecords: Bool
  }

  private let examinations = StoreCache<Key, Examination>(capacity: 64)

  func kept(_ files: StoreFileSet, model: InspectorModel?, in fileSystem: FileSystem) throws -> Examination? {
    try examinations.kept(Key(store: files.main, model: model?.name, countsRecords: false), of: files, in: fileSystem)
  }

  /// Examines every page by a model, or by itself.
  func examination(
    of files: StoreFileSet, model: InspectorModel?, countsRecords: Bool, in fileSystem: FileSystem
  ) throws -> Examination {
    let key = Key(store: files.main, model: model?.name, countsRecords: countsRecords)
    // An unavailable store is examined again next time.
    return try examinations.value(
      key, of: files, in: fileSystem, keepingIf: { $0.verdict != .unavailable },
      make: {
        try Examiner(fileSystem: fileSystem).examine(
          files.main, model: model?.model, options: .init(depth: .full, countsRecords: countsRecords))
      })
  }
}

/// A cache of facts on unchanged stores, which saves reading them for each page.
final class StoreCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Entry {
    let members: [StoreFileSet.Member]
    let value: Value
  }

  private let entries: RecentValues<Key, Entry>

  init(capacity: Int) { entries = RecentValues(capacity: capacity) }

  /// Returns the entry of an unchanged store.
  func kept(_ key: Key, of files: StoreFileSet, in fileSystem: FileSystem) throws -> Value? {
    let members = try files.members(in: fileSystem)
    return entries[key].flatMap { $0.members == members ? $0.value : nil }
  }

  /// Returns the cached value, or makes it.
  ///
  /// - Parameter isKept: whether to cache it if the store didn't change meanwhile.
  func value(
    _ key: Key, of files: StoreFileSet, in fileSystem: FileSystem, keepingIf isKept: (Value) -> Bool = { _ in true },
    make: () throws -> Value
  ) throws -> Value {
    let before = try files.members(in: fileSystem)
    if let found = entries[key], found.members == before { return found.value }
    let value = try make()
    guard isKept(value), try files.members(in: fileSystem) == before else { return value }
    entries.keep(Entry(members: before, value: value), for: key)
    return value
  }
}

/// The latest values by key, as many as the capacity.
final class RecentValues<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct State {
    var values: [Key: Value] = [:]

    /// The keys, latest last.
    var keys: [Key] = []
  }

  private let state = Mutex(State())
  private let capacity: Int

  init(capacity: Int) { self.capacity = capacity }

  subscript(key: Key) -> Value? { state.withLock { $0.values[key] } }

  func keep(_ value: Value, for key: Key) {
    state.withLock { state in
      if state.values.updateValue(value, forKey: key) != nil { state.keys.removeAll { $0 == key } }
      state.keys.append(key)
      if state.keys.count > capacity { state.values[state.keys.removeFirst()] = nil }
    }
  }

  /// Returns the value, made and kept if there is none; nil isn't kept.
  func value<Failure>(_ key: Key, make: () throws(Failure) -> Value?) throws(Failure) -> Value? {
    if let known = self[key] { return known }
    let made = try make()
    if let made { keep(made, for: key) }
    return made
  }
}

/// Examines stores one by one on its own thread, for pages that wait only briefly.
///
/// A result is kept until a page has asked for it, so uncacheable ones are also shown once.
package final class ExaminationQueue: Sendable {
  private final class Look: Sendable {
    let make: @Sendable () throws -> Examination
    let ending = DispatchGroup()
    private let outcome = Mutex<(part: PagePart<Examination>, time: ContinuousClock.Instant)?>(nil)

    init(_ make: @escaping @Sendable () throws -> Examination) {
      self.make = make
      ending.enter()
    }

    var part: PagePart<Examination>? { outcome.withLock { $0?.part } }

    var isOld: Bool { outcome.withLock { $0.map { .now - $0.time > ExaminationQueue.memory } ?? false } }

    func run() {
      let part = PagePart { try make() }
      outcome.withLock { $0 = (part, .now) }
      ending.leave()
    }
  }

  private struct State {
    var looks: [FilePath: Look] = [:]
    var waiting: [Look] = []
    var isWorking = false
  }

  /// The time for which a result waits for a page.
  private static let memory = Duration.seconds(10)

  private let state = Mutex(State())

  package init() {}

  /// Returns a store's examination; nil on timeout, when it continues.
  ///
  /// - Parameter make: the examination, unless one is under way.
  package func part(
    of store: FilePath, by end: ContinuousClock.Instant, _ make: @escaping @Sendable () throws -> Examination
  ) -> PagePart<Examination>? {
    let (look, isFirst) = state.withLock { state in
      if let known = state.looks[store], !known.isOld { return (known, false) }
      let look = Look(make)
      state.looks[store] = look
      state.waiting.append(look)
      let isFirst = !state.isWorking
      state.isWorking = true
      return (look, isFirst)
    }
    if isFirst { WorkThread.start { [self] in work() } }
    let left = max(.zero, end - .now).components
    let nanoseconds = Int(left.seconds) * 1_000_000_000 + Int(left.attoseconds / 1_000_000_000)
    guard look.ending.wait(timeout: .now() + .nanoseconds(nanoseconds)) == .success else { return nil }
    state.withLock { state in
      if state.looks[store] === look { state.looks[store] = nil }
    }
    return look.part
  }

  private func work() {
    while true {
      let next = state.withLock { state -> Look? in
        guard !state.waiting.isEmpty else {
          state.isWorking = false
          return nil
        }
        return state.waiting.removeFirst()
      }
      guard let next else { return }
      next.run()
    }
  }
}
