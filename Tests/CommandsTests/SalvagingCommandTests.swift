import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

/// The verbs that salvage on the way.
struct SalvagingCommandTests {
  @Test func openSalvagesByItself() throws {
    let desk = try Desk()
    let broken = try desk.makeBrokenStore()
    let opened = try desk.lazaret("open", broken, "--model", desk.model)
    #expect(opened.errors.isEmpty)
    #expect([0, 2].contains(opened.status))
    #expect(opened.output.contains("recovered"))
    #expect(opened.output.contains("A copy of the salvaged store is in its place."))
    #expect(opened.output.contains("salvaged store: "))
    let inspected = try desk.lazaret("inspect", broken, "--model", desk.model)
    #expect(inspected.status == 0)
    #expect(inspected.output.contains("40"))
    let list = try desk.lazaret("quarantine", "list")
    #expect(list.output.contains("installed"))
    let shown = try desk.lazaret("quarantine", "show", try desk.quarantinedID())
    #expect(shown.output.contains("Car") && shown.output.contains("salvaged · "))
    // Whole, so that nothing is lost, and told by the exit code.
    let event = try #require(try json(try desk.lazaret("quarantine", "list", "--json").output) as? [String: Any])
    #expect(keys(of: event).isSuperset(of: ["salvage", "timeline", "entities", "score"]))
  }

  @Test func theReasonsAreToldWhereNoNumberTellsThem() throws {
    let desk = try Desk()
    let path = try desk.makeOldStore()
    var bytes = try FileSystem().contents(of: FilePath(path), limit: 1 << 24)
    bytes.replaceSubrange(0..<4096, with: [UInt8](repeating: 0, count: 4096))
    try FileSystem().writeAtomically(bytes, to: FilePath(path), replacing: true)
    let opened = try desk.lazaret("open", path, "--model", desk.model)
    #expect(opened.status == 2)
    let id = try desk.quarantinedID()
    let shown = try desk.lazaret("quarantine", "show", id)
    for text in [opened.output, shown.output] where !text.contains(" lost") || text.contains("(100 %)") {
      #expect(text.contains("Not beyond doubt: "), "\(text)")
    }
    #expect(!opened.output.contains("in part") && !opened.output.contains("missing"), "\(opened.output)")
    let receipt = try json(try desk.lazaret("quarantine", "show", id, "--json").output) as? [String: Any]
    let salvage = (receipt?["receipt"] as? [String: Any])?["salvage"] as? [String: Any]
    let result = try #require(salvage?["result"] as? [String: Any])
    #expect((result["incompleteBecause"] as? [String])?.isEmpty == false)
    #expect(shown.output.firstMatch(of: /when       \d{4}-\d\d-\d\d \d\d:\d\d UTC\n/) != nil, "\(shown.output)")
  }

  @Test func hintsNameTheCommandAndTheOption() throws {
    let desk = try Desk()
    let broken = try desk.makeBrokenStore()
    let told = try desk.lazaret("inspect", broken).output
    #expect(told.contains("lazaret salvage ") && told.contains("Broken.rescued.sqlite"), "\(told)")
    let refused = try desk.lazaret("open", broken, "--model", desk.model, "--on-damage", "refuse")
    #expect(refused.errors.contains("--on-damage salvage") && !refused.errors.contains("STORE"), "\(refused.errors)")
  }

  @Test func nothingIsCountedBeforeTheSalvage() throws {
    let desk = try Desk()
    let opened = try desk.lazaret(
      "open", try desk.makeBrokenStore(), "--model", desk.model, "--on-damage", "later", "--json")
    let told = try json(opened.output) as? [String: Any]
    let events = told?["events"] as? [[String: Any]]
    let undo = try #require(events?.compactMap { $0["undo"] as? String }.first)
    #expect(undo.hasPrefix("lazaret quarantine release /") && undo.hasSuffix(" --replace"), "\(undo)")
    #expect(undo.contains(" --home /") && (told?["notice"] as? [String: Any])?["undo"] as? String == undo)
    let salvage = try #require(events?.compactMap { $0["salvage"] as? [String: Any] }.first)
    #expect(Set(salvage.keys) == ["state", "complete"], "\(salvage)")
  }

  @Test func aStoreWhoseFilesAreGoneIsListedAsSuch() throws {
    let desk = try Desk()
    let broken = try desk.makeBrokenStore()
    #expect(try desk.lazaret("open", broken, "--model", desk.model, "--on-damage", "later").status == 2)
    let id = try desk.quarantinedID()
    func listed() throws -> [String: Any]? {
      let list = try json(try desk.lazaret("quarantine", "list", "--json").output) as? [String: Any]
      return (list?["stores"] as? [[String: Any]])?.first
    }
    let whole = try listed()
    let evidence = try #require(whole?["evidence"] as? [String: Any])
    #expect(evidence["checked"] as? String == "size" && evidence["missing"] as? Bool == false)
    let shown = try desk.lazaret("quarantine", "show", id)
    #expect(shown.output.contains("Its files are as they were quarantined."), "\(shown.output)")
    let store = FilePath(try #require(whole?["store"] as? String))
    for member in try StoreFileSet(main: store).members(in: FileSystem()) {
      #expect(try ChildProcess.run("rm", ["-rf", member.path.string], in: desk.folder.path).status == 0)
    }
    let gone = try #require(try listed()?["evidence"] as? [String: Any])
    #expect(gone["missing"] as? Bool == true)
    #expect((gone["hint"] as? String)?.contains("quarantine discard") == true)
    #expect(try desk.lazaret("quarantine", "list").output.contains("\(id): Its files are missing"))
    for verb in ["show", "salvage", "release"] {
      let refused = try desk.run(["quarantine", verb, id])
      #expect(refused.status == 1 && refused.errors.contains("[evidence-missing]"), "\(verb): \(refused.errors)")
    }
    let export = try desk.lazaret("export", id, "-o", "Never.tar.gz", "--yes")
    #expect(export.status == 1 && export.errors.contains("[evidence-missing]"), "\(export.errors)")
    #expect(try desk.lazaret("quarantine", "discard", id, "--yes").status == 0)
    #expect(try listed() == nil)
  }

  @Test func salvageLaterAndInstall() throws {
    let desk = try Desk()
    let broken = try desk.makeBrokenStore()
    for word in ["later", "salvage-later"] {
      #expect(
        try desk.lazaret("open", "Stores/None-\(word).sqlite", "--model", desk.model, "--on-damage", word).status == 0)
    }
    let opened = try desk.lazaret("open", broken, "--model", desk.model, "--on-damage", "later")
    #expect(opened.status == 2)
    #expect(opened.output.contains("lazaret quarantine salvage"))
    let id = try desk.quarantinedID()
    #expect(try desk.lazaret("quarantine", "list").output.contains("pending"))
    #expect(try desk.lazaret("quarantine", "salvage", id, "--install").status == 64)
    let salvaged = try desk.lazaret("quarantine", "salvage", id, "--model", desk.model)
    #expect([0, 2].contains(salvaged.status), "\(salvaged.errors)")
    #expect(salvaged.output.contains("40"))
    #expect(salvaged.output.contains("\(id).salvaged.sqlite"))
    let installed = try desk.lazaret("quarantine", "salvage", id, "--model", desk.model, "--install", "--deleted")
    #expect([0, 2].contains(installed.status), "\(installed.errors)")
    #expect(installed.output.contains("What was there is in quarantine as"))
    #expect(try desk.lazaret("inspect", broken, "--model", desk.model).output.contains("40"))
    #expect(try desk.lazaret("quarantine", "salvage", "2001-01-01-00-00-00").status == 1)
  }

  /// The words of a command as a shell would have them; nothing in the folders of tests has to be quoted.
  private func words(_ command: String) -> [String] { command.split(separator: " ").dropFirst().map(String.init) }

  @Test func whatAQuarantineIsUndoneByUndoesIt() throws {
    let desk = try Desk()
    let store = FilePath(try desk.makeOldStore())
    let before = try FileSystem().contents(of: store, limit: 1 << 24)
    let added = try desk.lazaret("quarantine", "add", store.string, "--json")
    #expect(added.status == 0, "\(added.errors)")
    let told = try #require((try json(added.output) as? [String: Any])?["undo"] as? String)
    #expect(!told.contains("--replace"), "nothing is in its place")
    let shown = try desk.lazaret("quarantine", "show", try desk.quarantinedID())
    // People are told paths from the current folder, programs whole ones.
    let short = told.replacing(desk.folder.path.string + "/", with: "")
    #expect(shown.output.contains("undo it with: \(short)\n"), "\(shown.output)")
    // Another store takes its place; then the command says so.
    try desk.makeStore(store.string, model: desk.folder.appending("Old.xcdatamodel").string)
    let list = try desk.lazaret("quarantine", "list", "--json")
    let stores = try #require((try json(list.output) as? [String: Any])?["stores"] as? [[String: Any]])
    let undo = try #require(stores.first?["undo"] as? String)
    #expect(undo == told + " --replace")
    let elsewhere = try TemporaryFolder()
    let undone = try ChildProcess.run(ChildProcess.tool, words(undo), input: "", in: elsewhere.path)
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(undone.output.contains("Put that back with: lazaret quarantine release "))
    #expect(try FileSystem().contents(of: store, limit: 1 << 24) == before)
    #expect(try FileSystem().entries(of: elsewhere.path).isEmpty, "it works on the home it was made for")
  }

  @Test func aModelThatFitsNothingIsRefusedAndOfSeveralTheRightOneIsTaken() throws {
    let desk = try Desk()
    let broken = try desk.makeBrokenStore()
    try desk.folder.write(Desk.contents(["name"], entity: "Boat"), to: "Models/Boats.xcdatamodel/contents")
    try desk.folder.write(Desk.contents(["name"]), to: "Models/Cars.xcdatamodel/contents")
    let boats = desk.folder.appending("Models/Boats.xcdatamodel").string
    let refused = try desk.lazaret("salvage", broken, "--model", boats, "-o", "Boats.sqlite", "--json")
    #expect(refused.status == 1)
    #expect(refused.errors.contains("model-fits-nothing"), "\(refused.errors)")
    #expect(try FileSystem().status(of: desk.folder.appending("Boats.sqlite")) == nil)
    let sound = try desk.makeOldStore()
    for models in [
      ["--model", boats, "--model", desk.folder.appending("Models/Cars.xcdatamodel").string], ["--model", "Models"],
    ] {
      let out = "Out-\(models.count).sqlite"
      let salvaged = try desk.run(["salvage", sound, "-o", out] + models)
      #expect(salvaged.status == 0, "\(salvaged.errors)")
      #expect(salvaged.output.contains("The one record that it held was recovered."), "\(salvaged.output)")
      let inspected = try desk.run(["inspect", sound, "--json"] + models)
      #expect((try json(inspected.output) as? [String: Any])?["verdict"] as? String == "compatible")
    }
  }

  /// Nothing of the store is left; what it held is in a verified backup, where there is one.
  @Test(arguments: [true, false])
  func aBackupWithWhatIsLostIsNamed(hasBackup: Bool) throws {
    let desk = try Desk()
    let store = try desk.makeOldStore("App.sqlite")
    if hasBackup {
      #expect(try desk.lazaret("backup", "create", store).status == 0)
      #expect(try desk.lazaret("backup", "verify").status == 0)
    }
    try desk.makeDamagedStore()
    let opened = try desk.lazaret("open", store, "--model", desk.model)
    #expect(opened.status == 2, "\(opened.errors)")
    let command = opened.output.split(separator: "\n").first { $0.contains("lazaret backup restore b-") }
    #expect((command != nil) == hasBackup, "\(opened.output)")
    guard let command else { return }
    // The line as it is printed is a command that brings the record back.
    let words = command.split(separator: " ").map { String($0).replacing("'", with: "") }
    let restored = try desk.run(Array(words.dropFirst()))
    #expect(restored.status == 0, "\(restored.errors)")
    let sound = try desk.lazaret("inspect", store, "--model", desk.model, "--json")
    let entities = (try json(sound.output) as? [String: Any])?["entities"] as? [[String: Any]] ?? []
    #expect(entities.map { $0["rows"] as? Int } == [1], "\(sound.output)")
  }

  @Test func whyAResultIsNotCompleteIsSaid() throws {
    let desk = try Desk()
    let told = try desk.lazaret(
      "salvage", try desk.makeOldStore(), "--model", try desk.makeRefusedModel(), "-o", "Own.sqlite")
    #expect(told.status == 2)
    #expect(told.output.contains("Not beyond doubt: the store could not be migrated.\n"), "\(told.output)")
    // Nothing about the store is damaged.
    #expect(told.output.contains("Keep the store as it was until") && !told.output.contains("damaged store"))
    let report = try FileSystem().contents(of: desk.folder.appending("Own.salvage.json"), limit: 1 << 24)
    let object = try json(String(decoding: report, as: UTF8.self)) as? [String: Any]
    #expect(object?["incompleteBecause"] as? [String] == ["the store could not be migrated"])
  }

  @Test func whatIsInTheFileBesideTheStoreIsNamed() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA secure_delete = OFF")
      for number in 2...40 {
        try database.execute(
          sql: "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, 1, 1, ?)", arguments: [number, "car \(number)"])
      }
      try database.execute(sql: "DELETE FROM ZCAR WHERE Z_PK % 4 = 0; PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try queue.close()
    let told = try desk.lazaret("salvage", store, "--model", desk.model, "-o", "Out.sqlite", "--deleted")
    let aside = try DatabaseQueue(path: desk.folder.appending("Out.sqlite-set-aside").string)
    let deleted = try aside.read { database in
      let tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'lazaret@_deleted@_%' ESCAPE '@'"
      return try String.fetchAll(database, sql: tables).reduce(0) { sum, name in
        try sum + (Int.fetchOne(database, sql: "SELECT count(*) FROM \"\(name)\"") ?? 0)
      }
    }
    try aside.close()
    #expect(deleted > 1)
    #expect(told.output.contains("\(deleted) deleted rows, notes on where the rows are from\n"), "\(told.output)")
    #expect(!told.output.contains("What is not in the store"))
  }

  @Test func noScoreIsShown() throws {
    let desk = try Desk()
    let broken = try desk.makeBrokenStore()
    let salvaged = try desk.lazaret("salvage", broken, "--model", desk.model, "-o", "Out.sqlite")
    let opened = try desk.lazaret("open", broken, "--model", desk.model)
    let listed = try desk.lazaret("quarantine", "list")
    let shown = try desk.lazaret("quarantine", "show", try desk.quarantinedID())
    for output in [salvaged.output, opened.output, listed.output, shown.output] {
      #expect(!output.lowercased().contains("score") && !output.contains("of 100"), "\(output)")
    }
    // The bookkeeping of Core Data is no record: the number is that of the cars.
    for output in [salvaged.output, opened.output, shown.output] {
      #expect(output.contains("40 ") && output.contains("records"), "\(output)")
      #expect(!output.contains("Z_PRIMARYKEY"), "\(output)")
    }
  }

  @Test func theDemonstrationEndsRescued() throws {
    let desk = try Desk()
    let examples = RealMaterial.projectRoot.appending("Examples").string
    let told = try desk.lazaret("demo", "--folder", "Shown", "--examples", examples)
    #expect(told.status == 0, "\(told.errors)")
    #expect(told.output.contains("recovered"))
    let result = try desk.lazaret("demo", "--folder", "Demo", "--examples", examples, "--json")
    let scenes = try #require((try json(result.output) as? [String: Any])?["scenes"] as? [[String: Any]])
    var recovered: [String: Int] = [:]
    for scene in scenes {
      let events = (scene["opening"] as? [String: Any])?["events"] as? [[String: Any]] ?? []
      guard let salvage = events.last(where: { $0["kind"] as? String == "salvage" })?["salvage"] as? [String: Any],
        let name = scene["name"] as? String
      else { continue }
      // What a sound store of another app's holds has no place in this one's.
      #expect(salvage["state"] as? String == (name == "another-model" ? "failed" : "installed"), "\(name): \(salvage)")
      for entity in salvage["entities"] as? [[String: Any]] ?? []
      where ["Car", "Motorbike", "Owner"].contains(entity["name"] as? String) {
        recovered[name, default: 0] += entity["recovered"] as? Int ?? 0
      }
    }
    // One store that lacks something of its model is repaired at its opening, one is left to be repaired.
    let repaired = (scenes.first { $0["name"] as? String == "parts-missing" }?["opening"] as? [String: Any])?["events"]
    #expect((repaired as? [[String: Any]])?.contains { $0["kind"] as? String == "repair" } == true)
    let kept = scenes.first { $0["name"] as? String == "parts-missing-kept" }?["error"] as? [String: Any]
    #expect(kept?["code"] as? String == "store-repairable")
    print("demo: \(recovered)")
    #expect(recovered["overwritten-header"] == 212)
    #expect((recovered["truncated"] ?? 0) >= 2400)
    #expect(recovered["first-page-lost"] == 3012)
    #expect(recovered["log-alone"] == 3012)
    #expect(recovered["foreign-wal"] == 212)
  }
}
