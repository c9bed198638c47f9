import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

/// Files that are no store, on the command line, and stores with names as long as file systems allow.
struct NoStoreCommandTests {
  let desk: Desk

  init() throws { desk = try Desk() }

  private var text: String { String(repeating: "# A text of a stranger\n", count: 300) }

  private func content(_ path: String) throws -> [UInt8] {
    try FileSystem().contents(of: desk.folder.appending(path), limit: 1 << 20)
  }

  @Test func aTextIsRefusedByEveryVerbThatWouldReplaceOrReadIt() throws {
    try desk.folder.write(text, to: "README.md")
    let verbs = [
      ["open", "README.md", "--model", desk.model], ["quarantine", "add", "README.md"],
      ["salvage", "README.md", "-o", "Out.sqlite"], ["backup", "create", "README.md"],
      ["migrate", "README.md", "--model", desk.model],
    ]
    for verb in verbs {
      let result = try desk.run(verb)
      #expect(result.status == 1, "\(verb): \(result.errors)")
      #expect(result.errors.contains("[not-a-store]"), "\(result.errors)")
      #expect(result.errors.contains("a text file"), "\(result.errors)")
      #expect(try content("README.md") == Array(text.utf8))
    }
    let names = try FileSystem().entries(of: desk.folder.path).map(\.string)
    #expect(!names.contains("Incompatible") && !names.contains("Backups") && !names.contains("Out.sqlite"))
  }

  @Test func nothingIsWrittenUnderTheNameOfAPartOfAStore() throws {
    let queue = try DatabaseQueue(path: desk.folder.appending("Plain.sqlite").string)
    try queue.write { try $0.execute(sql: "CREATE TABLE t (a); INSERT INTO t VALUES (1)") }
    try queue.close()
    #expect(try desk.run(["backup", "create", "Plain.sqlite"]).status == 0)
    let before = try FolderContents(of: desk.folder.path)
    for ending in ["-wal", "-shm", "-journal", "-WAL"] {
      let name = "Plain.sqlite\(ending)"
      for verb in [
        ["salvage", "Plain.sqlite", "-o", name], ["damage", "Plain.sqlite", "-o", name, "--kind", "zero:1"],
        ["export", "Plain.sqlite", "-o", name, "--yes"], ["kit", "create", "Plain.sqlite", "-o", name],
        ["migrate", "Plain.sqlite", "--model", desk.model, "--output", name],
        ["model", "export", desk.model, "-o", name], ["bundle", "unpack", "Plain.sqlite", "-o", name],
        ["backup", "restore", "--of", "Plain.sqlite", "--to", name],
      ] {
        let result = try desk.run(verb)
        #expect(result.status == 64 && result.errors.contains("part of the store"), "\(verb): \(result.errors)")
      }
    }
    #expect(try FolderContents(of: desk.folder.path) == before)
  }

  @Test func aTextIsReplacedWhereThatIsSaid() throws {
    try desk.folder.write(text, to: "README.md")
    let opened = try desk.lazaret("open", "README.md", "--model", desk.model, "--replace-foreign")
    #expect(opened.status == 2, "\(opened.errors)")
    #expect(try content("README.md").starts(with: "SQLite format 3".utf8))
    try desk.folder.write(text, to: "Notes.txt")
    let added = try desk.lazaret("quarantine", "add", "Notes.txt", "--replace-foreign")
    #expect(added.status == 0, "\(added.errors)")
    #expect(try FileSystem().status(of: desk.folder.appending("Notes.txt")) == nil)
  }

  @Test func anEncryptedFileIsUnavailable() throws {
    var generator = SeededGenerator(seed: 3)
    let noise = (0..<200_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
    try desk.folder.write(noise, to: "Stores/App.sqlite")
    for verb in [
      ["inspect", desk.store, "--json"], ["open", desk.store, "--model", desk.model, "--json"],
      ["open", desk.store, "--model", desk.model, "--json", "--replace-foreign"],
      ["salvage", desk.store, "-o", "Out.sqlite", "--json"], ["migrate", desk.store, "--model", desk.model, "--json"],
    ] {
      let result = try desk.run(verb)
      #expect(result.status == 3, "\(verb): \(result.errors)")
      #expect((result.output + result.errors).contains("encrypted-or-random"))
      #expect((result.output + result.errors).contains("SQLCipher"))
      #expect(try content("Stores/App.sqlite") == noise)
    }
    #expect(try FileSystem().entries(of: desk.stores).map(\.string) == ["App.sqlite"])
  }

  /// No page of these was looked at, and nothing is said of their health but what is known.
  @Test func nothingIsSaidOfPagesThatWereNotLookedAt() throws {
    var generator = SeededGenerator(seed: 4)
    try desk.folder.write((0..<200_000).map { _ in UInt8.random(in: 0...255, using: &generator) }, to: "Noise.sqlite")
    try desk.folder.write([UInt8](), to: "Empty.sqlite")
    try desk.makeStore()
    for (path, check, damaged) in [
      ("Noise.sqlite", nil as String?, nil as Bool?), ("None.sqlite", nil, nil), ("Empty.sqlite", nil, true),
      (desk.store, "full", false),
    ] {
      let printed = try json(try desk.lazaret("inspect", path, "--json").output) as? [String: Any]
      let health = try #require(printed?["health"] as? [String: Any])
      #expect(health["check"] as? String == check && health["damaged"] as? Bool == damaged, "\(path): \(health)")
      #expect(health["check"] != nil && health["damaged"] != nil, "\(path): the keys are there")
    }
  }

  @Test func aFolderIsAUsageErrorForEveryVerb() throws {
    for verb in [
      ["open", "Stores", "--model", desk.model], ["inspect", "Stores"], ["quarantine", "add", "Stores"],
      ["salvage", "Stores", "-o", "Out.sqlite"], ["backup", "create", "Stores"], ["backup", "list", "Stores"],
      ["migrate", "Stores", "--model", desk.model], ["plan", "Stores", "--model", desk.model],
      ["export", "Stores", "-o", "Out.tar.gz"], ["kit", "create", "Stores", "-o", "Out.kit"],
      ["damage", "Stores", "-o", "Out.sqlite", "--kind", "zero:5", "--seed", "1"],
    ] {
      let result = try desk.run(verb)
      #expect(result.status == 64, "\(verb): \(result.status) \(result.errors)")
    }
  }

  @Test func whatIsInTheLogOfAMissingMainFileIsSalvaged() throws {
    let elsewhere = try TemporaryFolder()
    let queue = try DatabaseQueue(path: elsewhere.appending("x").string)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA journal_mode = WAL; CREATE TABLE cars (id INTEGER PRIMARY KEY, name TEXT)")
      for number in 1...40 {
        try db.execute(sql: "INSERT INTO cars VALUES (?, ?)", arguments: [number, "car \(number)"])
      }
      let log = try FileSystem().contents(of: elsewhere.appending("x-wal"), limit: 1 << 24)
      try desk.folder.write(log, to: "Stores/App.sqlite-wal")
    }
    let inspected = try desk.lazaret("inspect", desk.store)
    #expect(inspected.status == 2)
    #expect(inspected.output.contains("main file is missing"), "\(inspected.output)")
    let opened = try desk.lazaret("open", desk.store, "--model", "Cars.sql", "--json")
    #expect([0, 2].contains(opened.status), "\(opened.errors)")
    #expect(opened.output.contains("main-file-missing"))
    let salvaged = try DatabaseQueue(path: desk.store)
    let names = try salvaged.read { try String.fetchAll($0, sql: "SELECT name FROM cars ORDER BY id") }
    #expect(names == (1...40).map { "car \($0)" })
  }

  @Test(arguments: [240, 247, 251, 252, 255])
  func namesAsLongAsFileSystemsAllow(length: Int) throws {
    let name = String(repeating: "n", count: length - 7) + ".sqlite"
    try desk.makeStore()
    try desk.folder.write(try content("Stores/App.sqlite"), to: "Long/\(name)")
    let store = desk.folder.appending("Long/\(name)").string
    #expect(try desk.lazaret("inspect", store, "--model", desk.model).status == 0)
    let salvaged = try desk.lazaret("salvage", store, "-o", "Out-\(length).sqlite")
    #expect(salvaged.status == 0, "\(salvaged.errors)")
    let backedUp = try desk.lazaret("backup", "create", store)
    #expect(backedUp.status == 0, "\(backedUp.errors)")
    let opened = try desk.lazaret("open", store, "--model", desk.model)
    #expect(opened.status == (length > 251 ? 1 : 0), "\(opened.errors)")
    #expect(opened.errors.contains("[name-too-long]") == (length > 251))
    let added = try desk.lazaret("quarantine", "add", store)
    #expect(added.status == 0, "\(added.errors)")
    #expect(try FileSystem().status(of: FilePath(store)) == nil)
  }
}
