import Dispatch
internal import HTTPServer
package import Inbox
internal import Lazaret
internal import Logging
internal import ManagedObjectModel
package import PersistentStore
package import Platform
import SQLiteFormat
internal import SupportBundle
package import SystemPackage

/// What the routes of every part of the inspector work with.
package struct InspectorParts: Sendable {
  /// The folder with the catalogue of quarantined stores and with `Backups/`.
  package let home: FilePath

  /// The file system, the clock and the source of identifiers.
  package let surroundings: Surroundings

  /// The models that were given.
  package let models: [InspectorModel]

  /// The stores of the home; the only way from an address to a file.
  package let catalogue: StoreCatalogue

  let sessions: Sessions

  /// What is running.
  package let work: RunningWork

  /// Who receives bundles that are sent from here; none if nil.
  package let receiver: InspectorReceiver?

  let sender: Sender

  /// The inbox; nil where there is none.
  package var inbox: Inbox?

  /// The records of stores, from where they can be read; what that takes is done once.
  let sides: StoreSides

  /// What looks at stores in their places have found.
  let examinations = ExaminationCache()

  /// The looks at stores for which no page waits.
  let looks = ExaminationQueue()

  /// What is known of repairs, and what was repaired here.
  let repairs = RepairNotes()

  /// What is told of repairs as they go on.
  let logger: Logger

  let allowsActions: Bool

  /// The quarantined stores of the home, for actions.
  var quarantines: Quarantines { Quarantines(home: home, surroundings: surroundings) }

  /// The models that were given, of stores of Core Data.
  var modelBundles: [ModelBundle] {
    models.compactMap { model in
      guard case .coreData(let bundle) = model.model else { return nil }
      return bundle
    }
  }

  /// The backups of the home, for actions.
  var backups: Backups { Backups(home: home, surroundings: surroundings) }

  /// Bundles for support, of the stores of the home.
  var exports: SupportExports { SupportExports(home: home, surroundings: surroundings) }

  /// The bundles that are to be sent, are being sent, or were.
  var outbox: Outbox { Outbox(home: home, surroundings: surroundings) }
}

extension InspectorParts {
  /// The models to choose from; the one that fits the store best is proposed, and none where several do not fit.
  ///
  /// - Parameter sums: the digests of the store's files, where they are known.
  func modelOptions(for files: StoreFileSet, sums: [String] = []) -> [(value: String, label: String)] {
    let best = (fittingModel(of: files) ?? foundModel(of: files, sums))?.name
    let options = models.sorted { first, second in first.name == best && second.name != best }.map {
      (value: $0.name, label: "\($0.name) (\(printable($0.model.currentVersionName)))")
    }
    let own = (value: "", label: "What the store says of itself")
    return best == nil && models.count > 1 ? [own] + options : options + [own]
  }

  /// The model that has the entities of which rows were found in a store; nil where it was not looked at, or none has any.
  ///
  /// Of a damaged store its header and its metadata may be gone, while what the rows are is still told by other pages.
  private func foundModel(of files: StoreFileSet, _ sums: [String]) -> InspectorModel? {
    guard let side = PagePart({ try sides.existing(.evidence(files, sha256: sums)) }).value ?? nil else { return nil }
    let names = Set(side.store.collections.filter(\.isEntity).map(\.name))
    var best: (model: InspectorModel, common: Int)?
    for model in models {
      guard case .coreData(let bundle) = model.model else { continue }
      let common = names.intersection(bundle.current.model.entities.keys).count
      if common > best?.common ?? 0 { best = (model, common) }
    }
    // A name that two apps happen to share is not enough.
    return best.flatMap { $0.common * 2 >= names.count ? $0.model : nil }
  }

  /// What a store is by the model that fits it best, every page looked at.
  ///
  /// It is only looked at.
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

  /// The model by which a store is judged: by no model at all it is judged by itself, which is all that several models leave
  /// to say.
  private func judging(_ fitting: InspectorModel?) -> InspectorModel? {
    fitting ?? (models.count == 1 ? models.first : nil)
  }

  /// What a store is by the model that fits it best, every page looked at; nil where that is not known in time, and is found out
  /// without the caller.
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

  /// The model that fits a store best; nil where none does.
  func fittingModel(of files: StoreFileSet) -> InspectorModel? {
    let ranked = Examiner(fileSystem: surroundings.fileSystem).ranked(models, for: files.main) { $0.model }
    return ranked.first { $0.fit > 0 }?.model
  }

  /// The model of a name; nil for none.
  ///
  /// - Throws: ``Refusal`` 400 for a name that no model has.
  func model(_ name: String?) throws(Refusal) -> AppModel? {
    guard let name, !name.isEmpty else { return nil }
    guard let model = models.first(where: { $0.name == name }) else {
      throw Refusal(.badRequest, "there is no model of that name")
    }
    return model.model
  }

  /// What is at a store's place now, in words; nil for nothing.
  func present(_ place: StoreFileSet) throws -> String? {
    let members = try place.members(in: surroundings.fileSystem)
    guard let first = members.first else { return nil }
    let bytes = members.reduce(Int64(0)) { $0 &+ $1.status.size }
    return "\(Words.size(bytes)), changed \(Words.date(first.status.modified))"
  }
}

/// A model that the inspector was given: what is in it, and the name it goes by.
package struct InspectorModel: Sendable {
  /// The name in addresses and on pages, different for each; the name of the file without its extension, as far as it can be.
  package let name: String

  /// The model.
  package let model: AppModel

  /// Models with names that are all different: where two files have one name the later gets a number.
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

/// What looks at every page of stores have found, kept until a store changes.
final class ExaminationCache: Sendable {
  private struct Key: Hashable {
    let store: FilePath
    let model: String?
    let countsRecords: Bool
  }

  private let examinations = StoreCache<Key, Examination>(capacity: 64)

  /// What is known of a store that has not changed since every page of it was looked at; nil for nothing.
  func kept(_ files: StoreFileSet, model: InspectorModel?, in fileSystem: FileSystem) throws -> Examination? {
    try examinations.kept(
      Key(store: files.main, model: model?.name, countsRecords: false), of: files, in: fileSystem)
  }

  /// What a store is by a model, or by itself; every page of it is looked at.
  func examination(
    of files: StoreFileSet, model: InspectorModel?, countsRecords: Bool, in fileSystem: FileSystem
  ) throws -> Examination {
    let key = Key(store: files.main, model: model?.name, countsRecords: countsRecords)
    // What could not be had is looked at again the next time.
    return try examinations.value(
      key, of: files, in: fileSystem, keepingIf: { $0.verdict != .unavailable },
      make: {
        try Examiner(fileSystem: fileSystem).examine(
          files.main, model: model?.model, options: .init(depth: .full, countsRecords: countsRecords))
      })
  }
}

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

/// Looks at whole stores, one after another on a thread of its own, for pages that wait for them no longer than a moment.
///
/// What a look found is kept until a page has asked for it, so that also what is worth no place in a cache is shown once.
package final class ExaminationQueue: Sendable {
  /// A look at a store that has begun, or waits for its turn.
  private final class Look: Sendable {
    let make: @Sendable () throws -> Examination
    let ending = DispatchGroup()
    private let outcome = Mutex<(part: PagePart<Examination>, time: ContinuousClock.Instant)?>(nil)

    init(_ make: @escaping @Sendable () throws -> Examination) {
      self.make = make
      ending.enter()
    }

    /// What came of it; nil while it goes on.
    var part: PagePart<Examination>? { outcome.withLock { $0?.part } }

    /// Whether it ended so long ago that it says nothing of now.
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

  /// For how long the result of a look waits for a page.
  private static let memory = Duration.seconds(10)

  private let state = Mutex(State())

  /// A queue without looks.
  package init() {}

  /// What a look at a store found; nil where it is not there in time, and goes on.
  ///
  /// - Parameter make: the look; it is not begun where one at the store is under way.
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
