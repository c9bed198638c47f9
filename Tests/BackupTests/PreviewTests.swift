import Backup
import LazaretTesting
import StoreFiles
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
    try scene.backups.add(1, try scene.bytes(store))
    let join = try #require(try RestoreScene.rows(store).keys.first { $0.hasPrefix("Z_") && $0.hasSuffix("PORTS") })
    let all = try RestoreScene.rows(store)[join]?.count ?? 0
    try scene.change(store, "DELETE FROM \(join) WHERE rowid % 2 = 0")
    let left = try RestoreScene.rows(store)[join]?.count ?? 0
    let preview = try scene.restorer().preview(MadeBackups.id(1), over: store, temporary: scene.folder.path)
    #expect(preview.pairs.first { $0.table == join }?.added == Int64(all - left))
    #expect(preview.isHarmless)
  }

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
    #expect(counts(preview) == ["Port": Count(changed: 1)])
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
