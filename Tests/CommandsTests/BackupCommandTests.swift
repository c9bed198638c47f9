import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

/// `lazaret backup` from the outside.
struct BackupCommandTests {
  private func backups(_ text: String) throws -> [[String: Any]] {
    let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    return try #require(object["backups"] as? [[String: Any]])
  }

  @Test func aBackupIsTakenListedAndVerified() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let created = try desk.lazaret("backup", "create", store, "--tag", "nightly", "--level", "9")
    #expect(created.status == 0, "\(created.errors)")
    #expect(created.output.contains("full"))
    let listed = try desk.lazaret("backup", "list", "--json")
    #expect(listed.status == 0)
    let backup = try #require(try backups(listed.output).first)
    #expect(backup["state"] as? String == "proven")
    #expect(backup["store"] as? String == "Old")
    #expect(backup["tags"] as? [String] == ["nightly"])
    let id = try #require(backup["id"] as? String)
    let text = try desk.lazaret("backup", "list", store)
    #expect(text.output.contains(id) && text.output.contains("  read back"))
    let verified = try desk.lazaret("backup", "verify", id, "--migrate", desk.model, "--budget", "2m", "--json")
    #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
    #expect(try backups(verified.output).first?["depth"] as? String == "migrated")
    #expect(try desk.lazaret("backup", "list", store).output.contains("  verified"))
    // Any gunzip opens it.
    let file = desk.folder.appending("Backups/Old/\(id).sqlite.gz").string
    let script = "gunzip < '\(file)' > r.sqlite && sqlite3 r.sqlite 'SELECT ZNAME FROM ZCAR'"
    #expect(try ChildProcess.run("sh", ["-c", script], in: desk.folder.path).output == "one\n")
  }

  @Test func anEntityThatTheModelLacksIsASlipOfTheCommandLine() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    #expect(try desk.lazaret("backup", "create", store).status == 0)
    for (name, guess) in [("Caar", "Did you mean \"Car\"? The"), ("User", "[unknown-entity]. The")] {
      let result = try desk.lazaret("backup", "restore", "--of", store, "--entity", name, "--to", "Taken.sqlite")
      #expect(result.status == 64 && result.output.isEmpty, "\(result.output)")
      #expect(result.errors.contains("no entity \"\(name)\"") && result.errors.contains("The entities: Car."))
      #expect(result.errors.contains(guess), "\(result.errors)")
      #expect(try FileSystem().status(of: desk.folder.appending("Taken.sqlite")) == nil)
    }
    let attribute = try desk.lazaret(
      "export", store, "-o", "Report.tar.gz", "--level", "scrubbed", "--keep", "Car.nam", "--yes")
    #expect(attribute.status == 64, "\(attribute.errors)")
    #expect(attribute.errors.contains("Did you mean \"Car.name\"?"), "\(attribute.errors)")
  }

  @Test func whatAMigrationKeptIsListedVerifiedAndRestored() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let migrated = try desk.lazaret("migrate", store, "--model", desk.model)
    #expect(migrated.status == 0, "\(migrated.errors)")
    let backup = try #require(try backups(try desk.lazaret("backup", "list", "--json").output).first)
    #expect(backup["kind"] as? String == "original" && backup["reason"] as? String == "before-migration")
    #expect(backup["state"] as? String == "unproven")
    let id = try #require(backup["id"] as? String)
    let verified = try desk.lazaret("backup", "verify", id, "--json")
    #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
    #expect(try backups(verified.output).first?["result"] as? String == "proven")
    let restored = try desk.lazaret("backup", "restore", id, "--to", "Before.sqlite")
    #expect(restored.status == 0, "\(restored.errors)")
    let rows = try ChildProcess.run("sqlite3", ["Before.sqlite", "SELECT ZNAME FROM ZCAR"], in: desk.folder.path)
    #expect(rows.output == "one\n")
  }

  @Test func anOriginalWithRemovedRecordsIsKeptUntilItIsReleased() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    #expect(try desk.lazaret("migrate", store, "--model", desk.model).status == 0)
    #expect(try desk.lazaret("backup", "create", store).status == 0)
    let id = try desk.noteRemovedRecords(of: store)
    let listed = try backups(try desk.lazaret("backup", "list", "--json").output)
    #expect(listed.map { $0["onlyHere"] == nil } == [true, false])
    let note = try #require(listed.last?["onlyHere"] as? [String: Any])
    #expect(note["step"] as? String == "V1 → V2")
    let entities = try #require(note["entities"] as? [[String: Any]])
    #expect(entities.map { $0["entity"] as? String } == ["Person"] && entities.map { $0["rows"] as? Int } == [12])
    let text = try desk.lazaret("backup", "list").output
    #expect(text.contains("\(id): holds 12 records of Person that its migration removed."), "\(text)")
    #expect(text.contains("lazaret backup release \(id)\n"), "\(text)")
    for arguments in [["--dry-run"], []] {
      let pruned = try desk.run(["backup", "prune", "--keep-last", "1"] + arguments)
      #expect(pruned.status == 0)
      #expect(pruned.output.contains("holds 12 records of Person that its migration removed"), "\(pruned.output)")
      #expect(pruned.output.contains("lazaret backup release \(id)\n"), "\(pruned.output)")
      #expect(pruned.output.contains("0 \(arguments.isEmpty ? "" : "would be ")dropped"), "\(pruned.output)")
    }
    let kept = try desk.lazaret("backup", "prune", "--keep-last", "1", "--dry-run", "--json").output
    #expect(kept.contains("\"only-here\""), "\(kept)")
    let released = try desk.lazaret("backup", "release", id)
    #expect(released.status == 0 && released.output.contains("is released"), "\(released.output)\(released.errors)")
    #expect(released.output.contains("12 records of Person"))
    let again = try desk.lazaret("backup", "release", id, "--json")
    #expect(again.status == 0)
    let told = try #require(try json(again.output) as? [String: Any])
    #expect(told["released"] as? Bool == false && told["backup"] as? String == id)
    #expect(try backups(try desk.lazaret("backup", "list", "--json").output).allSatisfy { $0["onlyHere"] == nil })
    let pruned = try desk.lazaret("backup", "prune", "--keep-last", "1")
    #expect(pruned.output.contains("1 dropped into the trash"), "\(pruned.output)")
    // It is not among the backups any more.
    let gone = try desk.lazaret("backup", "release", id, "--json")
    #expect(gone.status == 1 && gone.errors.contains("no-such-backup"), "\(gone.errors)")
    #expect(try desk.lazaret("backup", "release", "yesterday").status == 64)
    #expect(try desk.lazaret("backup", "release").status == 64)
  }

  @Test func aSalvageTakesLostRowsAndTheKitFromABackup() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let created = try desk.lazaret("backup", "create", store, "--json")
    #expect(created.status == 0, "\(created.errors)")
    let id = try #require(try backups(try desk.lazaret("backup", "list", "--json").output).first?["id"] as? String)
    #expect(try FileSystem().status(of: desk.folder.appending("Backups/Old/\(id).kit")) != nil)
    let path = FilePath(store)
    var bytes = try FileSystem().contents(of: path, limit: 1 << 28)
    // All but the first page is gone, and with it the tables.
    for index in 4096..<bytes.count { bytes[index] = 0 }
    try FileSystem().writeAtomically(bytes, to: path, replacing: true)
    let alone = try desk.lazaret("salvage", store, "--model", desk.model, "-o", "Alone.sqlite", "--no-kit")
    #expect(alone.status != 0)
    let salvaged = try desk.lazaret(
      "salvage", store, "--model", desk.model, "-o", "Rescued.sqlite", "--with-backup", id)
    #expect(salvaged.status == 2, "\(salvaged.output)\(salvaged.errors)")
    let rows = try ChildProcess.run("sqlite3", ["Rescued.sqlite", "SELECT ZNAME FROM ZCAR"], in: desk.folder.path)
    #expect(rows.output == "one\n", "\(salvaged.output)")
  }

  @Test func damageIsToldByTheExitCode() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    #expect(try desk.lazaret("backup", "create", store).status == 0)
    let id = try #require(try backups(try desk.lazaret("backup", "--json").output).first?["id"] as? String)
    let path = desk.folder.appending("Backups/Old/\(id).sqlite.gz")
    var bytes = try FileSystem().contents(of: path, limit: 1 << 28)
    bytes[bytes.count / 2] ^= 4
    try desk.folder.write(bytes, to: "Backups/Old/\(id).sqlite.gz")
    let verified = try desk.lazaret("backup", "verify", "--quick")
    #expect(verified.status == 2)
    #expect(verified.output.contains("block 0 of \(id).sqlite.gz is damaged"), "\(verified.output)")
    #expect(try backups(try desk.lazaret("backup", "list", "--json").output).first?["state"] as? String == "failed")
    try FileSystem().unlink(path)
    let listed = try desk.lazaret("backup", "list", "--json")
    #expect(listed.status == 2)
    #expect(try backups(listed.output).first?["state"] as? String == "broken")
    // A damaged store is kept as it is, and that is no success.
    try desk.makeDamagedStore()
    let evidence = try desk.lazaret("backup", "create", desk.store, "--json")
    #expect(evidence.status == 2)
    #expect(evidence.output.contains("\"apart\"") && evidence.output.contains("\"evidence\""))
  }

  @Test func aDamagedPageIsToldAndTheGoodBackupStays() throws {
    let desk = try Desk()
    let store = desk.folder.appending("Plain.sqlite").string
    let script = """
      CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t (b);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      INSERT INTO t SELECT i, hex(zeroblob(40)) || i FROM n;
      """
    #expect(try ChildProcess.run("sqlite3", [store, script], in: desk.folder.path).status == 0)
    #expect(try desk.lazaret("backup", "create", store, "--home", "Kept").status == 0)
    var bytes = try FileSystem().contents(of: FilePath(store), limit: 1 << 28)
    let leaf = try #require(stride(from: 4096, to: bytes.count, by: 4096).first { bytes[$0] == 13 })
    for index in leaf..<(leaf + 4096) { bytes[index] = 0 }
    try FileSystem().writeAtomically(bytes, to: FilePath(store), replacing: true)
    let created = try desk.lazaret("backup", "create", store, "--home", "Kept")
    #expect(created.status == 2 && created.output.contains("apart from the good backups"), "\(created.output)")
    for _ in 0..<2 {
      let pruned = try desk.lazaret("backup", "prune", "--keep-last", "1", "--trash-days", "0", "--home", "Kept")
      #expect(pruned.status == 0, "\(pruned.output)\(pruned.errors)")
    }
    let restored = try desk.lazaret("backup", "restore", "--home", "Kept", "--to", "Good.sqlite")
    #expect(restored.status == 0, "\(restored.output)\(restored.errors)")
    let sound = try ChildProcess.run(
      "sqlite3", ["Good.sqlite", "PRAGMA integrity_check; SELECT count(*) FROM t"], in: desk.folder.path)
    #expect(sound.output == "ok\n2000\n")
    // The other one gives the damaged store back, and says so.
    let listed = try backups(try desk.lazaret("backup", "list", "--home", "Kept", "--json").output)
    let apart = try #require(listed.first { $0["state"] as? String == "apart" }?["id"] as? String)
    let damaged = try desk.lazaret("backup", "restore", apart, "--home", "Kept", "--to", "Damaged.sqlite")
    #expect(damaged.status == 2, "\(damaged.output)\(damaged.errors)")
    #expect(
      damaged.output.contains("It is as it was when it was backed up, not sound")
        && damaged.output.contains("lazaret salvage"))
    let told = try desk.lazaret("backup", "restore", apart, "--home", "Kept", "--to", "Again.sqlite", "--json")
    #expect(told.status == 2)
    let damage = (try json(told.output) as? [String: Any])?["damage"] as? [String: Any]
    #expect((damage?["code"] as? String)?.isEmpty == false)
    #expect((damage?["hint"] as? String)?.contains("Again.sqlite") == true)
    #expect(try FileSystem().contents(of: desk.folder.appending("Damaged.sqlite"), limit: 1 << 28) == bytes)
  }

  @Test func aFallOfRecordsIsToldAndReleased() throws {
    let desk = try Desk()
    let store = desk.folder.appending("Plain.sqlite").string
    func run(_ script: String) throws {
      #expect(try ChildProcess.run("sqlite3", [store, script], in: desk.folder.path).status == 0)
    }
    try run("CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3), (4), (5)")
    #expect(try desk.lazaret("backup", "create", store, "--home", "Kept").status == 0)
    let id = try #require(
      try backups(try desk.lazaret("backup", "list", "--home", "Kept", "--json").output).first?["id"] as? String)
    try run("DELETE FROM t WHERE a > 2")
    let created = try desk.lazaret("backup", "create", store, "--home", "Kept")
    #expect(created.status == 0)
    #expect(created.output.contains("t has 2 records, and had 5 in \(id)."), "\(created.output)")
    #expect(created.output.contains("lazaret backup release \(id)"), "\(created.output)")
    #expect(
      try desk.lazaret("backup", "list", "--home", "Kept").output.contains("t has 2 records, and had 5 in \(id)."))
    let pruned = try desk.lazaret("backup", "prune", "--keep-last", "1", "--home", "Kept", "--json")
    #expect(pruned.output.contains("\"before-fall\""), "\(pruned.output)")
    let released = try desk.lazaret("backup", "release", id, "--home", "Kept")
    #expect(released.status == 0 && released.output.contains("is released"), "\(released.output)\(released.errors)")
    #expect(try !desk.lazaret("backup", "list", "--home", "Kept").output.contains("and had 5"))
    let again = try desk.lazaret("backup", "prune", "--keep-last", "1", "--home", "Kept")
    #expect(again.output.contains("1 dropped into the trash"), "\(again.output)")
  }

  @Test func aKillAtAnyMomentLeavesWhatWasThere() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    #expect(try desk.lazaret("backup", "create", store).status == 0)
    var random = SeededGenerator(seed: 11)
    for round in 0..<12 {
      let child = try ChildProcess(
        ChildProcess.tool, ["backup", "create", store], in: desk.folder.path, home: desk.folder.path)
      Thread.sleep(forTimeInterval: Double.random(in: 0...0.12, using: &random))
      child.kill()
      _ = try child.finish()
      for backup in try backups(try desk.lazaret("backup", "list", "--json").output) {
        #expect(backup["state"] as? String != "broken", "round \(round)")
        guard let id = backup["id"] as? String else { continue }
        let verified = try desk.lazaret("backup", "verify", id)
        #expect(verified.status == 0, "round \(round): \(verified.output)")
      }
    }
    #expect(try desk.lazaret("backup", "create", store).status == 0)
    let names = try FileSystem().entries(of: desk.folder.appending("Backups/Old")).map(\.string)
    #expect(!names.contains { $0.hasSuffix(".unfinished") })
  }

  @Test func storesOfOneNameAreNeverMixed() throws {
    let desk = try Desk()
    let system = FileSystem()
    var ids: [String: String] = [:]
    for name in ["A/App.sqlite", "B/App.sqlite", "A/App.db"] {
      let path = desk.folder.appending(name)
      try system.makeDirectory(path.folder)
      _ = try ChildProcess.run("sqlite3", [path.string, "CREATE TABLE t (x); INSERT INTO t VALUES ('\(name)')"])
      let made = try desk.lazaret("backup", "create", path.string, "--json")
      #expect(made.status == 0, "\(made.errors)")
      let object = try #require(try JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [String: Any])
      let backup = try #require(object["backup"] as? [String: Any])
      #expect(backup["path"] as? String == name)
      ids[name] = backup["folder"] as? String
    }
    #expect(Set(ids.values).count == 3)
    let listed = try backups(try desk.lazaret("backup", "list", "--json").output)
    #expect(Set(listed.compactMap { $0["path"] as? String }) == ["A/App.sqlite", "B/App.sqlite", "A/App.db"])
    #expect(try desk.lazaret("backup", "list").output.contains("B/App.sqlite"))
    // The newest of one store is never that of another, whichever was backed up last.
    for name in ["A/App.sqlite", "B/App.sqlite", "A/App.db"] {
      let to = "Restored-\(name.replacingOccurrences(of: "/", with: "-"))"
      let path = desk.folder.appending(name).string
      let restored = try desk.lazaret("backup", "restore", "--of", path, "--to", to)
      #expect(restored.status == 0, "\(restored.errors)")
      let found = try ChildProcess.run("sqlite3", [to, "SELECT x FROM t"], in: desk.folder.path)
      #expect(found.output == "\(name)\n")
    }
  }

  @Test func aBackupOfAnotherStoreNeedsAFlag() throws {
    let desk = try Desk()
    let (one, other) = (desk.folder.appending("One.sqlite").string, desk.folder.appending("Other.sqlite").string)
    for path in [one, other] {
      _ = try ChildProcess.run("sqlite3", [path, "CREATE TABLE t (x); INSERT INTO t VALUES ('\(path)')"])
    }
    _ = try desk.lazaret("backup", "create", one)
    let id = try #require(try backups(try desk.lazaret("backup", "list", "--json").output).first?["id"] as? String)
    // Backups of one second have the same name, each in the folder of its store.
    Thread.sleep(forTimeInterval: 1.1)
    _ = try desk.lazaret("backup", "create", other)
    let refused = try desk.lazaret("backup", "restore", id, "--of", other)
    #expect(refused.status == 1 && refused.errors.contains("backup-of-other-store"), "\(refused.errors)")
    #expect(try ChildProcess.run("sqlite3", [other, "SELECT x FROM t"]).output == "\(other)\n")
    let restored = try desk.lazaret("backup", "restore", id, "--of", other, "--other-store")
    #expect(restored.status == 0, "\(restored.errors)")
    #expect(try ChildProcess.run("sqlite3", [other, "SELECT x FROM t"]).output == "\(one)\n")
  }

  @Test func whatWasPassedOverIsTold() throws {
    let desk = try Desk()
    let store = desk.folder.appending("App.sqlite").string
    _ = try ChildProcess.run("sqlite3", [store, "CREATE TABLE t (x); INSERT INTO t VALUES (1)"])
    _ = try desk.lazaret("backup", "create", store)
    let good = try #require(try backups(try desk.lazaret("backup", "list", "--json").output).first?["id"] as? String)
    _ = try desk.lazaret("backup", "create", store, "--full")
    let newer = try #require(try backups(try desk.lazaret("backup", "list", "--json").output).first?["id"] as? String)
    #expect(newer != good)
    try FileSystem().unlink(desk.folder.appending("Backups/App/\(newer).sqlite.gz"))
    let restored = try desk.lazaret("backup", "restore", "--of", store, "--to", "New.sqlite")
    #expect(restored.output.contains("Passed over \(newer): it is not whole"), "\(restored.output)\(restored.errors)")
    let told = try desk.lazaret("backup", "restore", "--of", store, "--to", "Newer.sqlite", "--json")
    let object = try #require(try JSONSerialization.jsonObject(with: Data(told.output.utf8)) as? [String: Any])
    #expect(object["backup"] as? String == good)
    let passed = try #require(object["passedOver"] as? [[String: Any]])
    #expect(passed.map { $0["id"] as? String } == [newer] && passed.map { $0["code"] as? String } == ["broken"])
  }

  @Test func anUnusableFolderForTemporaryFilesIsNoObstacle() throws {
    let desk = try Desk()
    let store = desk.folder.appending("App.sqlite").string
    _ = try ChildProcess.run("sqlite3", [store, "CREATE TABLE t (x); INSERT INTO t VALUES (1)"])
    for verb in [["create", store], ["verify"], ["restore", "--preview"]] {
      let result = try ChildProcess.run(
        "env", ["TMPDIR=/nowhere/at/all", ChildProcess.tool, "backup"] + verb, in: desk.folder.path,
        home: desk.folder.path)
      #expect(result.status == 0, "\(verb): \(result.errors)")
    }
    var left = try FileSystem().entries(of: desk.folder.path)
    left += try FileSystem().entries(of: desk.folder.appending("Backups/App"))
    #expect(!left.contains { $0.string.hasPrefix(".lazaret") })
  }

  @Test func whatCannotBeDoneIsRefused() throws {
    let desk = try Desk()
    #expect(try desk.lazaret("backup", "create", "None.sqlite").status == 1)
    #expect(try desk.lazaret("backup", "create", "None.sqlite", "--level", "5").status == 1)
    #expect(try desk.lazaret("backup", "verify", "2001-01-01-00-00-00").status == 1)
    #expect(try desk.lazaret("backup", "verify", "yesterday").status == 64)
    #expect(try desk.lazaret("backup", "verify", "--budget", "soon").status == 64)
    #expect(try desk.lazaret("backup", "verify").status == 0)
    #expect(
      try desk.lazaret("backup", "list").output.contains("No backup lies in the home: \(desk.folder.path.string)"))
  }
}
