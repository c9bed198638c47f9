import HTTPServer
import Inspector
import ManagedObjectModel
import PersistentStore
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

@Suite("Exporting and sending in the inspector")
struct BundleTests {
  private static func inspector(_ scene: Scene, _ bundle: ModelBundle, _ receiver: Receiver?) throws -> Inspector {
    var options = InspectorOptions(home: scene.home, publicFolder: RealMaterial.projectRoot.appending("Public"))
    options.models = InspectorModel.named([(bundle.name, AppModel.coreData(bundle))])
    if let receiver {
      options.receiver = InspectorReceiver(try ReceiverAddress("https://support.example.com/inbox/uploads"))
      options.transport = receiver
    }
    return try Inspector(options, sessions: Sessions(cookieName: "lazaret"))
  }

  /// Exports a store as its owner would, and gives the name of the bundle.
  private static func export(
    _ browser: Browser, _ id: String, _ fields: [(String, String)]
  ) throws -> (name: String, preview: [String: Any]) {
    let ready = try browser.run("/stores/\(id)/export", fields)
    try #require(ready.state == .done, "\(ready.words ?? "")")
    let address = ready.target.path
    let preview = try #require(try browser.json(address + ".json")["preview"] as? [String: Any])
    let written = try browser.run(address + "/write")
    try #require(written.state == .done, "\(written.words ?? "")")
    #expect(try browser.get(address).status == .notFound, "what was written is asked for no more")
    return (try #require(written.target.segments.last), preview)
  }

  @Test("nothing is written before the user agrees, and then what was shown", arguments: ["scrubbed", "facts"])
  func export(_ level: String) throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try Self.inspector(scene, bundle, nil))
    let id = try browser.id("quarantined", "App.sqlite")
    let form = try browser.get("/stores/\(id)/export").text
    #expect(form.contains("name=\"recipients\""))
    let ready = try browser.run("/stores/\(id)/export", [("level", level)])
    try #require(ready.state == .done, "\(ready.words ?? "")")
    #expect(try FileSystem().status(of: scene.home.appending("Exports")) == nil)
    let page = try browser.get(ready.target.path)
    #expect(page.status == .ok)
    #expect(page.text.contains("It is not encrypted."))
    #expect(try browser.post(ready.target.path + "/forget").headers["Location"] == "/stores/\(id)")
    #expect(try browser.get(ready.target.path).status == .notFound)

    let (name, preview) = try Self.export(browser, id, [("level", level)])
    let files = try #require(preview["files"] as? [[String: Any]])
    #expect(files.contains { ($0["name"] as? String)?.hasPrefix("store/") == true } == (level == "scrubbed"))
    #expect((preview["levels"] as? [[String: Any]])?.count == 4)
    let shown = try browser.json("/bundles/\(name).json")
    #expect(shown["level"] as? String == level)
    let download = try browser.get("/bundles/\(name)/file")
    let bytes = try FileSystem().contents(of: scene.home.appending("Exports").appending(name), limit: 1 << 28)
    #expect(shown["sha256"] as? String == FileDigest(of: bytes).hexadecimal)
    #expect(try download.download() == bytes)
    let timeline = try #require(try browser.json("/stores/\(id).json")["timeline"] as? [[String: Any]])
    #expect(timeline.last?["kind"] as? String == "exported")
    #expect(try browser.get("/bundles").text.contains(name))
    #expect(try browser.get("/bundles/\(name)/discard").text.contains("Remove it"))
    #expect(try browser.post("/bundles/\(name)/discard").headers["Location"] == "/bundles")
    #expect(try browser.get("/bundles/\(name)").status == .notFound)
    #expect(try FileSystem().status(of: scene.home.appending("Exports").appending(name)) == nil)
    #expect(try browser.get("/bundles/.hidden.lazaret.tar.gz").status == .notFound)
    #expect(throws: Refusal.self) { try browser.get("/bundles/%2e%2e%2fQuarantines.json") }
  }

  @Test("a store in its place is exported too, a backup is not, and a key that is none is refused")
  func others() throws {
    let (scene, bundle) = try Scene.full()
    let browser = try Browser(try Self.inspector(scene, bundle, nil))
    let live = try browser.id("live", "Live.sqlite")
    let identity = AgeIdentity()
    let (name, _) = try Self.export(
      browser, live, [("level", "full"), ("recipients", "\(identity.recipient)")])
    #expect(name.hasSuffix(".age"))
    #expect(try browser.json("/bundles/\(name).json")["encrypted"] as? Bool == true)
    #expect(try browser.post("/stores/\(live)/export", [("recipients", "age1nothing")]).status == .badRequest)
    #expect(try browser.post("/stores/\(live)/export", [("level", "all")]).status == .badRequest)
    #expect(
      try browser.post("/stores/\(live)/export", [("keep", "Car.name"), ("drop", "Car.name")]).status == .badRequest)
    let backup = try #require(
      (try browser.json("/stores.json")["backups"] as? [[String: Any]])?.first?["id"] as? String)
    #expect(try browser.get("/stores/\(backup)/export").status == .conflict)
    #expect(try browser.post("/stores/\(backup)/export").status == .conflict)
  }

  @Test("what was shown is sent, the receipt is kept, and the same is not sent twice")
  func send() throws {
    let (scene, bundle) = try Scene.full()
    let receiver = Receiver()
    let browser = try Browser(try Self.inspector(scene, bundle, receiver))
    let id = try browser.id("quarantined", "App.sqlite")
    let (name, _) = try Self.export(browser, id, [("level", "facts")])
    let shown = try browser.json("/bundles/\(name)/send.json")
    let sum = try #require(shown["sha256"] as? String)
    #expect(shown["receiver"] as? String == "https://support.example.com")
    #expect(try browser.get("/bundles/\(name)/send").text.contains(sum))
    #expect(try browser.post("/bundles/\(name)/send", [("sha256", "0")]).status == .conflict)
    #expect(try browser.post("/bundles/\(name)/send").status == .conflict)

    receiver.isAway = true
    let waiting = try browser.run("/bundles/\(name)/send", [("sha256", sum)])
    #expect(waiting.state == .failed)
    let entry = try #require((try browser.json("/bundles.json")["outbox"] as? [[String: Any]])?.first)
    #expect(entry["state"] as? String == "waiting")
    receiver.isAway = false
    let place = try #require(entry["id"] as? String)
    let sent = try browser.run("/outbox/\(place)/retry")
    #expect(sent.state == .done, "\(sent.words ?? "")")
    #expect(
      receiver.bytes == (try FileSystem().contents(of: scene.home.appending("Exports").appending(name), limit: 1 << 28))
    )
    #expect(try browser.get("/bundles/\(name)").text.contains("R-1"))
    let timeline = try #require(try browser.json("/stores/\(id).json")["timeline"] as? [[String: Any]])
    #expect(timeline.compactMap { $0["kind"] as? String }.suffix(2) == ["exported", "sent"])
    let again = try browser.run("/bundles/\(name)/send", [("sha256", sum)])
    #expect(again.words?.contains("had it already") == true)
    #expect(try browser.post("/outbox/\(place)/cancel").status == .conflict)
  }

  @Test("what waits is taken back; where there is no receiver, nothing is sent")
  func cancel() throws {
    let (scene, bundle) = try Scene.full()
    let receiver = Receiver()
    receiver.isAway = true
    let browser = try Browser(try Self.inspector(scene, bundle, receiver))
    let (name, _) = try Self.export(browser, try browser.id("quarantined", "App.sqlite"), [("level", "facts")])
    let sum = try #require(try browser.json("/bundles/\(name)/send.json")["sha256"] as? String)
    #expect(try browser.run("/bundles/\(name)/send", [("sha256", sum)]).state == .failed)
    let entry = try #require((try browser.json("/bundles.json")["outbox"] as? [[String: Any]])?.first)
    let place = try #require(entry["id"] as? String)
    #expect(try browser.run("/outbox/\(place)/cancel").state == .done)
    #expect(receiver.wasDropped)
    #expect(try browser.get("/bundles").text.contains("taken back"))
    #expect(try browser.post("/outbox/no-such-entry/retry").status == .notFound)

    let alone = try Browser(try Self.inspector(scene, bundle, nil))
    #expect(try alone.post("/bundles/\(name)/send", [("sha256", sum)]).status == .conflict)
    #expect(try alone.json("/bundles/\(name)/send.json")["obstacle"] != nil)
  }
}

extension Response {
  /// The bytes of a download.
  fileprivate func download() throws -> [UInt8] {
    guard case .ranges(let bytes) = body else { return self.bytes ?? [] }
    return try bytes.read(at: 0, length: Int(bytes.count))
  }
}
