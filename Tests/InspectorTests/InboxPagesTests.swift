import AgeEncryption
import Foundation
import HTTPServer
import Inbox
import Inspector
import StoreCoordination
import StoreFiles
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// The pages of the inbox.
@Suite("The pages of the inbox")
struct InboxPagesTests {
  /// A scene with an inbox that a sender sends to.
  private struct Post {
    let scene: Scene
    let inbox: Inbox
    let uploads: TusServer
    let token: String

    init(sender: String = "Garage 2") throws {
      scene = try Scene()
      inbox = try Inbox(home: scene.home)
      uploads = TusServer(inbox)
      token = try inbox.addSender(sender, quota: 1 << 30).text
    }

    func inspector(allowsActions: Bool = true) throws -> Inspector {
      var options = InspectorOptions(
        home: scene.home, publicFolder: RealMaterial.projectRoot.appending("Public"))
      options.inbox = inbox
      options.allowsActions = allowsActions
      return try Inspector(options, sessions: Sessions(cookieName: "lazaret"))
    }

    /// Sends a bundle, and does the work.
    @discardableResult
    func send(_ bytes: [UInt8], name: String = "x", works: Bool = true) throws -> String {
      let encoded = Data(name.utf8).base64EncodedString()
      let response = uploads.respond(
        to: try Request(
          .post, TusServer.path,
          headers: [
            "Authorization": "Bearer \(token)", "Tus-Resumable": "1.0.0", "Upload-Length": "\(bytes.count)",
            "Upload-Metadata": "filename \(encoded)", "Content-Type": "application/offset+octet-stream",
          ], body: bytes))
      try #require(response.status == .created, "\(response.text)")
      let pool = WorkerPool(inbox, options: .init(), runner: WorkInProcess(surroundings: .machine))
      while works, try pool.workOnce() {}
      let id = String((response.headers["Location"] ?? "").suffix(36))
      return try inbox.records.upload(id)?.bundle ?? ""
    }

    func bundle(_ facts: BundleFacts, _ files: [(String, [UInt8])] = []) throws -> [UInt8] {
      let folder = try TemporaryFolder()
      let items = [("facts.json", [UInt8](try JSONEncoder().encode(facts)))] + files
      _ = try BundleWriter().write(
        items.map { BundleItem($0.0, .bytes($0.1), words: "") }, level: .full,
        subject: .init(app: facts.app, store: facts.store, date: Timestamp(secondsSince1970: 1_795_255_872)),
        to: folder.appending("bundle"))
      return try FileSystem().contents(of: folder.appending("bundle"), limit: 1 << 26)
    }

    static func facts(_ text: String = "App.sqlite", version: String = "2.3") -> BundleFacts {
      BundleFacts(
        level: .full, date: Timestamp(secondsSince1970: 1_795_255_872), app: "com.example.\(text)", store: text,
        verdict: "damaged", reason: "page-damaged", cause: text, pageStates: ["healthy": 40, "damaged": 3],
        damagedTables: [text], pageSize: 4096, bytes: 163_840, modelVersion: text, modelChecksum: nil,
        versions: SoftwareVersions(
          app: version, library: "1", sqlite: "3.40.1", storeWrittenBySQLite: "3.40.1", operatingSystem: text))
    }
  }

  @Test func everythingIsShownAndLeadsOn() throws {
    let post = try Post()
    let bundle = try Scene.bundle()
    let path = try post.scene.makeDamaged("Sent.sqlite", bundle: bundle)
    let store = try FileSystem().contents(of: path, limit: 1 << 26)
    try FileSystem().unlink(path)
    let id = try post.send(try post.bundle(Post.facts(), [("store/App.sqlite", store)]), name: "garage.tar.gz")
    try post.send(try post.bundle(Post.facts(version: "2.4"), [("a", [1])]))
    let refused = try post.send(Array("nothing".utf8))
    let browser = try Browser(try post.inspector())
    let json = try browser.json("/inbox.json")
    let groups = try #require(json["groups"] as? [[String: Any]])
    #expect(groups.count == 1 && groups[0]["words"] as? String == "seen twice since 2.3")
    #expect((json["bundles"] as? [[String: Any]])?.count == 3)
    #expect(((json["senders"] as? [[String: Any]])?.first?["used"] as? Int ?? 0) > 0)
    let page = try browser.get("/inbox").text
    #expect(
      page.contains("seen twice since 2.3") && page.contains("Garage 2") && page.contains("garage.tar.gz") == false)
    let one = try browser.get("/inbox/bundles/\(id)").text
    #expect(one.contains("garage.tar.gz") && one.contains("Open the store") && one.contains("store/App.sqlite"))
    #expect(try browser.get("/inbox/bundles/\(refused)").text.contains("bundle-unreadable"))
    #expect(try browser.json("/inbox.json?state=refused")["bundles"] as? [[String: Any]] != nil)
    #expect((try browser.json("/inbox.json?q=GARAGE.TAR")["bundles"] as? [[String: Any]])?.count == 1)
    #expect(try browser.get("/inbox?state=nothing").status == .badRequest)
    for address in [
      "/inbox/groups/000000000000", "/inbox/bundles/\(UUID().uuidString.lowercased())", "/inbox/bundles/x",
    ] {
      #expect(try browser.get(address).status == .notFound, "\(address)")
    }
    // Everything that can be reached from there can be looked at, the store's own pages too.
    let found = try browser.crawl(from: "/inbox", limit: 300)
    for (address, response) in found {
      #expect([.ok, .notFound, .conflict].contains(response.status), "\(address): \(response.status)")
    }
    #expect(found.contains { $0.address.hasSuffix("/map") })
    #expect(found.contains { $0.address.contains("/salvaged/entities") })
    let first = try #require(try browser.json("/inbox/bundles/\(id).json")["quarantined"] as? String)
    let timeline = try #require(try browser.json(first + ".json")["timeline"] as? [[String: Any]])
    #expect(timeline.map { $0["kind"] as? String } == ["quarantined", "received", "salvaged"])
  }

  @Test func aBundleIsDownloadedAsItWasReceived() throws {
    let post = try Post()
    let bytes = try post.bundle(Post.facts())
    let id = try post.send(bytes)
    let browser = try Browser(try post.inspector())
    let response = try browser.get("/inbox/bundles/\(id)/download")
    #expect(response.status == .ok)
    #expect(response.headers["Content-Disposition"]?.hasPrefix("attachment;") == true)
    guard case .ranges(let content) = response.body else {
      Issue.record("it is not streamed")
      return
    }
    #expect(try content.read(at: 0, length: Int(content.count)) == bytes)
  }

  @Test func actionsAskAndNeedTheirToken() throws {
    let post = try Post()
    let id = try post.send(Array("nothing".utf8))
    let inspector = try post.inspector()
    let browser = try Browser(inspector)
    #expect(try browser.get("/inbox/bundles/\(id)/discard").text.contains("Discard for good"))
    #expect(try browser.post("/inbox/bundles/\(id)/discard", [("understood", "yes")], token: "0").status == .forbidden)
    #expect(try browser.post("/inbox/bundles/\(id)/discard").status == .badRequest)
    #expect(try browser.post("/inbox/bundles/\(id)/retry").status == .seeOther)
    #expect(try browser.post("/inbox/bundles/\(id)/retry").status != .seeOther, "it waits already")
    let plain = inspector.respond(to: try Request(.get, "/inbox"))
    #expect(plain.status == .unauthorized)
    let looking = try Browser(try post.inspector(allowsActions: false))
    #expect(try looking.post("/inbox/bundles/\(id)/discard", [("understood", "yes")]).status == .forbidden)
    #expect(!(try looking.get("/inbox/bundles/\(id)").text.contains("Discard")))
    #expect(try browser.post("/inbox/bundles/\(id)/discard", [("understood", "yes")]).status == .seeOther)
    #expect(try browser.get("/inbox/bundles/\(id)").status == .notFound)
  }

  @Test func withoutAnInboxThereIsNone() throws {
    let browser = try Browser(try Scene().inspector())
    #expect(try browser.get("/inbox").status == .notFound)
    #expect(!(try browser.get("/stores").text.contains(">Inbox<")))
  }

  @Test func anEmptyOneExplainsItself() throws {
    let page = try Browser(try Post().inspector()).get("/inbox").text
    #expect(page.contains("lazaret inbox token new"))
  }

  @Test func nothingThatWasSentIsMarkup() throws {
    for text in XSS.corpus {
      let plain = printable(text)
      let name = String(plain.prefix(80)).trimmingCharacters(in: .whitespaces)
      let post = try Post(sender: name)
      try post.send(
        try post.bundle(Post.facts(text), [("notes.txt", Array("x".utf8))]), name: text)
      try post.send(Array("age-encryption.org/v1\n\(text)".utf8), name: text)
      try post.send(Array("no bundle \(text)".utf8), name: text)
      let browser = try Browser(try post.inspector())
      let json = try browser.json("/inbox.json")
      let bundles = (json["bundles"] as? [[String: Any]] ?? []).compactMap { $0["location"] as? String }
      let groups = (json["groups"] as? [[String: Any]] ?? []).compactMap { $0["location"] as? String }
      #expect(bundles.count == 3 && groups.count == 1)
      for address in ["/inbox"] + bundles + groups + bundles.map({ $0 + "/discard" }) {
        let page = try browser.get(address)
        #expect(page.status == .ok, "\(address)")
        #expect(XSS.findings(in: page.text) == [], "\(text)")
      }
      let query = Query([Query.Item("q", text)]).text
      if !text.unicodeScalars.contains("\u{0}") {
        #expect(XSS.findings(in: try browser.get("/inbox\(query)").text) == [])
      }
    }
  }
}
