import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

/// What people expect of any command line: slips that are understood, colours, short paths, lines that fit, few words.
struct HabitTests {
  private static let examples = RealMaterial.projectRoot.appending("Examples/Garage.xcdatamodeld").string

  /// Runs the tool with variables of the environment.
  private func run(_ desk: Desk, _ variables: [String], _ arguments: [String]) throws -> ChildProcess.Result {
    try ChildProcess.run("env", variables + [ChildProcess.tool] + arguments, in: desk.folder.path)
  }

  // MARK: Slips

  @Test(
    "A mistyped word is answered with the one that was likely meant",
    arguments: [
      ("slavage x", "salvage"), ("inspct x", "inspect"), ("model shw x", "show"), ("backup verfy", "verify"),
      ("quarantine lst", "list"), ("inbox token nwe A", "new"), ("inspect x --jsno", "--json"),
      ("salvage x -o y --modle z", "--model"), ("export x -o y --level scrubed", "scrubbed"),
      ("open x --model m --on-damage salvag", "salvage"), ("inspect x --color alwyas", "always"),
    ])
  func slips(_ slip: (line: String, meant: String)) throws {
    let desk = try Desk()
    let words = slip.line.split(separator: " ").map(String.init)
    let result = try desk.run(words)
    #expect(result.status == 64)
    #expect(result.output.isEmpty)
    #expect(result.errors.contains("Did you mean '\(slip.meant)'?"), "\(result.errors)")
    let told = try #require(try json(try desk.run(words + ["--json"]).errors) as? [String: Any])
    let error = try #require(told["error"] as? [String: Any])
    #expect(error["code"] as? String == "usage")
    #expect((error["detail"] as? String)?.contains("Did you mean '\(slip.meant)'?") == true)
  }

  @Test func aMistypedVerbIsToldWithTheUsageOfItsGroup() throws {
    let desk = try Desk()
    for (words, meant, group) in [
      (["help", "inspekt"], "inspect", "lazaret"), (["help", "backup", "restor"], "restore", "lazaret backup"),
      (["help", "quarantine", "lst"], "list", "lazaret quarantine"),
      (["backup", "restor"], "restore", "lazaret backup"),
    ] {
      let result = try desk.run(words)
      #expect(result.status == 64 && result.output.isEmpty, "\(words): \(result.output)")
      #expect(result.errors.contains("Did you mean '\(meant)'?"), "\(result.errors)")
      #expect(result.errors.contains("Usage: \(group) <subcommand>\n"), "\(result.errors)")
    }
    for words in [["help"], ["help", "inspect"], ["help", "backup", "restore"], ["help", "quarantine"]] {
      #expect(try desk.run(words).status == 0, "\(words)")
    }
  }

  @Test func whatIsLikeNothingIsNotGuessed() throws {
    let desk = try Desk()
    for words in [["xyzzy"], ["model", "xyzzy"], ["inspect", "x", "--xyzzy"]] {
      let result = try desk.run(words)
      #expect(result.status == 64 && !result.errors.contains("Did you mean"), "\(result.errors)")
    }
    // A file of that name is meant where it is there.
    try desk.folder.write("", to: "lst")
    #expect(try desk.lazaret("quarantine", "lst").status == 0)
  }

  @Test func aMistypedKindAndAMistypedVersionAreAnsweredToo() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let kind = try desk.lazaret("damage", store, "-o", "Out.sqlite", "--kind", "zro:5")
    #expect(kind.status == 64 && kind.errors.contains("Did you mean 'zero'?"), "\(kind.errors)")
    for (given, meant) in [("zeros:5", "zero"), ("truncate:60", "trunc")] {
      let told = try desk.lazaret("damage", store, "-o", "Out.sqlite", "--kind", given)
      #expect(told.status == 64 && told.errors.contains("Did you mean '\(meant)'?"), "\(told.errors)")
    }
    #expect(try desk.lazaret("damage", store, "-o", "Out.sqlite", "--kind", "zero:500").status == 64)
    for arguments in [["send", store, "--to", "file:///x"], ["backup", "list", "--place", "s4://bucket"]] {
      #expect(try desk.run(arguments).status == 64, "\(arguments)")
    }
    let version = try desk.lazaret("model", "diff", desk.model, "--from", "VV1")
    #expect(version.status == 1 && version.errors.contains("Did you mean 'V1'?"), "\(version.errors)")
  }

  @Test func theFirstVersionIsNotComparedWithItself() throws {
    let desk = try Desk()
    let first = try desk.lazaret("model", "diff", desk.model, "--to", "V1")
    #expect(first.status == 1 && first.output.isEmpty, "\(first.output)")
    #expect(first.errors.contains("[unknown-version]") && first.errors.contains("--from"), "\(first.errors)")
    let backwards = try desk.lazaret("model", "diff", desk.model, "--from", "V2", "--to", "V1")
    #expect(backwards.output.contains("V2 → V1"), "\(backwards.output)\(backwards.errors)")
  }

  @Test func commonOptionsMayStandBeforeTheVerb() throws {
    let desk = try Desk()
    try desk.makeStore()
    let behind = try desk.lazaret("inspect", desk.store, "--json")
    let before = try desk.lazaret("--json", "inspect", desk.store)
    #expect(before.status == 0 && before.output == behind.output)
    #expect(try desk.lazaret("--color", "always", "inspect", desk.store).output.contains("\u{1B}["))
    #expect(try desk.homeless("--home", "Stores", "quarantine", "list").output.contains("Stores"))
  }

  // MARK: Colours

  @Test func coloursAreShownWhereTheyAreWanted() throws {
    let desk = try Desk()
    try desk.makeStore()
    let plain = try desk.lazaret("inspect", desk.store)
    #expect(!plain.output.contains("\u{1B}"))
    let colored = try desk.lazaret("inspect", desk.store, "--color", "always")
    #expect(colored.output.contains(": \u{1B}[32msound\u{1B}[0m\n"), "\(colored.output)")
    // The colours are all that differs.
    let bare = colored.output.replacing(try Regex("\u{1B}\\[[0-9]*m"), with: "")
    #expect(bare == plain.output)
    #expect(try desk.lazaret("inspect", desk.store, "--color", "never").output == plain.output)
    #expect(
      try desk.lazaret("inspect", desk.store, "--json", "--color", "always").output
        == desk.lazaret("inspect", desk.store, "--json").output)
  }

  @Test(
    .enabled(if: ChildProcess.exists("script") && FileManager.default.fileExists(atPath: "/proc")),
    arguments: [
      (["TERM=xterm"], true), (["TERM=dumb"], false),
      (["TERM=xterm", "NO_COLOR=1"], false), (["TERM=xterm", "NO_COLOR="], true),
    ])
  func aTerminalHasColoursUnlessItIsToldOtherwise(_ environment: (variables: [String], areShown: Bool)) throws {
    let desk = try Desk()
    try desk.makeStore()
    let command = "\(ChildProcess.tool) inspect Stores/App.sqlite"
    let result = try ChildProcess.run(
      "env", ["-u", "NO_COLOR"] + environment.variables + ["script", "-qec", command, "/dev/null"],
      in: desk.folder.path)
    #expect(result.output.contains("\u{1B}[32msound") == environment.areShown, "\(result.output)")
    // Long work has a bar there, and it is gone at the end.
    #expect(result.output.contains("\rChecking █") || result.output.contains("\rChecking ░"), "\(result.output)")
    #expect(result.output.contains("\r\u{1B}[K"))
  }

  @Test func aHostileNameChoosesNoColours() throws {
    let desk = try Desk()
    try desk.folder.write("x", to: "A\u{1B}[31mB\u{F}C\u{E}zD.sqlite")
    for file in try FileSystem().entries(of: desk.folder.path) where file.string.hasSuffix("D.sqlite") {
      let result = try desk.lazaret("inspect", file.string, "--color", "always")
      #expect(!result.output.contains("\u{1B}[31mB"), "\(result.output)")
      #expect(result.output.contains("\\u{1b}[31mB"), "\(result.output)")
    }
  }

  // MARK: Paths and lines

  @Test func pathsBelowTheCurrentFolderAreShort() throws {
    let desk = try Desk()
    try desk.makeDamagedStore()
    let opened = try desk.lazaret("open", desk.store, "--model", desk.model)
    let folder = desk.folder.path.string
    #expect(opened.output.hasPrefix("Stores/App.sqlite: "), "\(opened.output)")
    #expect(!opened.output.contains(folder + "/"), "\(opened.output)")
    #expect(opened.output.contains("    Stores/Incompatible/"))
    // Programs are told whole paths.
    let listed = try desk.lazaret("quarantine", "list", "--json")
    #expect(listed.output.contains(folder.replacing("/", with: "\\/") + "\\/Stores") || listed.output.contains(folder))
    // Elsewhere, and of a folder whose name begins alike, paths are whole.
    let far = try desk.homeless("inspect", desk.store, in: "/")
    #expect(far.output.hasPrefix(desk.store + ": "), "\(far.output)")
    try desk.folder.write("", to: "Sto/x")
    let beside = try desk.homeless("inspect", desk.store, in: desk.folder.appending("Sto"))
    #expect(beside.output.hasPrefix(desk.store + ": "), "\(beside.output)")
  }

  @Test("On a terminal of 80 columns no line is longer, apart from commands to be copied")
  func linesFit() throws {
    let desk = try Desk()
    let broken = try desk.makeBrokenStore("A store with a name that is rather long, as people make them.sqlite")
    #expect(try desk.lazaret("backup", "create", try desk.makeOldStore()).status == 0)
    _ = try desk.lazaret("open", broken, "--model", desk.model)
    let id = try desk.quarantinedID()
    for arguments in [
      ["quarantine", "list"], ["quarantine", "show", id], ["backup", "list"], ["backup", "verify"],
      ["inspect", broken], ["model", "show", desk.model], ["model", "diff", desk.model],
      ["plan", try desk.makeOldStore(), "--model", desk.model],
    ] {
      let result = try run(desk, ["COLUMNS=80", "LAZARET_HOME=\(desk.folder.path)"], arguments)
      for line in result.output.split(separator: "\n") where !line.contains("lazaret ") {
        // A word without spaces, such as a path or a sum, is never cut.
        let isOneWord = line.split(separator: " ").contains { $0.count > 60 }
        #expect(line.count <= 80 || isOneWord, "\(arguments[0]): \(line)")
      }
    }
  }

  @Test func aReasonIsBrokenIntoLinesAndNotCut() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    #expect(try desk.lazaret("migrate", store, "--model", desk.model).status == 0)
    #expect(try desk.lazaret("backup", "create", store).status == 0)
    _ = try desk.noteRemovedRecords(of: store)
    let result = try run(
      desk, ["COLUMNS=60", "LAZARET_HOME=\(desk.folder.path)"], ["backup", "prune", "--keep-last", "1", "--dry-run"])
    #expect(result.status == 0 && !result.output.contains("…"), "\(result.output)")
    let words = result.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(
      words.contains("12 records of Person that its migration removed, and is kept until it is released"),
      "\(result.output)")
    let rows = result.output.split(separator: "\n").filter { !$0.contains("lazaret ") && !$0.contains("/") }
    #expect(rows.allSatisfy { $0.count <= 60 }, "\(result.output)")
  }

  // MARK: Few words and many

  @Test func quietSaysNothingButErrors() throws {
    let desk = try Desk()
    try desk.makeStore()
    let sound = try desk.lazaret("inspect", desk.store, "--quiet")
    #expect(sound.status == 0 && sound.output.isEmpty && sound.errors.isEmpty)
    #expect(try desk.lazaret("quarantine", "list", "-q").output.isEmpty)
    let missing = try desk.lazaret("inspect", "Typo.sqlite", "--quiet")
    #expect(missing.status == 1 && missing.output.isEmpty && missing.errors.contains("Typo.sqlite: missing"))
    let list = try desk.lazaret("quarantine", "list", "Nowhere", "-q")
    #expect(list.status == 1 && list.errors.contains("[file-not-found]"), "\(list.errors)")
    // A store that is moved away, with what is lost of it, is nothing to be silent about.
    try desk.makeDamagedStore("Broken.sqlite")
    let opened = try desk.lazaret("open", "Stores/Broken.sqlite", "--model", desk.model, "-q")
    #expect(opened.status == 2 && opened.output.isEmpty, "\(opened.output)")
    #expect(opened.errors.contains("Broken.sqlite: damaged"), "\(opened.errors)")
    let again = try desk.lazaret("open", "Stores/Broken.sqlite", "--model", desk.model, "-q")
    #expect(again.status == 0 && again.errors.isEmpty, "\(again.errors)")
    let wrong = try desk.lazaret("salvage", "Stores", "-o", "Out.sqlite", "-q")
    #expect(wrong.status == 64 && wrong.errors.contains("[is-a-directory]"))
    #expect(try desk.lazaret("inspect", desk.store, "-q", "--json").output.contains("compatible"))
    // What cannot be had again is not kept back.
    #expect(try desk.lazaret("inbox", "token", "new", "Garage", "-q").output.contains("lzi_"))
    #expect(try desk.lazaret("inspect", desk.store, "-q", "-v").status == 64)
  }

  @Test func rowsOfZerosAreLeftOutUnlessAllAreWanted() throws {
    let desk = try Desk()
    try desk.makeStore("Garage.sqlite", model: Self.examples)
    let queue = try DatabaseQueue(path: desk.folder.appending("Garage.sqlite").string)
    try queue.writeWithoutTransaction {
      try $0.execute(
        sql: "INSERT INTO ZTAG (Z_ENT, Z_OPT, ZNAME) SELECT Z_ENT, 1, 'a' FROM Z_PRIMARYKEY WHERE Z_NAME = 'Tag'")
    }
    try queue.close()
    let few = try desk.lazaret("inspect", "Garage.sqlite")
    #expect(few.output.contains("  Tag ") && !few.output.contains("ZREPAIR"), "\(few.output)")
    #expect(few.output.contains("not shown: 5 entities without records; --all shows all"), "\(few.output)")
    let other = try Desk()
    try other.makeStore()
    let one = try other.lazaret("inspect", other.store)
    #expect(one.output.contains("not shown: 1 entity without records; --all shows all"), "\(one.output)")
    for option in ["--all", "--verbose"] {
      let all = try desk.lazaret("inspect", "Garage.sqlite", option)
      #expect(all.output.contains("ZREPAIR") && !all.output.contains("not shown"), "\(all.output)")
    }
  }

  @Test func numbersHaveTheirCommas() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1234)
          INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT i, 1, 1, 'car ' || i FROM n;
          UPDATE Z_PRIMARYKEY SET Z_MAX = 1234
          """)
    }
    try queue.close()
    let inspected = try desk.lazaret("inspect", store)
    #expect(inspected.output.contains("1,234\n") && inspected.output.contains("pages of 4,096 bytes"))
    #expect(!inspected.output.contains("1234"), "\(inspected.output)")
    let preview = try desk.lazaret("salvage", store, "-o", "Out.sqlite")
    #expect(preview.output.contains("1,234") && !preview.output.contains("1234"), "\(preview.output)")
  }

  // MARK: Answers

  @Test(
    "A question is answered with y or yes, and no cancels",
    arguments: [
      ("y\n", true), ("Yes\n", true), (" yes \n", true), ("n\n", false), ("no\n", false), ("\n", false),
      ("perhaps\ny\n", true), ("perhaps\nperhaps\nperhaps\ny\n", false), ("", false),
    ])
  func answers(_ answer: (text: String, isYes: Bool)) throws {
    let desk = try Desk()
    try desk.makeDamagedStore()
    #expect(try desk.lazaret("quarantine", "add", desk.store).status == 0)
    let id = try desk.quarantinedID()
    let result = try desk.lazaret("quarantine", "discard", id, input: answer.text)
    #expect(result.status == (answer.isYes ? 0 : 1), "\(result.errors)")
    #expect(result.errors.contains("nothing was removed") == !answer.isYes, "\(result.errors)")
    let isCancelled = !answer.isYes && !answer.text.isEmpty
    #expect(result.errors.contains("Cancelled: ") == isCancelled, "\(result.errors)")
    let isThere = try FileSystem().status(of: desk.stores.appending("Incompatible/\(id).sqlite")) != nil
    #expect(isThere == !answer.isYes)
  }

  // MARK: Exit codes and the environment

  @Test func aFolderInPlaceOfAStoreIsASlip() throws {
    let desk = try Desk()
    for arguments in [
      ["inspect", "Stores"], ["open", "Stores", "--model", desk.model], ["salvage", "Stores", "-o", "x"],
      ["plan", "Stores", "--model", desk.model], ["migrate", "Stores", "--model", desk.model],
      ["repair", "Stores", "--model", desk.model], ["backup", "create", "Stores"], ["backup", "list", "Stores"],
      ["kit", "create", "Stores", "-o", "x"], ["quarantine", "add", "Stores"], ["export", "Stores", "-o", "x"],
      ["damage", "Stores", "-o", "x", "--kind", "zero:5"],
    ] {
      #expect(try desk.run(arguments).status == 64, "\(arguments)")
    }
  }

  @Test func aPlaceWrittenAsAFolderThatIsMissingIsASlip() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let before = try FolderContents(of: desk.folder.path)
    for arguments in [
      ["export", store, "-o", "nodir/", "--yes"], ["salvage", store, "-o", "nodir/"],
      ["damage", store, "-o", "nodir/", "--kind", "zero:5"], ["kit", "create", store, "-o", "nodir/"],
      ["migrate", store, "--model", desk.model, "-o", "nodir/"], ["key", "new", "-o", "nodir/"],
      ["backup", "restore", "--of", store, "--to", "nodir/"],
    ] {
      let result = try desk.run(arguments)
      #expect(result.status == 64 && result.errors.contains("There is no folder"), "\(arguments): \(result.errors)")
    }
    #expect(try FolderContents(of: desk.folder.path) == before)
    try FileSystem().makeDirectory(desk.folder.appending("nodir"))
    #expect(try desk.lazaret("export", store, "--level", "facts", "-o", "nodir/", "--yes").status == 0)
    #expect(try FileSystem().entries(of: desk.folder.appending("nodir")).count == 1)
  }

  @Test func aPropertyThatTheModelDropsIsNoSurprise() throws {
    let desk = try Desk()
    let losing = try desk.makeLosingModel()
    let store = try desk.makeOldStore()
    for arguments in [["plan", store], ["migrate", store, "-o", "New.sqlite"], ["open", store]] {
      let result = try desk.run(arguments + ["--model", losing])
      #expect(result.status == 0, "\(arguments): \(result.errors)")
      #expect(result.output.contains("Car.name is removed: its values are deleted (1 record)"), "\(result.output)")
    }
    // An entity that goes takes records with it.
    try desk.folder.write(
      Desk.contents(["name"]), to: "Gone.xcdatamodeld/V1.xcdatamodel/contents")
    try desk.folder.write(
      Desk.contents(["name"], entity: "Boat"), to: "Gone.xcdatamodeld/V2.xcdatamodel/contents")
    let gone = try desk.lazaret(
      "plan", try desk.makeOldStore("Gone.sqlite"), "--model", desk.folder.appending("Gone.xcdatamodeld").string)
    #expect(gone.status == 2, "\(gone.output)")
  }

  @Test func theEnvironmentNamesTheModel() throws {
    let desk = try Desk()
    let variables = ["LAZARET_MODEL=\(desk.model)", "LAZARET_HOME=\(desk.folder.path)"]
    #expect(try run(desk, variables, ["open", desk.store]).status == 0)
    let old = try desk.makeOldStore()
    let told = try run(desk, variables, ["inspect", old])
    #expect(told.output.contains(": outdated"), "\(told.output)")
    #expect(try run(desk, variables, ["plan", old]).output.contains("V1 → V2"))
    // What is given counts.
    let given = try run(desk, variables, ["inspect", old, "--model", desk.folder.appending("Old.xcdatamodel").string])
    #expect(given.output.contains(": compatible"), "\(given.output)")
    let missing = try run(desk, ["-u", "LAZARET_MODEL"], ["open", desk.store])
    #expect(missing.status == 64 && missing.errors.contains("LAZARET_MODEL"), "\(missing.errors)")
  }

  @Test func theNewestBackupIsFoundForACopyElsewhere() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    #expect(try desk.lazaret("backup", "create", store).status == 0)
    try FileManager.default.copyItem(atPath: store, toPath: desk.folder.appending("Broken.sqlite").string)
    let found = try desk.lazaret("salvage", "Broken.sqlite", "--with-backup", "latest", "-o", "Rescued.sqlite")
    #expect(found.status == 0, "\(found.errors)")
    // Of another store there is none, and the error says of which there are.
    let other = try desk.makeOldStore("Other.sqlite")
    let missing = try desk.lazaret("salvage", other, "--with-backup", "latest", "-o", "None.sqlite")
    #expect(missing.status == 1 && missing.errors.contains("no-such-backup"), "\(missing.errors)")
    #expect(missing.errors.contains("Stores/Old.sqlite"), "\(missing.errors)")
  }

  @Test func nothingOfABarIsSeenWhereThereIsNoTerminal() throws {
    let desk = try Desk()
    let broken = try desk.makeBrokenStore()
    let sound = try desk.makeOldStore()
    for arguments in [["inspect", broken], ["salvage", broken, "-o", "Out.sqlite"], ["backup", "create", sound]] {
      let result = try desk.run(arguments)
      #expect(result.errors.isEmpty, "\(arguments): \(result.errors)")
    }
  }
}
