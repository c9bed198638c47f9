import Foundation
import HTTPServer
import Inspector
import Lazaret
import ManagedObjectModel
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("What the pages say of the files of quarantined stores")
struct EvidenceTests {
  private let scene: Scene
  private let bundle: ModelBundle
  private let system = FileSystem()

  init() throws { (scene, bundle) = try Scene.full() }

  // MARK: The scene

  /// An inspector that has seen nothing yet.
  private func browser() throws -> Browser { try Browser(try scene.inspector([bundle])) }

  /// The quarantined store that an app's file became.
  private func stored(_ name: String) throws -> QuarantinedStore {
    try #require(
      try Quarantines(home: scene.home).stores(includingMissing: true).first {
        $0.receipt?.originalPath.path?.lastComponent?.string == name
      })
  }

  /// Changes the bytes of a quarantined store's main file.
  private func change(_ stored: QuarantinedStore, _ change: (inout [UInt8]) -> Void) throws {
    var bytes = try system.contents(of: stored.files.main, limit: 1 << 28)
    change(&bytes)
    try system.writeAtomically(bytes, to: stored.files.main, replacing: true)
  }

  /// Removes every file of a quarantined store; its receipt stays.
  private func remove(_ stored: QuarantinedStore) throws {
    for member in try stored.files.members(in: system) { try system.removeTree(member.path) }
  }

  /// What the list tells of a quarantined store.
  private func listed(_ browser: Browser, _ name: String) throws -> [String: Any] {
    let stores = try browser.json("/stores.json")["quarantined"] as? [[String: Any]] ?? []
    return try #require(stores.first { $0["name"] as? String == name }, "\(name)")
  }

  /// The kinds of the differences that an answer has, by the endings of the files' names.
  private func differences(_ store: [String: Any]) -> [String: String] {
    let evidence = store["evidence"] as? [String: Any]
    let list = evidence?["differences"] as? [[String: Any]] ?? []
    return Dictionary(
      list.map { difference in
        let name = difference["name"] as? String ?? ""
        return (String(name.drop { $0 != "." }), difference["kind"] as? String ?? "")
      }, uniquingKeysWith: { first, _ in first })
  }

  /// Whether pages of the store that need its files say that they are missing, for people and for programs, and nothing else.
  private func expectMissing(_ browser: Browser, _ id: String, _ below: [String]) throws {
    for address in below {
      let page = try browser.get("/stores/\(id)/\(address)")
      #expect(page.status == .notFound, "\(address): \(page.status.rawValue)")
      #expect(page.text.contains("evidence-missing"), "\(address)")
      #expect(page.text.contains("quarantine discard"), "\(address)")
      let parts = address.split(separator: "?", maxSplits: 1)
      let twin = "\(parts[0]).json" + (parts.count > 1 ? "?\(parts[1])" : "")
      let answer = try browser.get("/stores/\(id)/\(twin)")
      let problem = try JSONSerialization.jsonObject(with: Data(answer.bytes ?? [])) as? [String: Any]
      #expect(answer.status == .notFound, "\(twin): \(answer.status.rawValue)")
      #expect(problem?["code"] as? String == "evidence-missing", "\(twin)")
      #expect((problem?["hint"] as? String)?.contains("quarantine discard") == true, "\(twin)")
    }
  }

  // MARK: Changed files

  @Test("a file of another size is told by the list, by the page, and with the keys of the command line")
  func changedSize() throws {
    let store = try stored("Other.sqlite")
    try change(store) { $0 += [1, 2, 3] }
    let browser = try browser()
    let other = try listed(browser, "Other.sqlite")
    let evidence = try #require(other["evidence"] as? [String: Any])
    #expect(evidence["checked"] as? String == "size" && evidence["missing"] as? Bool == false)
    #expect((evidence["hint"] as? String)?.contains("quarantine show") == true)
    #expect(differences(other) == [".sqlite": "size"])
    let difference = try #require((evidence["differences"] as? [[String: Any]])?.first)
    let (now, then) = (try #require(difference["bytes"] as? Int), try #require(difference["notedBytes"] as? Int))
    #expect(now == then + 3)
    // The other one is there with its sizes, of which nothing is said but that.
    let app = try #require(try listed(browser, "App.sqlite")["evidence"] as? [String: Any])
    #expect((app["differences"] as? [Any])?.isEmpty == true && app["hint"] == nil)
    let list = try browser.get("/stores").text
    #expect(list.components(separatedBy: "its files have changed").count == 2)
    let found = try browser.json("/stores.json?q=files%20have%20changed")["quarantined"] as? [[String: Any]]
    #expect(found?.compactMap { $0["name"] as? String } == ["Other.sqlite"])
    let id = try browser.id("quarantined", "Other.sqlite")
    let page = try DamagedStoreTests.settled(browser, "/stores/\(id)").text
    #expect(page.contains("It is no longer what was quarantined: \(store.id).sqlite has "))
    #expect(page.contains("Sizes were compared, and no content."))
    #expect(page.contains("its files have changed"))
    let twin = try #require(try browser.json("/stores/\(id).json")["store"] as? [String: Any])
    #expect(differences(twin) == [".sqlite": "size"])
    let whole = try browser.get("/stores/\(try browser.id("quarantined", "App.sqlite"))").text
    #expect(whole.contains("Its files are there with the sizes that they had."))
    #expect(!whole.contains("no longer what was quarantined"))
  }

  @Test("a file that is missing is told, and the others are looked at as before")
  func missingFile() throws {
    let path = try scene.makeDamaged("More.sqlite", bundle: bundle, ["zero:20"])
    try system.writeAtomically(
      Array("no log".utf8), to: StoreFileSet(main: path).path(of: .wal), replacing: true)
    let store = try Quarantines(home: scene.home).add(path)
    try system.unlink(store.files.path(of: .wal))
    let browser = try browser()
    let more = try listed(browser, "More.sqlite")
    #expect(differences(more) == [".sqlite-wal": "missing"])
    #expect((more["evidence"] as? [String: Any])?["missing"] as? Bool == false)
    #expect(more["state"] as? String == "not salvaged")
    let id = try browser.id("quarantined", "More.sqlite")
    let page = try DamagedStoreTests.settled(browser, "/stores/\(id)").text
    #expect(page.contains("<strong>It is no longer what was quarantined: \(store.id).sqlite-wal is missing.</strong>"))
    for action in ["salvage", "export", "release", "discard"] {
      #expect(page.contains("href=\"/stores/\(id)/\(action)\""), "\(action)")
    }
    #expect(try DamagedStoreTests.settled(browser, "/stores/\(id)/map").status == .ok)
  }

  @Test("a change that keeps the size is not looked for, nothing says that there is none, and a salvage tells it")
  func changedContent() throws {
    let store = try stored("Other.sqlite")
    try change(store) { $0[$0.count - 1] ^= 1 }
    let browser = try browser()
    #expect(differences(try listed(browser, "Other.sqlite")).isEmpty)
    let id = try browser.id("quarantined", "Other.sqlite")
    for address in ["/stores/\(id)", "/stores/\(id)/losses"] {
      let page = try DamagedStoreTests.settled(browser, address).text
      for claim in ["as they were quarantined", "as it was found", "unchanged", "not changed"] {
        #expect(!page.contains(claim), "\(address): \(claim)")
      }
    }
    #expect(try browser.get("/stores/\(id)").text.contains("Its files are there with the sizes that they had."))
    let job = try browser.run("/stores/\(id)/salvage", [("model", "App")])
    #expect(job.state == .done, "\(job)")
    let page = try DamagedStoreTests.settled(browser, "/stores/\(id)").text
    #expect(
      page.contains(
        "When it was salvaged, the files were no longer what was quarantined: \(store.id).sqlite has other content."))
    #expect(try browser.get("/stores/\(id)/losses").text.contains("You lost nothing.") == false)
  }

  @Test("without a receipt nothing is compared, and nothing is said of it")
  func noReceipt() throws {
    let store = try stored("Other.sqlite")
    try system.writeAtomically(Array("nonsense".utf8), to: store.receiptPath, replacing: true)
    let browser = try browser()
    let other = try listed(browser, "\(store.id).sqlite")
    #expect(other["evidence"] == nil)
    let page = try DamagedStoreTests.settled(browser, "/stores/\(try #require(other["id"] as? String))")
    #expect(page.status == .ok && !page.text.contains("Its files now"))
  }

  // MARK: Missing stores

  @Test("a store of which only the receipt is left is listed, and can only be discarded")
  func onlyReceipt() throws {
    try remove(try stored("Other.sqlite"))
    let browser = try browser()
    let other = try listed(browser, "Other.sqlite")
    #expect(other["state"] as? String == "its files are missing")
    #expect(other["bytes"] as? Int == 0)
    let evidence = try #require(other["evidence"] as? [String: Any])
    #expect(evidence["missing"] as? Bool == true)
    #expect((evidence["hint"] as? String)?.contains("quarantine discard") == true)
    #expect(try browser.get("/stores").text.contains("<span class=\"tag bad\">its files are missing</span>"))
    let id = try browser.id("quarantined", "Other.sqlite")
    let response = try browser.get("/stores/\(id)")
    #expect(response.status == .ok)
    let page = response.text
    #expect(page.contains("Its files are missing; only its receipt is left."))
    #expect(page.contains("<h2>Receipt</h2>") && page.contains("<h2>History of the store</h2>"))
    #expect(!page.contains("Nothing was salvaged of it yet"))
    let links = response.links.filter { $0.hasPrefix("/stores/\(id)/") }
    #expect(Set(links) == ["/stores/\(id)/compare", "/stores/\(id)/discard"], "\(links)")
    try expectMissing(
      browser, id,
      [
        "map", "losses", "plan", "salvage", "release", "install", "export", "pages/1", "original/entities",
        "original/search?q=a", "original/query", "compare?first=original&second=live",
        "compare/original/live/entities",
      ])
    #expect(try browser.get("/stores/\(id)/original/entities/Car/export/csv").status == .notFound)
    for action in ["salvage", "release", "install", "export"] {
      let answer = try browser.post("/stores/\(id)/\(action).json")
      #expect(answer.status == .notFound && answer.text.contains("evidence-missing"), "\(action): \(answer.text)")
    }
    #expect(try browser.get("/stores/\(id)/compare").status == .ok)
    for (address, response) in try browser.crawl(from: "/stores/\(id)", limit: 100) {
      #expect([.ok, .seeOther].contains(response.status), "\(address): \(response.status.rawValue)")
    }
    #expect(try browser.get("/stores/\(id)/discard").text.contains("Removes the receipt, and everything"))
    #expect(try browser.post("/stores/\(id)/discard", [("understood", "yes")]).status == .seeOther)
    let left = try browser.json("/stores.json")["quarantined"] as? [[String: Any]]
    #expect(left?.compactMap { $0["name"] as? String } == ["App.sqlite"])
  }

  @Test("what was salvaged of a store whose files are missing stays to be looked at")
  func salvagedOnly() throws {
    try remove(try stored("App.sqlite"))
    let browser = try browser()
    let id = try browser.id("quarantined", "App.sqlite")
    let response = try browser.get("/stores/\(id)")
    #expect(response.status == .ok)
    #expect(response.text.contains("Its files are missing; only its receipt is left."))
    #expect(response.text.contains("<h2>Recovered</h2>") && response.text.contains("<h2>Entities</h2>"))
    let links = response.links.filter { $0.hasPrefix("/stores/\(id)/") }
    let below = Set(links.compactMap { $0.split { "/?".contains($0) }.dropFirst(2).first.map(String.init) })
    let gone = ["map", "pages", "salvage", "release", "install", "export", "original"]
    #expect(below.isDisjoint(with: gone), "\(below)")
    #expect(links.contains("/stores/\(id)/discard") && links.contains("/stores/\(id)/salvaged/entities"))
    let records = try DamagedStoreTests.settled(browser, "/stores/\(id)/salvaged/entities/Car/records.json")
    #expect(records.status == .ok)
    let list = try JSONSerialization.jsonObject(with: Data(records.bytes ?? [])) as? [String: Any]
    let key = try #require((list?["rows"] as? [[String: Any]])?.first?["key"] as? String)
    let record = try browser.get("/stores/\(id)/salvaged/entities/Car/records/\(key)")
    #expect(record.status == .ok && !record.text.contains("/original/") && !record.text.contains("/pages/"))
    try expectMissing(browser, id, ["map", "pages/1", "original/entities", "salvage", "release", "install", "export"])
    let losses = try browser.get("/stores/\(id)/losses")
    #expect(losses.status == .ok && losses.text.contains("Some records are lost."))
    #expect(!losses.text.contains("Keep the") && !losses.text.contains("/stores/\(id)/salvage\""))
    for (address, response) in try browser.crawl(from: "/stores/\(id)", limit: 150) {
      #expect([.ok, .seeOther].contains(response.status), "\(address): \(response.status.rawValue)")
    }
  }

  @Test("where what was salvaged is missing as well, no page tells of what it held")
  func nothingLeft() throws {
    let store = try stored("App.sqlite")
    try remove(store)
    let name = try #require(store.receipt?.salvage?.result?.name.path)
    try system.unlink(store.files.main.folder.pushing(name))
    let browser = try browser()
    let id = try browser.id("quarantined", "App.sqlite")
    let page = try browser.get("/stores/\(id)").text
    #expect(page.contains("Its files are missing; only its receipt is left."))
    #expect(!page.contains("<h2>Recovered</h2>"))
    try expectMissing(browser, id, ["losses", "map", "plan", "original/entities"])
    #expect(try browser.get("/stores/\(id)/salvaged/entities").status == .notFound)
  }

  // MARK: Rows that fit no table

  @Test("rows that fit no table are told with the numbers of the list")
  func unplacedRows() throws {
    let store = try stored("App.sqlite")
    let text = "7,777 rows besides fit no table that is known."
    let before = try browser()
    #expect(try listed(before, "App.sqlite")["unplacedRows"] is Int)
    #expect(try listed(before, "Other.sqlite")["unplacedRows"] == nil)
    #expect(try !before.get("/stores").text.contains(text))
    let bytes = try system.contents(of: store.receiptPath, limit: 1 << 24)
    var receipt = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
    var salvage = try #require(receipt["salvage"] as? [String: Any])
    var result = try #require(salvage["result"] as? [String: Any])
    result["unplacedRows"] = 7777
    salvage["result"] = result
    receipt["salvage"] = salvage
    try system.writeAtomically(
      Array(try JSONSerialization.data(withJSONObject: receipt)), to: store.receiptPath, replacing: true)
    let browser = try browser()
    #expect(try listed(browser, "App.sqlite")["unplacedRows"] as? Int == 7777)
    #expect(try browser.get("/stores").text.contains(text))
  }
}
