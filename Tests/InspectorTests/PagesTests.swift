import Foundation
import GRDB
import HTTPServer
import Inspector
import Lazaret
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("The pages of the inspector")
struct PagesTests {
  @Test("clicking through everything answers everything, and changes no byte of any store")
  func everything() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    // Copies to look at are made in the home's cache, and never beside a store.
    let cache: Set<String> = [".lazaret-browsing"]
    let before = try FolderContents(of: scene.home, ignoring: cache)
    let pages = try browser.crawl(from: "/stores", limit: 500)
    for (address, response) in pages {
      #expect([.ok, .seeOther].contains(response.status), "\(address): \(response.status.rawValue)")
      if address.hasSuffix(".json"), case .bytes(let bytes) = response.body {
        #expect(throws: Never.self, "\(address)") { try JSONSerialization.jsonObject(with: Data(bytes)) }
      }
    }
    let addresses = pages.map(\.address)
    for part in ["/losses", "/map", "/plan", "/salvage", "/discard", "/restore", "/verify", "/models/App", "/api"] {
      #expect(addresses.contains { $0.hasSuffix(part) }, "\(part)")
      #expect(addresses.contains { $0.hasSuffix(part + ".json") }, "\(part).json")
    }
    #expect(try FolderContents(of: scene.home, ignoring: cache) == before)
  }

  @Test("the list shows what is there, newest first, and finds by words")
  func list() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let list = try browser.json("/stores.json")
    func names(_ kind: String) -> [String] {
      (list[kind] as? [[String: Any]] ?? []).compactMap { $0["name"] as? String }
    }
    #expect(names("quarantined") == ["Other.sqlite", "App.sqlite"])
    #expect(names("live") == ["App.sqlite", "Live.sqlite", "Old.sqlite"])
    #expect(names("backups") == ["Live.sqlite"])
    let found = try browser.json("/stores.json?q=OTHER")
    #expect((found["quarantined"] as? [Any])?.count == 1)
    #expect((found["live"] as? [Any])?.count == 0)
    #expect(try browser.get("/stores?q=%22%3E%3Cscript%3E").text.contains("value=\"&quot;&gt;&lt;script&gt;\""))
  }

  @Test("an empty home explains itself")
  func empty() throws {
    let page = try Browser(try Scene().inspector()).get("/stores")
    #expect(page.text.contains("lazaret quarantine add"))
  }

  @Test("one store: its account, its map, and its losses agree with the report")
  func account() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("quarantined", "App.sqlite")
    let report = try #require(try browser.json("/stores/\(id).json")["report"] as? [String: Any])
    let map = try browser.json("/stores/\(id)/map.json")
    let runs = try #require(map["runs"] as? [[Any]])
    let pages = try #require(map["pages"] as? Int)
    #expect(runs.reduce(0) { $0 + ($1[2] as? Int ?? 0) } == pages)
    let lost = try #require(report["lost"] as? Int)
    #expect(lost > 0)
    let losses = try browser.get("/stores/\(id)/losses").text
    #expect(losses.contains("Some records are lost."))
    // The same words as in the JSON of the store's page.
    let words = try #require(report["words"] as? String)
    let numbers = try #require(words.split(separator: ")").first)
    #expect(numbers.hasPrefix("Recovered ") && losses.contains(numbers), "\(words)")
    #expect(losses.contains("Car"))
    let page = try browser.get("/stores/\(id)").text
    #expect(page.contains("<svg viewBox"))
    #expect(page.contains("data-map=\"/stores/\(id)/map.json\""))
    #expect(!page.contains("style="))
  }

  @Test("a store that breaks one part of a page leaves the rest as it is")
  func broken() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("quarantined", "App.sqlite")
    let folder = scene.stores.appending("Incompatible")
    let system = FileSystem()
    for name in try system.entries(of: folder) where name.string.hasSuffix(".salvage.json") {
      try system.writeAtomically(
        Array("{\"format\": 1, \"pages\": 7}".utf8), to: folder.appending(name), replacing: true)
    }
    let page = try browser.get("/stores/\(id)")
    #expect(page.status == .ok)
    #expect(page.text.contains("no report of a salvage"))
    #expect(page.text.contains("Quarantined"))
    for below in ["map", "losses", "plan", "salvage"] {
      #expect(try browser.get("/stores/\(id)/\(below)").status == .ok, "\(below)")
      #expect(try browser.get("/stores/\(id)/\(below).json").status == .ok, "\(below)")
    }
    // Without its receipt the store is still there.
    for name in try system.entries(of: folder) where name.extension == "json" && !name.string.contains(".salvage") {
      try system.writeAtomically(Array("nonsense".utf8), to: folder.appending(name), replacing: true)
    }
    #expect(try browser.get("/stores/\(id)").status == .ok)
    #expect(try browser.get("/stores").status == .ok)
    // Neither does a backup that is garbage take the list with it.
    let backups = scene.home.appending("Backups/Live")
    for name in try system.entries(of: backups) where name.extension == "json" {
      try system.writeAtomically(Array("nonsense".utf8), to: backups.appending(name), replacing: true)
    }
    let list = try browser.json("/stores.json")["backups"] as? [[String: Any]] ?? []
    #expect(list.count == 1)
    let kept = try #require(list.first?["id"] as? String)
    #expect(try browser.get("/stores/\(kept)").status == .ok)
  }

  @Test("the whole list of the catalogue may be unreadable, and the page is still one")
  func brokenCatalogue() throws {
    let (scene, _) = try Scene.full()
    let browser = try Browser(try scene.inspector())
    try FileSystem().writeAtomically(
      Array("no catalogue".utf8), to: scene.home.appending("Quarantines.json"), replacing: true)
    let page = try browser.get("/stores")
    #expect(page.status == .ok)
    #expect(page.text.contains("not a catalogue"))
    #expect(page.text.contains("Live.sqlite") == false || page.text.contains("Backups"))
  }

  @Test("no name and no value becomes markup", arguments: 0..<3)
  func hostileNames(part: Int) throws {
    let scene = try Scene()
    let texts = XSS.corpus.enumerated().filter { $0.offset % 3 == part }.map(\.element)
    for text in texts.prefix(3) {
      let path = scene.stores.appending(String(text.replacing("/", with: "_").prefix(80)) + ".sqlite")
      let queue = try DatabaseQueue(path: path.string)
      try queue.write { database in
        for name in text == texts.first ? texts : [text] {
          let quoted = name.replacing("\"", with: "\"\"")
          try database.execute(
            sql: "CREATE TABLE \"\(quoted)\" (\"\(quoted)\" TEXT, b TEXT); INSERT INTO \"\(quoted)\" VALUES (?, ?)",
            arguments: [name, text])
        }
      }
      try queue.close()
      let quarantines = Quarantines(home: scene.home)
      let stored = try quarantines.add(path, reason: text, appVersion: text)
      _ = try quarantines.salvage(stored.files.main)
    }
    let browser = try Browser(try scene.inspector())
    let pages = try browser.crawl(from: "/stores", limit: 150)
    for (address, response) in pages where response.headers["Content-Type"]?.hasPrefix("text/html") == true {
      #expect(XSS.findings(in: response.text).isEmpty, "\(address): \(XSS.findings(in: response.text))")
    }
    #expect(pages.count > 50)
  }

  @Test(
    "no address is a path",
    arguments: [
      "/public/../../etc/passwd", "/public/..%2f..%2fetc%2fpasswd", "/stores/..", "/stores/%2e%2e/%2e%2e",
      "/stores/q-..%2F..%2Fetc", "/stores/q-2026-11-21-10-11-12", "/stores/l-passwd-00000000", "/public/.gitkeep",
      "/stores//etc/passwd", "/models/..", "/work/../stores", "/stores/%00", "/public/lazaret.css%00.js",
      "/stores/C:%5Cstore", "/public", "/public/",
    ])
  func traversal(address: String) throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    do {
      let status = try browser.get(address).status
      #expect(status == .notFound || status == .badRequest, "\(status.rawValue)")
    } catch {
      #expect(error is Refusal)
    }
  }

  @Test("the files of the pages are served with tags and ranges")
  func files() throws {
    let inspector = try Scene().inspector()
    for name in ["lazaret.css", "theme.js", "live.js", "page-map.js", "export.js", "icon.svg"] {
      let response = inspector.respond(to: try Request(.get, "/public/\(name)"))
      #expect(response.status == .ok, "\(name)")
      let tag = try #require(response.headers["ETag"])
      let again = try Request(.get, "/public/\(name)", headers: ["If-None-Match": tag])
      #expect(inspector.respond(to: again).status == .notModified)
      let part = try Request(.get, "/public/\(name)", headers: ["Range": "bytes=0-9"])
      #expect(inspector.respond(to: part).status == .partialContent)
    }
  }
}
