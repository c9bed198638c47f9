package import Backup
internal import Dispatch
internal import Foundation
internal import GRDB
package import ManagedObjectModel
internal import PersistentStore
package import Platform
package import Salvage
package import SystemPackage

/// The browsed sides of stores, each made once and kept open while used.
///
/// Slow ones are made in the background into a private cache; callers meanwhile get the progress.
package final class StoreSides: Sendable {
  package enum Answer: Sendable {
    case ready(OpenedSide)
    case preparing(SideProgress)
  }

  private struct Open {
    var preparation: SidePreparation
    var entry: String?
    var used: UInt64

    var wasGiven = false
  }

  private struct State {
    var sides: [String: Open] = [:]
    var clock: UInt64 = 0

    /// The last copies of stores in use: name and start time.
    var live: [String: (name: String, time: Timestamp)] = [:]
  }

  private static let capacity = 8

  /// The seconds for which a copy is shown, even if the store changed.
  private static let liveSeconds: Int64 = 300

  /// The seconds for which a copy waits for its page.
  private static let givenSeconds: Int64 = 30

  /// The seconds before a failed preparation is retried.
  private static let failureSeconds: Int64 = 5

  private static let externalLimit: Int64 = 1 << 30

  private let cache: BrowsingCache
  private let models: [ModelBundle]
  private let surroundings: Surroundings
  private let limits: BrowsedStore.Limits
  private let state = Mutex(State())

  /// Limits concurrent preparations; others wait.
  private let places = DispatchSemaphore(value: 2)

  /// - Parameter models: the models besides those embedded in stores.
  package init(
    home: FilePath, models: [ModelBundle], limits: BrowsedStore.Limits = .init(),
    cacheLimits: BrowsingCache.Limits = .init(), surroundings: Surroundings = .machine
  ) {
    cache = BrowsingCache(home: home, limits: cacheLimits, surroundings: surroundings)
    self.models = models
    self.limits = limits
    self.surroundings = surroundings
  }

  private var fileSystem: FileSystem { surroundings.fileSystem }

  func cleanCache() throws { try cache.clean() }

  /// Returns a side, or its progress.
  ///
  /// - Parameters:
  ///   - patience: the milliseconds to wait.
  ///   - isFresh: whether to copy a store in use again.
  /// - Throws: the preparation's error.
  package func open(_ side: StoreSide, patience: Int = 2_000, isFresh: Bool = false) throws -> Answer {
    let name = try name(of: side, isFresh: isFresh)
    let now = surroundings.now()
    let (preparation, isNew) = state.withLock { state -> (SidePreparation, Bool) in
      state.clock += 1
      if let preparation = state.sides[name]?.preparation, !Self.isStale(preparation.snapshot, at: now) {
        state.sides[name]?.used = state.clock
        return (preparation, false)
      }
      let preparation = SidePreparation()
      state.sides[name] = Open(preparation: preparation, entry: name, used: state.clock)
      return (preparation, true)
    }
    if isNew { begin(side, name, preparation) }
    closeOldest()
    if preparation.snapshot.result == nil { preparation.wait(milliseconds: patience) }
    let snapshot = preparation.snapshot
    switch snapshot.result {
    case .success(let side)?:
      state.withLock { $0.sides[name]?.wasGiven = true }
      return .ready(side)
    case .failure(let error)?: throw error
    case nil:
      let fraction = snapshot.total > 0 ? min(1, Double(snapshot.done) / Double(snapshot.total)) : nil
      return .preparing(SideProgress(words: snapshot.phase, fraction: fraction))
    }
  }

  /// Returns an existing side without starting one.
  func existing(_ side: StoreSide) throws -> OpenedSide? {
    let name = try name(of: side, isFresh: false)
    guard case .success(let opened)? = state.withLock({ $0.sides[name]?.preparation.snapshot.result }) else {
      return nil
    }
    return opened
  }

  private func begin(_ side: StoreSide, _ name: String, _ preparation: SidePreparation) {
    // Crawling a damaged store recurses deeply.
    WorkThread.start(named: "side") { [self] in
      preparation.tell("waiting for others to be done", 0, 0)
      places.wait()
      preparation.tell("reading", 0, 0)
      let result = Result { try make(side, name, preparation) }
      places.signal()
      preparation.end(with: result, at: surroundings.now())
    }
  }

  private static func isStale(_ snapshot: SidePreparation.State, at now: Timestamp) -> Bool {
    guard case .failure? = snapshot.result else { return false }
    return now.secondsSince1970 - (snapshot.ended ?? now).secondsSince1970 >= failureSeconds
  }

  /// Closes the least recently used sides.
  private func closeOldest() {
    let closed = state.withLock { state -> [String] in
      var names: [String] = []
      while state.sides.count > Self.capacity {
        let finished = state.sides.filter { $0.value.preparation.snapshot.result != nil }
        guard let oldest = finished.min(by: { $0.value.used < $1.value.used }) else { break }
        state.sides.removeValue(forKey: oldest.key)
        names.append(oldest.key)
      }
      return names
    }
    for name in closed { cache.release(name) }
  }

  // MARK: Names

  /// A side's name, specific to its content.
  private func name(of side: StoreSide, isFresh: Bool) throws -> String {
    switch side {
    case .evidence(let files, let sums):
      return sums.isEmpty
        ? try lasting("original", files, isFresh: isFresh) : "original-\(digest(try facts(files) + sums))"
    case .file(let files): return "file-\(digest(try facts(files)))"
    case .backup(let id, let place): return "backup-\(digest([place.location, id.description]))"
    case .live(let files): return try lasting("live", files, isFresh: isFresh)
    }
  }

  /// The name of a copy of a store in use, kept for some minutes whatever is written.
  private func lasting(_ kind: String, _ files: StoreFileSet, isFresh: Bool) throws -> String {
    let now = surroundings.now()
    let name = "\(kind)-\(digest(try facts(files)))"
    let place = "\(kind) \(files.main)"
    return state.withLock { state in
      if let last = state.live[place] {
        let age = now.secondsSince1970 - last.time.secondsSince1970
        if !isFresh || last.name == name, age < Self.liveSeconds { return last.name }
        // A constantly written store has one copy at a time, shown once before the next.
        if let side = state.sides[last.name], !side.wasGiven {
          let ended = side.preparation.snapshot.ended
          if ended.map({ now.secondsSince1970 - $0.secondsSince1970 < Self.givenSeconds }) ?? true { return last.name }
        }
      }
      state.live[place] = (name, now)
      return name
    }
  }

  /// The names, sizes and times of the files.
  private func facts(_ files: StoreFileSet) throws -> [String] {
    try files.members(in: fileSystem).filter { $0.part != .sharedMemory && $0.part != .externalData }.map { member in
      let status = member.status
      return "\(member.path) \(status.size) \(status.identity) \(status.modified) \(status.statusChanged)"
    }
  }

  private func digest(_ facts: [String]) -> String {
    // Another model or arrangement format gives another file.
    let all = ["4"] + models.flatMap { $0.versions.map(\.checksum) } + facts
    return String(FileDigest(of: Array(all.joined(separator: "\u{0}").utf8)).hexadecimal.prefix(32))
  }

  // MARK: Making

  private func make(_ side: StoreSide, _ name: String, _ preparation: SidePreparation) throws -> OpenedSide {
    switch side {
    case .evidence(let files, let sums):
      let time = surroundings.now()
      let folder = try cache.entry(name) { try salvage(files, into: $0, preparation) }
      return try opened(folder, external: files, takenAt: sums.isEmpty ? time : nil)
    case .file(let files):
      let log = try fileSystem.status(of: files.path(of: .wal))
      guard let log, log.size > 0 else {
        return OpenedSide(
          store: try browse(files.main, hasProvenance: false), externalData: files.path(of: .externalData),
          takenAt: nil, report: nil)
      }
      let folder = try cache.entry(name) { try copy(files, into: $0, preparation) }
      return try opened(folder, external: files, takenAt: nil)
    case .live(let files):
      let time = surroundings.now()
      let folder = try cache.entry(name) { try copy(files, into: $0, preparation) }
      return try opened(folder, external: files, takenAt: time)
    case .backup(let id, let place):
      let folder = try cache.entry(name) { try unpack(id, place, into: $0, preparation) }
      return try opened(folder, external: nil, takenAt: nil)
    }
  }

  private static let store: FilePath.Component = "Store.sqlite"
  private static let found: FilePath.Component = "Found.sqlite"

  private func opened(_ folder: FilePath, external: StoreFileSet?, takenAt: Timestamp?) throws -> OpenedSide {
    let found = folder.appending(Self.found)
    let hasFound = try fileSystem.status(of: found) != nil
    let own = StoreFileSet(main: folder.appending(Self.store)).path(of: .externalData)
    return OpenedSide(
      store: try browse(hasFound ? found : folder.appending(Self.store), hasProvenance: hasFound),
      externalData: external?.path(of: .externalData) ?? own, takenAt: takenAt,
      report: hasFound ? try report(folder) : nil)
  }

  private func browse(_ path: FilePath, hasProvenance: Bool) throws -> BrowsedStore {
    var model = hasProvenance ? try StoredModel.noted(in: path) : try StoredModel.find(in: path, among: models)
    if model == nil, let store = Self.store(ofSetAside: path), try fileSystem.status(of: store) != nil {
      // Set-aside rows take the names of the store next to them, if readable.
      model = try? StoredModel.find(in: store, among: models)
    }
    return try BrowsedStore(path, model: model, limits: limits, hasProvenance: hasProvenance)
  }

  /// The salvaged store next to a file of set-aside rows.
  private static func store(ofSetAside path: FilePath) -> FilePath? {
    let suffix = "-set-aside"
    guard let name = path.lastComponent?.string, name.hasSuffix(suffix),
      let store = FilePath.Component(String(name.dropLast(suffix.count)))
    else { return nil }
    return path.removingLastComponent().appending(store)
  }

  private static let reportName: FilePath.Component = "report.json"

  private func report(_ folder: FilePath) throws -> SalvageReport? {
    let path = folder.appending(Self.reportName)
    guard try fileSystem.status(of: path) != nil else { return nil }
    return try JSONDecoder().decode(SalvageReport.self, from: Data(fileSystem.contents(of: path, limit: 1 << 27)))
  }

  private func salvage(_ files: StoreFileSet, into folder: FilePath, _ preparation: SidePreparation) throws {
    let output = folder.appending(Self.found)
    let options = Salvager.Options(findsDeleted: true) { phase, done, total in
      preparation.tell(Self.words(phase), done, total)
      return true
    }
    let found = try look(at: files.main, into: output, options)
    preparation.tell("arranging the records", 0, 0)
    try FoundRows.arrange(output, model: found.model)
    let report = try JSON.bytes(of: found.report, .line, to: "keep the records that were found", at: folder)
    try fileSystem.writeAtomically(report, to: folder.appending(Self.reportName), replacing: false)
  }

  /// Reads rows by the best-fitting model, if any.
  private func look(
    at path: FilePath, into output: FilePath, _ options: Salvager.Options
  ) throws(SalvageError) -> Salvager.Findings {
    let salvager = Salvager(surroundings: surroundings)
    for model in ranked(for: path) {
      do throws(SalvageError) {
        return try salvager.look(at: path, into: output, model: .coreData(model), options: options)
      } catch {
        guard error.kind == .unfitModel else { throw error }
      }
    }
    return try salvager.look(at: path, into: output, options: options)
  }

  /// The models, best fit first, as they may share entity names.
  private func ranked(for path: FilePath) -> [ModelBundle] {
    guard models.count > 1 else { return models }
    return Examiner(fileSystem: fileSystem).ranked(models, for: path) { .coreData($0) }.map(\.model)
  }

  /// Copies a store at one commit; salvages the rows of a damaged one.
  private func copy(_ files: StoreFileSet, into folder: FilePath, _ preparation: SidePreparation) throws {
    preparation.tell("copying the store", 0, 0)
    guard try fileSystem.status(of: files.main) != nil else {
      throw FileError(.notFound, operation: "look at the store", path: files.main)
    }
    if let copy = try StoreCopy.make(of: files, in: folder, surroundings: surroundings) {
      try fileSystem.rename(copy, to: folder.appending(Self.store))
    } else {
      let evidence = try PrivateCopy(of: files, in: folder, surroundings: surroundings)
      try salvage(evidence.files, into: folder, preparation)
      evidence.remove()
    }
  }

  /// Unpacks a backup; salvages the rows of evidence or a damaged one.
  private func unpack(
    _ id: BackupIdentifier, _ place: FolderPlace, into folder: FilePath, _ preparation: SidePreparation
  ) throws {
    let extraction = try BackupExtraction(id, in: BackupCatalog(of: place), isTolerant: true, fileSystem: fileSystem) {
      _, done, total in
      preparation.tell("unpacking the backup", done, total)
      return true
    }
    let files = StoreFileSet(main: folder.appending(Self.store))
    let manifest = try extraction.manifest
    let isSound: Bool
    if manifest.kind == .evidence {
      _ = try extraction.writeEvidence(to: files)
      isSound = false
    } else {
      isSound = try extraction.writeDatabase(to: files.main).isContentRight && manifest.check.isSound
    }
    if let data = manifest.externalData, data.totalBytes <= Self.externalLimit {
      _ = try extraction.writeExternalData(into: files.path(of: .externalData))
    }
    if !isSound { try salvage(files, into: folder, preparation) }
  }

  private static func words(_ phase: SalvagePhase) -> String {
    switch phase {
    case .survey: "looking at every page"
    case .placement: "finding out whose the pages are"
    case .rows, .rebuild, .migration: "reading the records"
    }
  }
}

package struct SideProgress: Sendable, Hashable {
  var words: String

  /// The fraction done, from 0 to 1; nil if unknown.
  var fraction: Double?
}

/// A form in which a store's records can be browsed.
package enum StoreSide: Sendable {
  /// The readable rows of a damaged or quarantined store.
  case evidence(StoreFileSet, sha256: [String])

  /// A sound file without writers, such as a salvaged store.
  case file(StoreFileSet)

  /// A store possibly in use, copied at one commit.
  case live(StoreFileSet)

  case backup(BackupIdentifier, FolderPlace)
}

/// The preparation of a side on its own thread.
final class SidePreparation: Sendable {
  struct State {
    var phase = "reading"
    var done: Int64 = 0
    var total: Int64 = 0
    var result: Result<OpenedSide, any Error>?
    var ended: Timestamp?
  }

  private let state = Mutex(State())
  private let group = DispatchGroup()

  init() { group.enter() }

  var snapshot: State { state.withLock { $0 } }

  func tell(_ phase: String, _ done: Int64, _ total: Int64) {
    state.withLock { state in
      state.phase = phase
      state.done = done
      state.total = total
    }
  }

  func end(with result: Result<OpenedSide, any Error>, at time: Timestamp) {
    state.withLock { state in
      state.result = result
      state.ended = time
    }
    group.leave()
  }

  func wait(milliseconds: Int) { _ = group.wait(timeout: .now() + .milliseconds(milliseconds)) }
}

/// A side with browsable records.
package struct OpenedSide: Sendable {
  package let store: BrowsedStore

  /// The folder of external values, if any.
  let externalData: FilePath?

  /// When a store in use was copied; nil for unchanging sides.
  package let takenAt: Timestamp?

  package let report: SalvageReport?

  /// Returns an external value by file name; nil if missing.
  ///
  /// Names must be UUIDs, so no value of a store leads to another file.
  func externalValue(_ name: String, limit: Int, in fileSystem: FileSystem) throws -> [UInt8]? {
    let isName =
      name.utf8.count == 36
      && name.utf8.allSatisfy { byte in
        let letter = byte | 0x20
        return byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte) || (0x61...0x66).contains(letter)
      }
    guard isName, let folder = externalData else { return nil }
    let path = folder.appending("_EXTERNAL_DATA").appending(name)
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .regular else { return nil }
    return try fileSystem.contents(of: path, limit: limit)
  }
}

/// The model of a sound store: a matching given version, or the embedded one.
enum StoredModel {
  /// Finds the model; nil for plain databases, or if unknown.
  static func find(in path: FilePath, among models: [ModelBundle]) throws -> ManagedObjectModel? {
    let (uuid, list, cache) = try read(path) { database in
      let metadata =
        try database.hasStored(["Z_UUID", "Z_PLIST"], in: "Z_METADATA")
        ? Row.fetchOne(database, sql: "SELECT Z_UUID, Z_PLIST FROM Z_METADATA LIMIT 1") : nil
      let cached =
        try database.hasStored(["Z_CONTENT"], in: "Z_MODELCACHE")
        ? DatabaseValue.fetchOne(database, sql: "SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1") : nil
      let uuid: DatabaseValue? = metadata?[0]
      let list: DatabaseValue? = metadata?[1]
      return (
        uuid.flatMap { String.fromDatabaseValue($0) } ?? "", list.flatMap { Data.fromDatabaseValue($0) },
        cached.flatMap { Data.fromDatabaseValue($0) }
      )
    }
    // Without a decodable cache, the raw tables are shown.
    let cached = cache.flatMap { try? ManagedObjectModel(modelCache: [UInt8]($0)) }
    // Without readable metadata, the model cache may still help.
    let metadata = list.flatMap { try? StoreMetadata(uuid: uuid, propertyList: [UInt8]($0)) }
    let version = metadata.flatMap { metadata in
      models.lazy.compactMap {
        $0.version(matching: metadata.versionHashes, identifiers: metadata.versionIdentifiers, cached: cached)
      }.first
    }
    return version?.model ?? cached
  }

  /// The model by which a file of found rows was arranged.
  static func noted(in path: FilePath) throws -> ManagedObjectModel? {
    let bytes = try read(path) { database in
      try database.tableExists(TableProvenance.model)
        ? Data.fetchOne(database, sql: "SELECT content FROM \(TableProvenance.model)") : nil
    }
    return try bytes.map { try ManagedObjectModel(modelCache: [UInt8]($0)) }
  }

  private static func read<Value>(_ path: FilePath, _ body: (Database) throws -> Value) throws -> Value {
    let pool = ReaderPool([try BrowsedStore.connect(path)])
    let value = try pool.read(limit: BrowsedStore.Limits().opening, body)
    try pool.close()
    return value
  }
}
