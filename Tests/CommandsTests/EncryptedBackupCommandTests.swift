import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

/// Encrypted backups on the command line: what is told without a key, and salvaging with one.
struct EncryptedBackupCommandTests {
  private func backups(_ json: String) throws -> [[String: Any]] {
    let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
    return try #require(object?["backups"] as? [[String: Any]])
  }

  private func backUp(_ desk: Desk, _ store: String) throws -> String {
    if try FileSystem().status(of: desk.folder.appending("owner.key")) == nil {
      #expect(try desk.lazaret("key", "new", "-o", "owner.key").status == 0)
    }
    let created = try desk.lazaret("backup", "create", store, "--encrypt-to", "owner.key", "--json")
    #expect(created.status == 0, "\(created.errors)")
    return try #require(try backups(desk.lazaret("backup", "list", "--json").output).first?["id"] as? String)
  }

  @Test func whereThePlaceAloneIsKnownOnlyTheHolderOfTheKeyLearnsOfTheStore() throws {
    let desk = try Desk()
    let id = try backUp(desk, try desk.makeOldStore("Kundenakten.sqlite"))
    try FileSystem().makeDirectory(desk.folder.appending("Elsewhere"))
    _ = try ChildProcess.run("cp", ["-r", "Backups", "Elsewhere/Backups"], in: desk.folder.path)
    for verb in [
      ["list"], ["list", "--json"], ["verify", "--quick"], ["verify", id, "--json"],
      ["restore", id, "--to", "R.sqlite"],
    ] {
      let told = try desk.run(["backup"] + verb + ["--home", "Elsewhere"])
      #expect(told.status == (verb[0] == "restore" ? 1 : 0), "\(verb) \(told.errors)")
      for word in ["Kundenakten", "ZCAR", "Car", "Stores/"] {
        #expect(!(told.output + told.errors).contains(word), "\(verb): \(word)")
      }
    }
    let locked = try #require(try backups(desk.lazaret("backup", "list", "--home", "Elsewhere", "--json").output).first)
    #expect(locked["locked"] as? Bool == true && locked["path"] == nil && locked["entities"] == nil)
    let listed = try desk.lazaret("backup", "list", "--home", "Elsewhere", "--identity", "owner.key", "--json")
    let open = try #require(try backups(listed.output).first)
    #expect((open["path"] as? String)?.hasSuffix("Stores/Kundenakten.sqlite") == true, "\(listed.output)")
    #expect(open["locked"] == nil && listed.output.contains("Car"))
    let restored = try desk.lazaret(
      "backup", "restore", id, "--home", "Elsewhere", "--identity", "owner.key", "--to", "Restored.sqlite")
    #expect(restored.status == 0, "\(restored.errors)")
  }

  @Test(arguments: ["Backups", "BackupKeys"]) func aStoreMayHaveTheNameOfAFolderOfTheHome(name: String) throws {
    let desk = try Desk()
    #expect(try desk.lazaret("key", "new", "-o", "owner.key").status == 0)
    for store in [name, "App.sqlite"] {
      let path = desk.folder.appending(store).string
      _ = try ChildProcess.run("sqlite3", [path, "CREATE TABLE t (x); INSERT INTO t VALUES ('\(store)')"])
      let created = try desk.lazaret("backup", "create", path, "--encrypt-to", "owner.key")
      #expect(created.status == 0, "\(created.errors)")
      _ = try ChildProcess.run("sqlite3", [path, "UPDATE t SET x = x || '!'"])
      #expect(try desk.lazaret("backup", "create", path, "--encrypt-to", "owner.key").status == 0)
      let restored = try desk.lazaret(
        "backup", "restore", "--of", path, "--identity", "owner.key", "--to", "R-\(store)")
      #expect(restored.status == 0, "\(restored.errors)")
      let found = try ChildProcess.run("sqlite3", [desk.folder.appending("R-\(store)").string, "SELECT x FROM t"])
      #expect(found.output == "\(store)!\n")
    }
  }

  @Test(arguments: ["id", "latest", "file"]) func aSalvageTakesRowsFromItWithTheKey(source: String) throws {
    let desk = try Desk()
    let store = try desk.makeOldStore("Kundenakten.sqlite")
    let id = try backUp(desk, store)
    let folder = try #require(try FileSystem().entries(of: desk.folder.appending("Backups")).first)
    let file = desk.folder.appending("Backups").appending(folder).appending("\(id).sqlite.gz.age").string
    let name = ["id": id, "latest": "latest", "file": file][source] ?? id
    let path = FilePath(store)
    var bytes = try FileSystem().contents(of: path, limit: 1 << 28)
    // All but the first page is gone, and with it the tables.
    for index in 4096..<bytes.count { bytes[index] = 0 }
    try FileSystem().writeAtomically(bytes, to: path, replacing: true)
    var arguments = ["salvage", store, "--model", desk.model, "-o", "Rescued.sqlite", "--with-backup", name]
    // Of a file nothing says that it is of a store whose metadata is lost.
    if source == "file" { arguments.append("--trust-backup") }
    let refused = try desk.run(arguments + ["--json"])
    #expect(refused.status != 0 && refused.status != 2, "\(refused.output)")
    #expect(refused.errors.contains("backup-encrypted") && refused.errors.contains("--identity"), "\(refused.errors)")
    #expect(try FileSystem().status(of: desk.folder.appending("Rescued.sqlite")) == nil)
    let salvaged = try desk.run(arguments + ["--identity", "owner.key"])
    #expect(salvaged.status == 2, "\(salvaged.output)\(salvaged.errors)")
    let rows = try ChildProcess.run("sqlite3", ["Rescued.sqlite", "SELECT ZNAME FROM ZCAR"], in: desk.folder.path)
    #expect(rows.output == "one\n", "\(salvaged.output)")
  }

  @Test func anEncryptedFileOfNoPlaceIsReadWithTheKey() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore("Kundenakten.sqlite")
    let id = try backUp(desk, store)
    let folder = try #require(try FileSystem().entries(of: desk.folder.appending("Backups")).first)
    let file = desk.folder.appending("Backups").appending(folder).appending("\(id).sqlite.gz.age")
    try FileSystem().duplicate(file, to: desk.folder.appending("sent.age"))
    for (options, isOpen) in [([String](), false), (["--identity", "owner.key"], true)] {
      let salvaged = try desk.run(
        ["salvage", store, "--model", desk.model, "-o", "Rescued.sqlite", "--with-backup", "sent.age", "--json"]
          + options)
      #expect(salvaged.errors.contains("backup-encrypted") == !isOpen, "\(salvaged.errors)")
      #expect((salvaged.status == 0) == isOpen, "\(salvaged.errors)")
    }
  }
}
