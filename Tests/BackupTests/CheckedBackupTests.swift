import Backup
import GRDB
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Backups of stores that are checked while they are packed")
struct CheckedBackupTests {
  /// Ways to damage a store that a look at its header, schema and counts does not find.
  enum Damage: String, CaseIterable {
    case leafZeroed, leafRandom, indexZeroed, entryChanged, valueChanged
  }

  private func damage(_ scene: BackupScene, _ damage: Damage) throws {
    var bytes = try scene.bytes(scene.store)
    let pages = stride(from: 4096, to: bytes.count, by: 4096)
    let leaves = pages.filter { bytes[$0] == 13 }
    let entries = pages.filter { bytes[$0] == 10 }
    let (leaf, entry) = (try #require(leaves.dropFirst(3).first), try #require(entries.dropFirst(2).first))
    func flipLetter(_ page: Int) throws {
      // Of the letters of a name one is exchanged for another, and the record stays well-formed.
      let place = try #require(
        (page + 2048..<page + 4096).first { bytes[$0] == UInt8(ascii: "0") && bytes[$0 - 1] == bytes[$0] })
      bytes[place] = UInt8(ascii: "7")
    }
    switch damage {
    case .leafZeroed: for index in leaf..<(leaf + 4096) { bytes[index] = 0 }
    case .leafRandom: for index in leaf..<(leaf + 4096) { bytes[index] = UInt8(truncatingIfNeeded: index &* 7919 >> 3) }
    case .indexZeroed: for index in entry..<(entry + 4096) { bytes[index] = 0 }
    case .entryChanged: try flipLetter(entry)
    case .valueChanged: try flipLetter(leaf)
    }
    try scene.folder.write(bytes, to: "Stores/App.sqlite")
    do {
      #expect(try !BackupScene.summary(of: scene.store).hasPrefix("ok "), "SQLite finds it too")
    } catch let error as DatabaseError {
      #expect(error.resultCode == .SQLITE_CORRUPT)
    }
  }

  @Test("A damaged store is kept apart, and the good backup stays and restores", arguments: Damage.allCases)
  func damaged(kind: Damage) throws {
    let scene = try BackupScene(mode: "delete")
    let good = try scene.back(up: 0)
    let summary = try BackupScene.summary(of: scene.store)
    #expect(good.manifest?.check.depth == .whole && good.manifest?.check.uncompared == nil)
    try damage(scene, kind)
    let before = try scene.bytes(scene.store)
    for (minute, isFull, isEvidence) in [(1, false, false), (2, true, false), (3, false, true)] {
      let backup = try scene.back(up: minute) { request in
        request.isFull = isFull
        request.isEvidence = isEvidence
      }
      #expect(backup.isApart && backup.manifest?.kind == .evidence && backup.manifest?.check.isSound == false)
      #expect(backup.manifest?.check.code != nil && backup.manifest?.check.words != nil)
      let extraction = try BackupExtraction(backup.id, in: BackupCatalog(of: scene.place), fileSystem: FileSystem())
      let target = StoreFileSet(main: scene.folder.appending("Evidence\(minute).sqlite"))
      #expect(try extraction.writeEvidence(to: target).isWhole)
      #expect(try scene.bytes(target.main) == before)
    }
    let pruner = BackupPruner(of: scene.place, surroundings: .still(at: "2026-11-21T11:00:00Z"))
    let report = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 0, verifies: true))
    #expect(report.failed.isEmpty && report.plan.dropped.isEmpty)
    #expect(try BackupCatalog(of: scene.place).backup(good.id).isProvenGood)
    _ = try scene.extract(good.id, to: "Restored.sqlite")
    #expect(try BackupScene.summary(of: scene.folder.appending("Restored.sqlite")) == summary)
    let left = try FileSystem().entries(of: scene.placePath).filter { $0.string.hasSuffix(".unfinished") }
    #expect(left.isEmpty)
  }

  @Test("Evidence of a sound store is whole, and is not called the evidence of a damaged one")
  func soundEvidence() throws {
    let scene = try BackupScene(mode: "wal")
    let backup = try scene.back(up: 0) { $0.isEvidence = true }
    #expect(backup.manifest?.kind == .evidence && backup.manifest?.check.isSound == true)
    let proof = try BackupProver(surroundings: .still(at: "2026-11-21T11:00:00Z")).prove(backup.id, in: scene.place)
    #expect(proof.result == .proven && !proof.isOfEvidence && proof.warnings == nil)
  }

  @Test("The journal of another database beside a store with a log is damage, as for an examination")
  func foreignJournal() throws {
    let scene = try BackupScene(mode: "wal")
    let other = try BackupScene(rows: 400, mode: "delete")
    let queue = try DatabaseQueue(path: other.store.string)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA cache_spill = 1; PRAGMA cache_size = 1; BEGIN; UPDATE cars SET name = 'x' || name")
      let journal = try scene.bytes(other.store.sibling(suffix: "-journal"))
      #expect(journal.count > 512)
      try scene.folder.write(journal, to: "Stores/App.sqlite-journal")
      try db.execute(sql: "ROLLBACK")
    }
    try queue.close()
    #expect(try Examiner().examine(scene.store).verdict == .damaged)
    #expect(try scene.back(up: 0).isApart)
  }

  @Test(
    "A store that SQLite does not open, or whose indexes have each other's entries, takes no good backup's place",
    arguments: [
      "UPDATE sqlite_schema SET sql = replace(sql, 'TABLE cars (', 'TABLE cars [') WHERE name = 'cars'",
      "UPDATE sqlite_schema SET sql = replace(sql, ' ON ', ' OO ') WHERE name = 'cars_name'",
      """
      CREATE INDEX cars_both ON cars (flags, name); PRAGMA writable_schema = ON;
      CREATE TABLE roots AS SELECT (SELECT rootpage FROM sqlite_schema WHERE name = 'cars_name') AS one,
        (SELECT rootpage FROM sqlite_schema WHERE name = 'cars_both') AS other;
      UPDATE sqlite_schema SET rootpage = (SELECT CASE name WHEN 'cars_name' THEN other ELSE one END FROM roots)
        WHERE name IN ('cars_name', 'cars_both');
      """,
    ])
  func refused(change: String) throws {
    let scene = try BackupScene(rows: 500, mode: "delete")
    let good = try scene.back(up: 0) { $0.isFull = true }
    let summary = try BackupScene.summary(of: scene.store)
    try scene.run("PRAGMA writable_schema = ON; \(change)")
    do {
      #expect(try !BackupScene.summary(of: scene.store).hasPrefix("ok "), "SQLite finds it too")
    } catch let error as DatabaseError {
      #expect(error.resultCode == .SQLITE_CORRUPT)
    }
    for minute in 1...2 {
      let backup = try scene.back(up: minute) { $0.isFull = true }
      #expect(backup.isApart && !backup.isSound && backup.state == "apart")
      #expect(["schema-refused", "indexes-damaged"].contains(backup.manifest?.check.code))
    }
    let pruner = BackupPruner(of: scene.place, surroundings: .still(at: "2026-11-21T11:00:00Z"))
    _ = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 0, verifies: true))
    #expect(try BackupCatalog(of: scene.place).backup(good.id).isProvenGood)
    _ = try scene.extract(good.id, to: "Restored.sqlite")
    #expect(try BackupScene.summary(of: scene.folder.appending("Restored.sqlite")) == summary)
  }

  @Test("A backup with indexes that nothing compared takes no place of one whose indexes all were")
  func uncompared() throws {
    let scene = try BackupScene(rows: 500)
    let good = try scene.back(up: 0) { $0.isFull = true }
    #expect(good.verification == .whole)
    try scene.run("CREATE INDEX cars_lower ON cars (lower(name))")
    let backups = try (1...2).map { minute in try scene.back(up: minute) { $0.isFull = true } }
    for backup in backups {
      #expect(backup.isProvenGood && backup.manifest?.check.uncompared == ["cars_lower"])
      #expect(backup.verification == .pages)
    }
    let pruner = BackupPruner(of: scene.place, surroundings: .still(at: "2026-11-21T11:00:00Z"))
    let report = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 0, verifies: true))
    #expect(Set(report.plan.kept.map(\.snapshot.identifier)) == [good.id.description, backups[1].id.description])
    // What SQLite compares without evaluating anything is compared.
    try scene.run(
      "DROP INDEX cars_lower; CREATE TABLE kv (k PRIMARY KEY, v) WITHOUT ROWID; CREATE INDEX kv_v ON kv (v)")
    let whole = try scene.back(up: 3) { $0.isFull = true }
    #expect(whole.manifest?.check.uncompared == nil && whole.verification == .whole)
  }

  @Test("A backup whose verification failed is not said to be of a sound store")
  func failedVerification() throws {
    let scene = try BackupScene(rows: 500, mode: "delete")
    let made = MadeBackups(place: scene.place)
    var bytes = try scene.bytes(scene.store)
    let statement = Array("TABLE cars (".utf8)
    let place = try #require(
      bytes.indices.dropLast(statement.count).first { Array(bytes[$0..<($0 + statement.count)]) == statement })
    bytes[place + statement.count - 1] = UInt8(ascii: "[")
    // As an earlier version took it.
    try made.add(1, bytes)
    #expect(try BackupCatalog(of: scene.place).backup(MadeBackups.id(1)).isSound)
    let prover = BackupProver(surroundings: .still(), temporary: scene.folder.path)
    #expect(try prover.prove(MadeBackups.id(1), in: scene.place).result == .failed)
    #expect(try !BackupCatalog(of: scene.place).backup(MadeBackups.id(1)).isSound)
    let target = scene.folder.appending("Stores/Back.sqlite")
    let restorer = BackupRestorer(of: scene.place, surroundings: .still())
    let error = #expect(throws: BackupError.self) { try restorer.restore(MadeBackups.id(1), to: target) }
    #expect(error?.kind == .verificationFailed)
    #expect(try FileSystem().status(of: target) == nil)
  }

  @Test("All indexes are compared at each full backup and once a day, otherwise those that changed pages touch")
  func depth() throws {
    let scene = try BackupScene(rows: 20_000)
    func back(_ time: String) throws -> BackupManifest {
      try scene.run("UPDATE cars SET flags = flags + 1 WHERE id < 20")
      return try #require(try scene.creator(at: time).create(scene.store, in: scene.place).manifest)
    }
    let taken = try [
      "2026-11-21T10:00:00Z", "2026-11-21T12:00:00Z", "2026-11-22T09:59:59Z", "2026-11-22T10:00:00Z",
      "2026-11-22T11:00:00Z",
    ].map(back)
    #expect(taken.map(\.kind) == [.full, .delta, .delta, .delta, .delta])
    #expect(taken.map(\.check.depth) == [.whole, .changed, .changed, .whole, .changed])
  }

  @Test("An index that a change of the schema alone makes wrong is found by the next backup")
  func changedSchema() throws {
    let scene = try BackupScene()
    try scene.back(up: 0)
    try scene.run("UPDATE cars SET flags = 1 WHERE id = 7")
    #expect(try scene.back(up: 1).manifest?.kind == .delta)
    try scene.run(
      """
      PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = 'CREATE INDEX cars_name ON cars (flags)' WHERE name = 'cars_name';
      """)
    let backup = try scene.back(up: 2)
    #expect(backup.isApart && backup.manifest?.check.isSound == false)
    #expect(backup.manifest?.check.code == "indexes-damaged")
  }

  @Test("A run that is killed while it names its files leaves no backup, and the next no file", arguments: [1, 2, 3])
  func halfBackup(left: Int) throws {
    let scene = try BackupScene(rows: 500)
    let first = try scene.back(up: 0)
    let names = first.objects.map(\.name).filter {
      $0.hasSuffix(".gz") || $0.hasSuffix(".pages") || $0.hasSuffix(".kit")
    }
    let half = "b-2026-11-21-10-01-12"
    for name in names.prefix(left) {
      let suffix = name.dropFirst(first.id.description.count)
      try scene.folder.write(try scene.bytes(scene.placePath.appending(name)), to: "Backups/App/\(half)\(suffix)")
    }
    try scene.folder.write("{}", to: "Backups/App/.\(half).json.unfinished")
    // An earlier version could write this proof.
    try scene.folder.write("{}", to: "Backups/App/\(half).proof.json")
    #expect(try BackupCatalog(of: scene.place).backups.map(\.id) == [first.id])
    let next = try scene.back(up: 2)
    #expect(next.isProvenGood)
    let entries = try FileSystem().entries(of: scene.placePath).map(\.string)
    #expect(entries.allSatisfy { !$0.contains(half) })
    #expect(try BackupCatalog(of: scene.place).backups.map(\.isWhole) == [true, true])
  }

  @Test("Files without a manifest that no run left stay where they are")
  func lostManifest() throws {
    let scene = try BackupScene(rows: 500)
    let first = try scene.back(up: 0)
    try FileSystem().unlink(scene.placePath.appending("\(first.id).json"))
    try scene.back(up: 1)
    #expect(try FileSystem().status(of: scene.placePath.appending("\(first.id).sqlite.gz")) != nil)
  }

  @Test(
    "Hashes and kit that were changed or lost are warnings, and made anew", arguments: ["pages", "kit"], [true, false])
  func helpers(suffix: String, isLost: Bool) throws {
    let scene = try BackupScene(rows: 20_000)
    let first = try scene.back(up: 0)
    try scene.run("UPDATE cars SET flags = 1 WHERE id = 7")
    let second = try scene.back(up: 1)
    #expect(second.manifest?.kind == .delta)
    let prover = BackupProver(surroundings: .still(), temporary: scene.folder.path)
    for id in [first.id, second.id] {
      let path = scene.placePath.appending("\(id).\(suffix)")
      let whole = try scene.bytes(path)
      if isLost {
        try FileSystem().unlink(path)
      } else {
        var bytes = whole
        bytes[bytes.count / 2] ^= 8
        try scene.folder.write(bytes, to: "Backups/App/\(id).\(suffix)")
      }
      let backup = try BackupCatalog(of: scene.place).backup(id)
      #expect(backup.isWhole && backup.warnings.count == (isLost ? 1 : 0))
      var quick = BackupProver.Options()
      quick.depth = .files
      let glance = try prover.prove(id, in: scene.place, quick)
      #expect(glance.result == .proven && glance.warnings?.map(\.file) == ["\(id).\(suffix)"])
      let proof = try prover.prove(id, in: scene.place)
      #expect(proof.result == .proven && proof.problems.isEmpty)
      #expect(proof.warnings?.map(\.code) == ["helper-made-anew"])
      #expect(try scene.bytes(path) == whole)
      #expect(try prover.prove(id, in: scene.place).warnings == nil)
    }
  }

  @Test("A proof that was changed counts as none, and is named")
  func changedProof() throws {
    let scene = try BackupScene(rows: 500)
    let id = try scene.back(up: 0).id
    let name = "\(id).proof.json"
    let whole = try scene.bytes(scene.placePath.appending(name))
    for place in [10, whole.count / 3, whole.count / 2, whole.count - 2] {
      var bytes = whole
      bytes[place] ^= 1
      try scene.folder.write(bytes, to: "Backups/App/\(name)")
      let backup = try BackupCatalog(of: scene.place).backup(id)
      #expect(backup.proof == nil && backup.warnings.map(\.file) == [name] && backup.isWhole, "byte \(place)")
    }
    let proof = try BackupProver(surroundings: .still(), temporary: scene.folder.path).prove(id, in: scene.place)
    #expect(proof.result == .proven && proof.warnings?.map(\.file) == [name])
    #expect(try BackupCatalog(of: scene.place).backup(id).warnings.isEmpty)
  }

  @Test("Pruning reads the backup that others would be dropped for")
  func pruningReads() throws {
    let scene = try BackupScene(rows: 500)
    let first = try scene.back(up: 0) { $0.isFull = true }
    let second = try scene.back(up: 1) { $0.isFull = true }
    let name = "\(second.id).sqlite.gz"
    var bytes = try scene.bytes(scene.placePath.appending(name))
    bytes[bytes.count / 2] ^= 1
    try scene.folder.write(bytes, to: "Backups/App/\(name)")
    let pruner = BackupPruner(of: scene.place, surroundings: .still(at: "2026-11-21T11:00:00Z"))
    let report = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 0, verifies: true))
    #expect(report.failed == [second.id])
    #expect(report.plan.kept.map(\.id).contains(first.id))
    _ = try scene.extract(first.id, to: "Restored.sqlite")
    #expect(try BackupScene.summary(of: scene.folder.appending("Restored.sqlite")).hasPrefix("ok 500 "))
  }

  @Test("A fall of records is told, and the backup before it stays until it is released or thirty days have passed")
  func fall() throws {
    let scene = try BackupScene(rows: 1000)
    let first = try scene.back(up: 0) { $0.isFull = true }
    #expect(first.manifest?.falls == nil)
    try scene.run("DELETE FROM cars WHERE id % 2 = 0")
    let half = try scene.back(up: 1) { $0.isFull = true }
    #expect(half.manifest?.falls == nil, "half of them is not less than half")
    try scene.run("DELETE FROM cars WHERE id > 499")
    let second = try scene.back(up: 2) { $0.isFull = true }
    #expect(second.manifest?.falls == nil)
    try scene.run("DELETE FROM cars WHERE id > 9")
    let third = try scene.back(up: 3) { $0.isFull = true }
    #expect(third.manifest?.falls == [.init(name: "cars", before: 250, after: 5, backup: second.id)])
    try scene.back(up: 4) { $0.isFull = true }
    func kept(at time: String) throws -> Bool {
      let report = try BackupPruner(of: scene.place, surroundings: .still(at: time))
        .prune(RetentionPolicy(last: .number(1)), options: .init(isRehearsal: true))
      return report.plan.kept.contains { $0.id == second.id }
    }
    #expect(try kept(at: "2026-12-21T10:03:11Z"))
    #expect(try !kept(at: "2026-12-21T10:03:12Z"))
    let pruner = BackupPruner(of: scene.place, surroundings: .still(at: "2026-11-22T10:00:00Z"))
    #expect(try pruner.acknowledge(second.id).map(\.name) == ["cars"])
    #expect(try pruner.acknowledge(second.id).isEmpty && pruner.acknowledge(first.id).isEmpty)
    #expect(try !kept(at: "2026-11-22T10:00:00Z"))
    // The note goes to the trash, and comes back, with its backup.
    _ = try pruner.prune(RetentionPolicy(last: .number(1)))
    #expect(try pruner.undelete(second.id) == [second.id])
    #expect(try BackupCatalog(of: scene.place).backup(second.id).isReleased)
  }

  @Test("A store that was deleted and started over has lost its records too")
  func startedOver() throws {
    let scene = try BackupScene(rows: 1000)
    let first = try scene.back(up: 0)
    for suffix in ["", "-wal", "-shm"] { try FileSystem().unlink(scene.store.sibling(suffix: suffix)) }
    try scene.run("CREATE TABLE cars (id INTEGER PRIMARY KEY, flags INTEGER NOT NULL, name TEXT)")
    let second = try scene.back(up: 1)
    #expect(second.manifest?.falls == [.init(name: "cars", before: 1000, after: 0, backup: first.id)])
    let report = try BackupPruner(of: scene.place, surroundings: .still(at: "2026-11-22T10:00:00Z"))
      .prune(RetentionPolicy(last: .number(1)), options: .init(isRehearsal: true))
    #expect(report.plan.dropped.isEmpty)
  }

  @Test("Backups of a store with a hidden name are listed")
  func hidden() throws {
    let scene = try BackupScene(rows: 10)
    let home = scene.folder.appending("Home")
    for name in [".Hidden.sqlite", "App.sqlite"] {
      try scene.folder.write(try scene.bytes(scene.store), to: "Stores/\(name)")
      let store = scene.folder.appending("Stores/\(name)")
      _ = try scene.creator().create(store, in: FolderPlace(home.appending("Backups").appending(store.stem ?? "")))
    }
    try FileSystem().makeDirectory(home.appending("Backups/.other"))
    let places = try BackupPlaces(home: home, surroundings: .still()).all()
    #expect(places.compactMap(\.path.lastComponent?.string).sorted() == [".Hidden", "App"])
  }
}
