import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

/// Which folder a verb takes for the home, and what it says where that is not the one the user thought of.
struct HomeTests {
  let desk: Desk
  let elsewhere: TemporaryFolder

  init() throws {
    desk = try Desk()
    elsewhere = try TemporaryFolder()
  }

  /// Runs the command line in a folder that has nothing to do with the stores.
  private func away(_ arguments: String...) throws -> Desk.Result { try away(arguments) }

  private func away(_ arguments: [String], home: FilePath? = nil) throws -> Desk.Result {
    try ChildProcess.run(ChildProcess.tool, arguments, in: elsewhere.path, home: home)
  }

  private func isThere(_ path: String) throws -> Bool {
    try FileSystem().status(of: desk.folder.appending(path)) != nil
  }

  private func object(_ text: String) throws -> [String: Any] { try #require(try json(text) as? [String: Any]) }

  private func error(_ result: Desk.Result) throws -> (code: String, detail: String, hint: String) {
    let error = try #require(try object(result.errors)["error"] as? [String: Any])
    return try (
      #require(error["code"] as? String), #require(error["detail"] as? String), #require(error["hint"] as? String)
    )
  }

  private func ids(_ result: Desk.Result, of list: String) throws -> [String] {
    try #require(try object(result.output)[list] as? [[String: Any]]).compactMap { $0["id"] as? String }
  }

  /// The words of a command as a shell would have them, without the program; nothing in these folders has to be quoted.
  private func words(_ command: String) -> [String] {
    command.split(separator: " ").dropFirst().map(String.init)
  }

  /// The command that a text gives behind some words, up to the end of its line.
  private func command(in text: String, behind words: String) throws -> String {
    let rest = try #require(text.range(of: words)).upperBound
    return String(text[rest...].prefix { $0 != "\n" })
  }

  // MARK: The store's folder

  @Test func theHomeIsTheStoresFolderForEveryVerbThatIsGivenAStore() throws {
    let store = try desk.makeOldStore()
    let created = try away("backup", "create", store, "--json")
    #expect(created.status == 0, "\(created.errors)")
    let backup = try #require(try object(created.output)["backup"] as? [String: Any])
    #expect(backup["folder"] as? String == desk.stores.appending("Backups/Old").string)
    let migrated = try away("migrate", store, "--model", desk.model)
    #expect(migrated.status == 0, "\(migrated.errors)")
    #expect(try isThere("Stores/migrations.jsonl"))
    let out = try TemporaryFolder()
    let exported = try away(
      "export", store, "--model", desk.model, "-o", out.appending("Report.tar.gz").string, "--yes",
      "--same-key")
    #expect(exported.status == 0, "\(exported.errors)")
    #expect(try isThere("Stores/Keys/scrubbing.key"))
    let listed = try away("backup", "list", store, "--json")
    #expect(try ids(listed, of: "backups").count == 2)
    #expect(try object(listed.output)["home"] as? String == desk.stores.string)
    let id = try #require(backup["id"] as? String)
    for arguments in [
      ["verify", "--of", store], ["verify", id, "--of", store], ["prune", "--of", store, "--dry-run"],
      ["restore", id, "--of", store, "--to", out.appending("Back.sqlite").string], ["undelete", "--of", store],
    ] {
      let result = try away(["backup"] + arguments)
      #expect(result.status == 0, "\(arguments): \(result.errors)")
    }
    let added = try away("quarantine", "add", store, "--json")
    #expect(added.status == 0, "\(added.errors)")
    let quarantined = try #require(try object(added.output)["store"] as? String)
    #expect(try isThere("Stores/Quarantines.json"))
    try desk.makeDamagedStore()
    #expect(try away("open", desk.store, "--model", desk.model).status == 2)
    for arguments in [["list", "--json", desk.store], ["list", desk.stores.string], ["show", quarantined]] {
      let result = try away(["quarantine"] + arguments)
      #expect(result.status == 0, "\(arguments): \(result.errors)")
    }
    let salvaged = try away("quarantine", "salvage", quarantined, "--model", desk.model)
    #expect([0, 2].contains(salvaged.status), "\(salvaged.errors)")
    let here = try desk.homeless("quarantine", "list", "--json", in: desk.stores)
    #expect(try ids(here, of: "stores").count == 2)
    #expect(try FileSystem().entries(of: elsewhere.path).isEmpty)
    #expect(try !isThere("Quarantines.json"))
  }

  @Test func aLinkLeadsToTheFolderOfTheStoreItself() throws {
    let store = try desk.makeOldStore()
    try FileSystem().makeDirectory(desk.folder.appending("Links"))
    try FileManager.default.createSymbolicLink(
      atPath: desk.folder.appending("Links/Old.sqlite").string, withDestinationPath: store)
    let created = try away("backup", "create", desk.folder.appending("Links/Old.sqlite").string)
    #expect(created.status == 0, "\(created.errors)")
    #expect(try isThere("Stores/Backups/Old"))
    #expect(try FileSystem().entries(of: desk.folder.appending("Links")).count == 1)
  }

  @Test func whatAHomeOfItsFolderHoldsIsFoundWithoutACatalogue() throws {
    try desk.makeDamagedStore()
    // An earlier run had its catalogue elsewhere.
    let added = try away("quarantine", "add", desk.store, "--home", elsewhere.path.string, "--json")
    #expect(added.status == 0, "\(added.errors)")
    let id = try #require(try object(added.output)["id"] as? String)
    #expect(try !isThere("Stores/Quarantines.json"))
    let listed = try desk.homeless("quarantine", "list", in: desk.stores)
    #expect(listed.output.contains(id) && listed.output.contains("Home: \(desk.stores.string), the current folder"))
    #expect(try desk.homeless("quarantine", "show", id, in: desk.stores).status == 0)
  }

  @Test func thePrintedCommandForALaterSalvageWorksAnywhere() throws {
    let broken = try desk.makeBrokenStore()
    let opened = try away("open", broken, "--model", desk.model, "--on-damage", "later")
    #expect(opened.status == 2, "\(opened.errors)")
    let told = try command(in: opened.output, behind: "its records can be salvaged with: ")
    #expect(!told.contains("--home"), "\(told)")
    let salvaged = try away(words(told) + ["--model", desk.model])
    #expect([0, 2].contains(salvaged.status), "\(told): \(salvaged.errors)")
    #expect(salvaged.output.contains("40"))
  }

  // MARK: The environment and the option

  @Test func theEnvironmentNamesTheHomeAndTheOptionGoesBeforeIt() throws {
    try desk.makeDamagedStore()
    let (home, other) = (desk.folder.appending("Home"), desk.folder.appending("Other"))
    let opened = try away(["open", desk.store, "--model", desk.model], home: home)
    #expect(opened.status == 2 && opened.errors.isEmpty, "\(opened.errors)")
    #expect(try isThere("Home/Quarantines.json") && !isThere("Stores/Quarantines.json"))
    let listed = try away(["quarantine", "list"], home: home)
    #expect(listed.output.contains("Home: \(home.string), as LAZARET_HOME says"), "\(listed.output)")
    #expect(try ids(try away(["quarantine", "list", "--json"], home: home), of: "stores").count == 1)
    #expect(try ids(try away(["quarantine", "list", "--json"]), of: "stores").isEmpty)
    let made = try away(["backup", "create", desk.store, "--home", other.string], home: home)
    #expect(made.status == 0, "\(made.errors)")
    #expect(try isThere("Other/Backups/App"))
    let there = try away(["backup", "list", "--home", other.string, "--json"], home: home)
    #expect(try object(there.output)["home"] as? String == other.string)
    // An empty variable is none.
    let empty = try away(["backup", "list", "--json"], home: "")
    #expect(try object(empty.output)["home"] as? String == elsewhere.path.string)
  }

  @Test func aPrintedCommandNamesTheHomeOnlyWhereItMust() throws {
    let store = try desk.makeOldStore()
    #expect(try away("migrate", store, "--model", desk.model).status == 0)
    let originals = try FileSystem().entries(of: desk.stores.appending("Backups/Old")).filter {
      $0.extension == "sqlite"
    }
    let id = try #require(originals.last?.stem)
    let note = #"{"version":1,"step":"V1 → V2","entities":[{"entity":"Person","rows":12}]}"#
    try desk.folder.write(note, to: "Stores/Backups/Old/\(id).only-here.json")
    let near = try desk.homeless("backup", "list", in: desk.stores)
    #expect(near.output.contains("lazaret backup release \(id)\n"), "\(near.output)")
    let far = try away("backup", "list", store)
    let told = try command(in: far.output, behind: "is released with: ")
    #expect(told == "lazaret backup release \(id) --home \(desk.stores.string)")
    #expect(try away(["backup", "list"], home: desk.stores).output.contains("lazaret backup release \(id)\n"))
    let released = try away(words(told))
    #expect(released.status == 0 && released.output.contains("is released"), "\(released.errors)")
  }

  // MARK: A home that is not there

  static let lookups: [[String]] = [
    ["quarantine", "list"], ["quarantine", "show", "2001-01-01-00-00-00"],
    ["quarantine", "release", "2001-01-01-00-00-00"], ["quarantine", "discard", "2001-01-01-00-00-00", "--yes"],
    ["quarantine", "salvage", "2001-01-01-00-00-00"], ["backup", "list"], ["backup", "verify"], ["backup", "prune"],
    ["backup", "restore"], ["backup", "undelete"], ["backup", "release", "b-2001-01-01-00-00-00"],
    ["outbox", "list"], ["outbox", "send"], ["outbox", "prune"], ["outbox", "retry", "2001"],
    ["outbox", "cancel", "2001"], ["inbox", "token", "list"], ["inbox", "token", "revoke", "x"],
    ["serve", "--no-browser", "--port", "0"], ["export", "2001-01-01-00-00-00", "--dry-run"],
  ]

  @Test(arguments: lookups) func aMissingHomeIsAnErrorWhereSomethingIsLookedFor(verb: [String]) throws {
    let missing = desk.folder.appending("missing")
    let named = try away(verb + ["--home", missing.string, "--json"])
    #expect(named.status == 1 && named.output.isEmpty, "\(named.errors)")
    let told = try error(named)
    #expect(told.code == "home-missing" && told.detail == "the home does not exist", "\(told)")
    #expect(told.hint.contains("--home") && told.hint.contains("LAZARET_HOME"))
    let byVariable = try error(try away(verb + ["--json"], home: missing))
    #expect(byVariable.code == "home-missing" && byVariable.detail.contains("LAZARET_HOME"), "\(byVariable)")
    try desk.folder.write("a file", to: "file")
    let file = try error(try away(verb + ["--home", desk.folder.appending("file").string, "--json"]))
    #expect(file.code == "home-missing" && file.detail == "the home is a file", "\(file)")
    #expect(try !isThere("missing"))
  }

  @Test func aMissingHomeIsMadeWhereSomethingIsWritten() throws {
    let store = try desk.makeOldStore()
    for (name, arguments) in [
      ("A", ["backup", "create", store]), ("B", ["open", store, "--model", desk.model]),
      ("C", ["quarantine", "add", store]), ("D", ["inbox", "token", "new", "Garage"]),
    ] {
      let result = try away(arguments + ["--home", desk.folder.appending(name).string])
      #expect(result.status == 0, "\(arguments): \(result.errors)")
      #expect(try isThere(name))
    }
  }

  @Test(arguments: [
    ["quarantine", "list"], ["backup", "list"], ["backup", "verify"], ["backup", "prune"], ["backup", "undelete"],
    ["outbox", "list"], ["outbox", "send"], ["inbox", "token", "list"],
  ])
  func aHomeWithoutAnythingIsNoErrorAndIsNamed(verb: [String]) throws {
    let result = try away(verb)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains("\(elsewhere.path.string), the current folder"), "\(result.output)")
  }

  // MARK: The current folder

  @Test func aNameThatTheCurrentFolderKnowsIsHinted() throws {
    try desk.makeStore()
    #expect(try desk.lazaret("backup", "create", desk.store, "--home", ".").status == 0)
    #expect(try desk.lazaret("quarantine", "add", desk.store, "--home", ".").status == 0)
    let id = try #require(try ids(try desk.homeless("quarantine", "list", "--json"), of: "stores").first)
    let backup = try #require(try ids(try desk.homeless("backup", "list", "--json"), of: "backups").first)
    let before = try FolderContents(of: desk.folder.path)
    let listed = try desk.homeless("backup", "list", desk.store)
    #expect(listed.status == 0 && listed.output.contains("No backup"), "\(listed.output)")
    #expect(try desk.homeless("backup", "list", "--home", ".").output.contains(backup))
    // A name that the home does not know is not simply unknown.
    let lost = try error(
      try desk.homeless("backup", "restore", backup, "--of", desk.store, "--to", "Back.sqlite", "--json"))
    #expect(lost.code == "no-such-backup" && lost.detail.contains("current folder"), "\(lost)")
    #expect(lost.hint.contains("--home ."))
    #expect(try FolderContents(of: desk.folder.path) == before)
    try FileSystem().makeDirectory(desk.folder.appending("Empty"))
    let unknown = try error(try desk.homeless("quarantine", "release", id, "--home", "Empty", "--json"))
    #expect(unknown.code == "not-in-quarantine" && unknown.detail.contains("current folder"), "\(unknown)")
    #expect(unknown.hint.contains("--home ."))
    // By its name it is found from there as before.
    #expect(try desk.homeless("quarantine", "release", id).status == 0)
  }

  // MARK: Names

  @Test func namesOfBackupsAndOfQuarantinedStoresAreToldApart() throws {
    try desk.makeStore()
    #expect(try desk.lazaret("backup", "create", desk.store).status == 0)
    #expect(try desk.lazaret("quarantine", "add", desk.store).status == 0)
    let id = try desk.quarantinedID()
    let backup = try #require(try ids(try desk.lazaret("backup", "list", "--json"), of: "backups").first)
    #expect(backup.hasPrefix("b-20") && id.hasPrefix("20"))
    for verb in [["show"], ["release"], ["discard", "--yes"], ["salvage"]] {
      let result = try desk.run(["quarantine", verb[0], backup] + verb.dropFirst() + ["--json"])
      let told = try error(result)
      #expect(result.status == 1 && told.code == "not-in-quarantine")
      #expect(told.detail == "\(backup) is the name of a backup, and of no quarantined store", "\(told)")
      #expect(told.hint.hasPrefix("Use: lazaret backup "), "\(told)")
    }
    let shown = try error(try desk.lazaret("quarantine", "show", backup, "--json"))
    let verified = try desk.run(words(try command(in: shown.hint, behind: "Use: ")))
    #expect(verified.status == 0 && verified.output.contains(backup), "\(verified.errors)")
    for verb in ["verify", "restore", "release", "undelete"] {
      let result = try desk.lazaret("backup", verb, id, "--json")
      let told = try error(result)
      #expect(result.status == 1 && told.code == "no-such-backup", "\(verb): \(told)")
      #expect(told.detail == "\(id) is the name of a quarantined store, and of no backup", "\(verb): \(told)")
      #expect(told.hint.hasPrefix("Use: lazaret quarantine ") && told.hint.hasSuffix(" \(id)"), "\(verb): \(told)")
    }
    let unverified = try error(try desk.lazaret("backup", "verify", id, "--json"))
    #expect(try desk.run(words(try command(in: unverified.hint, behind: "Use: "))).status == 0)
  }

  @Test func backupsOfEarlierVersionsKeepTheirNames() throws {
    let store = try desk.makeOldStore()
    #expect(try away("migrate", store, "--model", desk.model).status == 0)
    let folder = desk.stores.appending("Backups/Old")
    // What a migration keeps has no manifest, so that its name can be what an earlier version would have given it.
    for name in try FileSystem().entries(of: folder) where name.string.contains("b-20") {
      try FileSystem().rename(
        folder.appending(name), to: folder.appending(name.string.replacingOccurrences(of: "b-20", with: "20")))
    }
    #expect(try away("backup", "create", store).status == 0)
    let all = try ids(try away("backup", "list", store, "--json"), of: "backups")
    #expect(all.map { $0.hasPrefix("b-") } == [true, false])
    let id = try #require(all.last)
    let verified = try away("backup", "verify", id, "--of", store)
    #expect(verified.status == 0, "\(verified.errors)")
    let out = elsewhere.appending("Back.sqlite").string
    #expect(try away("backup", "restore", id, "--of", store, "--to", out).status == 0)
    let told = try error(try away("quarantine", "show", id, "--home", desk.stores.string, "--json"))
    #expect(told.detail.contains("is the name of a backup"), "\(told)")
  }
}
