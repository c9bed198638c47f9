import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

/// A store, a backup, a bundle or a folder of them as a model, and models written as files.
struct ModelExportTests {
  let desk: Desk
  let old: String

  init() throws {
    desk = try Desk()
    old = try desk.makeOldStore()
  }

  private func json(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  /// The hashes of the current version of a model, as the command line tells them.
  private func hashes(_ model: String) throws -> [String: String] {
    let result = try desk.lazaret("model", "hashes", model, "--json")
    #expect(result.status == 0, "\(result.errors)")
    let versions = try #require(try json(result.output)["versions"] as? [[String: Any]])
    let current = try #require(versions.first { $0["current"] as? Bool == true })
    return try #require(current["entities"] as? [String: String])
  }

  @Test func whatIsWrittenOfAStoreHasTheHashesOfTheModelItWasMadeWith() throws {
    let wanted = try hashes(desk.folder.appending("Old.xcdatamodel").string)
    #expect(!wanted.isEmpty)
    #expect(try hashes(old) == wanted)
    for name in ["V1.mom", "V1.xcdatamodel"] {
      let file = desk.folder.appending(name).string
      let result = try desk.lazaret("model", "export", old, "--output", file, "--json")
      #expect(result.status == 0, "\(result.errors)")
      #expect(try json(result.output)["entities"] as? [String: String] == wanted)
      #expect(try hashes(file) == wanted)
      // No file is replaced.
      let again = try desk.lazaret("model", "export", old, "--output", file)
      #expect(again.status == 1 && again.errors.contains("[file-exists]"))
    }
    let plain = try desk.lazaret(
      "model", "export", old, "--output", desk.folder.appending("Any").string, "--format", "xcdatamodel")
    #expect(plain.status == 0)
    #expect(try FileSystem().status(of: desk.folder.appending("Any/contents"))?.kind == .regular)
  }

  @Test func aVersionOfAModelIsWritten() throws {
    let file = desk.folder.appending("One.mom").string
    #expect(try desk.lazaret("model", "export", desk.model, "--version-name", "V1", "-o", file).status == 0)
    #expect(try hashes(file) == hashes(desk.folder.appending("Old.xcdatamodel").string))
    let unknown = try desk.lazaret("model", "export", desk.model, "--version-name", "V9", "-o", file + "2")
    #expect(unknown.status == 1 && unknown.errors.contains("V1, V2"))
  }

  @Test func aStoreIsTheModelOfOtherStores() throws {
    let inspected = try desk.lazaret("inspect", old, "--model", old, "--json")
    #expect(try json(inspected.output)["verdict"] as? String == "compatible")
    #expect(try json(inspected.output)["modelVersion"] as? String == "Old")
    try desk.makeStore()
    let other = try desk.lazaret("inspect", desk.store, "--model", old, "--json")
    #expect(["incompatible", "unavailable"].contains(try json(other.output)["verdict"] as? String))
    // The model of a newer store leads a migration.
    let plan = try desk.lazaret("plan", old, "--model", desk.store, "--json")
    #expect(plan.status == 0, "\(plan.errors)")
    #expect(try json(plan.output)["to"] as? String == "App")
  }

  @Test func nothingOfTheStoreIsChanged() throws {
    func state() throws -> [String: [UInt8]] {
      var state: [String: [UInt8]] = [:]
      for name in try FileSystem().entries(of: desk.stores) {
        let path = desk.stores.appending(name)
        if try FileSystem().status(of: path)?.kind == .regular {
          state[name.string] = try FileSystem().contents(of: path, limit: 1 << 24)
        }
      }
      return state
    }
    let before = try state()
    #expect(try desk.lazaret("model", "show", old).status == 0)
    #expect(try desk.lazaret("model", "export", old, "-o", desk.folder.appending("A.mom").string).status == 0)
    #expect(try state() == before)
  }

  @Test func aBackupCarriesItsModel() throws {
    #expect(try desk.lazaret("backup", "create", old).status == 0)
    let list = try desk.lazaret("backup", "list", old, "--json")
    let text = list.output
    let id = try #require(text.firstMatch(of: /"id"\s*:\s*"([^"]+)"/)).1
    let wanted = try hashes(old)
    // By its name in the home.
    #expect(try hashes(String(id)) == wanted)
    // By its file.
    #expect(try hashes(desk.folder.appending("Backups/Old/\(id).sqlite.gz").string) == wanted)
  }

  @Test func aBackupThatIsPackedWithZstandardCarriesItsModel() throws {
    #expect(try desk.lazaret("backup", "create", old, "--compression", "zstd").status == 0)
    let list = try desk.lazaret("backup", "list", old, "--json").output
    let id = try #require(list.firstMatch(of: /"id"\s*:\s*"([^"]+)"/)).1
    #expect(try hashes(desk.folder.appending("Backups/Old/\(id).sqlite.zst").string) == hashes(old))
  }

  @Test func aBundleCarriesTheModelOfItsStore() throws {
    let bundle = desk.folder.appending("B.tar.gz").string
    let made = try desk.lazaret("export", old, "-o", bundle, "--level", "facts", "--yes")
    #expect(made.status == 0 || made.status == 2, "\(made.errors)")
    let wanted = try hashes(old)
    #expect(try hashes(bundle) == wanted)
    let folder = desk.folder.appending("Unpacked").string
    #expect(try desk.lazaret("bundle", "unpack", bundle, "-o", folder).status == 0)
    #expect(try hashes(folder) == wanted)
  }

  @Test func aQuarantinedStoreCarriesItsModel() throws {
    let wanted = try hashes(old)
    let added = try desk.lazaret("quarantine", "add", old, "--json")
    let id = try #require(added.output.firstMatch(of: /"id"\s*:\s*"([^"]+)"/)).1
    // By its name in the home, and by its file.
    #expect(try hashes(String(id)) == wanted)
    #expect(try hashes(desk.stores.appending("Incompatible").appending("\(id).sqlite").string) == wanted)
  }

  @Test func aPlainStoreOrOneWithoutItsModelIsRefusedByName() throws {
    let plain = desk.folder.appending("Plain.sqlite")
    let created = try desk.lazaret("open", plain.string, "--model", desk.folder.appending("Cars.sql").string)
    #expect(created.status == 0, "\(created.errors)")
    let result = try desk.lazaret("model", "show", plain.string)
    #expect(result.status == 1 && result.errors.contains("[model-no-versions]"), "\(result.errors)")
    #expect(result.errors.contains("plain store"))
  }

  @Test func aFolderOfStoresAndModelsIsAHistory() throws {
    let history = desk.folder.appending("History")
    try FileSystem().makeDirectory(history)
    let bytes = try FileSystem().contents(of: FilePath(old), limit: 1 << 24)
    for name in ["App-1.0.sqlite", "App-1.1.sqlite"] {
      let file = try FileSystem().create(history.appending(name), permissions: .ownerReadWrite, truncating: true)
      try file.write(bytes)
    }
    let newest = history.appending("App-2.mom").string
    #expect(try desk.lazaret("model", "export", desk.model, "--version-name", "V2", "-o", newest).status == 0)
    let result = try desk.lazaret("model", "hashes", history.string, "--json")
    #expect(result.status == 0, "\(result.errors)")
    let versions = try #require(try json(result.output)["versions"] as? [[String: Any]])
    // Two stores of one version are one.
    #expect(versions.compactMap { $0["name"] as? String } == ["App-1.0", "App-2"])
    #expect(versions.map { $0["current"] as? Bool } == [false, true])
    #expect(try desk.lazaret("model", "show", history.string).errors.contains("history of 2 versions"))
    let plan = try desk.lazaret("plan", old, "--model", history.string, "--json")
    #expect(plan.status == 0, "\(plan.errors)")
    #expect(try json(plan.output)["from"] as? String == "App-1.0" && json(plan.output)["to"] as? String == "App-2")
  }

  @Test func severalModelsInAFolderAreStillSeveral() throws {
    // The folder has a bundle, a version alone and a schema: the one that fits is taken.
    let result = try desk.lazaret("inspect", old, "--model", desk.folder.path.string, "--json")
    #expect(try json(result.output)["verdict"] as? String == "compatible")
    #expect(!result.errors.contains("history"))
    // Model sources beside Swift files are an app's folder.
    try FileSystem().makeDirectory(desk.folder.appending("App"))
    try desk.folder.write(Desk.contents(["name"]), to: "App/Model.xcdatamodel/contents")
    try desk.folder.write("import CoreData\nclass Car: NSManagedObject {}\n", to: "App/Car.swift")
    let app = try desk.lazaret("inspect", old, "--model", desk.folder.appending("App").string, "--json")
    #expect(try json(app.output)["modelVersion"] as? String == "Model", "\(app.errors)")
  }

  @Test func storesAtHandAreHeldAgainstAModel() throws {
    #expect(try desk.lazaret("model", "lint", desk.model, "--store", old).output.contains("unknown-release") == false)
    try desk.folder.write(Desk.contents(["name", "size"]), to: "App.xcdatamodeld/V1.xcdatamodel/contents")
    let result = try desk.lazaret("model", "lint", desk.model, "--store", desk.stores.string, "--json")
    #expect(result.status == 2, "\(result.errors)")
    let findings = try #require(try json(result.output)["findings"] as? [[String: Any]])
    let found = try #require(findings.first { $0["rule"] as? String == "unknown-release" })
    #expect((found["detail"] as? String)?.hasPrefix("Old.sqlite is of none of the versions") == true)
  }

  @Test func recordsThatANewConstraintIsAboutAreCounted() throws {
    // A version with a constraint after one without, and a store of the first with two records of one name.
    try desk.folder.write(
      Desk.contents(["name"], isUnique: false), to: "Two.xcdatamodeld/V1.xcdatamodel/contents")
    try desk.folder.write(Desk.contents(["name"]), to: "Two.xcdatamodeld/V2.xcdatamodel/contents")
    try desk.folder.write(Desk.contents(["name"], isUnique: false), to: "Loose.xcdatamodel/contents")
    let store = desk.stores.appending("Loose.sqlite").string
    try desk.makeStore(store, model: desk.folder.appending("Loose.xcdatamodel").string)
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'a'), (2, 1, 1, 'a'), (3, 1, 1, 'b')")
      try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = 3")
    }
    try queue.close()
    let result = try desk.lazaret(
      "model", "lint", desk.folder.appending("Two.xcdatamodeld").string, "--store", store, "--json")
    let findings = try #require(try json(result.output)["findings"] as? [[String: Any]])
    let counted = findings.filter { $0["rule"] as? String == "depends-on-data" }.compactMap { $0["detail"] as? String }
    #expect(counted.contains { $0.hasSuffix(" in Loose.sqlite") && $0.contains("record") }, "\(counted)")
  }
}
