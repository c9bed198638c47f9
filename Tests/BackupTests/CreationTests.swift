import Backup
import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Taking backups")
struct CreationTests {
  @Test(
    "A backup is the store, with what its log has, and nothing beside the store changes",
    arguments: ["wal", "delete"], [512, 4096, 65536])
  func full(mode: String, pageSize: Int) throws {
    let scene = try BackupScene(pageSize: pageSize, mode: mode, settings: "PRAGMA encoding = 'UTF-16le'")
    let queue = try DatabaseQueue(path: scene.store.string)
    try queue.writeWithoutTransaction { try $0.execute(sql: "UPDATE cars SET flags = 1 WHERE id % 3 = 0") }
    let before = try FolderContents(of: scene.folder.appending("Stores"))
    let backup = try scene.back(up: 0)
    #expect(try FolderContents(of: scene.folder.appending("Stores")) == before)
    try queue.close()
    #expect(backup.isWhole && backup.isProvenGood)
    #expect(backup.manifest?.kind == .full)
    #expect(backup.manifest?.database?.pageSize == pageSize)
    #expect(backup.manifest?.entities?.first { $0.name == "cars" }?.rows == 4000)
    let result = try scene.extract(backup.id, to: "Restored.sqlite")
    #expect(result.isWhole)
    #expect(
      try BackupScene.summary(of: scene.folder.appending("Restored.sqlite")) == BackupScene.summary(of: scene.store))
  }

  @Test("A store that a crash left with its log is backed up with it, and nothing is created")
  func crashed() throws {
    let scene = try BackupScene()
    let queue = try DatabaseQueue(path: scene.store.string)
    try queue.writeWithoutTransaction { try $0.execute(sql: "UPDATE cars SET flags = 1 WHERE id < 50") }
    for suffix in ["", "-wal"] {
      let bytes = try scene.bytes(scene.store.sibling(suffix: suffix))
      try scene.folder.write(bytes, to: "Crashed/App.sqlite\(suffix)")
    }
    try queue.close()
    let crashed = scene.folder.appending("Crashed/App.sqlite")
    let before = try FolderContents(of: crashed.folder)
    let backup = try scene.creator().create(crashed, in: scene.place)
    #expect(try FolderContents(of: crashed.folder) == before)
    _ = try scene.extract(backup.id, to: "Restored.sqlite")
    #expect(
      try BackupScene.summary(of: scene.folder.appending("Restored.sqlite")) == BackupScene.summary(of: scene.store))
  }

  @Test("Any gunzip opens a backup")
  func gunzip() throws {
    let scene = try BackupScene()
    let backup = try scene.back(up: 0)
    let file = scene.placePath.appending("\(backup.id).sqlite.gz")
    let restored = scene.folder.appending("Restored.sqlite").string
    let script = "gunzip < '\(file.string)' > '\(restored)' && sqlite3 '\(restored)' 'SELECT count(*) FROM cars'"
    let result = try ChildProcess.run("sh", ["-c", script])
    #expect(result.output == "4000\n", "\(result.errors)")
  }

  @Test("Few changes make a delta, many a full backup, and a chain has an end")
  func deltas() throws {
    let scene = try BackupScene(rows: 20_000)
    var states: [BackupIdentifier: String] = [:]
    var kinds: [BackupManifest.Kind] = []
    for round in 0..<6 {
      let backup = try scene.back(up: round) { $0.chainLimit = 4 }
      states[backup.id] = try BackupScene.summary(of: scene.store)
      kinds.append(try #require(backup.manifest).kind)
      #expect(backup.isProvenGood)
      switch round {
      case 0: try scene.run("UPDATE cars SET flags = flags + 1 WHERE id BETWEEN 100 AND 120")
      case 1: try scene.run("DELETE FROM cars WHERE id > 19900; UPDATE cars SET flags = 7 WHERE id = 5000")
      case 2: try scene.run("INSERT INTO cars SELECT id + 30000, 3, name FROM cars WHERE id < 100")
      case 3: try scene.run("UPDATE cars SET flags = 9 WHERE id = 1")
      default: try scene.run("UPDATE cars SET name = name || id")
      }
    }
    #expect(kinds == [.full, .delta, .delta, .delta, .full, .full])
    let catalog = try BackupCatalog(of: scene.place)
    #expect(catalog.backups.map { $0.manifest?.depth } == [1, 1, 4, 3, 2, 1])
    for (index, backup) in catalog.backups.enumerated() {
      let result = try scene.extract(backup.id, to: "Restored\(index).sqlite")
      #expect(result.isWhole)
      let summary = try BackupScene.summary(of: scene.folder.appending("Restored\(index).sqlite"))
      #expect(summary == states[backup.id])
      #expect(
        try BackupProver(surroundings: .still(), temporary: scene.folder.path).prove(backup.id, in: scene.place).result
          == .proven)
    }
    let base = try #require(catalog.backups.last)
    #expect(catalog.descendants(of: base.id).count == 3)
  }

  @Test("Two backups of one second have two names")
  func oneSecond() throws {
    let scene = try BackupScene(rows: 10)
    #expect(try scene.back(up: 0).id.description == "b-2026-11-21-10-00-12")
    #expect(try scene.back(up: 0).id.description == "b-2026-11-21-10-00-12-2")
    #expect(try BackupCatalog(of: scene.place).backups.allSatisfy(\.isWhole))
  }

  @Test("A damaged store is kept byte for byte, apart from the good backups")
  func evidence() throws {
    let scene = try BackupScene()
    let good = try scene.back(up: 0)
    var bytes = try scene.bytes(scene.store)
    for index in 0..<60 { bytes[index] = 0xff }
    try scene.folder.write(bytes, to: "Stores/App.sqlite")
    try scene.folder.write("an old log", to: "Stores/App.sqlite-wal")
    let backup = try scene.back(up: 1)
    #expect(backup.isWhole && backup.isApart && !backup.isProvenGood)
    #expect(backup.manifest?.kind == .evidence && backup.manifest?.check.isSound == false)
    let extraction = try BackupExtraction(backup.id, in: BackupCatalog(of: scene.place), fileSystem: FileSystem())
    let target = StoreFileSet(main: scene.folder.appending("Evidence.sqlite"))
    #expect(try extraction.writeEvidence(to: target).isWhole)
    #expect(try scene.bytes(target.main) == bytes)
    #expect(try scene.bytes(target.path(of: .wal)) == Array("an old log".utf8))
    #expect(try BackupCatalog(of: scene.place).backup(good.id).isProvenGood)
    // The next good one builds on the good one, not on evidence.
    try scene.folder.write([UInt8](), to: "Stores/App.sqlite-wal")
    for suffix in ["", "-wal", "-shm"] { try FileSystem().unlink(scene.store.sibling(suffix: suffix)) }
    _ = try scene.extract(good.id, to: "Stores/App.sqlite")
    #expect(try scene.back(up: 2).manifest?.parent == good.id)
  }

  @Test("Nothing, folders and senseless requests are refused", arguments: [3, 0, 12])
  func refusals(level: Int) throws {
    let scene = try BackupScene(rows: 10)
    #expect(throws: BackupError.self) { try scene.back(up: 0) { $0.level = level } }
    #expect(throws: BackupError.self) { try scene.back(up: 0) { $0.tags = ["two words"] } }
    do {
      _ = try scene.creator().create(scene.folder.appending("None.sqlite"), in: scene.place)
      Issue.record("there is no such store")
    } catch {
      #expect(BackupError(any: error).kind == .nothingToBackUp)
    }
  }

  @Test("A store whose log has not been written to yet is backed up at once")
  func emptyLog() throws {
    let scene = try BackupScene(rows: 100)
    let queue = try DatabaseQueue(path: scene.store.string)
    try queue.inDatabase { database in
      // Has the index made anew, and begins a transaction that is not part of the store yet.
      try database.execute(sql: "BEGIN IMMEDIATE; UPDATE cars SET flags = 5 WHERE id = 1")
      let start = ContinuousClock.now
      let backup = try scene.back(up: 0)
      #expect(backup.isProvenGood)
      #expect(ContinuousClock.now - start < .seconds(9))
      try database.execute(sql: "COMMIT")
    }
    try queue.close()
    _ = try scene.extract(BackupIdentifier(date: #require(Timestamp("2026-11-21T10:00:12Z"))), to: "Restored.sqlite")
    #expect(try BackupScene.summary(of: scene.folder.appending("Restored.sqlite")).hasPrefix("ok 100 0 "))
  }

  @Test("A connection of this process keeps its locks")
  func ownLocks() throws {
    let scene = try BackupScene(mode: "delete")
    let queue = try DatabaseQueue(path: scene.store.string)
    try queue.inDatabase { database in
      try database.execute(sql: "BEGIN IMMEDIATE; UPDATE cars SET flags = 5 WHERE id = 1")
      let backup = try scene.back(up: 0)
      #expect(backup.isProvenGood)
      let other = try ChildProcess.run("sqlite3", [scene.store.string, "BEGIN IMMEDIATE; ROLLBACK"])
      #expect(other.status != 0 && other.errors.contains("locked"))
      try database.execute(sql: "COMMIT")
    }
    try queue.close()
    _ = try scene.extract(BackupIdentifier(date: #require(Timestamp("2026-11-21T10:00:12Z"))), to: "Restored.sqlite")
    #expect(try BackupScene.summary(of: scene.folder.appending("Restored.sqlite")).hasPrefix("ok 4000 0 "))
  }

  @Test("A page that changed is in the next backup, also where sums of its bytes stayed the same")
  func equalSums() throws {
    // The polynomial of CRC-32 as bytes: where it is added changes nothing of the remainder, and where it is moved
    // nothing of the sums of Adler-32.
    var pattern: [UInt8] = [1, 0, 0, 0, 0]
    for bit in 1...32 where (0x04c1_1db7 as UInt32) >> UInt32(32 - bit) & 1 == 1 {
      pattern[bit / 8] |= 1 << UInt8(bit % 8)
    }
    func value(_ places: Int...) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: 600)
      for place in places { bytes.replaceSubrange(place..<(place + 5), with: pattern) }
      return bytes
    }
    let (one, other) = (value(150, 300), value(50, 400))
    #expect(
      Deflate.crc32(one[...]) == Deflate.crc32(other[...]) && Deflate.adler32(one[...]) == Deflate.adler32(other[...]))
    let scene = try BackupScene(mode: "delete")
    func hexadecimal(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }
    try scene.run("CREATE TABLE crafted (b); INSERT INTO crafted VALUES (x'\(hexadecimal(one))')")
    try scene.back(up: 0)
    try scene.run("UPDATE crafted SET b = x'\(hexadecimal(other))'")
    #expect(try scene.back(up: 1).manifest?.kind == .delta)
    try scene.run("UPDATE cars SET flags = 1 WHERE id = 7")
    let last = try scene.back(up: 2)
    #expect(try scene.extract(last.id, to: "Restored.sqlite").isDigestRight)
    let queue = try DatabaseQueue(path: scene.folder.appending("Restored.sqlite").string)
    #expect(
      try queue.read { try String.fetchOne($0, sql: "SELECT hex(b) FROM crafted") } == hexadecimal(other).uppercased())
    try queue.close()
  }
}
