import Foundation
import HTTPServer
import Inbox
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// A clock that stands still until it is told otherwise.
final class Clock: Sendable {
  private let seconds = Mutex<Int64>(1_795_255_872)

  var now: Timestamp { Timestamp(secondsSince1970: seconds.withLock { $0 }) }

  func pass(_ more: Int64) { seconds.withLock { $0 += more } }
}

/// A home with an inbox, and a sender.
struct InboxDesk {
  let folder: TemporaryFolder
  let home: FilePath
  let clock = Clock()
  let inbox: Inbox
  let server: TusServer
  let token: String

  init(
    limits: InboxLimits = InboxLimits(), quota: Int64 = 1 << 30, hasIdentity: Bool = false,
    in folder: TemporaryFolder? = nil
  ) throws {
    let known = folder
    self.folder = try known ?? TemporaryFolder()
    home = self.folder.path.appending("Home")
    try FileSystem().makeDirectory(home)
    let surroundings = Surroundings(
      fileSystem: FileSystem(), now: { [clock] in clock.now }, makeUUID: { UniversalIdentifier.random() })
    var limits = limits
    limits.freeBytes = 0
    switch RecordsKind.usual {
    case .sqlite:
      inbox = try Inbox(home: home, limits: limits, hasIdentity: hasIdentity, surroundings: surroundings)
    case .postgres:
      let database = try #require(PostgresServer.shared).database(named: home.string)
      inbox = try Inbox(
        home: home, database: database, limits: limits, hasIdentity: hasIdentity, surroundings: surroundings)
    }
    server = TusServer(inbox)
    token = try inbox.addSender("Sender \(UniversalIdentifier.random())", quota: quota).text
  }

  /// The desk of a process among several that receive in one inbox.
  init(_ shared: SharedDesk, _ machine: String, storage: (any BundleStorage)? = nil, token: String? = nil) throws {
    folder = shared.site.folder
    inbox = try shared.inbox(machine, receives: true, storage: storage)
    home = inbox.home
    server = TusServer(inbox)
    self.token = try token ?? inbox.addSender("Sender \(UniversalIdentifier.random())", quota: 1 << 30).text
  }

  var folders: InboxFolders { inbox.folders }

  // MARK: Requests

  /// Asks, with the token and the version unless told otherwise.
  func ask(
    _ method: Method, _ address: String, _ fields: [String: String] = [:], body: [UInt8] = [], token: String? = nil,
    version: String? = "1.0.0"
  ) throws -> Response {
    var headers = HeaderFields()
    if let version { headers.add("Tus-Resumable", version) }
    let token = token ?? self.token
    if !token.isEmpty { headers.add("Authorization", "Bearer \(token)") }
    for (name, value) in fields.sorted(by: { $0.key < $1.key }) { headers.set(name, value) }
    return server.respond(to: try Request(method, address, headers: headers, body: body))
  }

  static func metadata(_ bytes: [UInt8], name: String = "x.lazaret.tar.gz", sum: String? = nil) -> String {
    var metadata = UploadMetadata()
    metadata["filename"] = name
    metadata["sha256"] = sum ?? FileDigest(of: bytes).hexadecimal
    metadata["level"] = "full"
    return metadata.field
  }

  /// Begins an upload.
  func create(_ bytes: [UInt8], token: String? = nil, sum: String? = nil) throws -> String {
    let response = try ask(
      .post, TusServer.path,
      ["Upload-Length": "\(bytes.count)", "Upload-Metadata": Self.metadata(bytes, sum: sum)], token: token)
    try #require(response.status == .created, "\(response.words)")
    return try #require(response.headers["Location"])
  }

  /// Sends a part.
  func append(
    _ bytes: [UInt8], to address: String, at offset: Int, _ fields: [String: String] = [:], token: String? = nil
  ) throws -> Response {
    try ask(
      .patch, address,
      ["Upload-Offset": "\(offset)", "Content-Type": "application/offset+octet-stream"].merging(fields) { $1 },
      body: bytes, token: token)
  }

  /// Sends a bundle, and gives its identifier.
  @discardableResult
  func send(_ bytes: [UInt8], token: String? = nil) throws -> String {
    let address = try create(bytes, token: token)
    let response = try append(bytes, to: address, at: 0, token: token)
    try #require(response.status == .noContent, "\(response.words)")
    return try receipt(address, token: token)["id"] as? String ?? ""
  }

  func receipt(_ address: String, token: String? = nil) throws -> [String: Any] {
    let response = try ask(.get, address, token: token)
    try #require(response.status == .ok, "\(response.words)")
    return try JSONSerialization.jsonObject(with: Data(response.bytes ?? [])) as? [String: Any] ?? [:]
  }

  // MARK: Work

  func pool(
    options: WorkerPool.Options = WorkerPool.Options(), runner: (any WorkRunner)? = nil
  ) -> WorkerPool {
    WorkerPool(inbox, options: options, runner: runner ?? WorkInProcess(surroundings: inbox.surroundings))
  }

  func pool(identity: FilePath?, models: [FilePath] = []) -> WorkerPool {
    var options = WorkerPool.Options()
    options.identity = identity
    options.models = models
    return pool(options: options)
  }

  /// Does all that waits.
  func work(_ pool: WorkerPool) throws {
    for _ in 0..<200 {
      guard try pool.workOnce() else { return }
    }
    Issue.record("the work has no end")
  }

  /// Everything below the home but the inbox.
  func outside() throws -> [String] {
    try FileSystem().entries(of: folder.path).map(\.string)
      + FileSystem().entries(of: home).map(\.string).filter { $0 != "Inbox" && $0 != "Quarantines.json" }
  }

  // MARK: Bundles

  /// Facts of a damaged store.
  static func facts(
    version: String? = "2.3", quarantineID: String? = nil, app: String? = "com.example.Garage", damaged: Int64 = 3,
    tables: [String] = ["Car"], store: String = "App.sqlite"
  ) -> BundleFacts {
    BundleFacts(
      level: .full, date: Timestamp(secondsSince1970: 1_795_255_872), app: app, store: store,
      quarantineID: quarantineID, verdict: "damaged", reason: "page-damaged", cause: "zeroed-pages",
      pageStates: ["healthy": 400, "damaged": damaged], damagedTables: tables, pageSize: 4096, bytes: 4096 * 400,
      modelVersion: "V2", modelChecksum: nil,
      versions: SoftwareVersions(
        app: version, library: "1", sqlite: "3.40.1", storeWrittenBySQLite: "3.40.1", operatingSystem: "Test"),
      storePath: "store/App.sqlite")
  }

  /// A bundle as our own writer makes it.
  func bundle(
    _ items: [(String, [UInt8])], level: BundleLevel = .full, to recipients: [AgeRecipient] = [], store: String = "App"
  ) throws -> [UInt8] {
    let folder = try TemporaryFolder()
    let summary = try BundleWriter(to: recipients).write(
      items.map { BundleItem($0.0, .bytes($0.1), words: "") }, level: level,
      subject: .init(app: "com.example.Garage", store: store, date: clock.now), to: folder.appending("bundle"))
    return try FileSystem().contents(of: folder.appending("bundle"), limit: Int(summary.bytes))
  }

  static func json(_ facts: BundleFacts) throws -> [UInt8] { [UInt8](try JSONEncoder().encode(facts)) }
}

extension Response {
  /// The body as text.
  var words: String { "\(status.rawValue) " + (bytes.map { String(decoding: $0, as: UTF8.self) } ?? "") }
}
