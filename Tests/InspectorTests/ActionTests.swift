import Foundation
import GRDB
import HTTPServer
import Inspector
import Lazaret
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("What can be done in the inspector")
struct ActionTests {
  @Test("without the session's token nothing is done")
  func tokens() throws {
    let (scene, bundle) = try Scene.full()
    let inspector = try scene.inspector([bundle])
    let browser = try Browser(inspector)
    let other = try Browser(inspector)
    let id = try browser.id("quarantined", "App.sqlite")
    let before = try FolderContents(of: scene.home)
    for route in inspector.documentedRoutes where route.kind == .action {
      let address = route.pattern.replacing("{id}", with: id).replacing("{job}", with: "job-1")
        .replacing("{export}", with: "export-1").replacing("{bundle}", with: "a.lazaret.tar.gz")
        .replacing("{entry}", with: "2026-11-21-10-11-12-0a1b2c3d").replacing("{side}", with: "original")
      #expect(try browser.post(address, token: "").status == .forbidden, "\(address)")
      #expect(try browser.post(address, token: other.token).status == .forbidden, "\(address)")
      #expect(try browser.post(address + ".json", token: other.token).status == .forbidden, "\(address)")
      let stranger = Request(.post, RequestTarget(segments: address.split(separator: "/").map(String.init)))
      #expect(inspector.respond(to: stranger).status == .unauthorized, "\(address)")
      // Its body is not waited for; of one with a session it is.
      #expect(inspector.respondEarly(to: stranger)?.status == .unauthorized, "\(address)")
      var known = stranger
      known.headers.set("Cookie", browser.cookie)
      #expect(inspector.respondEarly(to: known) == nil, "\(address)")
      known.target.segments.append("nothing")
      #expect(inspector.respondEarly(to: known)?.status == .notFound, "\(address)")
      let odd = try browser.post(address, [("unknown", "field")])
      #expect(odd.status == .badRequest || odd.status == .notFound, "\(address): \(odd.status.rawValue)")
    }
    #expect(inspector.work.jobs.isEmpty)
    #expect(try FolderContents(of: scene.home) == before)
  }

  @Test("an inspector that only looks does nothing")
  func readOnly() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle], allowsActions: false))
    let id = try browser.id("quarantined", "App.sqlite")
    #expect(try browser.post("/stores/\(id)/discard", [("understood", "yes")]).status == .forbidden)
    for (address, response) in try browser.crawl(from: "/stores", limit: 100) {
      // To log out is no action on a store.
      let actions = response.text.replacing("method=\"post\" action=\"/session/end\"", with: "")
      #expect(!actions.contains("method=\"post\""), "\(address)")
    }
  }

  @Test("salvage, then install: what is there is quarantined, and both are in the timeline")
  func salvageAndInstall() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("quarantined", "Other.sqlite")
    #expect(try browser.post("/stores/\(id)/install").status == .conflict)
    let salvage = try browser.run("/stores/\(id)/salvage", [("model", "App"), ("deleted", "yes")])
    #expect(salvage.state == .done, "\(salvage)")
    let install = try browser.run("/stores/\(id)/install")
    #expect(install.state == .done, "\(install)")
    let timeline = try #require(try browser.json("/stores/\(id).json")["timeline"] as? [[String: Any]])
    #expect(timeline.compactMap { $0["kind"] as? String } == ["quarantined", "salvaged", "installed"])
    #expect(try browser.id("live", "Other.sqlite").hasPrefix("l-Other-"))
    #expect(try browser.get("/work").text.contains("Ended"))
    // Once more, which has to be said: the store that was just put there makes room, whole.
    #expect(try browser.post("/stores/\(id)/install").status == .conflict)
    #expect(try browser.run("/stores/\(id)/install", [("again", "yes")]).state == .done)
    let all = try #require(try browser.json("/stores.json")["quarantined"] as? [[String: Any]])
    #expect(all.count { $0["name"] as? String == "Other.sqlite" } == 2)
  }

  @Test("a salvage whose result the app cannot open says why, and is not installed")
  func salvageWithoutWay() throws {
    let scene = try Scene()
    let bundle = try Scene.bundle()
    try scene.makeDamaged("App.sqlite", bundle: bundle, ["zero:20"])
    let attributes = ["name", "color"].map { name in
      Property.attribute(Attribute(traits: PropertyTraits(name: name, isOptional: true), type: .binary))
    }
    let strict = ManagedObjectModel(entities: [Entity(name: "Car", properties: attributes)])
    let versions = [
      ModelVersion(name: "V2", model: bundle.current.model, isCurrent: false),
      ModelVersion(name: "V3", model: strict, isCurrent: true),
    ]
    let browser = try Browser(try scene.inspector([try #require(ModelBundle(name: "App", versions: versions))]))
    let live = try browser.id("live", "App.sqlite")
    let job = try browser.run("/stores/\(live)/salvage", [("model", "App"), ("install", "yes")])
    #expect(job.state == .done, "\(job)")
    #expect(job.words?.contains("could not be migrated") == true && job.words?.contains("not installed") == true)
    let id = try browser.id("quarantined", "App.sqlite")
    let page = try browser.get("/stores/\(id)").text
    #expect(page.contains("the app cannot open it") && !page.contains("nothing could be salvaged"))
    #expect(try FileSystem().status(of: scene.stores.appending("App.sqlite")) == nil)
  }

  @Test("release puts the very bytes back")
  func release() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("quarantined", "Other.sqlite")
    let stored = try #require(try Quarantines(home: scene.home).stores().first { $0.id.hasPrefix("2026-11-22") })
    let digest = try FileDigest(of: FileSystem().open(stored.files.main))
    #expect(try browser.run("/stores/\(id)/release").state == .done)
    #expect(try FileDigest(of: FileSystem().open(scene.stores.appending("Other.sqlite"))) == digest)
    #expect(try browser.get("/stores/\(id)").status == .notFound)
    // A place that is taken is only made free where that was asked for.
    let taken = try browser.id("quarantined", "App.sqlite")
    #expect(try browser.run("/stores/\(taken)/release").state == .failed)
    #expect(try browser.run("/stores/\(taken)/release", [("replace", "yes")]).state == .done)
  }

  @Test("discard asks to be understood")
  func discard() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("quarantined", "Other.sqlite")
    #expect(try browser.post("/stores/\(id)/discard").status == .badRequest)
    #expect(try browser.get("/stores/\(id)/discard").text.contains("in all."))
    #expect(try browser.get("/stores/\(id)").status == .ok)
    #expect(try browser.post("/stores/\(id)/discard", [("understood", "yes")]).headers["Location"] == "/stores")
    #expect(try browser.get("/stores/\(id)").status == .notFound)
  }

  @Test("back up, verify, restore with a preview")
  func backups() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let live = try browser.id("live", "Old.sqlite")
    #expect(try browser.run("/stores/\(live)/backup", [("full", "yes")]).state == .done)
    let id = try browser.id("backups", "Old.sqlite")
    #expect(try browser.run("/stores/\(id)/verify", [("depth", "restored")]).words == "The backup is verified.")
    let store = try PersistentStore(opening: scene.stores.appending("Old.sqlite"))
    try store.write { try $0.execute(sql: "DELETE FROM ZCAR WHERE Z_PK <= 5") }
    try store.close()
    let preview = try #require(try browser.json("/stores/\(id)/restore.json")["preview"] as? [String: Any])
    let entities = try #require(preview["entities"] as? [[String: Any]])
    #expect(entities.first { $0["name"] as? String == "Car" }?["added"] as? Int == 5)
    let job = try browser.run("/stores/\(id)/restore")
    #expect(job.state == .done, "\(job)")
    let restored = try PersistentStore(opening: scene.stores.appending("Old.sqlite"))
    #expect(try restored.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM ZCAR") } == 40)
    try restored.close()
    let quarantined = try #require(try browser.json("/stores.json")["quarantined"] as? [[String: Any]])
    #expect(quarantined.contains { $0["name"] as? String == "Old.sqlite" })
  }

  @Test("records that are lost come from a backup")
  func salvageWithBackup() throws {
    let scene = try Scene()
    let bundle = try Scene.bundle()
    let whole = try scene.make("App.sqlite", bundle: bundle, records: 3000)
    _ = try Backups(home: scene.home).create(whole)
    try FileSystem().unlink(whole)
    try scene.makeDamaged("App.sqlite", bundle: bundle, ["zero:30"], records: 3000)
    _ = try Quarantines(home: scene.home).add(scene.stores.appending("App.sqlite"))
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("quarantined", "App.sqlite")
    #expect(try browser.run("/stores/\(id)/salvage", [("model", "App")]).state == .done)
    func lostCars() throws -> Int {
      let report = try #require(try browser.json("/stores/\(id).json")["report"] as? [String: Any])
      let entities = try #require(report["entities"] as? [[String: Any]])
      return try #require(entities.first { $0["name"] as? String == "Car" }?["lost"] as? Int)
    }
    let without = try lostCars()
    #expect(without > 0)
    let offer = "What is missing can be taken from it"
    #expect(try browser.get("/stores/\(id)/losses").text.contains(offer))
    let backup = try browser.id("backups", "App.sqlite")
    let job = try browser.run("/stores/\(id)/salvage", [("model", "App"), ("backup", backup)])
    #expect(job.state == .done, "\(job)")
    let with = try lostCars()
    let report = try browser.json("/stores/\(id).json")["report"]
    #expect(with < without, "\(with) of \(without): \(report ?? "nothing")")
    // The one backup that there is was used.
    #expect(try !browser.get("/stores/\(id)/losses").text.contains(offer))
    #expect(try browser.post("/stores/\(id)/salvage", [("backup", "b-no-such")]).status == .badRequest)
    #expect(try browser.post("/stores/\(id)/salvage", [("model", "no-such")]).status == .badRequest)
  }

  @Test("a live store goes into quarantine, and what comes out is beside it")
  func quarantine() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "Live.sqlite")
    let job = try browser.run("/stores/\(id)/quarantine", [("salvage", "yes"), ("model", "App")])
    #expect(job.state == .done, "\(job)")
    let page = try browser.get(job.target.path)
    #expect(page.status == .ok)
    #expect(page.text.contains("Live.sqlite"))
  }

  @Test("an action for programs answers with JSON")
  func twin() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("backups", "Live.sqlite")
    let response = try browser.post("/stores/\(id)/verify.json", [("depth", "files")])
    #expect(response.status == .accepted)
    let answer = try #require(
      try JSONSerialization.jsonObject(with: Data(response.bytes ?? [])) as? [String: Any])
    #expect(answer["done"] as? Bool == false)
    let job = try #require(answer["job"] as? String)
    #expect(answer["location"] as? String == "/work/\(job)")
    browser.inspector.work.stop()
    #expect(try browser.json("/work/\(job).json")["state"] as? String != "running")
  }
}
