import Dispatch
internal import HTTPServer
internal import Inbox
internal import Lazaret
internal import Logging
internal import ManagedObjectModel
package import PersistentStore
internal import Platform
import SQLiteFormat
internal import SupportBundle
package import SystemPackage

/// The parts shared by the inspector's routes.
struct InspectorParts: Sendable {
  let home: FilePath

  let surroundings: Surroundings

  let models: [InspectorModel]

  /// The home's stores; the only way from a URL to a file.
  let catalogue: StoreCatalogue

  let sessions: Sessions

  let work: RunningWork

  let receiver: InspectorReceiver?

  let sender: Sender

  var inbox: Inbox?

  /// The browsable sides of stores, each prepared once.
  let sides: StoreSides

  let examinations = ExaminationCache()

  let looks = ExaminationQueue()

  let repairs = RepairNotes()

  let logger: Logger

  let allowsActions: Bool

  /// The home's quarantined stores, for actions.
  var quarantines: Quarantines { Quarantines(home: home, surroundings: surroundings) }

  var modelBundles: [ModelBundle] { models.compactMap(\.bundle) }

  var backups: Backups { Backups(home: home, surroundings: surroundings) }

  var exports: SupportExports { SupportExports(home: home, surroundings: surroundings) }

  var outbox: Outbox { Outbox(home: home, surroundings: surroundings) }
}

extension InspectorParts {
  /// The selectable models, proposing the best fit.
  ///
  /// - Parameter sums: the digests of the store's files.
  func modelOptions(for files: StoreFileSet, sums: [String] = []) -> [(value: String, label: String)] {
    let best = (fittingModel(of: files) ?? foundModel(of: files, sums))?.name
    let options = models.sorted { first, second in first.name == best && second.name != best }.map {
      (value: $0.name, label: "\($0.name) (\(printable($0.model.currentVersionName)))")
    }
    let own = (value: "", label: "What the store says of itself")
    return best == nil && models.count > 1 ? [own] + options : options + [own]
  }

  /// The model with the entities of a store's found rows, if any.
  ///
  /// A damaged store may lack header and metadata while other pages still identify its rows.
  private func foundModel(of files: StoreFileSet, _ sums: [String]) -> InspectorModel? {
    guard let side = PagePart({ try sides.existing(.evidence(files, sha256: sums)) }).value ?? nil else { return nil }
    let names = Set(side.store.collections.filter(\.isEntity).map(\.name))
    var best: (model: InspectorModel, common: Int)?
    for model in models {
      guard let bundle = model.bundle else { continue }
      let common = names.intersection(bundle.current.model.entities.keys).count
      if common > best?.common ?? 0 { best = (model, common) }
    }
    // A single shared entity name is not enough.
    return best.flatMap { $0.common * 2 >= names.count ? $0.model : nil }
  }

  /// Examines every page of a store by its best-fitting model, read-only.
  func examined(
    _ files: StoreFileSet, countsRecords: Bool = false
  ) -> (model: InspectorModel?, examination: PagePart<Examination>) {
    let fitting = fittingModel(of: files)
    let model = judging(fitting)
    let part = PagePart {
      try examinations.examination(
        of: files, model: model, countsRecords: countsRecords, in: surroundings.fileSystem)
    }
    return (fitting ?? models.first, part)
  }

  /// The best fit, else the only given model; otherwise the store is judged by itself.
  private func judging(_ fitting: InspectorModel?) -> InspectorModel? {
    fitting ?? (models.count == 1 ? models.first : nil)
  }

  /// Examines every page; nil on timeout, when it continues in the background.
  func examined(_ files: StoreFileSet, by end: ContinuousClock.Instant) -> PagePart<Examination>? {
    let model = judging(fittingModel(of: files))
    let fileSystem = surroundings.fileSystem
    if let kept = PagePart({ try examinations.kept(files, model: model, in: fileSystem) }).value ?? nil {
      return PagePart { kept }
    }
    return looks.part(of: files.main, by: end) { [examinations] in
      try examinations.examination(of: files, model: model, countsRecords: false, in: fileSystem)
    }
  }

  /// The best-fitting model, or nil.
  func fittingModel(of files: StoreFileSet) -> InspectorModel? {
    let ranked = Examiner(fileSystem: surroundings.fileSystem).ranked(models, for: files.main) { $0.model }
    return ranked.first { $0.fit > 0 }?.model
  }

  /// - Throws: ``Refusal`` 404 for an unknown name.
  func listedModel(_ name: String) throws(Refusal) -> InspectorModel {
    guard let model = models.first(where: { $0.name == name }) else {
      throw Refusal(.notFound, "no model of that name was given")
    }
    return model
  }

  /// - Throws: ``Refusal`` 400 for an unknown name.
  func model(_ name: String?) throws(Refusal) -> AppModel? {
    guard let name, !name.isEmpty else { return nil }
    guard let model = models.first(where: { $0.name == name }) else {
      throw Refusal(.badRequest, "there is no model of that name")
    }
    return model.model
  }

  /// Describes the file at a store's path.
  func present(_ place: StoreFileSet) throws -> String? {
    let members = try place.members(in: surroundings.fileSystem)
    guard let first = members.first else { return nil }
    let bytes = members.reduce(Int64(0)) { $0 &+ $1.status.size }
    return "\(Words.size(bytes)), changed \(Words.date(first.status.modified))"
  }
}

package struct InspectorModel: Sendable {
  /// The unique name in URLs, if possible the file's.
  let name: String

  let model: AppModel

  /// The Core Data model; nil for a schema.
  var bundle: ModelBundle? {
    guard case .coreData(let bundle) = model else { return nil }
    return bundle
  }

  /// Adds a number to taken names.
  package static func named(_ models: [(name: String, model: AppModel)]) -> [InspectorModel] {
    var taken: Set<String> = []
    return models.map { name, model in
      let plain = StoreID.plain(name)
      var unique = plain
      var number = 2
      while !taken.insert(unique).inserted {
        unique = "\(plain)-\(number)"
        number += 1
      }
      return InspectorModel(name: unique, model: model)
    }
  }
}

final class ExaminationCache: Sendable {
  private struct Key: Hashable {
    let store: FilePath
    let model: String?
    let countsRecords: Bool
  }

  private let examinations = StoreCache<Key, Examination>(capacity: 64)

  func kept(_ files: StoreFileSet, model: InspectorModel?, in fileSystem: FileSystem) throws -> Examination? {
    try examinations.kept(
      Key(store: files.main, model: model?.name, countsRecords: false), of: files, in: fileSystem)
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
