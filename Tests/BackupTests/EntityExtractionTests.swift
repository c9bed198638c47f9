import Backup
import GRDB
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Taking single entities and records out of a backup.
struct EntityExtractionTests {
  private func prepare(records: Int = 150, profile: StoreProfile = .typical) throws -> (RestoreScene, FilePath) {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", seed: 5, records: records, profile: profile)
    try scene.backups.add(1, try scene.bytes(store), values: try scene.values(of: store))
    return (scene, store)
  }

  private func extract(
    _ scene: RestoreScene, _ entities: [String], keys: [Int64]? = nil, to name: String = "Some.sqlite"
  ) throws -> (report: ExtractionReport, path: FilePath) {
    let path = scene.folder.appending(name)
    let report = try scene.restorer().extract(
      EntitySelection(entities: entities, primaryKeys: keys), from: MadeBackups.id(1), to: path,
      temporary: scene.folder.path)
    return (report, path)
  }

  /// The new store must be sound in SQLite's eyes and open with the same model.
  private func expectSound(_ path: FilePath) throws {
    let store = try PersistentStore(opening: path, model: RestoreScene.model)
    #expect(try store.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") } == ["ok"])
    #expect(try store.metadata()?.versionHashes == RestoreScene.model.versionHashes())
    let layout = try #require(try store.layout())
    try store.read { database in
      for table in layout.tables {
        for column in table.columns {
          guard case .toOne(let key) = column.role,
            let name = RestoreScene.model.entities[key.entityName]?.properties[key.name]?.relationship?
              .destinationEntityName, let target = layout.entity(named: name)
          else { continue }
          let dangling = try Int.fetchOne(
            database,
            sql: "SELECT count(*) FROM \(table.name) WHERE \(column.name) IS NOT NULL "
              + "AND \(column.name) NOT IN (SELECT Z_PK FROM \(target.tableName))")
          #expect(dangling == 0, "\(key)")
        }
      }
    }
    try store.close()
  }

  @Test func theRecordsOfAnEntityAreAsTheyWere() throws {
    let (scene, store) = try prepare()
    let (report, path) = try extract(scene, ["Person"])
    try expectSound(path)
    let (before, after) = (try RestoreScene.rows(store), try RestoreScene.rows(path))
    #expect(after["ZSHIP"]?.isEmpty == true && after["ZPORT"]?.isEmpty == true && after["ZFLAG"]?.isEmpty == true)
    #expect(report.entities == [.init(name: "Person", records: Int64(before["ZPERSON"]?.count ?? 0))])
    var cut = 0
    for (key, row) in before["ZPERSON"] ?? [:] {
      let new = try #require(after["ZPERSON"]?[key])
      for (column, value) in row where !column.contains("SHIP") { #expect(new[column] == value, "\(key) \(column)") }
      if row["ZSHIP"] != "NULL" { cut += 1 }
      #expect(row.keys.filter { $0.contains("SHIP") }.allSatisfy { new[$0] == "NULL" })
    }
    // Friends are persons, and all persons came along.
    #expect(report.cut == [.init(entity: "Person", relationship: "ship", count: Int64(cut))])
    #expect(before["Z_PRIMARYKEY"] == after["Z_PRIMARYKEY"])
    #expect(before["Z_METADATA"]?["1"]?["Z_UUID"] != after["Z_METADATA"]?["1"]?["Z_UUID"])
  }

  @Test func relatedEntitiesKeepTheirReferences() throws {
    let (scene, store) = try prepare()
    let (report, path) = try extract(scene, ["Ship", "Port", "Person"])
    try expectSound(path)
    let (before, after) = (try RestoreScene.rows(store), try RestoreScene.rows(path))
    #expect(report.cut.isEmpty, "\(report.cut)")
    #expect(report.entities.map(\.name) == ["Ferry", "Person", "Port", "Ship"])
    for table in before.keys
    where table.hasPrefix("Z_") && table.hasSuffix("PORTS") || table == "ZPERSON" || table == "ZSHIP" {
      #expect(Set((before[table] ?? [:]).values) == Set((after[table] ?? [:]).values), "\(table)")
    }
  }

  @Test func singleRecordsComeAlone() throws {
    let (scene, store) = try prepare()
    let keys = try #require(try RestoreScene.rows(store)["ZPERSON"]?.keys.compactMap { Int64($0) }.sorted())
    let (report, path) = try extract(scene, ["Person"], keys: [keys[3], keys[8], 9_999_999])
    try expectSound(path)
    #expect(report.entities == [.init(name: "Person", records: 2)])
    #expect(report.missing == [9_999_999])
    #expect(try RestoreScene.rows(path)["ZPERSON"]?.count == 2)
  }

  @Test func subentitiesAreMeantToo() throws {
    let (scene, store) = try prepare()
    let number = try RestoreScene.rows(store)["Z_PRIMARYKEY"]?.values.first { $0["Z_NAME"]?.contains("Ferry") == true }
    let ferries = try RestoreScene.rows(store)["ZSHIP"]?.values.filter { $0["Z_ENT"] == number?["Z_ENT"] }.count
    let one = try extract(scene, ["Ferry"], to: "One.sqlite")
    #expect(one.report.entities == [.init(name: "Ferry", records: Int64(try #require(ferries)))])
    let both = try extract(scene, ["Ship"], to: "Both.sqlite")
    #expect(both.report.entities.map(\.name) == ["Ferry", "Ship"])
  }

  @Test func largeValuesComeAlong() throws {
    let (scene, store) = try prepare(records: 60, profile: .edge)
    let values = try scene.values(of: store)
    #expect(!values.isEmpty)
    let (report, path) = try extract(scene, ["Person"])
    #expect(report.values == values.count)
    #expect(try scene.values(of: path).map(\.bytes) == values.map(\.bytes))
    let none = try extract(scene, ["Port"], to: "Ports.sqlite")
    #expect(none.report.values == 0)
    #expect(try scene.values(of: none.path).isEmpty)
  }

  @Test func whatCannotBeMeantIsRefusedAndLeavesNothing() throws {
    let (scene, _) = try prepare(records: 10)
    let before = try FolderContents(of: scene.folder.path)
    let error = #expect(throws: BackupError.self) { _ = try extract(scene, ["Nobody"]) }
    #expect(error?.kind == .unknownEntity)
    #expect(try FolderContents(of: scene.folder.path) == before)
    try scene.folder.write("taken", to: "Some.sqlite")
    #expect(throws: FileError.self) { _ = try extract(scene, ["Person"]) }
  }

  // MARK: What is read of the backup

  private static let filler = """
    INSERT INTO FILLER WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 6000)
      SELECT NULL, randomblob(1000) FROM c
    """

  /// What of a store the records of an entity are: all of them, but the identifier that each new store gets.
  private func content(_ path: FilePath) throws -> [String: [String: [String: String]]] {
    try RestoreScene.rows(path, ignoring: ["Z_METADATA"])
  }

  @Test func damageElsewhereDoesNotMatter() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", seed: 3, records: 150)
    try scene.change(store, "CREATE TABLE FILLER (k INTEGER PRIMARY KEY, v BLOB); \(Self.filler)")
    try scene.backups.add(1, try scene.bytes(store))
    let whole = try content(try extract(scene, ["Port"], to: "Whole.sqlite").path)
    #expect(whole["ZPORT"]?.isEmpty == false)

    let length = try scene.bytes(store).count
    var needed = 0
    let blocks = length / MadeBackups.blockLength
    #expect(blocks >= 6)
    for block in 0..<blocks {
      let offset = block * MadeBackups.blockLength + MadeBackups.blockLength / 2
      try scene.backups.damage(1, .database, at: offset)
      do {
        let (report, path) = try extract(scene, ["Port"], to: "Some\(block).sqlite")
        #expect(report.isComplete)
        #expect(try content(path) == whole)
      } catch let error as BackupError {
        #expect(error.kind == .damaged && error.detail.hasPrefix("block \(block) of "))
        #expect(try scene.system.status(of: scene.folder.appending("Some\(block).sqlite")) == nil)
        needed += 1
      }
      try scene.backups.damage(1, .database, at: offset)
    }
    #expect((1...2).contains(needed))
  }

  @Test func whatIsSalvagedIsNotSaidToBeAll() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", seed: 4, records: 12_000)
    try scene.backups.add(1, try scene.bytes(store))
    try scene.backups.damage(1, .database, at: MadeBackups.blockLength * 3 / 2)
    let bundle = try #require(
      ModelBundle(name: "Ships", versions: [ModelVersion(name: "V1", model: RestoreScene.model, isCurrent: true)]))
    let options = BackupRestorer.Options(salvages: true, model: .coreData(bundle))
    let report = try scene.restorer().extract(
      EntitySelection(entities: ["Ship", "Person", "Port"]), from: MadeBackups.id(1),
      to: scene.folder.appending("Some.sqlite"), model: RestoreScene.model, options: options,
      temporary: scene.folder.path)
    #expect(!report.isComplete && !report.isContentRight)
    #expect(report.lostBlocks.map { $0.block } == [1])
  }

  @Test func aChainGivesWhatItsLastBackupHolds() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", seed: 6, records: 150)
    try scene.change(store, "CREATE TABLE FILLER (k INTEGER PRIMARY KEY, v BLOB); \(Self.filler)")
    var states = [try scene.bytes(store)]
    try scene.backups.add(1, states[0])
    let changes = [
      "UPDATE ZPERSON SET ZNAME = 'a' || ZNAME WHERE Z_PK % 3 = 0",
      // The file becomes shorter, and longer again.
      "DELETE FROM FILLER WHERE k > 500; PRAGMA incremental_vacuum",
      "UPDATE ZPERSON SET ZNAME = 'b' || ZNAME WHERE Z_PK % 5 = 0; \(Self.filler)",
      "UPDATE ZPORT SET ZNAME = 'c' || ZNAME; DELETE FROM ZPERSON WHERE Z_PK % 7 = 0",
    ]
    for (index, sql) in changes.enumerated() {
      try scene.change(store, sql)
      states.append(try scene.bytes(store))
      try scene.backups.add(index + 2, states[index + 1], parent: (index + 1, states[index]), depth: index + 2)
    }
    #expect(states[2].count < states[1].count && states[3].count > states[2].count)
    for (index, state) in states.enumerated() {
      try scene.backups.add(index + 20, state)
      for entities in [["Person"], ["Ship", "Port"]] {
        let name = "\(index)\(entities[0])"
        func extract(_ number: Int, _ name: String) throws -> FilePath {
          try scene.restorer().extract(
            EntitySelection(entities: entities), from: MadeBackups.id(number), to: scene.folder.appending(name),
            temporary: scene.folder.path
          ).path
        }
        let (chain, whole) = (try extract(index + 1, "Chain\(name)"), try extract(index + 20, "Whole\(name)"))
        #expect(try content(chain) == content(whole), "\(index)")
        try expectSound(chain)
      }
    }
  }

  @Test func aDeltaIsReadBlockByBlockToo() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", seed: 8, records: 150)
    try scene.change(store, "CREATE TABLE FILLER (k INTEGER PRIMARY KEY, v BLOB); \(Self.filler)")
    let place = scene.backups.place
    var (states, ids) = ([[UInt8]](), [BackupIdentifier]())
    let changes = [
      "", "UPDATE ZPORT SET ZNAME = 'a' || ZNAME WHERE Z_PK % 3 = 0",
      "DELETE FROM FILLER WHERE k > 5500; PRAGMA incremental_vacuum; UPDATE ZPORT SET ZNAME = 'b' || ZNAME",
      "DELETE FROM ZPORT WHERE Z_PK % 4 = 0",
    ]
    for (minute, sql) in changes.enumerated() {
      try scene.change(store, sql)
      states.append(try scene.bytes(store))
      let creator = BackupCreator(
        surroundings: .still(at: "2026-11-21T10:1\(minute):12Z", fileSystem: scene.system), temporary: scene.folder.path
      )
      ids.append(try creator.create(store, in: place, BackupRequest()).id)
    }
    let kinds = try ids.map { try BackupCatalog(of: place).backup($0).manifest?.kind }
    #expect(kinds == [.full, .delta, .delta, .delta])
    for (number, state) in states.enumerated() { try scene.backups.add(20 + number, state) }

    // Most of the full backup is the filler; what is damaged there ends a restore of the whole.
    let file = FilePath("\(place.path)/\(ids[0]).sqlite.gz")
    var packed = try scene.bytes(file)
    packed[packed.count / 2] ^= 1
    try scene.system.writeAtomically(packed, to: file, replacing: true)
    #expect(throws: BackupError.self) {
      _ = try scene.restorer().restore(ids[3], to: scene.folder.appending("All.sqlite"))
    }
    for (number, id) in ids.enumerated() {
      func extract(_ id: BackupIdentifier, _ name: String) throws -> FilePath {
        try scene.restorer().extract(
          EntitySelection(entities: ["Port"]), from: id, to: scene.folder.appending(name), temporary: scene.folder.path
        ).path
      }
      let (delta, whole) = (
        try extract(id, "D\(number).sqlite"), try extract(MadeBackups.id(20 + number), "W\(number).sqlite")
      )
      #expect(try content(delta) == content(whole), "\(number)")
    }

    // Pages that are not those of the last backup are never taken for them, whatever their blocks' digests say.
    let hashes = FilePath("\(place.path)/\(ids[3]).pages")
    let before = try scene.bytes(hashes)
    try scene.system.writeAtomically(before.map { $0 ^ 1 }, to: hashes, replacing: true)
    let error = #expect(throws: BackupError.self) {
      _ = try scene.restorer().extract(
        EntitySelection(entities: ["Port"]), from: ids[3], to: scene.folder.appending("No.sqlite"),
        temporary: scene.folder.path)
    }
    // Without hashes that can be trusted only the whole is proven, which is damaged.
    #expect(error?.kind == .damaged)
    let left = try scene.system.entries(of: scene.folder.path).map(\.string)
    #expect(
      !left.contains { $0.hasPrefix("lazaret-") || $0.hasPrefix(".lazaret") || $0.hasSuffix(".restoring") }, "\(left)")
  }

  @Test func aManifestThatPromisesMoreThanItsBlocksHoldIsRefused() throws {
    let (scene, _) = try prepare(records: 20)
    let place = scene.backups.place
    var manifest = try #require(try BackupCatalog(of: place).backup(MadeBackups.id(1)).manifest)
    manifest.database?.bytes = 1 << 48
    manifest.digest = nil
    try place.replace("\(MadeBackups.id(1)).json", with: try manifest.json(), in: .kept)
    #expect(throws: BackupError.self) { _ = try extract(scene, ["Person"]) }
    #expect(try scene.system.status(of: scene.folder.appending("Some.sqlite")) == nil)
  }
}
