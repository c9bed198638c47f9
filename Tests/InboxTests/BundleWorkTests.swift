import Foundation
import Inbox
import Lazaret
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// What is done with bundles that arrived: opening, placing in quarantine, salvaging, grouping.
@Suite("The work of the inbox")
struct BundleWorkTests {
  /// The bytes of a damaged store.
  func damagedStore(_ seed: UInt64 = 3) throws -> [UInt8] {
    let folder = try TemporaryFolder()
    let model = ManagedObjectModel(entities: [
      Entity(
        name: "Car",
        properties: [
          .attribute(Attribute(traits: PropertyTraits(name: "name", isOptional: true), type: .string))
        ])
    ])
    let whole = folder.appending("Whole.sqlite")
    _ = try StoreGenerator(model, options: .init(.sparse, seed: 7, records: 400)).write(to: whole)
    let path = folder.appending("App.sqlite")
    _ = try DamagedCopy.make(of: whole, at: path, kinds: [try DamageKind("zero:20")], seed: seed)
    return try FileSystem().contents(of: path, limit: 1 << 26)
  }

  @Test func aStoreIsQuarantinedAndSalvaged() throws {
    let desk = try InboxDesk()
    let store = try damagedStore()
    let bytes = try desk.bundle([
      ("facts.json", try InboxDesk.json(InboxDesk.facts())), ("store/App.sqlite", store),
      ("receipt.json", Array("{\"format\": \"../../evil\", \"id\": \"../../../etc\"}".utf8)),
    ])
    let id = try desk.send(bytes)
    let pool = desk.pool()
    try desk.work(pool)
    let bundle = try #require(try desk.inbox.records.bundle(id))
    #expect(bundle.state == .quarantined, "\(bundle.failure?.words ?? "")")
    #expect(bundle.files.map(\.name) == ["facts.json", "receipt.json", "store/App.sqlite"])
    #expect(bundle.facts?.versions.app == "2.3")
    let jobs = try desk.inbox.queue.jobs(of: id)
    #expect(jobs.map(\.kind) == [.open, .salvage] && jobs.allSatisfy { $0.state == .done }, "\(jobs)")
    let stored = try #require(try Quarantines(home: desk.home).stores().first)
    #expect(stored.id == bundle.quarantineID)
    let receipt = try #require(stored.receipt)
    #expect(receipt.history.map(\.kind) == [.quarantined, .received, .salvaged])
    #expect(receipt.versions.app == "2.3")
    #expect(receipt.files.first?.sha256 == FileDigest(of: store).hexadecimal)
    #expect(receipt.salvage?.result != nil)
    let main = stored.files.main.string
    #expect(main.contains("/Inbox/Bundles/\(id)/Incompatible/"))
    #expect(try desk.outside() == ["Home"])
    // It can be done again, and the bundle as it was received is as it was.
    try desk.inbox.retry(id)
    try desk.work(pool)
    #expect(try desk.inbox.queue.jobs(of: id).allSatisfy { $0.state == .done })
    let kept = try FileSystem().contents(of: desk.folders.received(id, encrypted: false), limit: 1 << 26)
    #expect(kept == bytes)
    try desk.inbox.discard(id)
    #expect(try Quarantines(home: desk.home).stores().isEmpty)
    #expect(try FileSystem().entries(of: desk.folders.bundles).isEmpty)
    #expect(throws: InboxError.self) { try desk.inbox.retry(id) }
    // The damage stays known, and the sender can send it again.
    #expect(try desk.inbox.records.groups(limit: 5).map(\.count) == [1])
    #expect(try desk.send(bytes) != id)
  }

  @Test func aDamagedStoreIsSalvagedByTheModelThatFitsIt() throws {
    let desk = try InboxDesk()
    // Its metadata says which model it is of.
    let examiner = Examiner()
    let store = try #require(
      try (1...20).lazy.map { try damagedStore($0) }.first { bytes in
        let found = try examiner.examine(try desk.folder.write(bytes, to: "Look.sqlite"))
        return found.verdict == .damaged && found.metadata != nil
      })
    try FileSystem().unlink(desk.folder.appending("Look.sqlite"))
    let models = try ["Boat", "Car"].map { name in
      try desk.folder.write(
        """
        <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
        <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522">
        <entity name="\(name)"><attribute name="name" optional="YES" attributeType="String"/></entity>
        </model>
        """, to: "\(name).xcdatamodeld/V1.xcdatamodel/contents")
      return desk.folder.appending("\(name).xcdatamodeld")
    }
    let id = try desk.send(
      try desk.bundle([("facts.json", try InboxDesk.json(InboxDesk.facts())), ("store/App.sqlite", store)]))
    try desk.work(desk.pool(identity: nil, models: models))
    let jobs = try desk.inbox.queue.jobs(of: id)
    #expect(jobs.map(\.kind) == [.open, .salvage] && jobs.allSatisfy { $0.state == .done }, "\(jobs)")
    let stored = try #require(try Quarantines(home: desk.home).stores().first)
    let result = try #require(stored.receipt?.salvage?.result)
    #expect(result.version == "V1" && result.recovered > 0)
  }

  @Test func encryptedOnesWaitForTheKey() throws {
    let identity = AgeIdentity()
    let folder = try TemporaryFolder()
    let key = try folder.write(identity.secretText, to: "key")
    let desk = try InboxDesk()
    let items = [("facts.json", try InboxDesk.json(InboxDesk.facts())), ("store/App.sqlite", try damagedStore())]
    let id = try desk.send(try desk.bundle(items, to: [identity.recipient]))
    try desk.work(desk.pool())
    #expect(try desk.inbox.records.bundle(id)?.state == .encrypted)
    #expect(throws: InboxError.self) { try desk.inbox.retry(id) }
    // The next process is given the key.
    let next = try InboxDesk(hasIdentity: true, in: desk.folder)
    try next.inbox.finishInterrupted()
    try next.work(next.pool(identity: key))
    #expect(try next.inbox.records.bundle(id)?.state == .quarantined)
    #expect(try next.inbox.queue.jobs(of: id).allSatisfy { $0.state == .done })
    // The key is in no file of the inbox.
    for path in try FolderContents(of: desk.home).entries where path.value.contains(" bytes ") {
      let content = try FileSystem().contents(of: desk.home.pushing(FilePath(path.key)), limit: 1 << 26)
      #expect(!String(decoding: content, as: UTF8.self).contains(identity.secretText), "\(path.key)")
    }
  }

  @Test func aWrongKeyIsTold() throws {
    let folder = try TemporaryFolder()
    let key = try folder.write(AgeIdentity().secretText, to: "key")
    let desk = try InboxDesk(hasIdentity: true)
    let id = try desk.send(try desk.bundle([("a", [1])], level: .facts, to: [AgeIdentity().recipient]))
    try desk.work(desk.pool(identity: key))
    let bundle = try #require(try desk.inbox.records.bundle(id))
    #expect(bundle.state == .refused)
    #expect(bundle.failure?.code.hasPrefix("age-") == true, "\(bundle.failure?.code ?? "")")
  }

  @Test func levelsWithoutAStoreAreShownByTheirFacts() throws {
    let desk = try InboxDesk()
    var facts = InboxDesk.facts()
    facts.storePath = nil
    let id = try desk.send(
      try desk.bundle([("facts.json", try InboxDesk.json(facts)), ("pages/1.bin", [1, 2])], level: .damagedPages))
    let bare = try desk.send(try desk.bundle([("notes.txt", [1])], level: .facts))
    let odd = try desk.send(try desk.bundle([("facts.json", Array("[]".utf8))], level: .facts))
    try desk.work(desk.pool())
    let bundle = try #require(try desk.inbox.records.bundle(id))
    #expect(bundle.state == .unpacked && bundle.level == "damaged-pages" && bundle.fingerprint != nil)
    for id in [bare, odd] {
      let bundle = try #require(try desk.inbox.records.bundle(id))
      #expect(bundle.state == .unpacked && bundle.facts == nil && bundle.fingerprint == nil)
    }
    #expect(try Quarantines(home: desk.home).stores().isEmpty)
  }

  // MARK: Groups

  @Test func equalDamageIsGrouped() throws {
    let desk = try InboxDesk()
    func send(_ facts: BundleFacts, _ salt: UInt8) throws {
      try desk.send(
        try desk.bundle([("facts.json", try InboxDesk.json(facts)), ("salt", [salt])], level: .facts))
      desk.clock.pass(60)
    }
    for number in 0..<12 {
      try send(InboxDesk.facts(version: number < 10 ? "2.3" : "2.10", damaged: Int64(2 + number % 2)), UInt8(number))
    }
    try send(InboxDesk.facts(version: "2.9"), 20)
    try send(InboxDesk.facts(version: nil), 21)
    // The same store at another level is the same sighting.
    try send(InboxDesk.facts(quarantineID: "2026-11-21-10-11-12", tables: ["Owner"]), 30)
    try send(InboxDesk.facts(quarantineID: "2026-11-21-10-11-12", tables: ["Owner"]), 31)
    try send(InboxDesk.facts(damaged: 300), 40)
    try send(InboxDesk.facts(app: "com.example.Other"), 41)
    try desk.work(desk.pool())
    let groups = try desk.inbox.records.groups(limit: 10)
    #expect(groups.map(\.count) == [1, 1, 1, 14])
    let large = try #require(groups.last)
    #expect(large.words == "seen 14 times since 2.3")
    #expect(large.versions.map(\.version) == ["2.3", "2.9", "2.10", nil])
    #expect(large.versions.map(\.count) == [10, 1, 2, 1])
    #expect(large.first < large.last)
    #expect(try desk.inbox.records.entries(words: "", group: large.id, state: nil, limit: 100).count == 14)
    #expect(try desk.inbox.records.entries(words: "OWNER", group: nil, state: nil, limit: 100).isEmpty)
    #expect(try desk.inbox.records.entries(words: "2.10", group: nil, state: nil, limit: 100).count == 2)
  }

  @Test func fingerprintsTellOneDamageFromAnother() {
    let base = DamageFingerprint(InboxDesk.facts())
    #expect(DamageFingerprint(InboxDesk.facts()) == base)
    #expect(base.group.count == 12 && base.exact != base.group)
    var others: [DamageFingerprint] = []
    func add(_ change: (inout BundleFacts) -> Void) {
      var facts = InboxDesk.facts()
      change(&facts)
      others.append(DamageFingerprint(facts))
    }
    add { $0.verdict = "incompatible" }
    add { $0.pageStates["damaged"] = 200 }
    add { $0.pageStates["unreadable"] = 1 }
    add { $0.damagedTables.append("Owner") }
    add { $0.modelVersion = "V3" }
    add { $0.versions.storeWrittenBySQLite = "3.43.2" }
    add { $0.app = "com.example.Other" }
    // A name with a separator in it imitates nothing.
    add { $0.damagedTables = ["Car3:Own"] }
    #expect(Set(others.map(\.group) + [base.group]).count == others.count + 1)
    // Exact numbers, the order of entities, and what is usual do not count.
    var same = InboxDesk.facts(damaged: 2, tables: ["Car", "Car"])
    same.pageStates["healthy"] = 410
    same.pageStates["free"] = 9
    #expect(DamageFingerprint(same) == base)
    // The app's version counts only for the exact one.
    let later = DamageFingerprint(InboxDesk.facts(version: "2.4"))
    #expect(later.group == base.group && later.exact != base.exact)
    // Numbers of any size.
    var hostile = InboxDesk.facts()
    hostile.pageStates = ["a": .max, "b": .max, "c": .min]
    #expect(!DamageFingerprint(hostile).group.isEmpty)
  }

  // MARK: Kills

  @Test func aKillAtAnyMomentLosesNothing() throws {
    let bytes = Array("no bundle, but bytes".utf8)
    // Killed before the last step of each kind: the file's move, and the note of it.
    for step in ["whole", "moved"] {
      let desk = try InboxDesk()
      let upload = try desk.create(Array(bytes))
      let id = String(upload.suffix(36))
      let file = try FileSystem().create(desk.folders.upload(id), truncating: true)
      try file.write(bytes)
      try desk.inbox.records.advance(id, to: Int64(bytes.count), expires: desk.clock.now)
      if step == "moved" {
        try FileSystem().makeDirectory(desk.folders.bundle(id))
        try FileSystem().rename(desk.folders.upload(id), to: desk.folders.received(id, encrypted: false))
      }
      try desk.folder.write([1], to: "Home/Inbox/Uploads/of-nothing")
      try desk.folder.write([1], to: "Home/Inbox/Work/7.json")
      try desk.folder.write([1], to: "Home/Inbox/Bundles/00000000-0000-0000-0000-000000000000/bag/x")
      let next = try InboxDesk(in: desk.folder)
      try next.inbox.finishInterrupted()
      #expect(try next.inbox.records.bundle(id)?.sha256 == FileDigest(of: bytes).hexadecimal, "\(step)")
      #expect(try next.inbox.queue.pending().map(\.bundle) == [id], "\(step)")
      #expect(try FileSystem().entries(of: next.folders.uploads).isEmpty)
      #expect(try FileSystem().entries(of: next.folders.work).isEmpty)
      #expect(try FileSystem().entries(of: next.folders.bundles).map(\.string) == [id])
    }
  }

  @Test func oneProcessReceivesAtATime() throws {
    let desk = try InboxDesk()
    let lock = try desk.inbox.lock()
    #expect(throws: InboxError.self) {
      let second = try desk.inbox.lock()
      _ = consume second
    }
    _ = consume lock
  }

  @Test func aRunnerThatFailsIsTriedOnceMore() throws {
    struct Failing: WorkRunner {
      let error: InboxError
      func run(
        _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
      ) throws(InboxError) -> WorkResult? {
        throw error
      }
    }
    for kind in [InboxError.Kind.memory, .time, .crashed] {
      let desk = try InboxDesk()
      let id = try desk.send([1, 2, 3])
      let pool = desk.pool(
        runner: Failing(
          error: InboxError(
            kind, operation: "test", detail: "it failed", hint: "None.", isEnvironmental: false)))
      for _ in 0..<10 {
        _ = try pool.workOnce()
        desk.clock.pass(10_000)
      }
      let job = try #require(try desk.inbox.queue.jobs(of: id).first)
      #expect(job.state == .failed && job.attempts == 2 && job.code == kind.rawValue)
      let bundle = try #require(try desk.inbox.records.bundle(id))
      #expect(bundle.state == .refused && bundle.failure?.code == kind.rawValue)
      try desk.inbox.retry(id)
      #expect(try desk.inbox.records.bundle(id)?.state == .received)
    }
  }

  /// The worker has an own file system, so that the serving process goes on; in turn the serving process is the one that cannot write.
  @Test(arguments: [Errno.noSpace, .ioError, .permissionDenied, .tooManyOpenFiles, .diskQuotaExceeded], [true, false])
  func whatLiesAtTheMachineRefusesNothingAndGoesOnByItself(_ errno: Errno, isWorker: Bool) throws {
    let isAway = Mutex(false)
    let desk = try InboxDesk()
    let hindered = FileSystem(intercept: { operation throws(Errno) in
      // What is written of a bundle, or of the order of its worker.
      guard isAway.withLock({ $0 }), operation.kind == .makeDirectory || operation.kind == .create else { return }
      throw errno
    })
    let surroundings = Surroundings(
      fileSystem: hindered, now: { desk.clock.now }, makeUUID: { UniversalIdentifier.random() })
    let inbox = Inbox(
      home: desk.home, records: desk.inbox.records, queue: desk.inbox.queue, limits: InboxLimits(), hasIdentity: false,
      surroundings: isWorker ? desk.inbox.surroundings : surroundings)
    let pool = WorkerPool(
      inbox, options: .init(),
      runner: WorkInProcess(surroundings: isWorker ? surroundings : desk.inbox.surroundings))
    let store = try damagedStore()
    let id = try desk.send(
      try desk.bundle([("facts.json", try InboxDesk.json(InboxDesk.facts())), ("store/App.sqlite", store)]))
    // While it is opened, and while it is salvaged.
    for kind in [InboxJob.Kind.open, .salvage] {
      isAway.withLock { $0 = true }
      for _ in 0..<12 {
        #expect(try pool.workOnce())
        desk.clock.pass(300)
      }
      let job = try #require(try desk.inbox.queue.jobs(of: id).first { $0.kind == kind })
      #expect(job.state == .waiting && job.isHindered && job.counted == 0, "\(job)")
      #expect(try desk.inbox.queue.hindrances(limit: 5).keys.sorted() == [job.code])
      isAway.withLock { $0 = false }
      #expect(try pool.workOnce())
      #expect(try desk.inbox.queue.jobs(of: id).first { $0.kind == kind }?.state == .done)
    }
    #expect(try desk.inbox.records.bundle(id)?.state == .quarantined)
    #expect(try desk.inbox.queue.hindrances(limit: 5).isEmpty)
  }

  @Test func aKeyThatIsGoneIsNoFaultOfTheBundle() throws {
    let identity = AgeIdentity()
    let folder = try TemporaryFolder()
    let desk = try InboxDesk(hasIdentity: true)
    let id = try desk.send(try desk.bundle([("a", [1])], level: .facts, to: [identity.recipient]))
    let pool = desk.pool(identity: folder.appending("key"))
    for _ in 0..<10 {
      #expect(try pool.workOnce())
      desk.clock.pass(300)
    }
    #expect(try desk.inbox.records.bundle(id)?.state == .received)
    #expect(try desk.inbox.queue.hindrances(limit: 5) == ["worker-given": 1])
    try folder.write(identity.secretText, to: "key")
    #expect(try pool.workOnce())
    #expect(try desk.inbox.records.bundle(id)?.state == .unpacked)
  }
}
