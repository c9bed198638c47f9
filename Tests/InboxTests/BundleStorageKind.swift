import Inbox
import ObjectStorage
import Platform
import StorageServers
import SystemPackage
import TestSupport
import Testing

/// Where bundles lie: each has to do what the protocol says.
enum BundleStorageKind: String, Sendable, CaseIterable, CustomTestStringConvertible {
  case folder
  case memory
  case faultyMemory
  case realServer

  var testDescription: String { rawValue }

  /// Those that there are; the real server only where the environment names one.
  static var present: [BundleStorageKind] { allCases.filter { $0 != .realServer || RealServer.isThere } }

  /// Those that several machines have.
  static var shared: [BundleStorageKind] { present.filter { $0 != .folder } }

  struct NoServer: Error {}

  /// An empty storage of this kind.
  func make() throws -> StorageSite {
    switch self {
    case .folder: return try StorageSite(nil)
    case .memory:
      let bucket = try MemoryBucket()
      return try StorageSite((try S3Address("s3://bucket/inbox"), bucket.client()), holder: bucket)
    case .faultyMemory:
      // Every third request goes wrong, each time in another way.
      let bucket = try MemoryBucket { request in
        guard request.number % 3 == 2 else { return nil }
        return [.refuse, .cutBefore, .cutAfter][request.number / 3 % 3]
      }
      return try StorageSite((try S3Address("s3://bucket/inbox"), bucket.client()), holder: bucket)
    case .realServer:
      guard let client = try RealServer.client() else { throw NoServer() }
      let prefix = "tests/\(UniversalIdentifier.random())"
      return try StorageSite((try S3Address("s3://\(client.bucket)/\(prefix)"), client))
    }
  }
}

/// A storage that a test was made, as the machines have it that use it.
struct StorageSite {
  let folder: TemporaryFolder
  let place: (address: S3Address, client: S3Client)?
  private let holder: AnyObject?

  init(_ place: (S3Address, S3Client)?, holder: AnyObject? = nil) throws {
    folder = try TemporaryFolder()
    self.place = place.map { (address: $0.0, client: $0.1) }
    self.holder = holder
  }

  /// The home of a machine; of a storage in a folder there is one for all.
  func home(_ machine: String) throws -> FilePath {
    let home = folder.appending(place == nil ? "Home" : machine)
    try InboxFolders(home: home).make(in: FileSystem())
    return home
  }

  /// The storage as a machine has it.
  func storage(
    _ machine: String, copyBytes: Int64 = 1 << 30, copiesStay: Duration = .zero, leftoverSeconds: Int64 = 86_400
  ) throws -> any BundleStorage {
    let home = try home(machine)
    guard let place else { return Inbox.storage(of: home, in: FileSystem()) }
    return ObjectBundleStorage(
      place.address, place.client, home: home, copyBytes: copyBytes, copiesStay: copiesStay,
      leftoverSeconds: leftoverSeconds)
  }

  /// The keys of all objects, without the prefix.
  func keys() throws -> [String] {
    guard let place else { return [] }
    return try place.client.list(place.address.key("")).objects.map {
      String($0.key.dropFirst(place.address.key("").count))
    }
  }
}

/// An inbox whose bundles lie in shared storage, and the machines that receive and work.
///
/// What it holds is asked by one thread at a time.
struct SharedDesk: @unchecked Sendable {
  let site: StorageSite
  let clock = Clock()
  let records: any InboxRecords
  let queue: any JobQueue

  init(_ site: StorageSite, _ kind: RecordsKind = .sqlite) throws {
    self.site = site
    (records, queue) = try kind.open(site.folder)
  }

  /// The inbox as a machine has it.
  func inbox(_ machine: String, receives: Bool = false, storage: (any BundleStorage)? = nil) throws -> Inbox {
    var limits = InboxLimits()
    limits.freeBytes = 0
    return Inbox(
      home: try site.home(machine), records: records, queue: queue,
      storage: try storage ?? site.storage(machine), frontEnd: receives ? machine : nil, limits: limits,
      hasIdentity: false,
      surroundings: Surroundings(
        fileSystem: FileSystem(), now: { [clock] in clock.now }, makeUUID: { UniversalIdentifier.random() }))
  }

  /// The workers of a machine.
  func pool(_ inbox: Inbox, runner: (any WorkRunner)? = nil) -> WorkerPool {
    var options = WorkerPool.Options()
    options.receives = inbox.frontEnd != nil
    return WorkerPool(
      inbox, options: options, runner: runner ?? WorkInProcess(surroundings: inbox.surroundings))
  }

  /// Has all done that waits, also what waits for a while.
  func work(_ pool: WorkerPool) throws {
    for _ in 0..<200 {
      if try pool.workOnce() { continue }
      if try queue.pending().isEmpty { return }
      clock.pass(30)
    }
    Issue.record("the work has no end")
  }
}
