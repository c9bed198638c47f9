import Foundation
import GRDB
import Lazaret
import Logging
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

/// A folder with a model of four versions and a store of the first: three steps lead to the current one.
struct MigratingScene {
  /// What the value of a record looks like, which no log and no report may hold.
  static let secret = "Geheimnis"

  let folder: TemporaryFolder
  let system = FileSystem()

  /// - Parameter rows: the records of the store.
  init(rows: Int = 3, in parent: FilePath? = nil, store: String = "Stores/App.sqlite") throws {
    folder = try TemporaryFolder(in: parent)
    try system.makeDirectory(stores)
    let photo = "<attribute name='photo' optional='YES' attributeType='Binary' allowsExternalBinaryDataStorage='YES'/>"
    func text(_ name: String, _ more: String = "") -> String {
      "<attribute name='\(name)' optional='YES' attributeType='String' \(more)/>"
    }
    let wheels = "<attribute name='wheels' optional='YES' attributeType='Integer 16' defaultValueString='4'/>"
    let owner =
      "<relationship name='owner' optional='YES' maxCount='1' deletionRule='Nullify' destinationEntity='Owner' "
      + "inverseName='cars' inverseEntity='Owner'/>"
    let owners =
      "<entity name='Owner'>\(text("name"))<relationship name='cars' optional='YES' toMany='YES' deletionRule='Nullify' "
      + "destinationEntity='Car' inverseName='owner' inverseEntity='Car'/></entity>"
    func car(_ content: String) -> String { "<entity name='Car'>\(content)\(photo)</entity>" }
    let versions = [
      car(text("name")),
      car(text("name") + text("color", "defaultValueString='\(Self.secret)-default'")),
      car(text("title", "elementID='name'") + text("color") + wheels + owner) + owners,
      car(text("title", "elementID='name'") + wheels + owner) + owners,
    ]
    for (index, entities) in versions.enumerated() {
      try write(entities, to: "App.xcdatamodeld/V\(index + 1)")
    }
    try makeStore(rows: rows, at: store)
  }

  /// Writes a version of a model.
  func write(_ entities: String, to version: String) throws {
    try folder.write(
      """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522">
      \(entities)
      </model>
      """, to: version + ".xcdatamodel/contents")
  }

  // MARK: Places

  var stores: FilePath { folder.appending("Stores") }
  var home: FilePath { folder.appending("Home") }
  var store: FilePath { stores.appending("App.sqlite") }
  var model: FilePath { folder.appending("App.xcdatamodeld") }
  var backups: FilePath { home.appending("Backups/App") }

  func bundle(_ name: String = "App.xcdatamodeld") throws -> ModelBundle {
    try ModelBundle.load(path: folder.appending(name))
  }

  func coordinator(
    _ policy: OpeningPolicy = OpeningPolicy(), model: String = "App.xcdatamodeld", via: [String]? = nil,
    _ fileSystem: FileSystem = FileSystem(),
    logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  ) throws -> StoreCoordinator {
    var policy = policy
    policy.recoveryKitInterval = nil
    policy.checkInterval = nil
    var migration = Migrator.Options()
    // Three steps unless said otherwise, so that there is something between them.
    migration.via = via ?? (model == "App.xcdatamodeld" ? ["V2", "V3"] : [])
    return StoreCoordinator(
      model: .coreData(try bundle(model)), policy: policy, home: home, appVersion: "7.1", migration: migration,
      surroundings: .still(fileSystem: fileSystem), logger: logger)
  }

  // MARK: Stores

  /// Makes a store of the first version.
  func makeStore(rows: Int, at name: String = "Stores/App.sqlite", model: String = "App.xcdatamodeld") throws {
    let model = try bundle(model).versions[0].model
    let creation = try StoreCreation(
      model: model, uuid: "00000000-0000-4000-8000-000000000000", modelCache: try model.modelCache())
    let path = try folder.write(try creation.bytes(), to: name)
    let store = try PersistentStore(opening: path, model: model)
    try store.write { database in
      try database.execute(
        sql: """
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
          INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT i, 1, 1, '\(Self.secret)' || i FROM n WHERE \(rows) > 0
          """)
      try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = \(rows)")
    }
    try store.close()
    try folder.write("a large value", to: "Stores/.App_SUPPORT/_EXTERNAL_DATA/0A1B")
  }

  /// Leaves a committed change in the log of the store alone, as an app does that was killed.
  func leaveLog() throws {
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; UPDATE ZCAR SET Z_OPT = 2 WHERE Z_PK = 1")
      for suffix in ["", "-wal"] {
        let bytes = try system.contents(of: store.sibling(suffix: suffix), limit: 1 << 28)
        try folder.write(bytes, to: "log" + suffix)
      }
    }
    try queue.close()
    for suffix in ["", "-wal"] {
      try system.rename(folder.appending("log" + suffix), to: store.sibling(suffix: suffix))
    }
    try system.unlink(store.sibling(suffix: "-shm"))
  }

  /// The bytes of every part of a set but the index of its log, external data by relative path.
  func parts(_ main: FilePath) throws -> [String: [UInt8]] {
    var result: [String: [UInt8]] = [:]
    for member in try StoreFileSet(main: main).members(in: system) where member.part != .sharedMemory {
      guard member.part == .externalData else {
        let bytes = try system.contents(of: member.path, limit: 1 << 28)
        if !(member.part == .wal && bytes.isEmpty) { result[member.part.rawValue] = bytes }
        continue
      }
      for file in try system.descendants(of: member.path).files {
        result[file.relative.map(\.string).joined(separator: "/")] = try system.contents(of: file.path, limit: 1 << 24)
      }
    }
    return result
  }

  /// The rows of a query on a store, values joined by bars; through the coordinator's eyes it changes nothing.
  static func rows(_ sql: String, in store: FilePath) throws -> [String] {
    let opened = try PersistentStore(opening: store)
    let rows = try opened.read { database in
      try Row.fetchAll(database, sql: sql).map { row in
        row.databaseValues.map { $0.isNull ? "NULL" : "\($0.storage.value ?? "?")" }.joined(separator: "|")
      }
    }
    try opened.close()
    return rows
  }

  /// The main files of the backups.
  func backupFiles() throws -> [FilePath] {
    guard try system.status(of: backups) != nil else { return [] }
    return try system.entries(of: backups).filter { $0.string.hasSuffix(".sqlite") }.map { backups.appending($0) }
  }

  // MARK: What must hold

  /// The store is a sound one of the last version with all records, one whole backup is there, and nothing is left over.
  func expectMigrated(
    rows: Int = 3, _ before: [String: [UInt8]]? = nil, _ comment: Comment? = nil,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    let examination = try Examiner().examine(
      store, model: .coreData(try bundle()), options: .init(depth: .full, countsRecords: true))
    #expect(examination.verdict == .compatible, comment, sourceLocation: location)
    #expect(examination.modelVersion == "V4", comment, sourceLocation: location)
    #expect(
      try Self.rows("SELECT count(*), min(ZTITLE), count(ZTITLE), sum(ZWHEELS) FROM ZCAR", in: store)
        == ["\(rows)|\(rows > 0 ? Self.secret + "1" : "NULL")|\(rows)|\(rows * 4)"], comment, sourceLocation: location)
    #expect(try Self.rows("PRAGMA integrity_check", in: store) == ["ok"], comment, sourceLocation: location)
    let external = stores.appending(".App_SUPPORT/_EXTERNAL_DATA/0A1B")
    #expect(
      try system.contents(of: external, limit: 100) == Array("a large value".utf8), comment, sourceLocation: location)
    let left = try system.entries(of: stores).map(\.string).filter {
      !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm")
    }
    #expect(left.sorted() == [".App_SUPPORT", "App.sqlite"], comment, sourceLocation: location)
    let backups = try backupFiles()
    #expect(backups.count == 1, comment, sourceLocation: location)
    if let before, let backup = backups.first {
      #expect(try parts(backup) == before, comment, sourceLocation: location)
    }
  }
}
