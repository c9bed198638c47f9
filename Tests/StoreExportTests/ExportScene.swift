import Foundation
import GRDB
import LazaretTesting
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// A store in a folder of its own, a home, and a place for bundles.
struct ExportScene {
  let folder: TemporaryFolder
  let store: FilePath
  var stores: FilePath { folder.appending("Stores") }
  var home: FilePath { folder.appending("Home") }
  var out: FilePath { folder.appending("Out") }
  let system = FileSystem()

  init() throws {
    folder = try TemporaryFolder()
    store = folder.appending("Stores/App.sqlite")
    for name in ["Stores", "Home", "Out"] { try system.makeDirectory(folder.appending(name)) }
  }

  /// A plain store with trees of two levels, long values, free pages, pointer maps, and a log or a journal.
  static func plain(
    log: Bool = true, journal: Bool = false, rows: Int = 600, hasLongValues: Bool = true
  ) throws -> ExportScene {
    let scene = try ExportScene()
    let made = scene.folder.appending("Made.sqlite")
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let queue = try DatabaseQueue(path: made.string, configuration: configuration)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          PRAGMA page_size = 1024; PRAGMA auto_vacuum = 2; PRAGMA journal_mode = DELETE;
          CREATE TABLE cars (id INTEGER PRIMARY KEY, name TEXT, image BLOB); CREATE INDEX byName ON cars (name);
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
          INSERT INTO cars SELECT i, 'vehicle number ' || i, zeroblob(CASE WHEN i % \(hasLongValues ? 50 : 10_000) = 0 THEN 5000 ELSE 20 END) FROM n;
          DELETE FROM cars WHERE id BETWEEN 300 AND 400
          """)
      if log {
        try database.execute(
          sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; UPDATE cars SET name = 'newer ' || id")
      }
      if journal {
        try database.execute(
          sql: "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; UPDATE cars SET name = 'changed ' || id")
      }
    }
    for member in try StoreFileSet(main: made).members(in: scene.system) {
      let bytes = try scene.system.contents(of: member.path, limit: 1 << 24)
      try scene.system.writeAtomically(
        bytes, to: StoreFileSet(main: scene.store).path(of: member.part), replacing: true)
    }
    if journal { try queue.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") } }
    try queue.close()
    // The index of a log in use is not part of a store at rest.
    try scene.system.unlink(StoreFileSet(main: scene.store).path(of: .sharedMemory))
    return scene
  }

  /// Puts a damaged copy of the store in its place.
  func damage(_ kind: String, seed: UInt64 = 3) throws {
    let copy = folder.appending("Damaged/App.sqlite")
    try system.makeDirectory(copy.folder)
    _ = try DamagedCopy.make(of: store, at: copy, kinds: [try DamageKind(kind)], seed: seed)
    for member in try StoreFileSet(main: store).members(in: system) where member.status.kind == .regular {
      try system.unlink(member.path)
    }
    for member in try StoreFileSet(main: copy).members(in: system) where member.status.kind == .regular {
      try system.rename(member.path, to: StoreFileSet(main: store).path(of: member.part))
    }
  }

  func exporter(_ fileSystem: FileSystem = FileSystem(), seed: UInt64 = 1) -> StoreExports {
    let surroundings = Surroundings.still(seed: seed, fileSystem: fileSystem)
    return StoreExports(exports: SupportExports(home: home, surroundings: surroundings), store: store)
  }

  /// Exports the store and opens the bundle.
  func export(
    _ level: BundleLevel, _ change: (inout ExportOptions) -> Void = { _ in }, as name: String = "received"
  ) throws -> (summary: ExportSummary, received: ReceivedBundle) {
    var options = ExportOptions(level: level, app: "com.example.Garage", appVersion: "2.3")
    change(&options)
    let summary = try exporter().export(options, at: out)
    return (summary, try open(summary, as: name))
  }

  func open(_ summary: ExportSummary, as name: String = "received") throws -> ReceivedBundle {
    let path = try #require(summary.path.path)
    let target = folder.appending(name)
    try system.removeTree(target)
    return try BundleReader().unpack(path, into: target)
  }

  /// The bytes of a file of an opened bundle.
  func content(_ name: String, of bundle: ReceivedBundle) throws -> [UInt8] {
    try system.contents(of: bundle.folder.appending("data").pushing(FilePath(name)), limit: 1 << 26)
  }

  /// The JSON of a file of an opened bundle.
  func json(_ name: String, of bundle: ReceivedBundle) throws -> [String: Any] {
    let value = try JSONSerialization.jsonObject(with: Data(try content(name, of: bundle)))
    return try #require(value as? [String: Any])
  }

  /// Nothing is left in the home but its keys, and nothing hidden beside the bundles.
  func expectTidy(_ comment: Comment? = nil, _ location: SourceLocation = #_sourceLocation) throws {
    let left = try system.entries(of: home).map(\.string).filter { $0 != "Keys" }
    #expect(left.isEmpty, comment, sourceLocation: location)
    let hidden = try system.entries(of: out).map(\.string).filter { $0.hasPrefix(".") }
    #expect(hidden.isEmpty, comment, sourceLocation: location)
  }
}

/// The exports of one store.
struct StoreExports {
  var exports: SupportExports
  let store: FilePath

  func make(_ options: ExportOptions) throws -> PreparedExport { try exports.make(store, options) }

  @discardableResult
  func export(
    _ options: ExportOptions, at path: FilePath, progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportSummary {
    try exports.export(store, options, at: path, progress: progress)
  }
}

extension SupportExports {
  /// Makes and writes a bundle, as a caller with consent.
  @discardableResult
  func export(
    _ name: FilePath, _ options: ExportOptions, to recipients: [AgeRecipient] = [], at path: FilePath,
    progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportSummary {
    try write(try make(name, options, progress: progress), to: recipients, at: path, progress: progress)
  }
}
