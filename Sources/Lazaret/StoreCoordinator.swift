import Foundation
public import Logging

/// Opens an app's store, whatever state it is in.
///
/// ```swift
/// let coordinator = StoreCoordinator(model: try AppModel.load("App.xcdatamodeld"))
/// let opening = try coordinator.open("Stores/App.sqlite")
/// if let notice = opening.notice { show(notice) }
/// ```
///
/// A sound store of the current model is simply opened, and a missing one created. One that is damaged or incompatible is
/// moved into quarantine as it is, and an empty one takes its place, unless the policy refuses. One that cannot be had now
/// (locked, forbidden, newer than the app) stays where it is, and the error says what to do.
///
/// Close every other connection of your process to the store before you open it: SQLite's locks belong to the process, and
/// looking at a file can end those of another connection (https://sqlite.org/howtocorrupt.html, section 2.2).
public struct StoreCoordinator: Sendable {
  /// What the app expects of its store.
  public let model: AppModel

  /// What the app wants done with a store that cannot simply be opened.
  public let policy: OpeningPolicy

  /// The folder with the catalogue of quarantined stores; nil keeps none.
  public let home: FilePath?

  /// The app's own version, for receipts.
  public let appVersion: String?

  /// How the store is opened in the end.
  public let storeOptions: PersistentStore.Options

  let surroundings: Surroundings
  let logger: Logger

  /// A coordinator for stores of one model.
  public init(
    model: AppModel, policy: OpeningPolicy = OpeningPolicy(), home: FilePath? = nil, appVersion: String? = nil,
    storeOptions: PersistentStore.Options = PersistentStore.Options(), surroundings: Surroundings = .machine,
    logger: Logger = Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }
  ) {
    self.model = model
    self.policy = policy
    self.home = home
    self.appVersion = appVersion
    self.storeOptions = storeOptions
    self.surroundings = surroundings
    self.logger = logger
  }

  var fileSystem: FileSystem { surroundings.fileSystem }

  /// Looks at a store; touches nothing.
  public func examine(
    _ path: FilePath, options: Examiner.Options = Examiner.Options()
  ) throws -> Examination {
    try Examiner(fileSystem: fileSystem).examine(path, model: model, options: options)
  }

  /// Opens the store at a path.
  ///
  /// - Throws: `LazaretError` where the store stays closed as it is; `FileError`, `PersistentStoreError`,
  ///   `QuarantineError` where a step failed. `isEnvironmental` tells whether the surroundings are at fault. Whatever is
  ///   thrown, the old store is whole in its place or whole in quarantine, and opening again goes on from there.
  public func open(_ path: FilePath, observer: OpeningObserver = OpeningObserver()) throws -> Opening {
    try observer.report(.examining, at: path)
    var events = try finishInterrupted(path)
    let place = try locate(path)
    var examination = try look(at: place, countsRecords: false)
    logger.debug("examined", metadata: ["verdict": "\(examination.verdict)", "reason": "\(examination.reason.code)"])
    var isReplaced = false
    if try decide(examination, at: path) == .replace {
      events += try replace(place, examination, named: path, observer)
      isReplaced = true
    } else {
      events += try untold(place)
    }
    // Once a store has been replaced there is no way back, so nobody is asked any more.
    if isReplaced { observer.progress(.init(phase: .opening)) } else { try observer.report(.opening, at: path) }
    let store: PersistentStore
    do {
      store = try PersistentStore(opening: place.main, model: currentModel, options: storeOptions)
    } catch {
      guard !isReplaced, let damage = VerdictReason(damageFoundBy: error) else { throw error }
      // SQLite sees damage where a quick look saw none.
      examination.verdict = .damaged
      examination.reason = damage
      guard try decide(examination, at: path) == .replace else { throw error }
      events += try replace(place, examination, named: path, observer)
      observer.progress(.init(phase: .opening))
      store = try PersistentStore(opening: place.main, model: currentModel, options: storeOptions)
    }
    let pending = PendingNotice(for: place, in: fileSystem)
    do {
      if try pending.isThere() { try pending.remove() }
    } catch {
      // The next opening tells of it. The first error is the one to report; nothing was written through this connection.
      try? store.close()
      throw error
    }
    // Whoever set the store aside, in this run or an interrupted earlier one, its owner is told.
    let reason = events.last { $0.reason != nil }?.reason
    return Opening(store: store, examination: examination, events: events, notice: reason.map { .setAside($0) })
  }

  /// Looks at a store, and waits a moment for a lock that is only passing: SQLite takes one whenever a last connection
  /// closes.
  func look(at place: StoreFileSet, countsRecords: Bool) throws -> Examination {
    let options = Examiner.Options(depth: policy.depth, countsRecords: countsRecords)
    for _ in 0..<10 {
      let examination = try examine(place.main, options: options)
      guard examination.verdict == .unavailable, examination.reason.code == "locked" else { return examination }
      Thread.sleep(forTimeInterval: 0.03)
    }
    return try examine(place.main, options: options)
  }

  /// What is done about a verdict.
  enum Decision {
    /// The store is opened as it is.
    case open

    /// What is there makes room for an empty store.
    case replace
  }

  /// Decides what a verdict leads to, by the app's policy.
  ///
  /// - Throws: `LazaretError` where the store stays as it is.
  func decide(_ examination: Examination, at path: FilePath) throws(LazaretError) -> Decision {
    switch examination.verdict {
    case .compatible: return .open
    case .missing: return .replace
    case .unavailable: throw LazaretError(.unavailable, examination, path: path)
    case .outdated: throw LazaretError(.migrationNeeded, examination, path: path)
    case .incompatible:
      if policy.whenIncompatible == .refuse { throw LazaretError(.incompatible, examination, path: path) }
      return .replace
    case .damaged:
      if policy.whenDamaged == .refuse { throw LazaretError(.damaged, examination, path: path) }
      return .replace
    }
  }

  private var currentModel: ManagedObjectModel? {
    if case .coreData(let bundle) = model { bundle.current.model } else { nil }
  }
}

extension VerdictReason {
  /// The code of damage that only SQLite saw.
  static let foundBySQLiteCode = "damage-found-by-sqlite"

  /// The damage that SQLite reported when it opened a store; nil for any other error.
  fileprivate init?(damageFoundBy error: PersistentStoreError) {
    guard error.kind == .damaged || error.kind == .notADatabase else { return nil }
    self.init(
      Self.foundBySQLiteCode, words: "SQLite refuses to open the store: \(error.detail).",
      hint: "Open it with the app's model to have it quarantined and replaced; nothing of it is thrown away.",
      coreData: 259, sqlite: error.resultCode.map { Int($0 & 0xFF) })
  }
}
