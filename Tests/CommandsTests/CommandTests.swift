import Commands
import Foundation
import GRDB
import Lazaret
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// What each verb prints, and how it ends.
struct CommandTests {
  // MARK: open

  @Test func openCreatesOpensAndReplaces() throws {
    let desk = try Desk()
    let created = try desk.lazaret("open", desk.store, "--model", desk.model)
    #expect(created.status == 0)
    #expect(created.errors.isEmpty)
    #expect(created.output.contains("missing"))
    #expect(created.output.contains("An empty store for V2 was created."))
    let opened = try desk.lazaret("open", desk.store, "--model", desk.model)
    #expect(opened.status == 0)
    #expect(opened.output.contains("compatible"))
    try desk.makeDamagedStore()
    let replaced = try desk.lazaret("open", desk.store, "--model", desk.model)
    #expect(replaced.status == 2)
    #expect(replaced.errors.isEmpty)
    #expect(replaced.output.contains("damaged"))
    #expect(replaced.output.contains("Incompatible/"))
    #expect(replaced.output.contains("receipt:"))
    #expect(replaced.output.contains("For the app's user:"))
  }

  @Test func openMigratesAnOlderStore() throws {
    let desk = try Desk()
    try desk.makeStore(model: "Old.xcdatamodel")
    let opened = try desk.lazaret("open", desk.store, "--model", desk.model, "--log-level", "debug")
    #expect(opened.status == 0)
    #expect(opened.output.contains("outdated"))
    #expect(opened.output.contains("The store was migrated, V1 → V2 in one step."))
    #expect(opened.output.contains("V1 → V2: 0 records, "))
    #expect(opened.output.contains("Backups/App/"))
    let log = opened.errors.split(separator: "\n")
    #expect(log.contains { $0.hasPrefix("debug: SQL number=") })
    #expect(log.contains { $0.hasPrefix("debug: entity mapping ") })
    #expect(log.contains { $0.hasPrefix("info: step finished ") })
    #expect(log.contains { $0.hasPrefix("notice: migrated metrics=V1 → V2 in 1 step: ") })
    let lines = try FileSystem().contents(of: desk.folder.appending("migrations.jsonl"), limit: 1 << 20)
    #expect(lines.split(separator: UInt8(ascii: "\n")).count == 1)
    // As JSON every line is a value of its own.
    let other = try Desk()
    try other.makeStore(model: "Old.xcdatamodel")
    let told = try other.lazaret("open", other.store, "--model", other.model, "--log-level", "trace", "--json")
    #expect(told.status == 0)
    for line in told.errors.split(separator: "\n") {
      #expect((try json(String(line)) as? [String: Any])?["log"] != nil, "\(line)")
    }
  }

  @Test func openSaysWhatAMigrationLostAndWhatStoodInItsWay() throws {
    let desk = try Desk()
    // V3 has no place for the name; V4 needs a colour.
    func model(_ name: String, _ attributes: String) throws -> String {
      try desk.folder.write(
        Desk.contents(["name"]).replacingOccurrences(
          of: "<uniqueness.*</uniquenessConstraints>", with: "", options: .regularExpression),
        to: "\(name).xcdatamodeld/V1.xcdatamodel/contents")
      try desk.folder.write(
        """
        <model type="com.apple.IDECoreDataModeler.DataModel"><entity name="Car" representedClassName="Car">\(attributes)</entity></model>
        """, to: "\(name).xcdatamodeld/V2.xcdatamodel/contents")
      return "\(name).xcdatamodeld"
    }
    let losing = try model("Losing", "<attribute name='color' optional='YES' attributeType='String'/>")
    let strict = try model("Strict", "<attribute name='color' attributeType='String'/>")
    let bundle = try ModelBundle.load(path: desk.folder.appending(losing))
    func fill() throws {
      let creation = try StoreCreation(
        model: bundle.versions[0].model, uuid: "00000000-0000-4000-8000-000000000000", modelCache: nil)
      let path = try desk.folder.write(try creation.bytes(), to: "Stores/App.sqlite")
      let store = try PersistentStore(opening: path)
      try store.write {
        try $0.execute(
          sql:
            "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'Ada'); UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Car'"
        )
      }
      try store.close()
    }
    try fill()
    let failed = try desk.lazaret("open", desk.store, "--model", strict)
    #expect(failed.status == 1)
    #expect(failed.errors.contains("[migration-data-violation]"))
    #expect(failed.errors.contains("Reports/App-"))
    #expect(failed.output.isEmpty)
    let replaced = try desk.lazaret(
      "open", desk.store, "--model", strict, "--on-migration-failure", "empty-store", "--json")
    #expect(replaced.status == 2)
    let events = try #require((try json(replaced.output) as? [String: Any])?["events"] as? [[String: Any]])
    #expect(events.map { $0["kind"] as? String } == ["quarantine", "create"])
    #expect((events.first?["report"] as? String)?.contains("Reports/App-") == true)
    try FileSystem().unlink(FilePath(desk.store))
    try fill()
    let lost = try desk.lazaret("open", desk.store, "--model", losing)
    // The model drops the attribute, so that this is what was wanted.
    #expect(lost.status == 0, "\(lost.errors)")
    #expect(lost.output.contains("lost: Car.name is removed: its values are deleted (1 record)"))
  }

  @Test func openSaysWhyAStoreStaysClosed() throws {
    let desk = try Desk()
    try desk.makeDamagedStore()
    let refused = try desk.lazaret("open", desk.store, "--model", desk.model, "--on-damage", "refuse")
    #expect(refused.status == 1)
    #expect(refused.errors.contains("[store-damaged]"))
    let noModel = try desk.lazaret("open", desk.store, "--model", "no-such.momd")
    #expect(noModel.status == 1)
    #expect(noModel.errors.contains("no-such.momd"))
    let folder = try desk.lazaret("open", "Stores", "--model", desk.model)
    #expect(folder.status == 64)
    #expect(folder.errors.contains("[is-a-directory]"))
    let nowhere = try desk.lazaret("open", "no/such/App.sqlite", "--model", desk.model)
    #expect(nowhere.status == 1)
  }

  // MARK: inspect

  @Test func inspectTellsTheVerdictByItsExitCode() throws {
    let desk = try Desk()
    let missing = try desk.lazaret("inspect", desk.store)
    #expect(missing.status == 1 && missing.output.contains("missing"), "\(missing.output)")
    #expect(try desk.lazaret("inspect", "\(desk.model)/contents/x").status == 1)
    try desk.makeStore()
    let sound = try desk.lazaret("inspect", desk.store, "--model", desk.model)
    #expect(sound.status == 0)
    #expect(sound.output.contains("compatible"))
    // The store has no record: such rows are left out unless all are asked for.
    #expect(!sound.output.contains("Car"))
    #expect(try desk.lazaret("inspect", desk.store, "--model", desk.model, "--all").output.contains("Car"))
    let uncounted = try desk.lazaret("inspect", desk.store, "--model", desk.model, "--check", "full", "--no-counts")
    #expect(uncounted.status == 0 && uncounted.output.contains("the records were not counted"), "\(uncounted.output)")
    #expect(!uncounted.output.contains("some of its pages"))
    try desk.makeDamagedStore()
    let damaged = try desk.lazaret("inspect", desk.store)
    #expect(damaged.status == 2)
    #expect(damaged.output.contains("damaged"))
    let unavailable = try desk.lazaret("inspect", "Stores")
    #expect(unavailable.status == 64)
    #expect(unavailable.output.contains("unavailable"))
  }

  // MARK: model

  @Test func modelShowsAndHashes() throws {
    let desk = try Desk()
    let shown = try desk.lazaret("model", "show", desk.model)
    #expect(shown.status == 0)
    #expect(shown.output.contains("Car"))
    #expect(shown.output.contains("color"))
    let old = try desk.lazaret("model", "show", desk.model, "--version-name", "V1")
    #expect(!old.output.contains("color"))
    #expect(try desk.lazaret("model", "show", desk.model, "--all").output.contains("V1"))
    let unknown = try desk.lazaret("model", "show", desk.model, "--version-name", "V9")
    #expect(unknown.status == 1)
    #expect(unknown.errors.contains("V1, V2"))
    #expect(try desk.lazaret("model", "show", desk.model, "--all", "--version-name", "V1").status == 64)
    let hashes = try desk.lazaret("model", "hashes", desk.model)
    #expect(hashes.status == 0)
    #expect(hashes.output.contains("V2 (current)"))
    #expect(try desk.lazaret("model", "hashes", "no-such.momd").status == 1)
  }

  // MARK: quarantine

  @Test func quarantineFromBeginningToEnd() throws {
    let desk = try Desk()
    #expect(
      try desk.lazaret("quarantine").output.contains(
        "No store is in quarantine in the home: \(desk.folder.path.string)"))
    try desk.makeDamagedStore()
    let added = try desk.lazaret(
      "quarantine", "add", desk.store, "--reason", "a \u{1B}[31mtest", "--app-version", "7.1")
    #expect(added.status == 0)
    #expect(added.output.contains("by-request"))
    #expect(!added.output.contains("\u{1B}"))
    let id = try desk.quarantinedID()
    for arguments in [["list"], ["list", "Stores"], ["list", desk.store], []] {
      let list = try desk.run(["quarantine"] + arguments)
      #expect(list.status == 0)
      #expect(list.output.contains(id) && list.output.contains("on request"))
    }
    let shown = try desk.lazaret("quarantine", "show", id)
    #expect(shown.status == 0)
    #expect(shown.output.contains("SHA-256"))
    #expect(shown.output.contains("app 7.1"))
    #expect(try desk.lazaret("quarantine", "show", "Stores/Incompatible/\(id).sqlite").output == shown.output)
    let unknown = try desk.lazaret("quarantine", "show", "2001-01-01-00-00-00")
    #expect(unknown.status == 1)
    #expect(unknown.errors.contains("[not-in-quarantine]"))
    #expect(try desk.lazaret("quarantine", "add", desk.store).status == 1)
    try desk.makeStore()
    let taken = try desk.lazaret("quarantine", "release", id)
    #expect(taken.status != 0)
    #expect(taken.errors.contains("[place-taken]"))
    let released = try desk.lazaret("quarantine", "release", id, "--replace")
    #expect(released.status == 0)
    #expect(released.output.contains("What was there is in quarantine as"))
    // It was of the app's current version; release was given no model to compare it with.
    let replaced = try desk.lazaret("quarantine", "show", try desk.quarantinedID()).output
    #expect(replaced.contains("  model      not compared with a model, checksum "))
  }

  @Test func discardAsks() throws {
    let desk = try Desk()
    try desk.makeDamagedStore()
    #expect(try desk.lazaret("quarantine", "add", desk.store).status == 0)
    let id = try desk.quarantinedID()
    let others = ["\(id).salvaged.sqlite", "\(id).salvaged-2.sqlite", "\(id).salvaged.sqlite-set-aside"]
    for name in others { try desk.folder.write("salvaged", to: "Stores/Incompatible/\(name)") }
    let before = try FolderContents(of: desk.folder.path)
    for answer in ["", "\n", "no\n", "N\n", "yes please\n"] {
      let kept = try desk.lazaret("quarantine", "discard", id, input: answer)
      for name in others { #expect(kept.errors.contains(name), "\(name)") }
      #expect(kept.errors.contains("no installed copy"))
      #expect(kept.status == 1)
      #expect(kept.errors.contains("for good?"))
      #expect(kept.errors.contains("nothing was removed"))
      #expect(kept.output.isEmpty)
    }
    let mute = try desk.lazaret("quarantine", "discard", id, "--json", input: "yes\n")
    #expect(mute.status == 1)
    #expect(keys(of: try json(mute.errors)).contains("code"))
    #expect(try FolderContents(of: desk.folder.path) == before)
    let gone = try desk.lazaret("quarantine", "discard", id, input: "yes\n")
    #expect(gone.status == 0)
    #expect(try desk.lazaret("quarantine", "show", id).status == 1)
    #expect(try FileSystem().entries(of: desk.stores.appending("Incompatible")).isEmpty)
    try desk.makeDamagedStore()
    #expect(try desk.lazaret("quarantine", "add", desk.store).status == 0)
    #expect(try desk.lazaret("quarantine", "discard", try desk.quarantinedID(), "--yes").status == 0)
    #expect(try FileSystem().entries(of: desk.stores.appending("Incompatible")).isEmpty)
  }

  // MARK: Evidence

  @Test func lookingChangesNothing() throws {
    let desk = try Desk()
    try desk.makeDamagedStore("Broken.sqlite")
    try desk.makeDamagedStore()
    #expect(try desk.lazaret("quarantine", "add", desk.store).status == 0)
    let id = try desk.quarantinedID()
    try desk.makeStore()
    let before = try FolderContents(of: desk.folder.path)
    for arguments in [
      ["inspect", desk.store], ["inspect", desk.store, "--model", desk.model, "--check", "full", "--json"],
      ["inspect", "Stores/Broken.sqlite"], ["inspect", "Stores/Broken.sqlite", "--model", desk.model],
      ["inspect", "Stores/Incompatible/\(id).sqlite", "--check", "full"], ["inspect", "Stores/Missing.sqlite"],
      ["model", "show", desk.model], ["model", "hashes", desk.model, "--json"], ["quarantine", "list"],
      ["quarantine", "list", "Stores"], ["quarantine", "show", id, "--json"],
      ["open", "Stores/Broken.sqlite", "--model", desk.model, "--on-damage", "refuse"],
    ] {
      _ = try desk.run(arguments)
      #expect(try FolderContents(of: desk.folder.path) == before, "\(arguments)")
    }
  }

  // MARK: Hostile names

  @Test func pathsThatAreNotUTF8AreTakenByteForByte() throws {
    let desk = try Desk()
    try desk.folder.write(
      """
      set -e
      name=$(printf 'a\\377b.sqlite')
      printf '\\001\\002damaged' > "Stores/$name"
      status=0; "$1" open "Stores/$name" --model App.xcdatamodeld --json > result.json 2> errors || status=$?
      echo "open $status"
      status=0; "$1" inspect "Stores/$name" --json > inspect.json || status=$?
      echo "inspect $status"
      dir=$(printf 'h\\376me'); mkdir "$dir"
      printf '\\001\\002damaged again' > "Stores/$name"
      status=0; "$1" quarantine add "Stores/$name" "--home=$dir" --reason "$(printf 'why\\377')" > added || status=$?
      echo "add $status"
      test -f "$dir/Quarantines.json" && echo "home is right"
      """, to: "script.sh")
    let result = try ChildProcess.run("sh", ["script.sh", ChildProcess.tool], in: desk.folder.path)
    #expect(result.output == "open 2\ninspect 0\nadd 0\nhome is right\n", "\(result.errors)")
    let text = String(
      decoding: try FileSystem().contents(of: desk.folder.appending("result.json"), limit: 1 << 20), as: UTF8.self)
    let opening = try #require(try json(text) as? [String: Any])
    let path = try #require(opening["store"] as? [String: Any])
    #expect((path["bytes"] as? String)?.contains("61ff62") == true)
    let added = String(
      decoding: try FileSystem().contents(of: desk.folder.appending("added"), limit: 1 << 20), as: UTF8.self)
    #expect(added.contains("why\u{FFFD} [by-request]"))
  }

  @Test func argumentsKeepTheirBytes() {
    let raw: [[UInt8]] = [
      Array("open".utf8), [0x61, 0xFF], [0x61, 0xFE], Array("a\u{FFFD}".utf8), Array("--model=".utf8) + [0xFF],
    ]
    let (texts, standIns) = RawArguments.texts(of: raw)
    #expect(Set(texts).count == 5)
    #expect(texts[0] == "open")
    #expect(texts[3] == "a\u{FFFD}")
    #expect(standIns[texts[1]] == raw[1])
    #expect(standIns[texts[2]] == raw[2])
    #expect(standIns[texts[3]] == nil)
    #expect(texts[4].hasPrefix("--model="))
    #expect(standIns[String(texts[4].dropFirst(8))] == [0xFF])
  }

  @Test func nothingSteersTheTerminal() throws {
    let desk = try Desk()
    let evil = "evil\u{1B}]0;owned\u{7}\u{9B}31m\u{202E}.sqlite"
    try desk.makeDamagedStore(evil)
    let path = "Stores/\(evil)"
    try desk.folder.write(Desk.contents(["name"], entity: "Car\u{202E}evil"), to: "Evil.xcdatamodel/contents")
    let runs: [[String]] = [
      ["inspect", path], ["inspect", path, "--json"], ["open", path, "--model", desk.model, "--on-damage", "refuse"],
      ["open", path, "--model", desk.model, "--on-damage", "refuse", "--json"], ["open", path, "--model", desk.model],
      ["open", path, "--model", path], ["quarantine", "list"], ["quarantine", "list", "--json"],
      ["quarantine", "show", path],
      ["model", "show", path], ["model", "show", "Evil.xcdatamodel"], ["model", "show", "Evil.xcdatamodel", "--json"],
      ["model", "hashes", "Evil.xcdatamodel"], ["inspect", path, path], [evil], ["inspect", "--\u{1B}[31m"],
      ["inspect", path, "--check", "\u{1B}[31m", "--json"],
    ]
    for arguments in runs {
      let result = try desk.run(arguments)
      for text in [result.output, result.errors] {
        let steering = text.unicodeScalars.filter { scalar in
          scalar != "\n" && [.control, .format].contains(scalar.properties.generalCategory)
        }
        #expect(steering.isEmpty, "\(arguments): \(Array(steering))")
      }
      if arguments.contains("--json"), !result.output.isEmpty { _ = try json(result.output) }
    }
  }

  @Test func aHostileReceiptSteersNothing() throws {
    let desk = try Desk()
    try desk.makeDamagedStore()
    #expect(try desk.lazaret("quarantine", "add", desk.store).status == 0)
    let id = try desk.quarantinedID()
    let path = desk.stores.appending("Incompatible/\(id).json")
    var text = String(decoding: try FileSystem().contents(of: path, limit: 1 << 20), as: UTF8.self)
    for key in ["words", "code", "date", "library"] {
      text = text.replacingOccurrences(of: "\"\(key)\" : \"", with: "\"\(key)\" : \"\\u001b[31m\\n\\u009b")
    }
    try desk.folder.write(text, to: "Stores/Incompatible/\(id).json")
    for arguments in [["show", id], ["list"], ["list", "--json"]] {
      let result = try desk.run(["quarantine"] + arguments)
      #expect(result.status == 0)
      #expect(!result.output.unicodeScalars.contains { $0 == "\u{1B}" || $0 == "\u{9B}" })
      #expect(!result.output.contains("\n\\u{9b}"))
    }
  }

  // MARK: Usage

  @Test(arguments: [
    ["fly"], ["open"], ["open", "x"], ["inspect"], ["inspect", "x", "--check", "deep"], ["quarantine", "show"],
    ["open", "x", "--model", "y", "--on-damage", "pray"], ["inspect", ""],
  ])
  func aWrongCommandLineIsUsage(arguments: [String]) throws {
    let desk = try Desk()
    let result = try desk.run(arguments)
    #expect(result.status == 64)
    #expect(result.output.isEmpty)
    #expect(result.errors.contains("Usage:"))
    let structured = try desk.run(arguments + ["--json"])
    #expect(structured.status == 64)
    #expect(keys(of: try json(structured.errors)) == ["error", "code", "operation", "detail", "hint"])
  }

  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/full"), "there is no /dev/full here"))
  func outputThatIsLostIsNotSuccess() throws {
    let desk = try Desk()
    try desk.folder.write("\"$1\" inspect Stores/App.sqlite > /dev/full", to: "script.sh")
    let result = try ChildProcess.run("sh", ["script.sh", ChildProcess.tool], in: desk.folder.path)
    #expect(result.status == 1)
    #expect(result.errors.contains("[output-lost]"))
  }
}
