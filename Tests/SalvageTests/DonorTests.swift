import GRDB
import LazaretTesting
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Lost rows from a backup")
struct DonorTests {
  private let date = Timestamp(secondsSince1970: 1_790_000_000)

  @Test(
    "Rows that are lost come back and are marked, and those that were deleted since do not", arguments: [true, false])
  func comeBack(hasKit: Bool) throws {
    let scene = try RebuildScene(seed: 31, records: 500)
    let backup = try RealMaterial.copy(scene.store, into: scene.folder, as: "Backup.sqlite")
    try scene.change("DELETE FROM ZPERSON WHERE Z_PK % 4 = 0")
    let kit = scene.folder.appending("App.kit")
    try FileSystem().writeAtomically(try RecoveryKit(of: scene.store).bytes(), to: kit, replacing: false)
    let damaged = try scene.damaged("zero:12", seed: 5)
    func salvage(_ donor: SalvageDonor?, _ name: String) throws -> (SalvageReport, FilePath) {
      let out = scene.folder.appending(name)
      let report = try Salvager().salvageRaw(
        damaged, to: out, model: .coreData(scene.bundle),
        options: .init(kit: hasKit ? .file(kit) : .none, donor: donor))
      return (report, out)
    }
    let (without, _) = try salvage(nil, "Without.sqlite")
    let (report, out) = try salvage(SalvageDonor(path: backup, date: date), "With.sqlite")
    let taken = report.entities.reduce(0) { $0 + $1.fromBackup }
    #expect(taken > 0)
    #expect(report.recovered == without.recovered + taken)
    #expect(!report.isComplete)
    let person = try #require(report.entities.first { $0.name == "Person" })
    let queue = try DatabaseQueue(path: out.string)
    try queue.read { database in
      let reasons = try String.fetchAll(
        database, sql: "SELECT DISTINCT reason FROM lazaret_provenance WHERE source = 'backup'")
      #expect(reasons.allSatisfy { $0.contains("2026-09-21") }, "\(reasons)")
      let wrong =
        try Int.fetchOne(
          database, sql: "SELECT count(*) FROM ZPERSON WHERE Z_PK % 4 = 0") ?? 0
      if hasKit { #expect(wrong == 0) } else { #expect(Int64(wrong) <= person.fromBackup) }
    }
    try queue.close()
    if hasKit {
      for name in ["Ship", "Ferry", "Person", "Port", "Flag"] {
        let entity = try #require(report.entities.first { $0.name == name })
        #expect(entity.lost == 0, "\(name)")
      }
    } else {
      #expect(report.doubtful >= taken)
    }
    // The backup is older than the store, whatever kit there is.
    #expect((person.doubts[.fromBackup] ?? 0) == person.fromBackup)
    // A store made of it opens, and has the records.
    let result = try Salvager().salvage(
      damaged, to: scene.folder.appending("Store.sqlite"), model: .coreData(scene.bundle),
      options: .init(
        migrates: false, kit: hasKit ? .file(kit) : .none, donor: SalvageDonor(path: backup, date: date)))
    #expect(result.entities.reduce(0) { $0 + $1.fromBackup } == taken)
  }

  @Test("Where an index counts what is lost, no other row comes back")
  func counted() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 4096",
      schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, body TEXT); CREATE INDEX tN ON t (n)"
    ) { db in
      for id in 1...20 { try db.execute(sql: "INSERT INTO t VALUES (?, ?, ?)", arguments: [id, id * 7, "row \(id)"]) }
    }
    let backup = try scene.folder.write(scene.main, to: "Backup.sqlite")
    let store = try scene.folder.write(scene.main, to: "Store.sqlite")
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { db in try db.execute(sql: "DELETE FROM t WHERE id IN (3, 4)") }
    try queue.close()
    // The table's only page; that of its index is whole.
    var bytes = try FileSystem().contents(of: store, limit: 1 << 26)
    for index in scene.range(of: 2) { bytes[index] = 0 }
    let damaged = try scene.folder.write(bytes, to: "Damaged.sqlite")
    func salvage(_ donor: SalvageDonor?, _ name: String) throws -> SalvageReport {
      try Salvager().salvageRaw(damaged, to: scene.folder.appending(name), options: .init(donor: donor))
    }
    let without = try salvage(nil, "Without.sqlite").count
    let with = try salvage(SalvageDonor(path: backup, date: date, trust: .anyStore), "With.sqlite").count
    #expect(without.total == 18 && without.lost == 18)
    #expect(with.total == 18 && with.recovered == 18 && with.lost == 0)
    let result = try DatabaseQueue(path: scene.folder.appending("With.sqlite").string)
    let keys = try result.read { db in try Set(Int.fetchAll(db, sql: "SELECT id FROM t")) }
    try result.close()
    #expect(keys == Set(1...20).subtracting([3, 4]))
  }

  @Test(
    "Rows of a backup are doubtful where the store was written to after it, and certain where it was not",
    arguments: [true, false])
  func certainty(isOlder: Bool) throws {
    // With a write-ahead log nothing would tell: it may be lost.
    let scene = try RebuildScene(seed: 33, records: 1_000, journal: .rollback)
    let backup = try RealMaterial.copy(scene.store, into: scene.folder, as: "Backup.sqlite")
    let kit = scene.folder.appending("App.kit")
    try FileSystem().writeAtomically(try RecoveryKit(of: scene.store).bytes(), to: kit, replacing: false)
    if isOlder {
      try scene.change(
        "UPDATE ZPERSON SET ZBORN = coalesce(ZBORN, 0) + 12345.678 WHERE Z_PK % 3 = 0",
        "DELETE FROM ZPERSON WHERE Z_PK % 5 = 0")
    }
    let truth = try RealMaterial.copy(scene.store, into: scene.folder, as: "Truth.sqlite")
    // The first pages of a table are zeros, where changed and deleted records were.
    let now = try RecoveryKit(of: scene.store)
    var bytes = try FileSystem().contents(of: scene.store, limit: 1 << 26)
    for page in try #require(now.table(named: "ZPERSON")).leaves.prefix(2) {
      let start = (Int(page) - 1) * now.file.pageSize
      bytes.replaceSubrange(
        start..<(start + now.file.pageSize), with: [UInt8](repeating: 0, count: now.file.pageSize))
    }
    let damaged = try scene.folder.write(bytes, to: "Damaged.sqlite")
    let donor = SalvageDonor(path: backup, date: date)
    let out = scene.folder.appending("Raw.sqlite")
    let report = try Salvager().salvageRaw(
      damaged, to: out, model: .coreData(scene.bundle), options: .init(kit: .file(kit), donor: donor))
    #expect(report.kit?.isCurrent == !isOlder)
    let taken = report.entities.reduce(0) { $0 + $1.fromBackup }
    let doubtful = report.entities.reduce(0) { $0 + ($1.doubts[.fromBackup] ?? 0) }
    #expect(taken > 0)
    #expect(doubtful == (isOlder ? taken : 0))
    // SQLite counts: every row that is not as the store had it last is one that is marked.
    let queue = try DatabaseQueue(path: out.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "ATTACH DATABASE ? AS truth", arguments: [truth.string])
      let marked = "SELECT \"row\" FROM lazaret_provenance WHERE \"table\" = 'ZPERSON' AND doubt = 'from-backup'"
      let wrong = """
        SELECT count(*) FROM main.ZPERSON AS r LEFT JOIN truth.ZPERSON AS t ON t.Z_PK = r.Z_PK
        WHERE (t.Z_PK IS NULL OR t.ZBORN IS NOT r.ZBORN)
        """
      #expect(try Int.fetchOne(database, sql: "\(wrong) AND r.Z_PK NOT IN (\(marked))") == 0)
      let stale = try Int.fetchOne(database, sql: wrong) ?? 0
      #expect(isOlder ? stale > 0 : stale == 0, "\(stale)")
      let noted = "SELECT count(*) FROM lazaret_provenance WHERE source = 'backup' AND certainty = 'doubtful'"
      #expect(try Int64.fetchOne(database, sql: noted) == doubtful)
    }
    try queue.close()
    // A store that is made of it has the same numbers, and the notes on each doubtful row beside it.
    let made = try Salvager().salvage(
      damaged, to: scene.folder.appending("Made.sqlite"), model: .coreData(scene.bundle),
      options: .init(migrates: false, kit: .file(kit), donor: donor))
    #expect(made.lost == report.lost && made.doubtful <= report.doubtful)
    #expect(!made.isComplete)
    if isOlder {
      #expect(made.doubtful > 0 && made.count.words.contains("they are from a backup"))
      let aside = try DatabaseQueue(path: try #require(made.rebuild?.setAsideFile).string)
      let noted = try aside.read {
        try Int64.fetchOne($0, sql: "SELECT count(*) FROM lazaret_provenance WHERE doubt = 'from-backup'")
      }
      #expect(noted == doubtful)
      try aside.close()
    } else if made.lost == 0, made.doubtful == 0 {
      // What the exit code says is said in words.
      #expect(made.reservationWords?.contains("from the backup of 2026-09-21") == true, "\(made.reservations)")
    }
  }

  @Test("Another store, and a damaged backup, are refused")
  func refused() throws {
    let scene = try RebuildScene(seed: 32, records: 100)
    let damaged = try scene.damaged("header", seed: 5)
    let other = try RealMaterial.copy(scene.store, into: scene.folder, as: "Other.sqlite")
    let queue = try DatabaseQueue(path: other.string)
    try queue.write { try $0.execute(sql: "UPDATE Z_METADATA SET Z_UUID = '00000000-0000-4000-8000-000000000000'") }
    try queue.close()
    let text = try scene.folder.write(Array("nothing".utf8), to: "Text.sqlite")
    for path in [other, text] {
      let error = #expect(throws: SalvageError.self) {
        try Salvager().salvageRaw(
          damaged, to: scene.folder.appending("Out.sqlite"), model: .coreData(scene.bundle),
          options: .init(donor: SalvageDonor(path: path, date: date)))
      }
      #expect(error?.kind == .donor)
    }
  }
}
