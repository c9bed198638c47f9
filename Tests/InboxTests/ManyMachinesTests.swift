import Foundation
import Inbox
import ObjectStorage
import Platform
import StorageServers
import SystemPackage
import TestSupport
import Testing

/// An inbox whose records are in PostgreSQL and whose bundles are in object storage, as its processes open it.
@Suite(
  "The inbox of many machines", .enabled(if: PostgresServer.shared != nil, "no PostgreSQL server can be started here"))
struct ManyMachinesTests {
  private var server: PostgresServer { get throws { try #require(PostgresServer.shared) } }

  @Test func homesStorageAndDatabaseThatDoNotBelongTogetherAreRefused() throws {
    let server = try server
    let (one, other) = (try server.open(try server.makeDatabase()), try server.open(try server.makeDatabase()))
    let (site, second) = (try BundleStorageKind.memory.make(), try BundleStorageKind.memory.make())
    func open(
      _ site: StorageSite, _ machine: String, _ database: PostgresDatabase, receives: Bool = true
    ) throws -> Inbox {
      try Inbox(
        home: site.folder.appending(machine), database: database, storage: try site.storage(machine),
        receives: receives)
    }
    // Who works can begin nothing.
    #expect(throws: InboxError.self) { try open(site, "worker", one, receives: false) }
    let first = try open(site, "a", one)
    let again = try open(site, "a", one)
    #expect(first.frontEnd != nil && first.frontEnd == again.frontEnd)
    #expect(try open(site, "b", one).frontEnd != first.frontEnd)
    #expect(try open(site, "worker", one, receives: false).frontEnd == nil)
    // Another storage, another database, another inbox's home, and a home with an inbox of its own.
    try Self.receive(one.records)
    let attempts: [() throws -> Inbox] = [
      { try open(second, "c", one) }, { try open(site, "d", other) },
      {
        try Inbox(
          home: site.folder.appending("a"), database: other, storage: try second.storage("a"), receives: true)
      },
    ]
    for body in attempts {
      let error = #expect(throws: InboxError.self) { try body() }
      #expect(error?.code == "inbox-address", "\(error?.detail ?? "")")
    }
    let own = site.folder.appending("own")
    try FileSystem().makeDirectory(own)
    _ = try Inbox(home: own)
    #expect(throws: InboxError.self) { try open(site, "own", one) }
    // Nor is the home of a front end taken for the place of the bundles.
    for database in [one, other] {
      #expect(throws: InboxError.self) { try Inbox(home: site.folder.appending("a"), database: database) }
    }
    #expect(throws: InboxError.self) { try Inbox(home: site.folder.appending("a")) }
  }

  /// Has records know a bundle.
  private static func receive(_ records: any InboxRecords) throws {
    let date = Timestamp(secondsSince1970: 1_795_255_872)
    try records.add(InboxSender(name: "me", quota: 1000, created: date), tokenSum: [1])
    let id = "\(UniversalIdentifier.random())".lowercased()
    let upload = InboxUpload(id: id, sender: "me", length: 1, created: date, expires: date)
    #expect(try records.admit(upload, quota: 1000, limits: InboxLimits()) == .begun)
    let bundle = InboxBundle(
      id: id, sender: "me", date: date, sha256: id, bytes: 1, fileName: nil, level: nil, isEncrypted: false)
    #expect(try records.makeBundle(bundle, of: id).id == id)
  }

  @Test func ofTwoDatabasesOneGetsAStorageAlsoBeforeTheFirstBundle() throws {
    let server = try server
    let (one, other) = (try server.open(try server.makeDatabase()), try server.open(try server.makeDatabase()))
    let (site, second) = (try BundleStorageKind.memory.make(), try BundleStorageKind.memory.make())
    func open(_ site: StorageSite, _ machine: String, _ database: PostgresDatabase) throws -> Inbox {
      try Inbox(
        home: site.folder.appending(machine), database: database, storage: try site.storage(machine), receives: true)
    }
    func check(_ body: () throws -> Inbox) {
      let error = #expect(throws: InboxError.self) { try body() }
      #expect(error?.code == "inbox-address", "\(error?.detail ?? "")")
    }
    _ = try open(site, "a", one)
    let mark = try site.storage("a").mark()
    #expect(mark != nil)
    // One that has no mark yet, and one that has another.
    check { try open(site, "b", other) }
    _ = try open(second, "b", other)
    check { try open(site, "c", other) }
    #expect(try site.storage("a").mark() == mark && second.storage("b").mark() != mark)
    // Killed before the storage had it: the same mark is put there again, unless there are bundles.
    let place = try #require(site.place)
    try place.client.delete(place.address.key("inbox"))
    _ = try open(site, "a", one)
    #expect(try site.storage("a").mark() == mark)
    try place.client.delete(place.address.key("inbox"))
    try place.client.put(place.address.key("bundles/x"), [1])
    check { try open(site, "a", one) }
    try place.client.delete(place.address.key("bundles/x"))
    try Self.receive(one.records)
    check { try open(site, "a", one) }
    #expect(try site.storage("a").mark() == nil)
  }

  // MARK: Processes

  /// A process of the tool.
  private func start(_ variables: [String: String], _ arguments: [String]) throws -> (ChildProcess, [String: Any]) {
    let process = try ChildProcess(
      "env", variables.map { "\($0.key)=\($0.value)" } + [ChildProcess.tool] + arguments)
    _ = try process.waits(for: "\n")
    let said = try process.output()
    let line = try JSONSerialization.jsonObject(with: Data(said.utf8)) as? [String: Any]
    return (process, try #require(line, "\(said)"))
  }

  @Test(.enabled(if: RealServer.isThere && ChildProcess.exists("curl"), "\(RealServer.absence)"))
  func processesReceiveWorkAndDieWithoutHarm() throws {
    let site = try BundleStorageKind.realServer.make()
    let place = try #require(site.place)
    let address = try server.makeDatabase()
    let folder = try TemporaryFolder()
    let endpoint = try #require(ProcessInfo.processInfo.environment["LAZARET_S3_ENDPOINT"])
    let variables = [
      "LAZARET_DATABASE": address, "LAZARET_BUNDLES": place.address.description, "AWS_ENDPOINT_URL_S3": endpoint,
      "LAZARET_S3_ALLOW_HTTP": "1",
    ]
    let made = try ChildProcess.run(
      "env", variables.map { "\($0.key)=\($0.value)" } + [ChildProcess.tool, "inbox", "token", "new", "me", "--json"])
    let token = try #require(
      (try JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [String: Any])?["token"] as? String)
    for name in ["front", "work"] { try FileSystem().makeDirectory(folder.appending(name)) }
    let (front, said) = try start(
      variables,
      [
        "serve", "--inbox", "--workers", "0", "--home", folder.appending("front").string, "--port", "0",
        "--no-browser", "--json",
      ])
    defer { front.kill() }
    let work = ["work", "--json", "--home", folder.appending("work").string]
    let (killed, announced) = try start(variables, work)
    #expect(announced["bundles"] as? String == place.address.description && announced["home"] == nil)
    let desk = try InboxDesk()
    let bytes = try desk.bundle([
      ("facts.json", try InboxDesk.json(InboxDesk.facts())), ("store/App.sqlite", try BundleWorkTests().damagedStore()),
    ])
    let file = try folder.write(bytes, to: "bundle")
    let origin = "http://127.0.0.1:\(try #require(said["port"] as? Int))"
    let sent = try ChildProcess.run(
      "curl",
      [
        "-sS", "-i", "--max-time", "60", "-X", "POST", "-H", "Authorization: Bearer \(token)", "-H",
        "Tus-Resumable: 1.0.0", "-H", "Upload-Length: \(bytes.count)", "-H",
        "Content-Type: application/offset+octet-stream", "-H", "Expect:", "--data-binary", "@\(file.string)",
        origin + "/inbox/uploads",
      ])
    #expect(sent.output.contains(" 201 "), "\(sent.output)")
    // Killed wherever it is; what it had comes back, here at once.
    Thread.sleep(forTimeInterval: 0.3)
    killed.kill()
    _ = try killed.finish()
    let database = try server.open(address)
    let (records, queue) = (database.records, database.queue())
    for job in try queue.running() { try queue.release(owner: job.owner ?? "", at: Surroundings.machine.now()) }
    let (worker, _) = try start(variables, work)
    var entry: InboxEntry?
    for _ in 0..<600 {
      entry = try records.entries(words: "", group: nil, state: nil, limit: 5).first
      if entry?.jobs.count == 2, entry?.jobs.allSatisfy({ $0.state == .done }) == true { break }
      Thread.sleep(forTimeInterval: 0.1)
    }
    let jobs = try #require(entry?.jobs)
    #expect(jobs.map(\.kind) == [.open, .salvage] && jobs.allSatisfy { $0.state == .done }, "\(jobs)")
    let bundle = try #require(try entry.flatMap { try records.bundle($0.bundle.id) })
    let results = try site.keys().filter { $0.contains("/results/") }
    for archive in bundle.archives {
      #expect(results.contains { $0.hasSuffix("\(archive.making)-\(archive.mark).tar.gz") })
    }
    #expect(bundle.archives.count == 2 && results.filter { $0.hasSuffix(".json") }.count == 2)
    worker.interrupt()
    let ended = try worker.finish()
    #expect(ended.status == 0 && ended.errors.isEmpty, "\(ended.errors)")
    // It removed its folder, and that of the one that was killed.
    #expect(try FileSystem().entries(of: folder.appending("work")).isEmpty)
    front.interrupt()
    let stopped = try front.finish()
    #expect(stopped.status == 0 && stopped.errors.isEmpty, "\(stopped.errors)")
    try site.storage("cleaner").remove(bundle.id)
  }
}
