import Backup
import Foundation
import GRDB
import HTTPServer
import Inspector
import Lazaret
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import TestSupport
import Testing

@Suite("Records in the inspector")
struct RecordsTests {
  @Test("Every page of records and its twin, on every side; nothing of the stores changes")
  func everyPage() throws {
    let scene = try RecordsScene()
    let ignored: Set<String> = [".lazaret-browsing"]
    let before = try FolderContents(of: scene.home, ignoring: ignored)
    for side in ["original", "salvaged", "live", scene.backupSide] {
      for address in [
        "/\(side)/entities", "/\(side)/entities/Ship/records",
        "/\(side)/entities/Person/records?_sort_desc=name&_size=5",
        "/\(side)/entities/Ship/records?_facet=isFast&name__notnull=1",
        "/\(side)/entities/Ship/records?_show=name&_show=tons",
        "/\(side)/entities/Ship/records?_column1=name&_is1=contains&_value1=script", "/\(side)/search?q=script",
        "/\(side)/entities/Person/records/2", "/\(side)/entities/Ship/records/3/values/flag/view",
      ] {
        let page = try scene.get(address)
        #expect(
          page.status == .ok || side != "live" && page.status == .notFound, "\(address): \(page.text.suffix(600))")
        #expect(!page.text.contains("<script>alert"), "\(address)")
        #expect(!page.text.contains("<img src=x"), "\(address)")
        #expect(!page.text.contains(" style="), "\(address)")
        #expect(!page.text.contains("HTML(text") && !page.text.contains("class=&quot;"), "\(address)")
        if page.status == .ok { #expect(try !scene.json(address).isEmpty, "\(address)") }
      }
    }
    for address in [
      "/compare", "/compare/original/live/entities", "/compare/salvaged/live/entities/Person/records?kind=changed",
      "/compare/\(scene.backupSide)/live/entities/Person/records/5", "/pages/1", "/pages/2?cell=0",
      "/set-aside/entities",
    ] {
      let page = try scene.get(address)
      #expect(page.status == .ok || address.hasPrefix("/set-aside"), "\(address): \(page.text.suffix(600))")
      #expect(!page.text.contains("HTML(text") && !page.text.contains("class=&quot;"), "\(address)")
      if page.status == .ok { #expect(try scene.json(address)["status"] == nil, "\(address)") }
    }
    #expect(try FolderContents(of: scene.home, ignoring: ignored) == before)
  }

  @Test("A record of the damaged store leads to the cell that its bytes are in")
  func provenance() throws {
    let scene = try RecordsScene()
    let list = try scene.json("/original/entities/Person/records?_size=5&_state=certain")
    let rows = try #require(list["rows"] as? [[String: Any]])
    #expect(!rows.isEmpty)
    for row in rows {
      let key = try #require(row["key"] as? String)
      let record = try scene.json("/original/entities/Person/records/\(key)")
      let provenance = try #require(record["provenance"] as? [String: Any])
      let page = try #require(provenance["page"] as? Int)
      let html = try scene.get("/original/entities/Person/records/\(key)").text
      #expect(html.contains("/stores/\(scene.quarantined)/pages/\(page)?row=\(key)"))
      let bytes = try scene.json("/pages/\(page)?row=\(key)")
      let marked = try #require(bytes["marked"] as? Int)
      let cells = try #require(bytes["cells"] as? [[String: Any]])
      #expect(cells.first { $0["cell"] as? Int == marked }?["rowid"] as? Int == Int(key))
      #expect(try scene.get("/pages/\(page)?row=\(key)").text.contains("<mark class=\"cell\">"))
    }
  }

  @Test("Deleted records are shown when they are asked for, and are none of the store's")
  func deleted() throws {
    let scene = try RecordsScene(
      damage: "none", change: "PRAGMA secure_delete = OFF; DELETE FROM ZPERSON WHERE Z_PK BETWEEN 100 AND 120")
    let list = try scene.json("/original/entities/Person/records?_state=deleted")
    let rows = try #require(list["rows"] as? [[String: Any]])
    #expect(!rows.isEmpty)
    #expect(rows.allSatisfy { $0["state"] as? String == "deleted" })
    #expect(list["total"] as? Int == 229)
    let page = try scene.get("/original/entities/Person/records?_state=deleted").text
    #expect(page.contains("; the store has 229 records"))
    for row in rows.prefix(5) {
      let key = try #require(row["key"] as? String)
      let record = try scene.json("/original/entities/Person/records/\(key)")
      let provenance = try #require(record["provenance"] as? [String: Any])
      #expect(provenance["state"] as? String == "deleted")
      let number = try #require(provenance["page"] as? Int)
      #expect(try scene.get("/pages/\(number)").status == .ok)
    }
    #expect(try scene.get("/salvaged/entities/Person/records?_state=deleted").status == .ok)
  }

  @Test("Relationships lead on, in both directions, and records lead back to all of them")
  func relationships() throws {
    let scene = try RecordsScene()
    let ship = try scene.json("/live/entities/Ship/records/1")
    let crew = try #require((ship["toMany"] as? [[String: Any]])?.first)
    let count = try #require(crew["count"] as? Int)
    #expect(count >= 29)
    #expect((crew["first"] as? [[String: Any]])?.count == 20)
    #expect(try scene.get("/live/entities/Ship/records/1").text.contains("/live/entities/Person/records?ship=1"))
    #expect(try scene.json("/live/entities/Person/records?ship=1")["matching"] as? Int == count)
    let all = try scene.json("/live/entities/Ship/records/1/related/crew")
    #expect(all["count"] as? Int == count)
    #expect((all["records"] as? [[String: Any]])?.count == min(count, 100))
    #expect(try scene.get("/live/entities/Ship/records/1/related/crew").status == .ok)
    #expect(try scene.get("/live/entities/Ship/records/1/related/cargo").status == .notFound)
    #expect(try scene.get("/live/entities/Ship/records/1/related/crew?_next=zz").status == .badRequest)
    let person = try scene.json("/live/entities/Person/records/2")
    #expect(((person["toOne"] as? [String: Any])?["ship"] as? [String: Any])?["key"] as? String == "1")
  }

  @Test("Exports have what is filtered, whole, and no spreadsheet computes what is in them")
  func exports() throws {
    let scene = try RecordsScene()
    _ = try scene.get("/live/entities")
    let base = "/live/entities/Ship/export"
    let csv = try scene.get("\(base)/csv?Z_PK__lte=2&_columns=Z_PK,name,flag")
    #expect(csv.headers["Content-Type"]?.hasPrefix("text/csv") == true)
    #expect(
      csv.headers["Content-Disposition"]?.hasPrefix("attachment; filename=\"Ships.sqlite-live-Ship.csv\"") == true)
    let text = try csv.whole()
    #expect(text.hasPrefix("Z_PK,name,flag\r\n1,\"<script>alert(1)</script>\"\"'><img"))
    #expect(text.contains("\r\n2,\"'=cmd|calc\",PNG picture\r\n"))
    let json = try scene.get("\(base)/json?_columns=name")
    let array = try JSONSerialization.jsonObject(with: Data(try json.whole().utf8)) as? [[String: Any]]
    #expect(array?.count == 250)
    #expect(array?.first?["name"] as? String == RecordsScene.harm)
    let lines = try scene.get("\(base)/jsonl?Z_PK__gt=240").whole().split(separator: "\n")
    #expect(lines.count == 10)
    #expect(try scene.get("\(base)/json?Z_PK=0").whole() == "[]\n")
    #expect(try scene.get("\(base)/xml").status == .notFound)
    #expect(try scene.get("/original/entities/Ship/export/csv").whole().hasPrefix("state,Z_PK,"))
  }

  @Test("Pictures are served by their own signature, everything else as a download")
  func values() throws {
    let scene = try RecordsScene()
    let view = try scene.get("/live/entities/Ship/records/2/values/flag/view")
    #expect(
      view.text.contains("<img src=\"/stores/\(scene.quarantined)/live/entities/Ship/records/2/values/flag/bytes\""))
    // A list never shows it by itself.
    #expect(try !scene.get("/live/entities/Ship/records").text.contains("<img"))
    let picture = try scene.get("/live/entities/Ship/records/2/values/flag/bytes")
    #expect(picture.headers["Content-Type"] == "image/png")
    let json = try scene.get("/live/entities/Ship/records/3/values/flag/bytes")
    #expect(json.headers["Content-Type"] == "application/octet-stream")
    #expect(json.headers["Content-Disposition"]?.hasPrefix("attachment") == true)
    #expect(try scene.get("/live/entities/Ship/records/3/values/flag/view").text.contains("&lt;b&gt;"))
    let name = try scene.get("/live/entities/Ship/records/1/values/name/bytes")
    #expect(name.headers["Content-Type"] == "application/octet-stream")
    #expect(try scene.get("/live/entities/Ship/records/2/values/nothing/view").status == .notFound)
  }

  @Test("Sides are compared: what the app changed since the backup")
  func comparison() throws {
    let scene = try RecordsScene(damage: "rand:12")
    let entities = try scene.json("/compare/\(scene.backupSide)/live/entities")
    let list = try #require(entities["entities"] as? [[String: Any]])
    let person = try #require(list.first { $0["name"] as? String == "Person" })
    #expect(person["changed"] as? Int == 5)
    #expect(person["missing"] as? Int == 1)
    #expect(person["added"] as? Int == 0)
    let changed = try scene.json("/compare/\(scene.backupSide)/live/entities/Person/records?kind=changed")
    let records = try #require(changed["records"] as? [[String: Any]])
    #expect(records.map { $0["firstKey"] as? String } == ["5", "6", "7", "8", "9"])
    let record = try scene.json("/compare/\(scene.backupSide)/live/entities/Person/records/200")
    #expect(record["inFirst"] as? Bool == true)
    #expect(record["inSecond"] as? Bool == false)
    let salvaged = try scene.json("/compare/salvaged/\(scene.backupSide)/entities")
    let all = try #require(salvaged["entities"] as? [[String: Any]])
    let lost = all.reduce(0) { $0 + ($1["added"] as? Int ?? 0) }
    #expect(lost > 0, "what was lost is in the backup")
  }

  @Test("Pairs of a many-to-many relationship that come and go are counted and listed, and labels are escaped")
  func pairs() throws {
    let scene = try Scene()
    let model = ManagedObjectModel(entities: [
      Entity(
        name: "Ship",
        properties: [
          RecordsScene.attribute("name", .string), RecordsScene.relationship("ports", "Port", "ships", toMany: true),
        ]),
      Entity(
        name: "Port",
        properties: [
          RecordsScene.attribute("name", .string), RecordsScene.relationship("ships", "Ship", "ports", toMany: true),
        ]),
    ])
    let path = scene.stores.appending("Ports.sqlite")
    try StoreGenerator(model, options: .init(.typical, seed: 3, records: 120)).write(to: path)
    guard
      case .toManyByJoinTable(let table, let own, let other, _) = try StoreLayout(model).storage(
        of: "ports", in: "Ship")
    else { throw RecordsScene.NoBundle() }
    func change(_ sql: String) throws -> Int {
      let queue = try DatabaseQueue(path: path.string)
      let count = try queue.writeWithoutTransaction { database in
        try database.execute(sql: sql)
        let count = database.changesCount
        _ = try Row.fetchAll(database, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        return count
      }
      try queue.close()
      return count
    }
    _ = try change(
      "UPDATE ZPORT SET ZNAME = '\(RecordsScene.harm.replacing("'", with: "''"))'; DELETE FROM \(table) WHERE \(own) > 500"
    )
    _ = try Backups(home: scene.home).create(path)
    let lost = try change("DELETE FROM \(table) WHERE (\(own) * 31 + \(other)) % 3 = 0")
    let added = try change(
      "INSERT OR IGNORE INTO \(table) (\(own), \(other)) SELECT Z_PK + 5000, 1 FROM ZSHIP LIMIT 60")
    #expect(lost > 0 && added == 60)
    let inspector = try scene.inspector()
    let browser = try Browser(inspector)
    let backup = try #require(try inspector.catalogue.backups().first)
    let live = try browser.id("live", "Ports.sqlite")
    let place = "/stores/\(live)/compare/backup\(backup.id.text.dropFirst())/live"
    func ready(_ address: String) throws -> [String: Any] {
      for _ in 0..<60 {
        let answer = try browser.json(address)
        if answer["preparing"] == nil { return answer }
        Thread.sleep(forTimeInterval: 0.1)
      }
      return [:]
    }
    let all = try ready("\(place)/entities.json")
    #expect((all["entities"] as? [[String: Any]])?.allSatisfy { $0["changed"] as? Int == 0 } == true)
    let relationships = try #require(all["relationships"] as? [[String: Any]])
    #expect(relationships.map { $0["sides"] as? [String] } == [["Port.ships", "Ship.ports"]])
    #expect(relationships.map { $0["missing"] as? Int } == [lost] && relationships.map { $0["added"] as? Int } == [60])
    #expect(relationships.map { $0["changed"] as? Int } == [0])
    let page = try browser.get("\(place)/entities").text
    #expect(
      page.contains("\(counted(lost, "pair")) lost") && page.contains("60 pairs added")
        && page.contains("0 pairs at another place"))
    let choice = try ready("/stores/\(live)/compare.json?first=backup\(backup.id.text.dropFirst())&second=live")
    #expect((choice["relationships"] as? [[String: Any]])?.count == 1)
    let list = "\(place)/relationships/Port.ships-Ship.ports/pairs"
    let first = try ready("\(list).json?kind=added")
    let next = try #require(first["next"] as? String)
    let second = try ready("\(list).json?kind=added&_next=\(next)")
    let pairs = [first, second].flatMap { $0["pairs"] as? [[String: Any]] ?? [] }
    let ships = pairs.compactMap { ($0["records"] as? [[String: Any]])?.last?["key"] as? String }
    #expect(pairs.count == 60 && Set(ships).count == 60 && ships.allSatisfy { Int($0) ?? 0 > 5000 })
    #expect(second["next"] is NSNull)
    let text = try browser.get("\(list)?kind=added").text
    #expect(text.contains("rel=\"next\"") && text.contains("Ship 5001") && !text.contains("<script>alert"))
    #expect(try browser.get("\(list)?kind=sideways").status == .badRequest)
    #expect(try browser.get("\(place)/relationships/Port.captain/pairs").status == .notFound)
  }

  @Test(
    "The original that a migration kept is compared with what became of it, and restoring it is not called harmless")
  func migrationOriginal() throws {
    let scene = try Scene()
    let bundle = try Scene.bundle()
    let path = try scene.make("Old.sqlite", bundle: bundle, version: "V1")
    var policy = OpeningPolicy()
    policy.recoveryKitInterval = nil
    policy.checkInterval = nil
    let opening = try StoreCoordinator(
      model: .coreData(bundle), policy: policy, home: scene.home, appVersion: "7.1", surroundings: .still()
    ).open(path)
    try opening.store.close()
    let store = try PersistentStore(opening: path)
    try store.write { try $0.execute(sql: "UPDATE ZCAR SET ZCOLOR = 'red' WHERE Z_PK <= 3") }
    try store.close()
    let inspector = try scene.inspector([bundle])
    let browser = try Browser(inspector)
    let backups = try inspector.catalogue.backups()
    let original = try #require(backups.first)
    #expect(backups.count == 1 && original.backup?.backup.manifest?.kind == .original)
    let side = "backup\(original.id.text.dropFirst())"
    let live = try browser.id("live", "Old.sqlite")
    func compared() throws -> [String: Any] {
      for _ in 0..<60 {
        let answer = try browser.json("/stores/\(live)/compare.json?first=\(side)&second=live")
        if answer["preparing"] == nil { return answer }
        Thread.sleep(forTimeInterval: 0.1)
      }
      return [:]
    }
    #expect((try browser.json("/stores/\(live)/compare.json")["sides"] as? [String])?.contains(side) == true)
    let entities = try #require(try compared()["entities"] as? [[String: Any]])
    let car = try #require(entities.first { $0["name"] as? String == "Car" })
    #expect(car["changed"] as? Int == 3 && car["missing"] as? Int == 0 && car["added"] as? Int == 0)
    #expect(car["secondOnly"] as? [String] == ["color"] && (car["firstOnly"] as? [String])?.isEmpty == true)

    let preview = try #require(
      try browser.json("/stores/\(original.id.text)/restore.json")["preview"] as? [String: Any])
    #expect(preview["harmless"] as? Bool == false)
    let versions = try #require(preview["versions"] as? [String: [String: Any]])
    #expect(versions["backup"]?["name"] as? String == "V1" && versions["present"]?["name"] as? String == "V2")
    let page = try browser.get("/stores/\(original.id.text)/restore").text
    #expect(!page.contains("loses and changes nothing") && page.contains("removes the column ZCOLOR of ZCAR"))
  }

  @Test(
    "What cannot be answered is refused in words",
    arguments: [
      ("/nonsense/entities", 404), ("/backup-x/entities", 404), ("/salvaged/entities/Nothing/records", 404),
      ("/live/entities/Ship/records?color=red", 404), ("/live/entities/Ship/records?tons=many", 400),
      ("/live/entities/Ship/records?_next=zz", 400), ("/live/entities/Ship/records/99999", 404),
      ("/live/entities/Ship/records/x", 400), ("/pages/0", 404), ("/pages/999999", 404), ("/pages/-1", 404),
      ("/pages/1?image=frame-7", 404), ("/pages/1?image=nothing", 400), ("/compare/live/live/entities", 400),
      ("/live/entities/Ship/records?_state=odd", 400), ("/live/entities/~n99/records", 404),
      ("/live/entities/Ship/records?kind%00=1", 400),
    ])
  func refused(address: String, status: Int) throws {
    let scene = Self.shared
    do {
      let response = try scene.get().get(address)
      #expect(response.status.rawValue == status, "\(address): \(response.text.prefix(3_000).suffix(900))")
      #expect(!response.text.contains(RecordsScene.harm))
    } catch let refusal as Refusal {
      #expect(refusal.status.rawValue == status)
    }
  }

  private static let shared = Shared()

  /// One scene for all refusals.
  private final class Shared: Sendable {
    private let result = Result { try RecordsScene() }
    func get() throws -> RecordsScene { try result.get() }
  }

  @Test("Names of tables that no address can have are reached by their place")
  func oddNames() throws {
    let scene = try RecordsScene(
      damage: "none",
      change: """
        CREATE TABLE "a/b" (id INTEGER PRIMARY KEY, "x/y" TEXT); INSERT INTO "a/b" VALUES (1, '1'), (2, '2');
        CREATE TABLE ".." (v); INSERT INTO ".." VALUES ('<script>alert(3)</script>');
        CREATE TABLE "<script>alert(4)</script>" (v); CREATE TABLE "nice.json" (v);
        INSERT INTO "nice.json" VALUES (1)
        """)
    let list = try scene.json("/live/entities")
    let entities = try #require(list["entities"] as? [[String: Any]])
    var seen = 0
    for entity in entities {
      let path = try #require(entity["path"] as? String)
      let response = try scene.browser.get(path)
      #expect(response.status == .ok, "\(path)")
      #expect(!response.text.contains("<script>alert"))
      #expect(try scene.browser.get(path + ".json").status == .ok)
      seen += 1
    }
    #expect(seen == 6)
    let odd = try #require(entities.first { $0["name"] as? String == "a/b" })
    let path = try #require(odd["path"] as? String)
    #expect(try scene.browser.get("\(path)/2").text.contains("x/y"))
  }
}
