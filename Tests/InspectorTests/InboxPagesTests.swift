import Foundation
import HTTPServer
import Inbox
import Inspector
import Lazaret
import ObjectStorage
import Platform
import StorageServers
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// The pages of the inbox.
@Suite("The pages of the inbox")
struct InboxPagesTests {
  /// Runs the work in this process, without protection.
  private struct WorkInProcess: WorkRunner {
    func run(
      _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
    ) throws(InboxError) -> WorkResult? { BundleWork(order).run() }
  }

  /// A scene with an inbox that a sender sends to.
  private struct Post {
    let scene: Scene
    let inbox: Inbox
    let uploads: TusServer
    let token: String

    init(sender: String = "Garage 2", inbox: ((FilePath) throws -> Inbox)? = nil) throws {
      scene = try Scene()
      self.inbox = try inbox?(scene.home) ?? Inbox(home: scene.home)
      uploads = TusServer(self.inbox)
      token = try self.inbox.records.addSender(sender, quota: 1 << 30, at: self.inbox.surroundings.now()).text
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
      let pool = WorkerPool(inbox, options: .init(), runner: WorkInProcess())
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

  @Test func listsLeadOnByKeysAndKeepTheirFilters() throws {
    let post = try Post(sender: "Garage & Söhne")
    let sent = try (0..<103).map { try post.send([UInt8($0)], name: "file \($0 % 2)", works: false) }
    let browser = try Browser(try post.inspector())
    func walk(_ address: String) throws -> [String] {
      var (next, ids) = (String?.some(address), [String]())
      while let here = next, ids.count < 1000 {
        let json = try browser.json(here)
        ids += (json["bundles"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }
        next = json["nextPath"] as? String
        #expect((json["next"] as? String != nil) == (next != nil))
      }
      return ids
    }
    #expect(try walk("/inbox.json").sorted() == sent.sorted())
    let sender = Query([.init("sender", "Garage & Söhne"), .init("q", "FILE 1"), .init("state", "received")]).text
    let odd = sent.enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
    #expect(try walk("/inbox.json\(sender)").sorted() == odd.sorted())
    let page = try browser.get("/inbox?state=received")
    let next = try #require(page.links.first { $0.contains("_next=") })
    #expect(next.hasPrefix("/inbox?state=received&") && page.text.contains(" 103</span>"))
    #expect(try browser.get(next).text.contains("That was the last page."))
    let jobs = try browser.json("/inbox/jobs.json?state=waiting")
    #expect((jobs["jobs"] as? [[String: Any]])?.count == 100)
    #expect((jobs["counts"] as? [String: Int])?["waiting"] == 103)
    let others = try browser.json(try #require(jobs["nextPath"] as? String))
    #expect((others["jobs"] as? [[String: Any]])?.count == 3 && others["nextPath"] == nil)
    #expect((try browser.json("/inbox/senders.json")["senders"] as? [[String: Any]])?.count == 1)
    for address in [
      "/inbox?_next=x", "/inbox/groups?_next=", "/inbox/jobs?_next=x", "/inbox/jobs?state=x", "/inbox?state=x",
    ] {
      #expect(try browser.get(address).status == .badRequest, "\(address)")
    }
  }

  @Test func relatedDamageIsShownWithWhatDiffers() throws {
    let post = try Post()
    var later = Post.facts()
    later.versions.storeWrittenBySQLite = "3.43.2"
    try post.send(try post.bundle(Post.facts(), [("a", [1])]))
    try post.send(try post.bundle(later, [("a", [2])]))
    let browser = try Browser(try post.inspector())
    let groups = try #require(try browser.json("/inbox/groups.json")["groups"] as? [[String: Any]])
    #expect(groups.count == 2)
    let address = try #require(groups[0]["location"] as? String)
    let related = try #require(try browser.json("\(address).json")["related"] as? [[String: Any]])
    #expect(related.count == 1 && related[0]["id"] as? String == groups[1]["id"] as? String)
    #expect(related[0]["differences"] as? [String] == ["SQLite"])
    #expect(try browser.get(address).text.contains("differs in SQLite"))
  }

  @Test func aDamageIsSalvagedAgainAndWhatChangedIsShown() throws {
    let post = try Post()
    let path = try post.scene.makeDamaged("Sent.sqlite", bundle: try Scene.bundle())
    let store = try FileSystem().contents(of: path, limit: 1 << 26)
    let id = try post.send(try post.bundle(Post.facts(), [("store/App.sqlite", store)]))
    let group = try #require(try post.inbox.records.bundle(id)?.fingerprint?.group)
    let browser = try Browser(try post.inspector())
    let address = "/inbox/groups/\(group)"
    #expect(try browser.get(address).text.contains("Salvage again with this version"))
    #expect(try browser.json("\(address)/salvage.json")["count"] as? Int == 0)
    #expect(try browser.post("\(address)/salvage").status == .conflict)
    // As an earlier version left it.
    let known = try #require(try post.inbox.records.bundle(id)?.quarantineID)
    let folder = post.inbox.folders.bundle(id).appending("Incompatible")
    let receipt = folder.appending("\(known).json")
    let text = String(decoding: try FileSystem().contents(of: receipt, limit: 1 << 20), as: UTF8.self)
    let changed = text.replacingOccurrences(
      of: "\"library\" : \"\(LibraryVersion.current)\"", with: "\"library\" : \"0.0.1\"")
    try #require(changed != text)
    try FileSystem().writeAtomically(Array(changed.utf8), to: receipt, replacing: true, permissions: .ownerReadWrite)
    let result = try JSONDecoder().decode(
      SalvageCount.self, from: Data("{\"library\": \"0.0.1\", \"entities\": [], \"isUsable\": true}".utf8))
    try post.inbox.records.noteSalvage(of: id, before: nil, after: result)
    #expect(try browser.json("\(address)/salvage.json")["count"] as? Int == 1)
    let looking = try Browser(try post.inspector(allowsActions: false))
    #expect(try looking.post("\(address)/salvage").status == .forbidden)
    let begun = try browser.post("\(address)/salvage")
    let target = try #require(begun.headers["Location"])
    #expect(begun.status == .seeOther && target.hasPrefix("/inbox/batches/"))
    #expect(try browser.get(target).text.contains("0 of 1"))
    #expect(try browser.post("\(address)/salvage").status == .conflict)
    let pool = WorkerPool(post.inbox, options: .init(), runner: WorkInProcess())
    while try pool.workOnce() {}
    let batch = try #require(try browser.json("\(target).json")["batch"] as? [String: Any])
    #expect(batch["over"] as? Bool == true && (batch["changes"] as? [String: Int])?["same"] == 1, "\(batch)")
    let page = try browser.get(target).text
    #expect(page.contains("the same") && XSS.findings(in: page) == [])
    #expect(try browser.get(address).links.contains(target))
    #expect(try browser.get("\(target)?change=worse").text.contains("There is none here."))
    #expect(try browser.get("\(target)?change=x").status == .badRequest)
    #expect(try browser.get("/inbox/batches/99").status == .notFound)
  }

  @Test func whatWasRemovedIsListed() throws {
    let post = try Post()
    let id = try post.send(Array("nothing".utf8))
    let browser = try Browser(try post.inspector())
    #expect(try browser.get("/inbox/removed").text.contains("No bundle was removed."))
    // Behind the last one there is none, and that is no word on those before it.
    let behind = try browser.get("/inbox?_next=1970-01-01T00:00:00Z_\(id)").text
    #expect(behind.contains("No further bundle fits.") && !behind.contains("No bundle fits."))
    #expect(try browser.post("/inbox/bundles/\(id)/discard", [("understood", "yes")]).status == .seeOther)
    let removed = try #require(try browser.json("/inbox/removed.json")["removed"] as? [[String: Any]])
    #expect(removed.count == 1 && removed[0]["bundle"] as? String == id && removed[0]["rule"] as? String == "discarded")
    #expect(try browser.get("/inbox/removed").text.contains(id))
    let empty = try browser.get("/inbox").text
    #expect(empty.contains("The inbox is empty") && !empty.contains("Nothing was sent"))
    #expect(try browser.get("/inbox/removed?_next=x").status == .badRequest)
  }

  @Test func whatJobsWaitForIsToldWhereItIsLookedFor() throws {
    let post = try Post()
    let id = try post.send(Array("nothing".utf8), works: false)
    let other = try post.send(Array("something".utf8), works: false)
    let now = Surroundings.machine.now()
    let browser = try Browser(try post.inspector())
    #expect(try browser.get("/healthz").text == "ok\n")
    for (bundle, code) in [(id, "no-space"), (other, "<b>\"{}")] {
      let job = try #require(try post.inbox.queue.lease(by: "me", for: 60, at: now))
      #expect(job.bundle == bundle)
      _ = try post.inbox.queue.end(job, .hindered(.init(code: code, words: "It is full.")), at: now)
    }
    let page = try browser.get("/inbox/bundles/\(id)").text
    #expect(page.contains("waits until what is in its way is gone") && page.contains("It is full."))
    #expect(page.contains("no-space") && !page.contains("Try again"))
    #expect(try browser.get("/inbox").text.contains("<code>no-space</code>"))
    let jobs = try browser.get("/inbox/jobs?state=waiting").text
    #expect(jobs.contains("no fault of their bundles") && jobs.contains("1 job <code>no-space</code>"))
    #expect(!jobs.contains("begun again by itself") && XSS.findings(in: jobs) == [])
    let json = try browser.json("/inbox/jobs.json?state=waiting")
    #expect(json["hindrances"] as? [String: Int] == ["no-space": 1, "other": 1])
    let health = try browser.get("/healthz")
    #expect(health.status == .ok && health.text == "ok\nwaiting: no-space, other\n")
    let metrics = try metrics(of: post.inspector())
    #expect(metrics.contains("lazaret_inbox_hindered_jobs{reason=\"no-space\"} 1\n"))
    #expect(metrics.contains("lazaret_inbox_hindered_jobs{reason=\"other\"} 1\n"))
    _ = try post.inbox.queue.restart(.open, of: id, at: now)
    _ = try post.inbox.queue.restart(.open, of: other, at: now)
    #expect(try browser.get("/healthz").text == "ok\n")
  }

  private func metrics(of inspector: Inspector) throws -> String {
    var request = try Request(.get, "/metrics")
    request.client = ClientAddress("127.0.0.1")
    return inspector.respond(to: request).text
  }

  @Test(arguments: [true, false]) func whatABucketKeepsOfABundleIsSaidBeforeAndAfter(_ keepsVersions: Bool) throws {
    let bucket = try MemoryBucket(keepingVersions: keepsVersions)
    let address = try S3Address("s3://bucket/inbox")
    let folder = try TemporaryFolder()
    let database = try InboxDatabase(folder.appending("records.sqlite"))
    let post = try Post { home in
      try InboxFolders(home: home).make(in: FileSystem())
      return Inbox(
        home: home, records: database.records, queue: database.queue(),
        storage: ObjectBundleStorage(address, bucket.client(), home: home), frontEnd: home.string,
        limits: InboxLimits(), hasIdentity: false, surroundings: .machine)
    }
    let id = try post.send(Array("nothing".utf8), works: false)
    let browser = try Browser(try post.inspector())
    let asked = try browser.get("/inbox/bundles/\(id)/discard").text
    #expect(asked.contains("Discard for good") == !keepsVersions)
    #expect(asked.contains("what is removed is hidden") == keepsVersions)
    #expect(try browser.post("/inbox/bundles/\(id)/discard", [("understood", "yes")]).status == .seeOther)
    #expect(try browser.get("/inbox/removed").text.contains("what is removed is hidden") == keepsVersions)
    let keeping = try browser.json("/inbox/removed.json")["keeping"] as? String
    #expect((keeping != nil) == keepsVersions)
  }

  @Test func everyFrontEndShowsTheStoreOfABundle() throws {
    let bucket = try MemoryBucket()
    let address = try S3Address("s3://bucket/inbox")
    let folder = try TemporaryFolder()
    let database = try InboxDatabase(folder.appending("records.sqlite"))
    func inbox(_ home: FilePath) throws -> Inbox {
      try InboxFolders(home: home).make(in: FileSystem())
      return Inbox(
        home: home, records: database.records, queue: database.queue(),
        storage: ObjectBundleStorage(address, bucket.client(), home: home), frontEnd: home.string,
        limits: InboxLimits(), hasIdentity: false, surroundings: .machine)
    }
    let one = try Post(inbox: inbox)
    let other = try Post(sender: "Other", inbox: inbox)
    let path = try one.scene.makeDamaged("Sent.sqlite", bundle: try Scene.bundle())
    let store = try FileSystem().contents(of: path, limit: 1 << 26)
    let id = try one.send(try one.bundle(Post.facts(), [("store/App.sqlite", store)]))
    let browser = try Browser(try one.inspector())
    let page = try #require(try browser.json("/inbox/bundles/\(id).json")["quarantined"] as? String)
    #expect(page.contains(id))
    // One that was never asked for the bundle, and one whose copy had to go.
    let elsewhere = try Browser(try other.inspector())
    #expect(try elsewhere.get(page).status == .ok)
    #expect(try elsewhere.get("\(page)/discard").text.contains("copy"))
    try FileSystem().removeTree(InboxFolders(home: other.scene.home).bundle(id))
    #expect(try elsewhere.get(page).status == .ok)
    #expect(try elsewhere.get(page.replacingOccurrences(of: id.prefix(4), with: "0000")).status == .notFound)
    #expect(try browser.post("/inbox/bundles/\(id)/discard", [("understood", "yes")]).status == .seeOther)
    #expect(try elsewhere.get(page).status == .notFound)
    #expect(try QuarantineCatalogue(home: other.scene.home, surroundings: .machine).listedFolders().isEmpty)
  }

  @Test func aBundleThatIsBeingWorkedAtOnThePagesStays() throws {
    let post = try Post()
    let path = try post.scene.makeDamaged("Sent.sqlite", bundle: try Scene.bundle())
    let store = try FileSystem().contents(of: path, limit: 1 << 26)
    let id = try post.send(try post.bundle(Post.facts(), [("store/App.sqlite", store)]))
    let inspector = try post.inspector()
    let browser = try Browser(inspector)
    let listed = try #require(try inspector.catalogue.quarantined().first)
    let mayEnd = DispatchSemaphore(value: 0)
    let job = try inspector.work.start(.export, "x", store: listed.id, target: .to("stores")) { _ in
      mayEnd.wait()
      return JobOutcome("done")
    }
    #expect(try browser.post("/inbox/bundles/\(id)/discard", [("understood", "yes")]).status == .conflict)
    let all = InboxRetention(bytes: 0, keepsOneOfEach: false)
    #expect(try post.inbox.prune(all).spared == [id])
    mayEnd.signal()
    while inspector.work.job(job.id)?.isRunning == true { Thread.sleep(forTimeInterval: 0.01) }
    #expect(try post.inbox.prune(all).removed.map(\.bundle) == [id])
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
