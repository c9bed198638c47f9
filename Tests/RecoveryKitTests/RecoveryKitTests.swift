import Foundation
import GRDB
import Platform
import SQLiteFormat
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Recovery kits")
struct RecoveryKitTests {
  /// A store with a hierarchy, a join table, a table without rowids and holes among the keys.
  static func makeStore(in folder: TemporaryFolder, journal: String = "WAL", rows: Int = 2000) throws -> FilePath {
    let path = folder.appending("App.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA page_size = 1024; PRAGMA journal_mode = \(journal)")
      try database.execute(
        sql: """
          CREATE TABLE ZTHING (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR);
          CREATE TABLE WORDS (WORD TEXT PRIMARY KEY, N INTEGER) WITHOUT ROWID;
          CREATE TABLE NOTES (SAID TEXT);
          CREATE INDEX BYNAME ON ZTHING (ZNAME);
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
          INSERT INTO ZTHING SELECT i, 1 + (i % 3 = 0) * 299, 1, 'secret name ' || i FROM n;
          DELETE FROM ZTHING WHERE Z_PK BETWEEN 100 AND 220 OR Z_PK % 97 = 0;
          INSERT INTO WORDS SELECT ZNAME, Z_PK FROM ZTHING WHERE Z_PK < 500;
          INSERT INTO NOTES SELECT ZNAME FROM ZTHING WHERE Z_PK < 700
          """)
    }
    try queue.close()
    return path
  }

  @Test("It has exactly the rowids of each entity, and no value", arguments: ["WAL", "DELETE"])
  func content(journal: String) throws {
    let folder = try TemporaryFolder()
    let path = try Self.makeStore(in: folder, journal: journal)
    let before = try FolderContents(of: folder.path)
    let kit = try RecoveryKit(of: path)
    #expect(try FolderContents(of: folder.path) == before)
    let queue = try DatabaseQueue(path: path.string)
    let (one, other) = try queue.read { database in
      (
        try Int64.fetchAll(database, sql: "SELECT Z_PK FROM ZTHING WHERE Z_ENT = 1"),
        try Int64.fetchAll(database, sql: "SELECT Z_PK FROM ZTHING WHERE Z_ENT = 300")
      )
    }
    try queue.close()
    let table = try #require(kit.table(named: "zthing"))
    #expect(table.groups.map(\.entity) == [1, 300])
    #expect(table.groups[0].keys == KeyRanges(one))
    #expect(table.groups[1].keys == KeyRanges(other))
    #expect(table.rows == Int64(one.count + other.count))
    #expect(table.sums.count == table.leaves.count)
    #expect(kit.table(named: "WORDS")?.rows == 374)
    #expect(kit.table(named: "WORDS")?.groups.first?.keys == nil)
    let bytes = try kit.bytes()
    #expect(try RecoveryKit(bytes: bytes) == kit)
    #expect(bytes.count < 8000, "\(bytes.count)")
    let large = try RecoveryKit(of: path, sumsUpTo: 1000)
    #expect(!large.hasSums)
    #expect(large.table(named: "ZTHING")?.groups == table.groups)
  }

  @Test("What a check of every page shows makes the same kit as reading the tables")
  func gathered() throws {
    let folder = try TemporaryFolder()
    let path = try Self.makeStore(in: folder, journal: "DELETE")
    let content = MemoryBytes(try FileSystem().contents(of: path, limit: 1 << 30))
    let date = Timestamp(secondsSince1970: 1_800_000_000)
    let gathering = try Gathering(content, at: date)
    let report = try SQLiteFormat.Database(main: content).checkIntegrity(countingBy: [:], visitor: gathering) { _, _ in
      true
    }
    #expect(report.isSound)
    let kit = try gathering.kit.withLock { try $0.takeKit() }
    #expect(try kit == RecoveryKit(reading: content, at: date))
    #expect(kit.tables.map(\.name) == ["sqlite_schema", "ZTHING", "WORDS", "NOTES"])
    // Of a store of which not every page was shown there is none.
    let early = try Gathering(content, at: date)
    #expect(throws: SalvageError.self) { try early.kit.withLock { try $0.takeKit() } }
  }

  private final class Gathering: PageVisitor {
    let kit: Mutex<KitGathering>

    init(_ content: MemoryBytes, at date: Timestamp) throws {
      kit = Mutex(try KitGathering(reading: content, at: date))
    }

    func visit(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FileError) {
      kit.withLock { kit in
        do {
          try kit.visit(page, ofTree: root)
        } catch {
          Issue.record("\(error)")
        }
      }
    }
  }

  @Test("A store that is open and written to gives a kit of one state of it")
  func whileWriting() throws {
    let folder = try TemporaryFolder()
    let path = try Self.makeStore(in: folder)
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { try $0.execute(sql: "INSERT INTO NOTES VALUES ('x')") }
    for round in 1...20 {
      try queue.write { try $0.execute(sql: "INSERT INTO ZTHING (Z_ENT, ZNAME) SELECT 1, SAID FROM NOTES LIMIT 50") }
      let kit = try RecoveryKit(ofOpen: path)
      let count = try queue.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM ZTHING") }
      #expect(kit.table(named: "ZTHING")?.rows == count, "round \(round)")
      #expect(kit.file.log != nil)
    }
    // The locks of the first connection are still held: another process, or connection, cannot have the file to itself.
    #expect(throws: FileError.self) {
      _ = try StoreLock(on: StoreFileSet(main: path), in: FileSystem())
    }
    try queue.close()
  }

  @Test("Whatever is done to a kit's bytes, it is refused and nothing else happens", arguments: [UInt64(1), 2, 3])
  func damagedKit(seed: UInt64) throws {
    let folder = try TemporaryFolder()
    let kit = try RecoveryKit(of: try Self.makeStore(in: folder, rows: 300))
    let bytes = try kit.bytes()
    var random = SeededGenerator(seed: seed)
    for _ in 0..<300 {
      var damaged = bytes
      switch Int.random(in: 0..<3, using: &random) {
      case 0: damaged[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 1: damaged.removeLast(Int.random(in: 1..<bytes.count, using: &random))
      default:
        for _ in 0..<9 {
          damaged[Int.random(in: 9..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
        }
      }
      guard damaged != bytes else { continue }
      do {
        // The last bits of what is packed may mean nothing.
        let same = try RecoveryKit(bytes: damaged)
        #expect(same == kit, "seed \(seed)")
      } catch {
        #expect(SalvageError(kit: error).kind == .kitUnreadable || SalvageError(kit: error).kind == .kitLaterFormat)
      }
    }
    var later = bytes
    later[8] = 99
    let error = #expect(throws: SalvageError.self) { try RecoveryKit(bytes: later) }
    #expect(error?.kind == .kitLaterFormat)
  }

  @Test("Of a damaged store no kit is made")
  func damagedStore() throws {
    let folder = try TemporaryFolder()
    let path = try Self.makeStore(in: folder, journal: "DELETE")
    let kit = try RecoveryKit(of: path)
    let leaf = try #require(kit.table(named: "ZTHING")?.leaves.dropFirst(3).first)
    var bytes = try FileSystem().contents(of: path, limit: 1 << 24)
    for index in 0..<1024 { bytes[(Int(leaf) - 1) * 1024 + index] = 0 }
    let damaged = try folder.write(bytes, to: "Damaged.sqlite")
    let error = #expect(throws: SalvageError.self) { try RecoveryKit(of: damaged) }
    #expect(error?.kind == .storeNotSound)
    let text = try folder.write(Array("no store".utf8), to: "Text.sqlite")
    #expect(throws: SalvageError.self) { try RecoveryKit(of: text) }
    #expect(throws: SalvageError.self) { try RecoveryKit(of: folder.appending("None.sqlite")) }
  }

  @Test("A flipped bit is found by the difference of two sums")
  func bits() {
    var random = SeededGenerator(seed: 7)
    var page = (0..<4096).map { _ in UInt8.random(in: 0...255, using: &random) }
    let sum = RecoveryKit.sum(of: page)
    #expect(RecoveryKit.sum(of: Array("123456789".utf8)) == 0xCBF4_3926)
    #expect(RecoveryKit.flippedBit(of: page, expected: sum) == nil)
    for _ in 0..<20 {
      let (offset, bit) = (Int.random(in: 0..<4096, using: &random), Int.random(in: 0..<8, using: &random))
      page[offset] ^= 1 << UInt8(bit)
      let found = RecoveryKit.flippedBit(of: page, expected: sum)
      #expect(found?.offset == offset)
      #expect(found?.bit == bit)
      page[(offset + 100) % 4096] ^= 3
      #expect(RecoveryKit.flippedBit(of: page, expected: sum) == nil)
      page[(offset + 100) % 4096] ^= 3
      page[offset] ^= 1 << UInt8(bit)
    }
  }

  @Test("Three kits are kept, the newest ones, and each is its owner's alone")
  func folder() throws {
    let place = try TemporaryFolder()
    var kit = try RecoveryKit(of: try Self.makeStore(in: place, rows: 20))
    let kits = KitFolder(for: "Stores/App.sqlite", home: place.path)
    #expect(try kits.newest() == nil)
    for day in 0..<6 {
      kit.date = Timestamp(secondsSince1970: 1_800_000_000 + Int64(day) * 86400)
      let path = try kits.add(kit)
      #expect(try FileSystem().status(of: path)?.permissions == .ownerReadWrite)
      #expect(try RecoveryKit(contentsOf: path) == kit)
    }
    #expect(kits.path == place.path.appending("Recovery").appending("App"))
    #expect(try kits.kits().map(\.date.secondsSince1970).map { ($0 - 1_800_000_000) / 86400 } == [5, 4, 3])
  }

  @Test("A store may have the name of the folder of kits")
  func namesake() throws {
    let place = try TemporaryFolder()
    let kit = try RecoveryKit(of: try Self.makeStore(in: place, rows: 20))
    let store = try place.write("a store", to: "Recovery")
    let path = try KitFolder(for: store, home: nil).add(kit)
    #expect(try RecoveryKit(contentsOf: path) == kit)
    try FileSystem().unlink(store)
    #expect(try KitFolder(for: store, home: nil).kits().map(\.path) == [path])
  }

  @Test("Stores of one name have a folder of kits each")
  func sameName() throws {
    let place = try TemporaryFolder()
    let kit = try RecoveryKit(of: try Self.makeStore(in: place, rows: 20))
    let stores = ["A/App.sqlite", "B/App.sqlite", "A/App.db"].map { place.appending($0) }
    for store in stores {
      try FileSystem().makeDirectory(store.folder)
      #expect(try KitFolder(for: store, home: place.path).kits().isEmpty)
      try KitFolder(for: store, home: place.path).add(kit)
    }
    let folders = stores.map { KitFolder(for: $0, home: place.path) }
    #expect(folders.map { $0.path.lastComponent?.string } == ["App", "App-2", "App-3"])
    for folder in folders { #expect(try folder.kits().count == 1) }
    // The home may be moved, and its stores with it.
    let elsewhere = try TemporaryFolder()
    try FileSystem().rename(place.appending("Recovery"), to: elsewhere.appending("Recovery"))
    let moved = KitFolder(for: elsewhere.appending("B/App.sqlite"), home: elsewhere.path)
    #expect(moved.path.lastComponent == "App-2")
  }

  @Test("A kit says of which generation it is, and one that does not is written as earlier versions read it")
  func generation() throws {
    let place = try TemporaryFolder()
    var kit = try RecoveryKit(of: try Self.makeStore(in: place, rows: 20))
    #expect(kit.generation == nil)
    #expect(try kit.bytes()[8] == 1)
    kit.generation = "6D7E5C0A-9E1B-4A55-8C11-0123456789AB"
    let bytes = try kit.bytes()
    #expect(bytes[8] == 2)
    #expect(try RecoveryKit(bytes: bytes) == kit)
    // The same bytes in the earlier form have something behind their end, and the other way round something is missing.
    var named = bytes
    named[8] = 1
    kit.generation = nil
    var plain = try kit.bytes()
    plain[8] = 2
    for wrong in [named, plain] {
      let error = #expect(throws: SalvageError.self) { try RecoveryKit(bytes: wrong) }
      #expect(error?.kind == .kitUnreadable)
    }
  }

  @Test("Kits of a store push out none of the one that was there before, and each generation is due a kit of its own")
  func generationsAreKept() throws {
    let place = try TemporaryFolder()
    var kit = try RecoveryKit(of: try Self.makeStore(in: place, rows: 20))
    let kits = KitFolder(for: "Stores/App.sqlite", home: place.path)
    func add(_ day: Int64, _ generation: String?) throws {
      kit.date = Timestamp(secondsSince1970: 1_800_000_000 + day * 86400)
      kit.generation = generation
      try kits.add(kit)
    }
    for day in 0..<2 { try add(Int64(day), nil) }
    for day in 2..<7 { try add(Int64(day), "B") }
    // Two of one moment do not replace each other.
    try add(6, "C")
    let found = try kits.kits().map { (try RecoveryKit(contentsOf: $0.path).generation, $0.date.secondsSince1970) }
    #expect(found.map(\.0) == ["C", "B", "B", "B", nil, nil])
    #expect(found.map { ($0.1 - 1_800_000_000) / 86400 } == [6, 6, 5, 4, 1, 0])
    let now = Timestamp(secondsSince1970: 1_800_000_000 + 6 * 86400 + 60)
    #expect(try kits.hasKit(of: "C", youngerThan: .seconds(86400), at: now))
    #expect(try !kits.hasKit(of: "B", youngerThan: .seconds(86400), at: now))
    #expect(try !kits.hasKit(of: "C", youngerThan: .seconds(30), at: now))
  }
}
