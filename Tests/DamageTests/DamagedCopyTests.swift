import GRDB
import LazaretTesting
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Damage done to copies, kind by kind.
struct DamagedCopyTests {
  /// A store with everything that some kind damages: trees of two levels, long values, free pages, pointer maps, a log.
  static func makeStore(_ folder: TemporaryFolder, log: Bool = true, journal: Bool = false) throws -> FilePath {
    let path = folder.appending("Store.sqlite")
    let system = FileSystem()
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let queue = try DatabaseQueue(path: path.string, configuration: configuration)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          PRAGMA page_size = 1024; PRAGMA auto_vacuum = 2; PRAGMA journal_mode = DELETE;
          CREATE TABLE cars (id INTEGER PRIMARY KEY, name TEXT, image BLOB); CREATE INDEX byName ON cars (name);
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
          INSERT INTO cars SELECT i, 'car ' || i, zeroblob(CASE WHEN i % 50 = 0 THEN 5000 ELSE 20 END) FROM n;
          DELETE FROM cars WHERE id BETWEEN 300 AND 400
          """)
      if log {
        try database.execute(
          sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; UPDATE cars SET name = 'new ' || id")
      }
      if journal {
        try database.execute(
          sql: "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; UPDATE cars SET name = 'x' || id")
      }
    }
    let files = StoreFileSet(main: path)
    let kept = try files.members(in: system).filter { $0.part != .sharedMemory }
      .map { ($0.path, try system.contents(of: $0.path, limit: 1 << 24)) }
    if journal { try queue.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") } }
    try queue.close()
    for (path, bytes) in kept { try system.writeAtomically(bytes, to: path, replacing: true) }
    return path
  }

  static func contents(_ main: FilePath) throws -> [StoreFileSet.Part: [UInt8]] {
    var result: [StoreFileSet.Part: [UInt8]] = [:]
    for member in try StoreFileSet(main: main).members(in: FileSystem()) {
      result[member.part] = try FileSystem().contents(of: member.path, limit: 1 << 24)
    }
    return result
  }

  @Test(arguments: DamageKind.Name.allCases.filter { $0 != .drift })
  func everyKindDamagesWhatItSaysAndNothingElse(name: DamageKind.Name) throws {
    let folder = try TemporaryFolder()
    let isJournal = [.journalMissing, .journalHeader, .journalShape].contains(name)
    let store = try Self.makeStore(folder, log: !isJournal, journal: isJournal)
    let before = try FolderContents(of: folder.path)
    let original = try Self.contents(store)
    let out = try TemporaryFolder()
    let kind = try DamageKind(name.rawValue)
    let made = try DamagedCopy.make(of: store, at: out.appending("A.sqlite"), kinds: [kind], seed: 3)
    _ = try DamagedCopy.make(of: store, at: out.appending("B.sqlite"), kinds: [kind], seed: 3)
    #expect(try FolderContents(of: folder.path) == before)
    let damaged = try Self.contents(out.appending("A.sqlite"))
    #expect(try Self.contents(out.appending("B.sqlite")) == damaged, "the same seed gives the same bytes")
    #expect((damaged == original) == (name == .none))
    #expect(made.placeCount == made.places.count && (made.placeCount > 0) == (name != .none))
    guard name != .prefix, name != .embedded else {
      #expect(damaged[.main]?.count == (original[.main]?.count ?? 0) + 10000 + (name == .embedded ? 65536 : 0))
      return
    }
    for (part, bytes) in original {
      let changed = damaged[part] ?? []
      for index in bytes.indices where index >= changed.count || changed[index] != bytes[index] {
        let isTold = made.places.contains {
          $0.part == part && ($0.offset..<($0.offset + $0.length)).contains(Int64(index))
        }
        #expect(isTold, "byte \(index) of \(part)")
        if !isTold { return }
      }
    }
  }

  @Test func largeValuesComeAlongAsTheyAre() throws {
    let folder = try TemporaryFolder()
    let store = try Self.makeStore(folder, log: false)
    let name = "0F0E0D0C-0B0A-4908-8706-050403020100"
    try folder.write([UInt8](repeating: 7, count: 9000), to: ".Store_SUPPORT/_EXTERNAL_DATA/\(name)")
    let before = try FolderContents(of: folder.path)
    let out = try TemporaryFolder()
    _ = try DamagedCopy.make(
      of: store, at: out.appending("Copy.sqlite"), kinds: [try DamageKind("zero:10")], seed: 3)
    let copy = out.appending(".Copy_SUPPORT/_EXTERNAL_DATA/\(name)")
    #expect(try FileSystem().contents(of: copy, limit: 1 << 20) == [UInt8](repeating: 7, count: 9000))
    #expect(try FolderContents(of: folder.path) == before)
    // Of a copy that could not be made nothing is left.
    let failed = out.appending("None.sqlite")
    #expect(throws: (any Error).self) {
      try DamagedCopy.make(of: store, at: failed, kinds: [try DamageKind("wal-header")], seed: 1)
    }
    #expect(try FileSystem().status(of: out.appending(".None_SUPPORT")) == nil)
  }

  @Test func anotherSeedDamagesOtherPlaces() throws {
    let folder = try TemporaryFolder()
    let store = try Self.makeStore(folder)
    let places = try (1...3).map { seed in
      let kind = try DamageKind("zero:10")
      let copy = folder.appending("\(seed).sqlite")
      return try DamagedCopy.make(of: store, at: copy, kinds: [kind], seed: UInt64(seed)).places.map(\.page)
    }
    #expect(Set(places).count == 3)
    #expect(Set(places.map(\.count)).count == 1)
    #expect(places.allSatisfy { !$0.contains(1) && Set($0).count == $0.count })
  }

  @Test func severalKindsFollowEachOther() throws {
    let folder = try TemporaryFolder()
    let store = try Self.makeStore(folder)
    let kinds = try ["prefix:512", "header:zero", "wal-missing"].map(DamageKind.init)
    let copy = folder.appending("Copy.sqlite")
    _ = try DamagedCopy.make(of: store, at: copy, kinds: kinds, seed: 1)
    let (original, damaged) = (try Self.contents(store), try Self.contents(copy))
    #expect(damaged[.wal] == nil)
    let main = try #require(damaged[.main])
    #expect(Array(main[512..<612]) == [UInt8](repeating: 0, count: 100))
    #expect(main[612...].elementsEqual(try #require(original[.main])[100...]))
  }

  @Test(arguments: ["header:zero", "page1:rand", "zero:20", "roots", "trunc:30", "text", "empty"])
  func theExaminerSeesIt(kind: String) throws {
    let folder = try TemporaryFolder()
    let store = try Self.makeStore(folder, log: false)
    let copy = folder.appending("Copy.sqlite")
    _ = try DamagedCopy.make(of: store, at: copy, kinds: [try DamageKind(kind)], seed: 5)
    let examiner = Examiner()
    #expect(try examiner.examine(store, options: .init(depth: .full)).verdict == .compatible)
    #expect(try examiner.examine(copy, options: .init(depth: .full)).verdict == .damaged)
  }

  @Test(arguments: ["", "zero:0", "zero:101", "zero:x", "roots:3", "header:blue", "fire", "zero:nan", "prefix:1e12"])
  func whatIsNoKindIsAnError(text: String) {
    let error = #expect(throws: PersistentStoreError.self) { try DamageKind(text) }
    #expect(error?.code == "unknown-damage")
  }

  @Test func whatIsNotThereCannotBeDamaged() throws {
    let folder = try TemporaryFolder()
    let store = try Self.makeStore(folder, log: false)
    let copy = folder.appending("Copy.sqlite")
    for kind in ["wal-header", "journal-missing"] {
      #expect(throws: (any Error).self) {
        try DamagedCopy.make(of: store, at: copy, kinds: [try DamageKind(kind)], seed: 1)
      }
      #expect(try Self.contents(copy).isEmpty, "nothing is left of a copy that could not be made")
    }
    let taken = #expect(throws: PersistentStoreError.self) {
      try DamagedCopy.make(of: store, at: store, kinds: [try DamageKind("roots")], seed: 1)
    }
    #expect(taken?.code == "place-taken")
    let missing = #expect(throws: FileError.self) {
      try DamagedCopy.make(of: folder.appending("None"), at: copy, kinds: [], seed: 1)
    }
    #expect(missing?.kind == .notFound)
  }

  @Test func kindsAreWrittenAsTheyAreRead() throws {
    for name in DamageKind.Name.allCases {
      let kind = try DamageKind(name.rawValue)
      #expect(try DamageKind(kind.description) == kind)
      #expect(!name.words.isEmpty && name.usage.hasPrefix(name.rawValue))
    }
  }
}
