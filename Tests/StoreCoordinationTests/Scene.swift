import GRDB
import Lazaret
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

/// A folder with an app's model and its stores, each scene in one of its own.
struct Scene {
  let folder: TemporaryFolder
  let system = FileSystem()

  init(in parent: FilePath? = nil) throws {
    folder = try TemporaryFolder(in: parent)
    try system.makeDirectory(stores)
    for (version, attributes) in [("V1", ["name"]), ("V2", ["name", "color"]), ("V3", ["name", "color", "wheels"])] {
      try folder.write(Self.contents(attributes), to: "App.xcdatamodeld/\(version).xcdatamodel/contents")
    }
    try folder.write(Self.current("V2.xcdatamodel"), to: "App.xcdatamodeld/.xccurrentversion")
    try folder.write("CREATE TABLE cars (id INTEGER PRIMARY KEY, name TEXT);", to: "Cars.sql")
  }

  // MARK: Places

  var stores: FilePath { folder.appending("Stores") }
  var incompatible: FilePath { stores.appending("Incompatible") }
  var home: FilePath { folder.appending("Home") }
  var model: FilePath { folder.appending("App.xcdatamodeld") }
  var schema: FilePath { folder.appending("Cars.sql") }

  func store(_ name: String = "App.sqlite") -> FilePath { stores.appending(name) }

  /// The names in the folder of stores, without a log and its index that SQLite itself has left.
  ///
  /// It leaves them where it cannot have the file to itself when it closes: children of this process that other tests start
  /// share its locks until they become another program.
  func names() throws -> [String] {
    try system.entries(of: stores).map(\.string).filter { try !isSQLitesOwn(stores.appending($0)) }
  }

  /// Whether a file is a log or its index, and not one of those that tests leave lying about.
  private func isSQLitesOwn(_ path: FilePath) throws -> Bool {
    guard path.string.hasSuffix("-wal") || path.string.hasSuffix("-shm") else { return false }
    guard try system.status(of: path)?.kind == .regular else { return false }
    let bytes = try system.contents(of: path, limit: 1 << 24)
    return bytes.isEmpty
      || (path.string.hasSuffix("-wal") ? bytes.starts(with: [0x37, 0x7F, 0x06]) : bytes.count >= 32_768)
  }

  // MARK: Models

  private static func contents(_ attributes: [String]) -> String {
    let lines = attributes.map { "<attribute name=\"\($0)\" optional=\"YES\" attributeType=\"String\"/>" }
    return """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522">
        <entity name="Car" representedClassName="Car" syncable="YES">
          \(lines.joined(separator: "\n"))
          <attribute name="photo" optional="YES" attributeType="Binary" allowsExternalBinaryDataStorage="YES"/>
        </entity>
      </model>
      """
  }

  private static func current(_ name: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0"><dict><key>_XCCurrentVersionName</key><string>\(name)</string></dict></plist>
    """
  }

  /// The app's model, with V1 and V2; V3 is one that the app does not have yet.
  func appModel() throws -> AppModel {
    .coreData(try ModelBundle.load(path: model, order: ["V1", "V2", "V3"]))
  }

  func coordinator(
    _ policy: OpeningPolicy = OpeningPolicy(), model: AppModel? = nil, home: FilePath? = nil,
    surroundings: Surroundings = .still(), notesKits: Bool = false
  ) throws -> StoreCoordinator {
    // A kit is noted in the background, which is nothing that a test could count on.
    var policy = policy
    if !notesKits {
      policy.recoveryKitInterval = nil
      policy.checkInterval = nil
    }
    return StoreCoordinator(
      model: try model ?? appModel(), policy: policy, home: home, appVersion: "7.1", surroundings: surroundings)
  }

  // MARK: Stores

  /// Makes a sound store of a version.
  func makeStore(_ name: String = "App.sqlite", version: String = "V2") throws {
    let bundle = try ModelBundle.load(path: model, order: ["V1", "V2", "V3"])
    let model = try #require(bundle.version(named: version)).model
    let creation = try StoreCreation(
      model: model, uuid: "00000000-0000-4000-8000-000000000000", modelCache: try model.modelCache())
    try folder.write(try creation.bytes(), to: "Stores/\(name)")
  }

  /// Puts cars into the store, whose keys and names are numbered from 1.
  ///
  /// - Parameter pragma: the last statement, which says what becomes of the log.
  func addCars(_ count: Int, last pragma: String) throws {
    let queue = try DatabaseQueue(path: store().string)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
          INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT i, 1, 1, 'car ' || i FROM n;
          UPDATE Z_PRIMARYKEY SET Z_MAX = \(count);
          \(pragma)
          """)
    }
    try queue.close()
  }

  /// Makes a store of every part a store can have, none of which is what it should be.
  func makeDamagedStore(_ name: String = "App.sqlite", text: String = "nothing like a database") throws {
    // Not plainly a text, which is a file of another kind.
    try folder.write("\u{1}\u{2}" + String(repeating: text + "\n", count: 300), to: "Stores/\(name)")
    try makeCompanions(name)
  }

  /// Makes a store of the plain schema with a statement that only SQLite's own parser refuses.
  func makeStoreThatOnlySQLiteRefuses() throws {
    let elsewhere = try TemporaryFolder()
    let queue = try DatabaseQueue(path: elsewhere.appending("x").string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "CREATE TABLE cars (id INTEGER PRIMARY KEY, name TEXT); CREATE VIEW v AS SELECT 1")
      try database.execute(sql: "PRAGMA writable_schema = ON")
      try database.execute(sql: "UPDATE sqlite_master SET sql = 'CREATE VIEW v AS SELECT FROM WHERE' WHERE name = 'v'")
    }
    try queue.close()
    try folder.write(try system.contents(of: elsewhere.appending("x"), limit: 1 << 20), to: "Stores/App.sqlite")
  }

  /// Makes the other parts of a store.
  func makeCompanions(_ name: String = "App.sqlite") throws {
    let stem = name.lastIndex(of: ".").map { String(name[..<$0]) } ?? name
    try folder.write("an old log", to: "Stores/\(name)-wal")
    try folder.write("its index", to: "Stores/\(name)-shm")
    try folder.write("an old journal", to: "Stores/\(name)-journal")
    try folder.write("a large value", to: "Stores/.\(stem)_SUPPORT/_EXTERNAL_DATA/0A1B")
    try folder.write("another", to: "Stores/.\(stem)_SUPPORT/_EXTERNAL_DATA/deeper/0A1C")
  }

  /// The bytes of every part of a set, external data by relative path.
  func parts(_ main: FilePath) throws -> [String: [UInt8]] {
    var result: [String: [UInt8]] = [:]
    let set = StoreFileSet(main: main)
    for member in try set.members(in: system) {
      guard member.part == .externalData else {
        result[member.part.rawValue] = try system.contents(of: member.path, limit: 1 << 24)
        continue
      }
      for file in try system.descendants(of: member.path).files {
        result[file.relative.map(\.string).joined(separator: "/")] = try system.contents(of: file.path, limit: 1 << 24)
      }
    }
    return result
  }

  /// The quarantined stores, newest first.
  func quarantined(_ main: FilePath? = nil) throws -> [QuarantinedStore] {
    try Quarantines(home: home).stores(at: main ?? stores)
  }

  // MARK: What must hold

  /// The store is a sound one of the app's model, for us and for SQLite, and nothing foreign lies beside it.
  func expectGoodStore(
    _ path: FilePath, _ comment: Comment? = nil, _ location: SourceLocation = #_sourceLocation
  ) throws {
    let examination = try Examiner().examine(path, model: try appModel(), options: .init(depth: .full))
    #expect(examination.verdict == .compatible, comment, sourceLocation: location)
    #expect(examination.health.notes.allSatisfy { $0.severity != .damage }, comment, sourceLocation: location)
    guard case .coreData(let bundle) = try appModel() else { return }
    #expect(examination.metadata?.versionHashes == bundle.current.versionHashes, comment, sourceLocation: location)
    let members = try StoreFileSet(main: path).members(in: system)
    let foreign = try members.filter { try !isSQLitesOwn($0.path) }
    #expect(foreign.map(\.part) == [.main], comment, sourceLocation: location)
    #expect(members.first?.status.linkCount == 1, comment, sourceLocation: location)
    let store = try PersistentStore(opening: path, model: bundle.current.model)
    let answers = try store.read { database in
      [
        try String.fetchOne(database, sql: "PRAGMA integrity_check"),
        try String.fetchOne(database, sql: "PRAGMA journal_mode"),
        try String.fetchOne(database, sql: "SELECT count(*) FROM ZCAR"),
      ]
    }
    #expect(answers == ["ok", "wal", "0"], comment, sourceLocation: location)
    try store.close()
  }

  /// Exactly one store is in quarantine, byte for byte the old one, with a receipt that proves it.
  func expectQuarantined(
    _ parts: [String: [UInt8]], in quarantined: [QuarantinedStore], _ comment: Comment? = nil,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    #expect(quarantined.count == 1, comment, sourceLocation: location)
    guard let stored = quarantined.first else { return }
    #expect(try self.parts(stored.files.main) == parts, comment, sourceLocation: location)
    let receipt = try #require(stored.receipt, comment, sourceLocation: location)
    #expect(receipt.files.count == parts.count, comment, sourceLocation: location)
    #expect(receipt.totalBytes == parts.values.reduce(0) { $0 + Int64($1.count) }, comment, sourceLocation: location)
    #expect(receipt.versions.app == "7.1", comment, sourceLocation: location)
    for file in receipt.files {
      let path = stored.receiptPath.folder.pushing(try #require(file.name.path))
      #expect(try FileDigest(of: system.open(path)).hexadecimal == file.sha256, comment, sourceLocation: location)
    }
  }
}
