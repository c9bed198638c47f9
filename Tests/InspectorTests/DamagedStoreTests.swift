import Foundation
import GRDB
import HTTPServer
import Inspector
import Lazaret
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

@Suite("A damaged store that is still in its place")
struct DamagedStoreTests {
  /// A damaged store of 400 cars at its app's place, by a name, with a browser.
  private static func scene(
    _ kinds: [String] = ["zero:20"], _ others: [ModelBundle] = []
  ) throws -> (scene: Scene, browser: Browser, id: String) {
    let scene = try Scene()
    let bundle = try Scene.bundle()
    try scene.makeDamaged("App.sqlite", bundle: bundle, kinds)
    let browser = try Browser(try scene.inspector(others + [bundle]))
    return (scene, browser, try browser.id("live", "App.sqlite"))
  }

  /// The answer for an address, when what it is about has been looked at.
  static func settled(_ browser: Browser, _ address: String) throws -> Response {
    for _ in 0..<400 {
      let response = try browser.get(address)
      let isPreparing = response.text.contains("data-reload") || response.text.contains("\"preparing\":true")
      guard isPreparing else { return response }
      Thread.sleep(forTimeInterval: 0.02)
    }
    return try browser.get(address)
  }

  private static func json(_ browser: Browser, _ address: String) throws -> [String: Any] {
    let response = try settled(browser, address)
    #expect(response.status == .ok, "\(address)")
    return try JSONSerialization.jsonObject(with: Data(response.bytes ?? [])) as? [String: Any] ?? [:]
  }

  /// The pages of a file that hold nothing but zeros, by number.
  private static func zeros(in path: FilePath, pageSize: Int) throws -> [Int] {
    let bytes = try FileSystem().contents(of: path, limit: 1 << 28)
    return stride(from: 0, to: bytes.count, by: pageSize).enumerated().compactMap { place, start in
      bytes[start..<min(bytes.count, start + pageSize)].allSatisfy { $0 == 0 } ? place + 1 : nil
    }
  }

  @Test("it has its page map and its damage by page, and nothing of the home changes but the cache")
  func look() throws {
    let (scene, browser, id) = try Self.scene()
    let before = try FolderContents(of: scene.home, ignoring: [".lazaret-browsing"])
    let page = try DamagedStoreTests.settled(browser, "/stores/\(id)").text
    for heading in ["Page map", "Damage by page", "How much is left", "What most likely happened"] {
      #expect(page.contains("<h2>\(heading)</h2>"), "\(heading)")
    }
    let map = try Self.json(browser, "/stores/\(id)/map.json")
    let pageSize = try #require(map["pageSize"] as? Int)
    let runs = try #require(map["runs"] as? [[Any]])
    let states = runs.flatMap { Array(repeating: $0[0] as? String ?? "", count: $0[2] as? Int ?? 0) }
    // The oracle is the file itself: a page of zeros is none that can be read.
    let zeros = try Self.zeros(in: scene.stores.appending("App.sqlite"), pageSize: pageSize)
    #expect(!zeros.isEmpty)
    for number in zeros {
      #expect(states[number - 1] == "x", "page \(number)")
      #expect(try browser.get("/stores/\(id)/pages/\(number)").status == .ok)
    }
    // Tables are called by their entities, as the model names them.
    let names = try #require(map["names"] as? [String])
    #expect(names.contains("Car") && !names.contains { $0 == "ZCAR" }, "\(names)")
    #expect(!page.contains("ZCAR"))
    #expect(try FolderContents(of: scene.home, ignoring: [".lazaret-browsing"]) == before)
  }

  @Test("what can be read and what is lost is counted as a salvage counts it, and is not called recovered")
  func counts() throws {
    let (scene, browser, id) = try Self.scene()
    defer { withExtendedLifetime(scene) {} }
    let damage = try #require(try Self.json(browser, "/stores/\(id).json")["damage"] as? [String: Any])
    #expect(damage["salvaged"] as? Bool == false)
    let page = try DamagedStoreTests.settled(browser, "/stores/\(id)/losses").text
    #expect(page.contains("It was not salvaged yet."))
    #expect(!page.contains("Recovered "))
    let job = try browser.run("/stores/\(id)/salvage", [("model", "App")])
    #expect(job.state == .done, "\(job)")
    let report = try #require(try Self.json(browser, job.target.path + ".json")["report"] as? [String: Any])
    for key in ["recovered", "lost", "total"] {
      #expect(damage[key] as? Int == report[key] as? Int, "\(key)")
    }
  }

  @Test("the first thing that is offered is its salvage; a repair says why not, and leads there")
  func actions() throws {
    let (scene, browser, id) = try Self.scene()
    defer { withExtendedLifetime(scene) {} }
    let page = try DamagedStoreTests.settled(browser, "/stores/\(id)").text
    #expect(page.contains("<a class=\"button main\" href=\"/stores/\(id)/salvage\">"))
    for action in ["quarantine", "export", "backup"] {
      #expect(page.contains("<a class=\"button\" href=\"/stores/\(id)/\(action)\">"), "\(action)")
    }
    let repair = try browser.get("/stores/\(id)/repair").text
    #expect(repair.contains("A damaged store is not repaired but salvaged."))
    #expect(repair.contains("href=\"/stores/\(id)/salvage\""))
    #expect(try browser.post("/stores/\(id)/repair").status == .conflict)
  }

  @Test("its salvage quarantines it byte for byte, puts a clean store into its place, and does not offer that twice")
  func salvage() throws {
    let (scene, browser, id) = try Self.scene()
    let path = scene.stores.appending("App.sqlite")
    let digest = try FileDigest(of: FileSystem().open(path))
    let job = try browser.run("/stores/\(id)/salvage", [("model", "App"), ("install", "yes")])
    #expect(job.state == .done, "\(job)")
    let stored = try #require(try Quarantines(home: scene.home).stores().first)
    #expect(try FileDigest(of: FileSystem().open(stored.files.main)) == digest)
    // SQLite counts what the report says is there.
    let address = job.target.path
    let report = try #require(try Self.json(browser, address + ".json")["report"] as? [String: Any])
    let queue = try DatabaseQueue(path: path.string)
    let cars = try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM ZCAR") }
    #expect(try queue.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
    try queue.close()
    #expect(cars == report["recovered"] as? Int)
    // What is installed, and there, is shown and not offered again.
    let page = try DamagedStoreTests.settled(browser, address).text
    #expect(!page.contains("href=\"\(address)/install\""))
    #expect(page.contains("The live store"))
    #expect(try browser.post("\(address)/install").status == .conflict)
    #expect(try browser.run("\(address)/install", [("again", "yes")]).state == .done)
  }

  @Test("what fails after it was quarantined says where it is now, and leads there")
  func halfway() throws {
    let other = try Scene.bundle("Planes", carName: "Plane")
    let (scene, browser, id) = try Self.scene(["zero:20"], [other])
    let path = scene.stores.appending("App.sqlite")
    let job = try browser.run("/stores/\(id)/salvage", [("model", "Planes"), ("install", "yes")])
    #expect(job.state == .failed, "\(job)")
    let stored = try #require(try Quarantines(home: scene.home).stores().first)
    #expect(try FileSystem().status(of: path) == nil)
    #expect(job.words?.contains("in quarantine as \(stored.id)") == true, "\(job.words ?? "")")
    #expect(try browser.get(job.target.path).status == .ok)
  }

  @Test("a sound store is not moved by a salvage")
  func sound() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "Live.sqlite")
    let before = try FolderContents(of: scene.home, ignoring: [".lazaret-browsing"])
    let job = try browser.run("/stores/\(id)/salvage", [("model", "App")])
    #expect(job.state == .failed && job.words?.contains("Nothing wrong was found") == true, "\(job)")
    #expect(try FolderContents(of: scene.home, ignoring: [".lazaret-browsing"]) == before)
  }

  @Test("a store without a salvage asks for nothing to be installed, and one that is sound is not looked at")
  func others() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("quarantined", "Other.sqlite")
    let page = try DamagedStoreTests.settled(browser, "/stores/\(id)").text
    #expect(page.contains("<a class=\"button main\" href=\"/stores/\(id)/salvage\">"))
    #expect(page.contains("<h2>Page map</h2>"))
    let live = try browser.id("live", "Live.sqlite")
    let sound = try browser.json("/stores/\(live).json")
    #expect(sound["damage"] == nil || sound["damage"] is NSNull)
    #expect(!(try browser.get("/stores/\(live)").text.contains("data-map")))
    // Its map can be had all the same.
    let map = try Self.json(browser, "/stores/\(live)/map.json")
    #expect((map["counts"] as? [String: Int])?["unreadable"] == 0)
  }

  @Test("its records are read by the model that fits, wherever it stands among those that were given")
  func models() throws {
    let other = try Scene.bundle("Planes", carName: "Plane")
    let (scene, browser, id) = try Self.scene(["header:zero", "zero:20"], [other])
    defer { withExtendedLifetime(scene) {} }
    let entities = try #require(
      try Self.json(browser, "/stores/\(id)/original/entities.json")["entities"] as? [[String: Any]])
    #expect(entities.contains { $0["name"] as? String == "Car" && $0["isEntity"] as? Bool == true }, "\(entities)")
    let none = try Self.scene(["zero:20"])
    _ = none.scene
    let alone = try Browser(try none.scene.inspector([other]))
    let id2 = try alone.id("live", "App.sqlite")
    #expect(try DamagedStoreTests.settled(alone, "/stores/\(id2)/original/entities").status == .ok)
  }

  @Test("where it lost records is told by keys that SQLite does not have")
  func spread() throws {
    let (scene, browser, id) = try Self.scene(["zero:30"])
    let whole = try Self.json(browser, "/stores/\(id)/losses.json")
    let spreads = try #require(whole["spreads"] as? [[String: Any]])
    let damage = try #require(try Self.json(browser, "/stores/\(id).json")["damage"] as? [String: Any])
    let entities = try #require(damage["entities"] as? [[String: Any]])
    let car = try #require(entities.first { $0["name"] as? String == "Car" })
    guard let keys = car["lostKeys"] as? [[Int]], !keys.isEmpty else { return }
    let spread = try #require(spreads.first { $0["entity"] as? String == "Car" })
    let parts = try #require(spread["parts"] as? [[String: Any]])
    let lost = parts.reduce(0) { $0 + ($1["lost"] as? Int ?? 0) }
    #expect(lost == keys.reduce(0) { $0 + $1[1] - $1[0] + 1 })
    let records = parts.reduce(0) { $0 + ($1["records"] as? Int ?? 0) }
    #expect(records == car["recovered"] as? Int)
    #expect(try browser.get("/stores/\(id)/losses").text.contains("class=\"spark\""))
    _ = scene
  }
}

@Suite("What a page shows at once")
struct AtOncePagesTests {
  @Test("a record shows the bytes of each of its values, which are those of the file")
  func bytes() throws {
    let scene = try RecordsScene()
    let list = try scene.json("/original/entities/Person/records?_size=20&_state=certain")
    let rows = try #require(list["rows"] as? [[String: Any]])
    let stored = try #require(try Quarantines(home: scene.home).stores().first)
    let file = try FileSystem().contents(of: stored.files.main, limit: 1 << 28)
    var compared = 0
    for row in rows {
      let key = try #require(row["key"] as? String)
      let record = try scene.json("/original/entities/Person/records/\(key)")
      guard let bytes = record["bytes"] as? [String: Any], bytes["image"] is NSNull || bytes["image"] == nil,
        let name = (record["values"] as? [String: Any])?["name"] as? String
      else { continue }
      let fields = try #require(bytes["fields"] as? [[String: Any]])
      let field = try #require(fields.first { $0["name"] as? String == "name" })
      #expect(field["column"] as? String == "ZNAME")
      let digits = Array((field["bytes"] as? String ?? "").utf8)
      // The text of the value, as the file has it: found there, and at the place that is named.
      let expected = Array(name.utf8).flatMap { Array(String(format: "%02x", $0).utf8) }
      #expect(digits == expected)
      let page = try #require(bytes["page"] as? Int)
      let from = try #require(field["from"] as? Int)
      let start = (page - 1) * 4096 + from
      #expect(Array(file[start..<(start + name.utf8.count)]) == Array(name.utf8))
      compared += 1
    }
    #expect(compared > 5)
    let html = try scene.get("/original/entities/Person/records/\(try #require(rows.first?["key"] as? String))").text
    #expect(html.contains("<h2>Its bytes</h2>"))
    #expect(XSS.findings(in: html).isEmpty)
  }

  @Test("pictures, JSON and text in bytes are shown in place, escaped")
  func decoded() throws {
    let scene = try RecordsScene(damage: "none")
    let picture = try scene.get("/original/entities/Ship/records/2").text
    let source = "/stores/\(scene.quarantined)/original/entities/Ship/records/2/values/flag/bytes"
    #expect(picture.contains("<img src=\"\(source)\""))
    let text = try scene.get("/original/entities/Ship/records/3").text
    #expect(text.contains("{&quot;a&quot;: &quot;&lt;b&gt;&quot;}"))
    #expect(XSS.findings(in: text).isEmpty)
  }

  @Test("two versions are picked, and the result is that of their own page")
  func compare() throws {
    let scene = try RecordsScene()
    let usual = try scene.json("/compare")
    #expect(usual["first"] as? String == "original")
    #expect(usual["second"] as? String == "salvaged")
    let picked = try scene.json("/compare?first=\(scene.backupSide)&second=live")
    let whole = try scene.json("/compare/\(scene.backupSide)/live/entities")
    let entities = try #require(picked["entities"] as? [[String: Any]])
    #expect(NSArray(array: entities) == NSArray(array: whole["entities"] as? [[String: Any]] ?? []))
    // Five were renamed and one was deleted after the backup.
    let person = try #require(entities.first { $0["name"] as? String == "Person" })
    #expect(person["changed"] as? Int == 5)
    #expect(person["missing"] as? Int == 1)
    let page = try scene.get("/compare?first=\(scene.backupSide)&second=live").text
    #expect(page.contains("<select name=\"first\">") && page.contains("<select name=\"second\">"))
    #expect(page.contains("1 lost") && page.contains("5 changed"))
    #expect(try scene.get("/compare?first=no-such&second=live").status == .badRequest)
  }

  @Test("an export is chosen, shown and agreed to on one page, by boxes")
  func export() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "Live.sqlite")
    let form = try browser.get("/stores/\(id)/export").text
    #expect(form.contains("name=\"keep\" value=\"Car.name\""))
    #expect(form.contains("value=\"scrubbed\" checked"))
    let job = try browser.run(
      "/stores/\(id)/export", [("level", "scrubbed"), ("keep", "Car.name"), ("drop", "Car.color")])
    #expect(job.state == .done, "\(job)")
    let page = try browser.get("/stores/\(id)/export?job=\(job.id)").text
    #expect(page.contains("Do you agree?"))
    #expect(page.contains("value=\"Car.name\" aria-label=\"Car.name stays as it is\" checked"))
    #expect(page.contains("action=\"\(job.target.path)/write\""))
    #expect(try browser.json("/stores/\(id)/export.json")["ready"] as? String == job.target.path)
    let written = try browser.run(job.target.path + "/write")
    #expect(written.state == .done, "\(written)")
    let after = try browser.get("/stores/\(id)/export?job=\(written.id)").text
    #expect(after.contains("href=\"\(written.target.path)\""))
    #expect(!after.contains("Do you agree?"))
  }

  @Test("each version of a model has a page, and its entities are found by words")
  func models() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let model = try browser.json("/models/App.json")
    #expect((model["pages"] as? [String])?.count == 2)
    let page = try browser.get("/models/App/version?name=V2").text
    #expect(page.contains("V1 → V2"))
    #expect(try browser.get("/models/App/version?name=V1").text.contains("It is the first version."))
    #expect(try browser.get("/models/App/version?name=V3").status == .notFound)
    #expect(try browser.get("/models/App?q=COLOR").text.contains("<mark>color</mark>"))
    #expect(try browser.get("/models/App?q=no-such").text.contains("No entity and no property has these words"))
  }

  @Test("a store's history has its quarantine, its salvage and its backups in their order")
  func history() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let app = try browser.json("/stores/\(try browser.id("live", "App.sqlite")).json")
    let events = try #require(app["history"] as? [[String: Any]])
    let kinds = events.compactMap { $0["kind"] as? String }
    #expect(kinds.prefix(2) == ["quarantined", "salvaged"] && kinds.contains("installed"), "\(kinds)")
    let dates = events.compactMap { $0["date"] as? String }
    #expect(dates == dates.sorted())
    let live = try browser.json("/stores/\(try browser.id("live", "Live.sqlite")).json")
    #expect((live["history"] as? [[String: Any]])?.contains { $0["kind"] as? String == "backup" } == true)
  }

  @Test("a page that may age carries the digest of its twin, which is another once the store has changed")
  func digests() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let (live, backup) = (try browser.id("live", "Live.sqlite"), try browser.id("backups", "Live.sqlite"))
    let quarantined = try browser.id("quarantined", "App.sqlite")
    func digest(_ address: String) throws -> String {
      let response = try DamagedStoreTests.settled(browser, "\(address).json")
      let digest = try #require(response.headers["Lazaret-Digest"])
      #expect(digest == FileDigest(of: response.bytes ?? []).hexadecimal)
      return digest
    }
    for address in ["/stores", "/bundles", "/stores/\(live)", "/stores/\(backup)", "/stores/\(quarantined)"] {
      let page = try DamagedStoreTests.settled(browser, address).text
      #expect(page.contains("data-digest=\"\(try digest(address))\""), "\(address)")
    }
    // A page that stays as it is has none.
    #expect(try !browser.get("/models").text.contains("data-digest"))
    #expect(try browser.get("/models.json").headers["Lazaret-Digest"] == nil)
    let before = try digest("/stores/\(live)")
    let store = try PersistentStore(opening: scene.stores.appending("Live.sqlite"))
    try store.write { try $0.execute(sql: "DELETE FROM ZCAR WHERE Z_PK <= 3") }
    try store.close()
    #expect(try digest("/stores/\(live)") != before)
  }

  @Test("a page says how many jobs had ended, by which one that was left open is known to be old")
  func endings() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    #expect(try browser.get("/stores").text.contains("data-endings=\"0\""))
    let id = try browser.id("live", "Live.sqlite")
    #expect(try browser.run("/stores/\(id)/backup").state == .done)
    #expect(browser.inspector.work.endings == 1)
    let page = try browser.get("/stores/\(id)").text
    #expect(page.contains("data-endings=\"1\"") && page.contains("data-fresh=\"/stores/\(id).json\""))
  }
}
