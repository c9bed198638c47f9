import Foundation
import HTTPServer
import Inbox
import Lazaret
import ObjectStorage
import Platform
import StorageServers
import SystemPackage
import TestSupport
import Testing

/// Several machines that receive and work, whose bundles lie in object storage.
@Suite("Bundles of many machines")
struct SharedBundlesTests {
  private func items(_ seed: UInt64 = 3) throws -> [(String, [UInt8])] {
    [
      ("facts.json", try InboxDesk.json(InboxDesk.facts())),
      ("store/App.sqlite", try BundleWorkTests().damagedStore(seed)),
    ]
  }

  /// What there has to be in the end: one result of each kind, the records name them, and every machine has the same store.
  private func check(_ desk: SharedDesk, _ id: String, _ machine: String, store: [UInt8]) throws {
    let bundle = try #require(try desk.records.bundle(id))
    #expect(bundle.state == .quarantined, "\(bundle.failure?.words ?? "")")
    let jobs = try desk.queue.jobs(of: id)
    #expect(jobs.map(\.kind) == [.open, .salvage] && jobs.allSatisfy { $0.state == .done }, "\(jobs)")
    #expect(bundle.opened != nil && bundle.salvaged != nil)
    #expect(try desk.records.groups(limit: 5).map(\.count) == [1])
    let inbox = try desk.inbox(machine, receives: true)
    let folder = try inbox.placed(bundle).appending(QuarantineFolder.name)
    let stored = try #require(try QuarantineCatalogue(home: inbox.home, surroundings: .machine).stores().first)
    #expect(stored.id == bundle.quarantineID && stored.files.main.removingLastComponent() == folder)
    let receipt = try #require(stored.receipt)
    #expect(receipt.history.map(\.kind) == [.quarantined, .received, .salvaged])
    #expect(receipt.files.first?.sha256 == FileDigest(of: store).hexadecimal)
    #expect(receipt.salvage?.result != nil)
    #expect(try FileSystem().contents(of: stored.files.main, limit: 1 << 26) == store)
    let keys = try desk.site.keys().filter { $0.contains(id) }
    #expect(keys.filter { $0.hasSuffix(".json") }.count == 2, "\(keys)")
  }

  @Test func recordsThatCannotBeReachedTakeNoTries() throws {
    let desk = try SharedDesk(try BundleStorageKind.memory.make())
    let front = try InboxDesk(desk, "front")
    let items = try items()
    let id = try front.send(try front.bundle(items))
    let times = 9
    let storage = InterruptedStorage(try desk.site.storage("worker"), times: times)
    let pool = desk.pool(try desk.inbox("worker", storage: storage))
    for _ in 0..<times {
      #expect(try pool.workOnce())
      desk.clock.pass(60)
    }
    let job = try #require(try desk.queue.jobs(of: id).first)
    #expect(job.state == .waiting && job.counted == 0 && job.code == "inbox-records", "\(job)")
    #expect(try desk.records.bundle(id)?.state == .received)
    try desk.work(pool)
    try check(desk, id, "other", store: items[1].1)
  }

  @Test func theCatalogueOfStoresIsReadAgainOnlyOnceItWasChanged() throws {
    let desk = try SharedDesk(try BundleStorageKind.memory.make())
    let front = try InboxDesk(desk, "front")
    let id = try front.send(try front.bundle(items()))
    try desk.work(desk.pool(try desk.inbox("worker")))
    let bundle = try #require(try desk.records.bundle(id))
    #expect(bundle.quarantineID != nil)
    let reads = Mutex(0)
    let fileSystem = FileSystem(intercept: { operation throws(Errno) in
      guard operation.kind == .open, operation.path.lastComponent?.string == "Quarantines.json" else { return }
      reads.withLock { $0 += 1 }
    })
    let home = try desk.site.home("looking")
    let inbox = Inbox(
      home: home, records: desk.records, queue: desk.queue, storage: try desk.site.storage("looking"),
      limits: InboxLimits(), hasIdentity: false, surroundings: .still(fileSystem: fileSystem))
    func look() throws -> Int {
      _ = try inbox.placed(bundle)
      return reads.withLock { $0 }
    }
    func known() throws -> [String] {
      try QuarantineCatalogue(home: home, surroundings: .machine).stores().map(\.id)
    }
    for _ in 0..<3 { _ = try look() }
    let once = try look()
    #expect(once <= 2)
    for _ in 0..<5 { #expect(try look() == once) }
    #expect(try known() == [bundle.quarantineID])
    // Another process adds a folder, or the file is lost: it is looked at again, and knows the bundle's store after it.
    let other = home.appending("Other")
    try FileSystem().makeDirectory(other)
    try QuarantineCatalogue(home: home, surroundings: .machine).add(
      QuarantineFolder(other.appending(QuarantineFolder.name), surroundings: .machine))
    let changed = try look()
    #expect(changed > once)
    #expect(try known() == [bundle.quarantineID])
    #expect(try look() == changed)
    try FileSystem().unlink(home.appending("Quarantines.json"))
    _ = try look()
    #expect(try known() == [bundle.quarantineID])
  }

  @Test(.timeLimit(.minutes(5))) func whatKeepsStorageFromBeingUsedIsToldOnce() throws {
    let isAway = Mutex(false)
    let bucket = try MemoryBucket { _ in isAway.withLock { $0 } ? .refuse : nil }
    let site = try StorageSite((try S3Address("s3://bucket/inbox"), bucket.client(attempts: 1)), holder: bucket)
    let desk = try SharedDesk(site)
    let front = try InboxDesk(desk, "front")
    let ids = try (0..<5).map { try front.send([UInt8($0)]) }
    let inbox = try desk.inbox("front", receives: true)
    isAway.withLock { $0 = true }
    let requests = bucket.requests
    let pruning = try inbox.prune(InboxRetention(bytes: 0, keepsOneOfEach: false), limit: 4)
    // The first that cannot be removed ends the round.
    #expect(pruning.removed.count <= 1 && pruning.failures.count <= 1 && bucket.requests - requests <= 3)
    let told = Mutex<[String]>([])
    var options = WorkerPool.Options()
    options.count = 0
    options.pause = .milliseconds(20)
    options.onTrouble = { part, error in
      told.withLock { $0.append("\(part) \((error as? any ReportableError)?.code ?? "good")") }
    }
    let pool = WorkerPool(inbox, options: options, runner: WorkInProcess(surroundings: .machine))
    try pool.start()
    defer { pool.stop() }
    func wait(for words: String) {
      while !told.withLock({ $0.contains(words) }) { Thread.sleep(forTimeInterval: 0.01) }
    }
    wait(for: "receiving s3-server")
    #expect(inbox.storageTrouble == "s3-server")
    Thread.sleep(forTimeInterval: 0.2)
    isAway.withLock { $0 = false }
    wait(for: "receiving good")
    #expect(inbox.storageTrouble == nil)
    #expect(told.withLock { $0.filter { $0.hasPrefix("receiving") } } == ["receiving s3-server", "receiving good"])
    #expect(try Set(desk.records.bundleIDs().keys).isSubset(of: ids))
  }

  @Test(arguments: RecordsKind.available, BundleStorageKind.shared)
  func whatOneMachineReceivesAnotherOneWorksAtAndAThirdShows(
    _ records: RecordsKind, _ kind: BundleStorageKind
  ) throws {
    let desk = try SharedDesk(try kind.make(), records)
    let front = try InboxDesk(desk, "front")
    let items = try items()
    let bytes = try front.bundle(items)
    let id = try front.send(bytes)
    let worker = try desk.inbox("worker")
    try desk.work(desk.pool(worker))
    try check(desk, id, "other", store: items[1].1)
    #expect(try FileSystem().entries(of: worker.folders.bundles).isEmpty)
    #expect(try FileSystem().entries(of: worker.storage.workHome).isEmpty)
    // The room that it takes is counted, wherever it was worked at.
    let used = try desk.records.usage().values.reduce(0, +)
    #expect(used > Int64(bytes.count + items[1].1.count))
    // The same again is the same bundle, by another machine too.
    let other = try InboxDesk(desk, "other", token: front.token)
    #expect(try other.receipt(other.create(bytes))["id"] as? String == id)
    // What was received is there byte for byte, and goes with everything else.
    let bundle = try #require(try desk.records.bundle(id))
    #expect(try FileSystem().contents(of: other.inbox.received(bundle), limit: 1 << 26) == bytes)
    let third = try desk.inbox("third", receives: true)
    _ = try third.placed(bundle)
    try other.inbox.discard(id)
    try third.storage.removeCopies(desk.records)
    #expect(try FileSystem().entries(of: third.folders.bundles).isEmpty)
    #expect(try desk.site.keys().isEmpty)
    #expect(try desk.records.usage().values.reduce(0, +) == 0)
    #expect(try FileSystem().entries(of: other.folders.bundles).isEmpty)
  }

  /// A storage that fails from one request on, as where the process or the network ends there.
  private final class Gate: Sendable {
    private let left = Mutex<Int?>(nil)

    func close(after requests: Int?) { left.withLock { $0 = requests } }

    var isOpen: Bool {
      left.withLock { left in
        guard let number = left else { return true }
        left = number - 1
        return number > 0
      }
    }
  }

  @Test(arguments: [MemoryBucket.Fault.cutBefore, .cutAfter, .refuse])
  func workThatIsCutOffAnywhereIsDoneOnceInTheEnd(_ fault: MemoryBucket.Fault) throws {
    let items = try items()
    for requests in 0..<14 {
      let gate = Gate()
      let bucket = try MemoryBucket { _ in gate.isOpen ? nil : fault }
      let site = try StorageSite((try S3Address("s3://bucket/inbox"), bucket.client(attempts: 1)), holder: bucket)
      let desk = try SharedDesk(site)
      let front = try InboxDesk(desk, "front")
      let id = try front.send(try front.bundle(items))
      gate.close(after: requests)
      // Each attempt is by another machine, and all of them are cut off.
      for number in 0..<3 {
        _ = try desk.pool(try desk.inbox("worker \(number)")).workOnce()
        desk.clock.pass(2)
      }
      let job = try #require(try desk.queue.jobs(of: id).first)
      #expect(job.state == .done || job.state == .waiting && job.code?.hasPrefix("s3-") == true, "\(job)")
      gate.close(after: nil)
      try desk.work(desk.pool(try desk.inbox("last")))
      try check(desk, id, "other", store: items[1].1)
      // Each attempt that was cut off may have left an archive, which goes with its bundle; what counts is there once.
      bucket.advance(seconds: 86_401)
      for _ in 0..<32 { try front.inbox.storage.removeLeftovers(desk.records) }
      let keys = try site.keys()
      #expect((5...8).contains(keys.count) && keys.count { $0.hasSuffix(".json") } == 2)
    }
  }

  /// A runner whose worker never ends by itself, as where the machine dies: the lease goes to another one meanwhile.
  private struct LateRunner: WorkRunner {
    let inner: WorkInProcess
    let meanwhile: @Sendable () -> Void

    func run(
      _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
    ) throws(InboxError) -> WorkResult? {
      let result = try inner.run(order, beat: beat, isCancelled: isCancelled)
      meanwhile()
      return result
    }
  }

  @Test(arguments: RecordsKind.available) func aWorkerWhoseLeaseIsOverChangesNothing(_ records: RecordsKind) throws {
    let desk = try SharedDesk(try BundleStorageKind.memory.make(), records)
    let front = try InboxDesk(desk, "front")
    let items = try items()
    let id = try front.send(try front.bundle(items))
    let (late, quick) = (try desk.inbox("late"), try desk.inbox("quick"))
    let runner = LateRunner(inner: WorkInProcess(surroundings: late.surroundings)) {
      desk.clock.pass(120)
      do { try desk.work(desk.pool(quick)) } catch { Issue.record(error) }
    }
    _ = try desk.pool(late, runner: runner).workOnce()
    try check(desk, id, "other", store: items[1].1)
    #expect(try desk.queue.jobs(of: id).map(\.interrupted) == [1, 0])
  }

  @Test func aBundleThatCannotBeFetchedWaitsAndOneThatIsGoneIsListed() throws {
    let gate = Gate()
    let bucket = try MemoryBucket { _ in gate.isOpen ? nil : .refuse }
    let site = try StorageSite((try S3Address("s3://bucket/inbox"), bucket.client(attempts: 2)), holder: bucket)
    let desk = try SharedDesk(site)
    let front = try InboxDesk(desk, "front")
    let (id, gone) = (try front.send(try front.bundle(items(3))), try front.send(try front.bundle(items(4))))
    let pool = desk.pool(try desk.inbox("worker"))
    gate.close(after: 0)
    // An outage takes no tries.
    for _ in 0..<20 {
      _ = try pool.workOnce()
      desk.clock.pass(2)
    }
    for job in try desk.queue.jobs(of: id) + desk.queue.jobs(of: gone) {
      #expect(job.state == .waiting && job.code == "s3-server" && job.excused == job.attempts, "\(job)")
      #expect(job.words?.contains("503") == true && job.words?.contains("AWS") == false)
    }
    gate.close(after: nil)
    try site.place?.client.delete("inbox/bundles/\(gone)/bundle.lazaret.tar.gz")
    try desk.work(pool)
    #expect(try desk.records.bundle(id)?.state == .quarantined)
    let failed = try desk.queue.jobs(in: .failed, after: nil, limit: 10)
    #expect(failed.map(\.bundle) == [gone] && failed.first?.code == "bundle-missing", "\(failed)")
    #expect((failed.first.map { $0.attempts - $0.excused } ?? 0) == 4)
    #expect(try desk.records.bundle(gone)?.failure?.code == "bundle-missing")
  }

  @Test(arguments: RecordsKind.available) func whatIsGoneOfAStoreIsUnpackedAndSalvagedAnew(
    _ records: RecordsKind
  ) throws {
    let desk = try SharedDesk(try BundleStorageKind.memory.make(), records)
    let front = try InboxDesk(desk, "front")
    let items = try items()
    let id = try front.send(try front.bundle(items))
    let place = try #require(desk.site.place)
    func removeArchives() throws {
      for key in try desk.site.keys() where key.contains("/results/") && key.hasSuffix(".tar.gz") {
        try place.client.delete(place.address.key(key))
      }
    }
    let pool = desk.pool(try desk.inbox("worker"))
    // Before the salvage, which finds it out.
    #expect(try pool.workOnce())
    try removeArchives()
    try desk.work(pool)
    try check(desk, id, "other", store: items[1].1)
    // And afterwards, when a page shows it.
    try removeArchives()
    let bundle = try #require(try desk.records.bundle(id))
    let error = #expect(throws: InboxError.self) { try desk.inbox("third", receives: true).placed(bundle) }
    #expect(error?.kind == .missing)
    try desk.work(pool)
    let anew = try #require(try desk.records.bundle(id))
    #expect(anew.archives.count == 2 && anew.state == .quarantined)
    _ = try desk.inbox("fourth", receives: true).placed(anew)
  }

  @Test(arguments: RecordsKind.available) func whatIsKeptOfABundleThatIsRefusedIsNamedNoMore(
    _ records: RecordsKind
  ) throws {
    let desk = try SharedDesk(try BundleStorageKind.memory.make(), records)
    let front = try InboxDesk(desk, "front")
    let id = try front.send(try front.bundle(items()))
    try desk.work(desk.pool(try desk.inbox("worker")))
    let keys = try desk.site.keys()
    try desk.queue.restart(.open, of: id, at: desk.clock.now)
    let job = try #require(try desk.queue.lease(by: "me", for: 60, at: desk.clock.now))
    let full = InboxBundle.Failure(code: "sender-quota", words: "Full.")
    #expect(try desk.queue.end(job, .failed(full), at: desk.clock.now) == .failed)
    try front.inbox.finishInterrupted()
    #expect(try desk.records.bundle(id)?.archives.isEmpty == true)
    #expect(try desk.site.keys() == keys)
    // Once there is room, all of it is taken as it is.
    try front.inbox.retry(id)
    try desk.work(desk.pool(try desk.inbox("worker")))
    #expect(try desk.site.keys() == keys && desk.records.bundle(id)?.archives.count == 2)
  }

  // MARK: Receiving

  @Test(arguments: RecordsKind.available)
  func anUploadCountsAsReceivedOnceItIsInTheStorage(_ records: RecordsKind) throws {
    let gate = Gate()
    let bucket = try MemoryBucket { _ in gate.isOpen ? nil : .refuse }
    let site = try StorageSite((try S3Address("s3://bucket/inbox"), bucket.client(attempts: 2)), holder: bucket)
    let desk = try SharedDesk(site, records)
    let front = try InboxDesk(desk, "front")
    let bytes = try front.bundle(items())
    let address = try front.create(bytes)
    gate.close(after: 0)
    let refused = try front.append(bytes, to: address, at: 0)
    #expect(refused.status == .serviceUnavailable && refused.headers["Retry-After"] != nil, "\(refused.words)")
    for method in [Method.head, .get] { #expect(try front.ask(method, address).status == .serviceUnavailable) }
    #expect(try desk.records.bundleCount() == 0)
    // A start without the storage keeps what is there.
    try desk.inbox("front", receives: true).finishInterrupted()
    gate.close(after: nil)
    let looked = try front.ask(.head, address)
    #expect(looked.headers["Upload-Offset"] == "\(bytes.count)")
    let id = try #require(try front.receipt(address)["id"] as? String)
    #expect(try site.keys() == ["bundles/\(id)/bundle.lazaret.tar.gz"])
    try desk.work(desk.pool(try desk.inbox("worker")))
    #expect(try desk.records.bundle(id)?.state == .quarantined)
  }

  @Test(arguments: RecordsKind.available)
  func nothingStaysOfAWholeUploadThatCouldNotBeKeptInTime(_ records: RecordsKind) throws {
    let gate = Gate()
    let bucket = try MemoryBucket { _ in gate.isOpen ? nil : .refuse }
    let site = try StorageSite((try S3Address("s3://bucket/inbox"), bucket.client(attempts: 1)), holder: bucket)
    let desk = try SharedDesk(site, records)
    let front = try InboxDesk(desk, "front")
    let bytes = try front.bundle(items())
    let address = try front.create(bytes)
    gate.close(after: 0)
    #expect(try front.append(bytes, to: address, at: 0).status == .serviceUnavailable)
    #expect(try FileSystem().entries(of: front.folders.uploads).count == 1)
    desk.clock.pass(front.inbox.limits.uploadSeconds + 1)
    try front.inbox.expireUploads()
    #expect(try FileSystem().entries(of: front.folders.uploads).isEmpty)
    #expect(try FileSystem().entries(of: front.folders.bundles).isEmpty)
    #expect(try desk.records.openUploads().isEmpty)
  }

  @Test(arguments: RecordsKind.available)
  func anUploadGoesOnWhereItBeganAndBeginsAnewWhereThatIsGone(_ records: RecordsKind) throws {
    let desk = try SharedDesk(try BundleStorageKind.memory.make(), records)
    let first = try InboxDesk(desk, "first")
    let second = try InboxDesk(desk, "second", token: first.token)
    let bytes = try first.bundle(items())
    let address = try first.create(bytes)
    #expect(try first.append(Array(bytes.prefix(1000)), to: address, at: 0).status == .noContent)
    // The other one's start ends nothing of it.
    try second.inbox.finishInterrupted()
    try second.inbox.expireUploads()
    for method in [Method.head, .get, .delete] {
      #expect(try second.ask(method, address).words.hasPrefix("503"), "\(method)")
    }
    #expect(try second.append(Array(bytes.dropFirst(1000)), to: address, at: 1000).status == .serviceUnavailable)
    #expect(try first.ask(.head, address).headers["Upload-Offset"] == "1000")
    desk.clock.pass(601)
    #expect(try second.ask(.head, address).status == .gone)
    let id = try second.send(bytes)
    #expect(try desk.records.openUploads().isEmpty)
    #expect(try first.ask(.head, address).status == .gone)
    try first.inbox.expireUploads()
    #expect(try FileSystem().entries(of: first.folders.uploads).isEmpty)
    #expect(try desk.records.bundle(id)?.bytes == Int64(bytes.count))
  }

  @Test(arguments: RecordsKind.available)
  func theSameBundleByTwoMachinesAtOnceIsOne(_ records: RecordsKind) throws {
    let desk = try SharedDesk(try BundleStorageKind.memory.make(), records)
    let first = try InboxDesk(desk, "first")
    let second = try InboxDesk(desk, "second", token: first.token)
    let bytes = try first.bundle(items())
    let addresses = try [first, second].map { front in
      let response = try front.ask(.post, TusServer.path, ["Upload-Length": "\(bytes.count)"])
      return try #require(response.headers["Location"])
    }
    #expect(try first.append(bytes, to: addresses[0], at: 0).status == .noContent)
    #expect(try second.append(bytes, to: addresses[1], at: 0).status == .noContent)
    let ids = try [first.receipt(addresses[0]), second.receipt(addresses[1])].map { $0["id"] as? String ?? "" }
    #expect(ids[0] == ids[1])
    #expect(try desk.site.keys() == ["bundles/\(ids[0])/bundle.lazaret.tar.gz"])
    #expect(try FileSystem().entries(of: second.folders.bundles).isEmpty)
  }
}
