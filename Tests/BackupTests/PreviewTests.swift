import Backup
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// What a preview counts, held against a comparison of all rows one by one.
struct PreviewTests {
  private struct Count: Hashable {
    var added = 0
    var changed = 0
    var lost = 0
  }

  /// Compares row by row, by the numbers of entities in both stores.
  private func expected(_ backup: FilePath, _ present: FilePath) throws -> [String: Count] {
    let (new, old) = (try RestoreScene.rows(backup), try RestoreScene.rows(present))
    var result: [String: Count] = [:]
    func name(_ rows: [String: [String: [String: String]]], _ number: String?) -> String {
      rows["Z_PRIMARYKEY"]?.values.first { $0["Z_ENT"] == number }?["Z_NAME"]?
        .replacing("\"", with: "") ?? "?"
    }
    for table in Set(new.keys).union(old.keys) where table.hasPrefix("Z") && !table.hasPrefix("Z_") {
      let (ours, theirs) = (new[table] ?? [:], old[table] ?? [:])
      for (key, row) in ours {
        let entity = name(new, row["Z_ENT"])
        guard let other = theirs[key], name(old, other["Z_ENT"]) == entity else {
          result[entity, default: Count()].added += 1
          continue
        }
        let isChanged = row.contains { column, value in
          column != "Z_OPT" && column != "Z_ENT" && other[column].map { $0 != value } == true
        }
        if isChanged { result[entity, default: Count()].changed += 1 }
      }
      for (key, row) in theirs where ours[key].map({ name(new, $0["Z_ENT"]) }) != name(old, row["Z_ENT"]) {
        result[name(old, row["Z_ENT"]), default: Count()].lost += 1
      }
    }
    return result.filter { $0.value != Count() }
  }

  private func counts(_ preview: RestorePreview) -> [String: Count] {
    var result: [String: Count] = [:]
    for entity in preview.entities {
      result[entity.name] = Count(added: Int(entity.added), changed: Int(entity.changed), lost: Int(entity.lost))
    }
    return result.filter { $0.value != Count() }
  }

  @Test func countsAsAComparisonOfAllRowsDoes() throws {
    for seed: UInt64 in 1...6 {
      let scene = try RestoreScene()
      let store = try scene.store("Ships.sqlite", seed: seed, records: 120, journal: seed % 2 == 0 ? .log : .none)
      var random = SeededGenerator(seed: seed)
      func key() -> Int { Int.random(in: 1...240, using: &random) }
      // The backup is of an earlier time: some rows are new since, some are gone, some are other ones.
      let before = scene.folder.appending("Before.sqlite")
      _ = try RealMaterial.copy(store, into: scene.folder, as: "Before.sqlite")
      try scene.change(before, "UPDATE ZSHIP SET ZTONS = 1")
      try scene.backups.add(1, try scene.bytes(before))
      try scene.change(
        store,
        """
        UPDATE ZSHIP SET ZTONS = 1; UPDATE ZSHIP SET Z_OPT = Z_OPT + 1;
        DELETE FROM ZPERSON WHERE Z_PK IN (\(key()), \(key()), \(key())) OR Z_PK % 11 = \(seed);
        UPDATE ZSHIP SET ZLOG = 'new' WHERE Z_PK % 5 = \(seed % 5);
        UPDATE ZSHIP SET Z_ENT = (SELECT max(Z_ENT) FROM ZSHIP) WHERE Z_PK = \(seed + 1);
        INSERT INTO ZPORT (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT Z_PK + 9000, Z_ENT, 1, 'p' FROM ZPORT WHERE Z_PK < 9 + \(seed);
        UPDATE ZFLAG SET ZCOLOR = NULL WHERE Z_PK % 3 = 1
        """)
      let untouched = try FolderContents(of: scene.folder.path)
      let preview = try scene.restorer().preview(MadeBackups.id(1), over: store, temporary: scene.folder.path)
      #expect(try FolderContents(of: scene.folder.path) == untouched)
      #expect(preview.present == .sound && !preview.isHarmless)
      #expect(try counts(preview) == expected(before, store), "seed \(seed)")
      #expect(preview.pairs.allSatisfy { $0.added == 0 && $0.lost == 0 })
    }
  }

  @Test func pairsThatComeAndGoAreCounted() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", records: 60)
    try scene.backups.add(1, try scene.bytes(store), values: try scene.values(of: store))
    let join = try #require(try RestoreScene.rows(store).keys.first { $0.hasPrefix("Z_") && $0.hasSuffix("PORTS") })
    let all = try RestoreScene.rows(store)[join]?.count ?? 0
    try scene.change(store, "DELETE FROM \(join) WHERE rowid % 2 = 0")
    let left = try RestoreScene.rows(store)[join]?.count ?? 0
    let preview = try scene.restorer().preview(MadeBackups.id(1), over: store, temporary: scene.folder.path)
    #expect(preview.pairs.first { $0.table == join }?.added == Int64(all - left))
    #expect(preview.pairs.first { $0.table == join }?.relationships == ["Port.ships", "Ship.ports"])
    #expect(preview.isHarmless)
  }

  /// Another version numbers the entities anew, and so names join tables and their columns otherwise.
  @Test func pairsOfAnotherVersionAreTheSameByTheirRelationship() throws {
    let scene = try RestoreScene()
    var newer = RestoreScene.model
    newer.entities["Anchor"] = Entity(name: "Anchor")
    func store(_ name: String, _ model: ManagedObjectModel, _ pairs: [(ship: Int, port: Int)]) throws -> FilePath {
      let path = scene.folder.appending(name)
      let creation = try StoreCreation(model: model, uuid: "8F1C", modelCache: try model.modelCache())
      try FileSystem().writeAtomically(try creation.bytes(), to: path, replacing: true)
      guard
        case .toManyByJoinTable(let table, let own, let other, _) = try StoreLayout(model).storage(
          of: "ports", in: "Ship")
      else { throw PreviewError() }
      let rows = pairs.map { "(\($0.ship), \($0.port))" }.joined(separator: ", ")
      try scene.change(path, "INSERT INTO \(table) (\(own), \(other)) VALUES \(rows)")
      return path
    }
    let backup = try store("Earlier.sqlite", RestoreScene.model, [(1, 1), (2, 1), (3, 2)])
    let present = try store("Newer.sqlite", newer, [(1, 1), (3, 2), (4, 4), (5, 4)])
    let preview = try RestorePreview(backup: scene.system.open(backup), present: present, state: .sound)
    #expect(preview.pairs.map(\.relationships) == [["Port.ships", "Ship.ports"]])
    let pairs = try #require(preview.pairs.first)
    #expect(pairs.added == 1 && pairs.changed == 0 && pairs.lost == 2)
    #expect(pairs.words == "Port.ships and Ship.ports")
    #expect(preview.remarks.isEmpty)
  }

  /// A store with pairs of ships and ports, whose ports may have another name, as may their entity.
  ///
  /// - Parameter identified: whether what has another name says by its renaming identifier what it was called.
  private func paired(
    _ scene: RestoreScene, _ name: String, _ pairs: [(ship: Int, port: Int)], ports: String = "ports",
    port entity: String = "Port", identified: Bool = true, carriesModel: Bool = true
  ) throws -> (path: FilePath, model: ManagedObjectModel) {
    var model = RestoreScene.model
    var ship = try #require(model.entities["Ship"])
    var relationship = try #require(ship.properties["ports"]?.relationship)
    ship.properties["ports"] = nil
    relationship.traits.name = ports
    relationship.traits.explicitRenamingIdentifier = identified && ports != "ports" ? "ports" : nil
    relationship.destinationEntityName = entity
    ship.properties[ports] = .relationship(relationship)
    model.entities["Ship"] = ship
    var port = try #require(model.entities["Port"])
    model.entities["Port"] = nil
    port.name = entity
    port.explicitRenamingIdentifier = identified && entity != "Port" ? "Port" : nil
    var inverse = try #require(port.properties["ships"]?.relationship)
    inverse.inverseName = ports
    port.properties["ships"] = .relationship(inverse)
    model.entities[entity] = port
    let path = scene.folder.appending(name)
    let creation = try StoreCreation(
      model: model, uuid: "8F1C", modelCache: carriesModel ? try model.modelCache() : nil)
    try FileSystem().writeAtomically(try creation.bytes(), to: path, replacing: true)
    guard
      case .toManyByJoinTable(let table, let own, let other, _) = try StoreLayout(model).storage(of: ports, in: "Ship")
    else { throw PreviewError() }
    let rows = pairs.map { "(\($0.ship), \($0.port))" }.joined(separator: ", ")
    try scene.change(path, "INSERT INTO \(table) (\(own), \(other)) VALUES \(rows)")
    return (path, model)
  }

  /// A migration keeps the pairs of a relationship that it renames.
  @Test(arguments: ["ports", "harbors"], ["Port", "Wharf"])
  func pairsOfARenamedRelationshipAreTheSame(name: String, entity: String) throws {
    let scene = try RestoreScene()
    let backup = try paired(scene, "Earlier.sqlite", [(1, 2), (2, 1), (3, 2)])
    let present = try paired(scene, "Newer.sqlite", [(1, 2), (3, 2), (4, 5)], ports: name, port: entity)
    let preview = try RestorePreview(backup: scene.system.open(backup.path), present: present.path, state: .sound)
    #expect(preview.pairs.map { [$0.added, $0.changed, $0.lost] } == [[1, 0, 1]], "\(preview.pairs)")
    #expect(preview.remarks.isEmpty)
    guard name != "ports" || entity != "Port" else { return }
    // Without the identifiers it is another relationship.
    let other = try paired(scene, "Other.sqlite", [(1, 2)], ports: name, port: entity, identified: false)
    let others = try RestorePreview(backup: scene.system.open(backup.path), present: other.path, state: .sound)
    #expect(others.pairs.reduce(0) { $0 + $1.added } == 3 && others.pairs.reduce(0) { $0 + $1.lost } == 1)
  }

  /// Where no model of one of both is known, its tables may be of any relationship.
  @Test func pairsThatNothingNamesAreNotCounted() throws {
    let scene = try RestoreScene()
    let backup = try paired(scene, "Earlier.sqlite", [(1, 2), (2, 1)], carriesModel: false)
    let present = try paired(scene, "Newer.sqlite", [(1, 2)], ports: "harbors")
    let preview = try RestorePreview(backup: scene.system.open(backup.path), present: present.path, state: .sound)
    let isOneTable = preview.pairs.count == 1
    #expect(isOneTable || preview.pairs.isEmpty && preview.remarks.contains { $0.contains("were not compared") })
    #expect(preview.pairs.allSatisfy { $0.lost == 0 && $0.added <= 1 })
    #expect(isOneTable || !preview.isHarmless)
  }

  private struct PreviewError: Error {}

  @Test func aStoreThatIsNotThereLosesNothing() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", records: 30)
    try scene.backups.add(1, try scene.bytes(store))
    let preview = try scene.restorer().preview(
      MadeBackups.id(1), over: scene.folder.appending("New.sqlite"), temporary: scene.folder.path)
    #expect(preview.present == .missing && preview.isHarmless)
    #expect(preview.entities.reduce(0) { $0 + $1.added } >= 150)
  }

  @Test func aDamagedStoreIsComparedAsFarAsItCanBeRead() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", records: 3000)
    let bytes = try scene.bytes(store)
    try scene.backups.add(1, bytes)
    var broken = bytes
    for index in (bytes.count / 2)..<(bytes.count / 2 + 40_000) { broken[index] = 0 }
    let path = try scene.folder.write(broken, to: "Broken.sqlite")
    let preview = try scene.restorer().preview(MadeBackups.id(1), over: path, temporary: scene.folder.path)
    #expect(preview.present == .damaged)
    let added = preview.entities.reduce(0) { $0 + $1.added }
    #expect(added > 0 && added < 3000)
    #expect(preview.entities.allSatisfy { $0.lost == 0 })
    // What of it could not be read may hold what the backup has not.
    #expect(!preview.isHarmless)
  }

  @Test func anEarlierVersionIsComparedByNames() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", records: 40)
    try scene.backups.add(1, try scene.bytes(store))
    // Another version: the numbers of entities are other ones, and a column is new.
    try scene.change(
      store,
      """
      UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 100, Z_SUPER = CASE Z_SUPER WHEN 0 THEN 0 ELSE Z_SUPER + 100 END;
      UPDATE ZSHIP SET Z_ENT = Z_ENT + 100; UPDATE ZPERSON SET Z_ENT = Z_ENT + 100;
      UPDATE ZPORT SET Z_ENT = Z_ENT + 100; UPDATE ZFLAG SET Z_ENT = Z_ENT + 100;
      ALTER TABLE ZPORT ADD COLUMN ZNEW INTEGER; UPDATE ZPORT SET ZNEW = 5; UPDATE ZPORT SET ZNAME = 'x' WHERE Z_PK = 3
      """)
    let preview = try scene.restorer().preview(MadeBackups.id(1), over: store, temporary: scene.folder.path)
    // Every port has a value in the column that restoring takes away.
    let ports = try RestoreScene.rows(store)["ZPORT"]?.count ?? 0
    #expect(ports > 3)
    #expect(counts(preview) == ["Port": Count(changed: ports)])
    #expect(preview.schema.map(\.table) == ["ZPORT"] && preview.schema.first?.lost == ["ZNEW"])
    #expect(preview.schemaWords == ["restoring removes the column ZNEW of ZPORT"])
  }

  @Test func anotherVersionIsNeverHarmless() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", records: 40)
    try scene.backups.add(1, try scene.bytes(store))
    var newer = RestoreScene.model
    newer.entities["Port"]?.properties["note"] = Property.attribute(
      Attribute(traits: PropertyTraits(name: "note", isOptional: true), type: .string))
    let list = try StoreMetadata(model: newer, uuid: "6F1C1D52-3B0C-4D0E-9A43-0C5B7E9D2A11").propertyListBytes()
    let digits = list.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    try scene.change(
      store, "ALTER TABLE ZPORT ADD COLUMN ZNOTE VARCHAR; UPDATE Z_METADATA SET Z_PLIST = x'\(digits)'")
    let bundle = try #require(
      ModelBundle(
        name: "Ships",
        versions: [
          ModelVersion(name: "V1", model: RestoreScene.model, isCurrent: false),
          ModelVersion(name: "V2", model: newer, isCurrent: true),
        ]))
    let named = try scene.restorer().preview(
      MadeBackups.id(1), over: store, models: [bundle], temporary: scene.folder.path)
    // No record has a value that would be another.
    #expect(counts(named) == [:])
    #expect(!named.isHarmless && named.changesSomething)
    #expect(named.versions?.backup?.name == "V1" && named.versions?.present?.name == "V2")
    #expect(
      named.schemaWords == [
        "the backup is of model version \"V1\", the present store of model version \"V2\"",
        "restoring removes the column ZNOTE of ZPORT",
      ])
    let unnamed = try scene.restorer().preview(MadeBackups.id(1), over: store, temporary: scene.folder.path)
    let versions = try #require(unnamed.versions)
    #expect(versions.backup?.name == nil && versions.present?.name == nil && !unnamed.isHarmless)
    #expect(versions.backup?.checksum != versions.present?.checksum)
    let checksum = try #require(versions.present?.checksum)
    #expect(unnamed.schemaWords.first?.contains(checksum) == true)
  }

  @Test func valuesInColumnsOfOneStoreCount() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", records: 40)
    try scene.backups.add(1, try scene.bytes(store))
    let before = try RestoreScene.rows(store)
    let ports = before["ZPORT"]?.keys.count { Int($0).map { $0 <= 3 } == true } ?? 0
    let flags = before["ZFLAG"]?.values.count { $0["ZCOLOR"] != "NULL" } ?? 0
    #expect(ports > 0 && flags > 0)
    try scene.change(
      store,
      """
      ALTER TABLE ZPORT ADD COLUMN ZNEW INTEGER; UPDATE ZPORT SET ZNEW = 5 WHERE Z_PK <= 3;
      ALTER TABLE ZFLAG DROP COLUMN ZCOLOR
      """)
    let preview = try scene.restorer().preview(MadeBackups.id(1), over: store, temporary: scene.folder.path)
    #expect(counts(preview) == ["Port": Count(changed: ports), "Flag": Count(changed: flags)])
    #expect(
      preview.schemaWords == [
        "restoring adds the column ZCOLOR to ZFLAG", "restoring removes the column ZNEW of ZPORT",
      ])
  }

  @Test func anotherOrderOfPairsIsAChange() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", records: 60)
    let join = try #require(try RestoreScene.rows(store).keys.first { $0.hasPrefix("Z_") && $0.hasSuffix("PORTS") })
    try scene.change(
      store, "ALTER TABLE \(join) ADD COLUMN Z_FOK_PLACE INTEGER; UPDATE \(join) SET Z_FOK_PLACE = rowid")
    try scene.backups.add(1, try scene.bytes(store))
    let moved = try RestoreScene.rows(store)[join]?.keys.count { Int($0).map { $0 <= 4 } == true } ?? 0
    try scene.change(store, "UPDATE \(join) SET Z_FOK_PLACE = -Z_FOK_PLACE WHERE rowid <= 4")
    let preview = try scene.restorer().preview(MadeBackups.id(1), over: store, temporary: scene.folder.path)
    let pairs = try #require(preview.pairs.first { $0.table == join })
    #expect(moved > 0 && pairs.changed == Int64(moved) && pairs.added == 0 && pairs.lost == 0)
    #expect(!preview.isHarmless)
  }

  @Test func aTableOfAPlainStoreThatRestoringRemovesIsNoHarmlessOne() throws {
    let scene = try RestoreScene()
    let store = try scene.folder.write([], to: "Plain.sqlite")
    try scene.change(store, "CREATE TABLE a (id INTEGER PRIMARY KEY, v); INSERT INTO a VALUES (1, 1), (2, 2), (3, 3)")
    try scene.backups.add(1, try scene.bytes(store))
    try scene.change(store, "CREATE TABLE empty (x)")
    let emptied = try scene.restorer().preview(MadeBackups.id(1), over: store, temporary: scene.folder.path)
    #expect(counts(emptied) == [:] && !emptied.isHarmless && emptied.versions == nil)
    #expect(emptied.schemaWords == ["restoring removes the table empty"])
    try scene.change(store, "DROP TABLE empty; ALTER TABLE a ADD COLUMN w; UPDATE a SET w = 1 WHERE id = 2")
    let preview = try scene.restorer().preview(MadeBackups.id(1), over: store, temporary: scene.folder.path)
    #expect(counts(preview) == ["a": Count(changed: 1)] && !preview.isHarmless)
    #expect(preview.schemaWords == ["restoring removes the column w of a"])
  }

  @Test func plainStoresAreComparedByTheirKeys() throws {
    let scene = try RestoreScene()
    let store = try scene.folder.write([], to: "Plain.sqlite")
    try scene.change(
      store,
      """
      CREATE TABLE a (id INTEGER PRIMARY KEY, v TEXT); CREATE TABLE b (x TEXT, y INTEGER, z, PRIMARY KEY (x, y)) WITHOUT ROWID;
      CREATE TABLE c (v); CREATE TABLE gone (v); CREATE VIEW endless AS
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;
      INSERT INTO a VALUES (1, 'one'), (2, 'two'), (3, NULL); INSERT INTO b VALUES ('p', 1, 1), ('p', 2, 2), ('q', 1, 3);
      INSERT INTO c VALUES (1), (2); INSERT INTO gone VALUES (1), (2)
      """)
    try scene.backups.add(1, try scene.bytes(store))
    try scene.change(
      store,
      """
      UPDATE a SET v = 'x' WHERE id >= 2; DELETE FROM b WHERE x = 'q'; UPDATE b SET z = 9 WHERE y = 2;
      INSERT INTO b VALUES ('r', 1, 1), ('s', 1, 1); INSERT INTO c VALUES (3); DROP TABLE gone;
      CREATE TABLE fresh (v); INSERT INTO fresh VALUES (1)
      """)
    let preview = try scene.restorer().preview(MadeBackups.id(1), over: store, temporary: scene.folder.path)
    #expect(
      counts(preview) == [
        "a": Count(changed: 2), "b": Count(added: 1, changed: 1, lost: 2), "c": Count(lost: 1),
        "gone": Count(added: 2), "fresh": Count(lost: 1),
      ])
  }
}
