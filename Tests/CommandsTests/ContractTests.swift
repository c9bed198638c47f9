import Foundation
import HTTPServer
import Platform
import SystemPackage
import TestSupport
import Testing

/// The JSON of every verb against `Documentation/CLI_JSON_OUTPUT.md`.
struct ContractTests {
  /// Every verb's JSON, on output or errors, by a name for messages.
  private func printed() throws -> [(name: String, value: Any)] {
    let desk = try Desk()
    var result: [(String, Any)] = []
    func keep(_ name: String, _ text: String) throws { result.append((name, try json(text))) }
    func output(_ arguments: String...) throws {
      try keep(arguments.joined(separator: " "), desk.run(arguments + ["--json"]).output)
    }
    func errors(_ arguments: String...) throws {
      try keep(arguments.joined(separator: " "), desk.run(arguments + ["--json"]).errors)
    }
    try output("open", desk.store, "--model", desk.model)
    try desk.makeStore("Stores/Old.sqlite", model: "Old.xcdatamodel")
    try output("open", "Stores/Old.sqlite", "--model", desk.model)
    try output("inspect", desk.store, "--model", desk.model)
    try output("inspect", desk.store, "--check", "full")
    try output("salvage", desk.store, "--model", desk.model, "--raw", "-o", "Rescued.sqlite")
    try output("salvage", try desk.makeOldStore(), "--model", desk.model, "-o", "Rebuilt.sqlite")
    try desk.makeDamagedStore()
    try output("inspect", desk.store)
    try output("open", desk.store, "--model", desk.model)
    let sound = try desk.makeOldStore()
    try output("kit", "create", sound, "-o", "App.kit")
    try output("kit", "show", "App.kit")
    try output("salvage", sound, "--raw", "--kit", "App.kit", "-o", "WithKit.sqlite")
    try errors("kit", "show", sound)
    try output("backup", "create", desk.store, "--tag", "nightly")
    try output("backup", "create", try desk.makeOldStore(), "--home", "Sound")
    try output("backup", "list")
    try output("backup", "verify")
    try errors("backup", "verify", "2001-01-01-00-00-00")
    try output("model", "show", desk.model, "--all")
    try output("model", "hashes", desk.model)
    try output("plan", try desk.makeOldStore(), "--model", desk.model)
    try output("plan", try desk.makeOldStore(), "--model", try desk.makeRefusedModel())
    try output("repair", try desk.makeOldStore(), "--model", desk.model, "--dry-run")
    try output("migrate", try desk.makeOldStore(), "--model", desk.model)
    let original = try desk.noteRemovedRecords(of: "Stores/Old.sqlite")
    try output("backup", "list")
    try output("backup", "prune", "--keep-last", "1", "--dry-run")
    try output("backup", "release", original, "--of", "Old")
    try output("backup", "release", original, "--of", "Old")
    try errors("backup", "release", "2001-01-01-00-00-00")
    try output("damage", "--list")
    try output("damage", try desk.makeOldStore(), "-o", "Broken.sqlite", "--kind", "zero:50", "--seed", "7")
    try output("model", "verify", desk.model, "--rows", "3")
    try output("inbox", "token", "new", "Garage 2")
    try output("inbox", "token", "revoke", "Garage 2")
    try output("inbox", "token", "list")
    try output("inbox", "prune", "--keep-days", "1")
    try output("inbox", "removed")
    try errors("inbox", "token", "new", "Garage 2")
    try output("licences", "--list")
    try output("quarantine", "list")
    let id = try desk.quarantinedID()
    try output("quarantine", "show", id)
    try errors("quarantine", "release", id)
    try output("quarantine", "release", id, "--replace")
    try errors("quarantine", "show", id)
    try errors("open", "Stores", "--model", desk.model)
    try errors("fly")
    try output("quarantine", "add", desk.store)
    try output("quarantine", "discard", try desk.quarantinedID(), "--yes")
    let broken = try desk.makeBrokenStore()
    try output("open", broken, "--model", desk.model, "--on-damage", "later")
    let other = try desk.quarantinedID()
    try output("quarantine", "salvage", other, "--model", desk.model, "--install")
    try output("quarantine", "show", other)
    try output("open", try desk.makeBrokenStore("Second.sqlite"), "--model", desk.model)
    try desk.makeDamagedStore("Nothing.sqlite")
    try output("quarantine", "add", "Stores/Nothing.sqlite")
    try errors("quarantine", "salvage", try desk.quarantinedID())
    try output("key", "new", "-o", "support.key")
    try output("key", "public", "support.key")
    try output("export", sound, "--model", desk.model, "--dry-run")
    try output("export", sound, "-o", "Report.tar.gz.age", "--encrypt-to", "support.key", "--yes")
    try output("export", try desk.quarantinedID(), "--level", "facts", "-o", "Facts.tar.gz", "--yes")
    try errors("export", sound, "-o", "Never.tar.gz")
    try output("bundle", "check", "Report.tar.gz.age", "--identity", "support.key")
    try output("bundle", "unpack", "Facts.tar.gz", "-o", "Facts")
    try errors("bundle", "check", "Report.tar.gz.age")
    try output("backup", "restore", "--home", "Sound", "--preview")
    try output("backup", "restore", "--home", "Sound", "--to", "Back.sqlite")
    try output("backup", "restore", "--home", "Sound", "--entity", "Car", "--records", "1,77", "--to", "Cars.sqlite")
    try output("backup", "restore", "--home", "Sound")
    try errors("backup", "restore", "--home", "Sound", "--to", "Back.sqlite")
    try output("backup", "prune", "--home", "Sound", "--keep-tag", "none", "--dry-run")
    try output("backup", "prune", "--home", "Sound", "--keep-tag", "none")
    try output("backup", "undelete", "--home", "Sound")
    try sending(desk, output, errors)
    return result
  }

  private func sending(
    _ desk: Desk, _ output: (String...) throws -> Void, _ errors: (String...) throws -> Void
  ) throws {
    let server = try Server { _ in Response(Status(rawValue: 201)) }
    let place = "http://127.0.0.1:\(server.port)"
    let bundle = try desk.makeBundle()
    try desk.folder.write("token", to: "token")
    try output(
      "send", bundle, "--to", "\(place)/a", "--put", "--token-file", "token", "--yes")
    try output("send", bundle, "--to", "\(place)/b?key=1", "--put", "--yes", "--no-send")
    try output("outbox", "list")
    try output("outbox", "send")
    let entries = try json(try desk.lazaret("outbox", "list", "--json").output) as? [String: Any]
    let waiting = (entries?["entries"] as? [[String: Any]])?.first { $0["state"] as? String == "waiting" }
    let id = try #require(waiting?["id"] as? String)
    try output("outbox", "retry", id, "--to", "\(place)/b?key=1")
    try output("send", bundle, "--to", "https://support.example.com/", "--yes", "--no-send")
    let other = try json(try desk.lazaret("outbox", "list", "--json").output) as? [String: Any]
    let third = (other?["entries"] as? [[String: Any]])?.first { $0["state"] as? String == "waiting" }
    try output("outbox", "cancel", try #require(third?["id"] as? String))
    try errors("outbox", "cancel", "1970")
    try output("outbox", "prune")
  }

  /// Keys that are names out of a model and not the contract's.
  private static let names: Set<String> = ["Car"]

  @Test func everyKeyIsDocumented() throws {
    let path = RealMaterial.projectRoot.appending("Documentation/CLI_JSON_OUTPUT.md")
    let document = String(decoding: try FileSystem().contents(of: path, limit: 1 << 20), as: UTF8.self)
    for (name, value) in try printed() {
      for key in keys(of: value).subtracting(Self.names).sorted() {
        #expect(document.contains("`\(key)`") || document.contains("\"\(key)\""), "\(key) of \(name)")
      }
    }
  }

  @Test func theExamplesOfTheDocumentAreJSON() throws {
    let path = RealMaterial.projectRoot.appending("Documentation/CLI_JSON_OUTPUT.md")
    let document = String(decoding: try FileSystem().contents(of: path, limit: 1 << 20), as: UTF8.self)
    let blocks = document.components(separatedBy: "```json\n").dropFirst().map {
      $0.components(separatedBy: "\n```").first ?? ""
    }
    #expect(blocks.count >= 9)
    for block in blocks { #expect(throws: Never.self, "\(block)") { try json(block) } }
  }

  @Test func theContractsKeysAreThere() throws {
    let desk = try Desk()
    let opened = try #require(
      try json(try desk.lazaret("open", desk.store, "--model", desk.model, "--json").output) as? [String: Any])
    #expect(opened["verdict"] as? String == "missing")
    #expect(opened["store"] as? String == desk.store)
    let events = try #require(opened["events"] as? [[String: Any]])
    #expect(events.map { $0["kind"] as? String } == ["create"])
    let inspected = try #require(
      try json(try desk.lazaret("inspect", desk.store, "--model", desk.model, "--json").output) as? [String: Any])
    #expect(inspected["verdict"] as? String == "compatible")
    #expect(inspected["kind"] as? String == "core-data")
    #expect(inspected["modelVersion"] as? String == "V2")
    #expect(inspected["health"] is [String: Any])
    let entities = try #require(inspected["entities"] as? [[String: Any]])
    #expect(entities.first?["name"] as? String == "Car")
    #expect(entities.first?["table"] as? String == "ZCAR")
    #expect(entities.first?["rows"] as? Int == 0)
    let missing = try #require(
      try json(try desk.lazaret("inspect", "Stores/None.sqlite", "--json").output) as? [String: Any])
    #expect(missing["verdict"] as? String == "missing")
    #expect(missing["modelVersion"] is NSNull)
    let hashes = try #require(
      try json(try desk.lazaret("model", "hashes", desk.model, "--json").output) as? [String: Any])
    let versions = try #require(hashes["versions"] as? [[String: Any]])
    #expect(versions.map { $0["name"] as? String } == ["V1", "V2"])
    #expect(versions.map { $0["current"] as? Bool } == [false, true])
    #expect(((versions[1]["entities"] as? [String: String])?["Car"])?.count == 64)
    #expect(Data(base64Encoded: versions[1]["checksum"] as? String ?? "")?.count == 32)
  }

  @Test func errorsAreJSONOnStandardError() throws {
    let desk = try Desk()
    let result = try desk.lazaret("open", "Stores", "--model", desk.model, "--json")
    #expect(result.status == 64)
    #expect(result.output.isEmpty)
    let error = try #require((try json(result.errors) as? [String: Any])?["error"] as? [String: Any])
    #expect(error["code"] as? String == "is-a-directory")
    #expect(error["path"] as? String == "Stores")
    #expect((error["hint"] as? String)?.isEmpty == false)
    #expect(result.errors.split(separator: "\n").count == 1)
  }
}
