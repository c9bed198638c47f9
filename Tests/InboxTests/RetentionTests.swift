import Foundation
import Inbox
import Lazaret
import Platform
import SystemPackage
import TestSupport
import Testing

/// Which bundles are kept, and what is known of those that were removed.
@Suite("The retention of the inbox")
struct RetentionTests {
  private static let day: Int64 = 86_400

  /// An inbox with records of a kind, its clock, and its home.
  private struct Bench {
    let folder: TemporaryFolder
    let clock = Clock()
    let inbox: Inbox

    init(_ kind: RecordsKind, in known: TemporaryFolder? = nil, fileSystem: FileSystem = FileSystem()) throws {
      folder = try known ?? TemporaryFolder()
      let (records, queue) = try kind.open(folder)
      let home = folder.path
      try InboxFolders(home: home).make(in: FileSystem())
      inbox = Inbox(
        home: home, records: records, queue: queue, limits: InboxLimits(), hasIdentity: false,
        surroundings: Surroundings(
          fileSystem: fileSystem, now: { [clock] in clock.now }, makeUUID: { UniversalIdentifier.random() }))
      if known == nil { _ = try inbox.addSender("me", quota: 1 << 40) }
    }

    /// A bundle that arrived so many days ago, with files.
    @discardableResult
    func receive(
      _ days: Int64, table: String?, bytes: Int64 = 10, state: InboxBundle.State = .unpacked
    ) throws -> InboxBundle {
      let id = "\(UniversalIdentifier.random())".lowercased()
      let date = Timestamp(secondsSince1970: clock.now.secondsSince1970 - days * RetentionTests.day)
      let upload = InboxUpload(id: id, sender: "me", length: bytes, created: date, expires: date)
      #expect(
        try inbox.records.admit(upload, quota: 1 << 40, limits: InboxLimits(openUploads: 1000)) == .begun)
      var bundle = try inbox.records.makeBundle(
        InboxBundle(
          id: id, sender: "me", date: date, sha256: id, bytes: bytes, fileName: nil, level: nil, isEncrypted: false),
        of: id)
      bundle.state = state
      bundle.fingerprint = table.map { DamageFingerprint(InboxDesk.facts(tables: [$0])) }
      try inbox.records.save(bundle)
      try folder.write("bytes", to: "Inbox/Bundles/\(id)/bundle.lazaret.tar.gz")
      return bundle
    }

    func kept() throws -> Set<String> { Set(try inbox.records.bundleIDs().keys) }
    func files() throws -> Set<String> {
      Set(try FileSystem().entries(of: inbox.folders.bundles).map(\.string))
    }
  }

  /// What the rules say, written apart from what follows them.
  private func expected(_ bundles: [InboxBundle], _ rules: InboxRetention, at now: Timestamp) -> Set<String> {
    let sorted = bundles.sorted { ($1.date, $1.id) < ($0.date, $0.id) }
    var (kept, seen) = ([InboxBundle](), [String: Int]())
    var firsts: Set<String> = []
    for bundle in sorted {
      let place = bundle.fingerprint.map { seen[$0.group, default: 0] }
      if let group = bundle.fingerprint?.group { seen[group, default: 0] += 1 }
      if place == 0 { firsts.insert(bundle.id) }
      let oldest = rules.days.map {
        Timestamp(secondsSince1970: now.secondsSince1970 - Int64($0) * Self.day).rfc3339
      }
      let isYoung = oldest.map { bundle.date >= $0 }
      let isLast = rules.last.flatMap { last in place.map { $0 < last } }
      let verdicts = [isYoung, isLast].compactMap(\.self)
      if verdicts.isEmpty || verdicts.contains(true) || rules.keepsOneOfEach && place == 0 { kept.append(bundle) }
    }
    if let bytes = rules.bytes {
      var sum = kept.reduce(0) { $0 + $1.bytes }
      for bundle in kept.reversed() where sum > bytes {
        if rules.keepsOneOfEach, firsts.contains(bundle.id) { continue }
        kept.removeAll { $0.id == bundle.id }
        sum -= bundle.bytes
      }
    }
    return Set(kept.map(\.id))
  }

  @Test(arguments: RecordsKind.available) func theRulesSayWhatGoes(_ kind: RecordsKind) throws {
    let bench = try Bench(kind)
    var bundles: [InboxBundle] = []
    for number in 0..<40 {
      let table = [nil, "A", "B", "C", "A"][number % 5]
      bundles.append(
        try bench.receive(Int64(number * 7 % 50), table: table, bytes: Int64(10 + number % 7)))
    }
    let rules = [
      InboxRetention(days: 20), InboxRetention(last: 3), InboxRetention(days: 10, last: 2),
      InboxRetention(bytes: 200), InboxRetention(days: 30, last: 4, bytes: 150),
      InboxRetention(days: 0, keepsOneOfEach: false), InboxRetention(last: 0, keepsOneOfEach: false),
      InboxRetention(bytes: 1, keepsOneOfEach: false), InboxRetention(days: 0, last: 0, bytes: 1),
      InboxRetention(days: 1000, bytes: 1 << 40), InboxRetention(),
    ]
    for rules in rules {
      let plan = try bench.inbox.retentionPlan(rules)
      let stays = rules.hasRules ? expected(bundles, rules, at: bench.clock.now) : Set(bundles.map(\.id))
      let goes = Set(bundles.map(\.id)).subtracting(stays)
      #expect(Set(plan.removed.map(\.bundle)) == goes, "\(rules)")
      #expect(!rules.hasRules || plan.kept.values.reduce(0, +) == stays.count, "\(rules): \(plan.kept)")
      #expect(plan.removed.map(\.arrived) == plan.removed.map(\.arrived).sorted())
    }
    // A plan changes nothing.
    #expect(
      try bench.kept().count == 40 && bench.files().count == 40
        && bench.inbox.records.removals(after: nil, limit: 9).isEmpty)
    let chosen = InboxRetention(days: 10, last: 2)
    let stays = expected(bundles, chosen, at: bench.clock.now)
    let pruning = try bench.inbox.prune(chosen)
    #expect(try bench.kept() == stays && bench.files() == stays && pruning.spared.isEmpty)
    #expect(pruning.removed.count == 40 - stays.count && pruning.removed.allSatisfy { $0.rule == .days })
    let removals = try bench.inbox.records.removals(after: nil, limit: 100)
    #expect(removals.map(\.bundle) == pruning.removed.map(\.bundle).reversed() && removals.allSatisfy(\.isCleared))
    let first = try #require(bundles.first { $0.id == removals.first?.bundle })
    #expect(
      removals.first?.sha256 == first.sha256 && removals.first?.bytes == first.bytes
        && removals.first?.arrived == first.date && removals.first?.group == first.fingerprint?.group)
    // Listed by keys; doing it again changes nothing.
    let rest = try bench.inbox.records.removals(after: removals[3].number, limit: 2)
    #expect(rest.map(\.bundle) == removals[4...5].map(\.bundle))
    #expect(try bench.inbox.prune(chosen).removed.isEmpty && bench.kept() == stays)
    #expect(try bench.inbox.records.usedBytes() == bundles.filter { stays.contains($0.id) }.reduce(0) { $0 + $1.bytes })
  }

  @Test(arguments: RecordsKind.available) func someGoAtATimeTheOldestFirst(_ kind: RecordsKind) throws {
    let bench = try Bench(kind)
    let bundles = try (0..<5).map { try bench.receive(30 - $0, table: nil) }
    for rules in [InboxRetention(days: 1), InboxRetention(bytes: 0)] {
      let plan = try bench.inbox.retentionPlan(rules, limit: 2)
      #expect(plan.removed.map(\.bundle).starts(with: bundles.prefix(2).map(\.id)), "\(rules)")
    }
    for expected in [[0, 1], [2, 3], [4], []] {
      let pruning = try bench.inbox.prune(InboxRetention(days: 1), limit: 2)
      #expect(pruning.removed.map(\.bundle) == expected.map { bundles[$0].id })
    }
  }

  @Test(.timeLimit(.minutes(5))) func aPoolKeepsToTheRulesWhateverItsWorkersDo() throws {
    let bench = try Bench(.sqlite)
    let old = try bench.receive(30, table: nil)
    let new = try bench.receive(0, table: nil)
    let told = Mutex<[[String]]>([])
    var options = WorkerPool.Options()
    options.count = 0
    options.pause = .milliseconds(20)
    options.retention = InboxRetention(days: 1)
    options.onPruning = { pruning in told.withLock { $0.append(pruning.removed.map(\.bundle)) } }
    let pool = WorkerPool(bench.inbox, options: options, runner: WorkInProcess(surroundings: .machine))
    try pool.start()
    defer { pool.stop() }
    while told.withLock(\.isEmpty) { Thread.sleep(forTimeInterval: 0.01) }
    #expect(told.withLock { $0 } == [[old.id]])
    #expect(try bench.kept() == [new.id] && bench.files() == [new.id])
  }

  @Test(arguments: RecordsKind.available) func whatIsWorkedOnIsLeftAlone(_ kind: RecordsKind) throws {
    let bench = try Bench(kind)
    let rules = InboxRetention(days: 1, keepsOneOfEach: false)
    let waiting = try bench.receive(9, table: "A")
    try bench.inbox.queue.add(.salvage, for: waiting.id, at: bench.clock.now)
    let running = try bench.receive(9, table: "A")
    try bench.inbox.queue.add(.salvage, for: running.id, at: bench.clock.now)
    var received = try bench.receive(9, table: nil)
    received.state = .received
    try bench.inbox.records.save(received)
    // One that is salvaged on the pages: its quarantine is locked.
    let open = try bench.receive(9, table: "B")
    let folder = bench.inbox.folders.bundle(open.id).appending(QuarantineFolder.name)
    try FileSystem().makeDirectory(folder)
    let lock = try QuarantineFolder(folder, surroundings: .machine).salvageLock()
    let done = try bench.receive(9, table: "A")
    try bench.inbox.queue.add(.open, for: done.id, at: bench.clock.now)
    var jobs: [InboxJob] = []
    while let job = try bench.inbox.queue.lease(by: "me", for: 60, at: bench.clock.now) { jobs.append(job) }
    for job in jobs where job.bundle == done.id { _ = try bench.inbox.queue.end(job, .done, at: bench.clock.now) }
    for job in jobs where job.bundle == waiting.id {
      _ = try bench.inbox.queue.end(job, .putBack(.init(code: "x", words: "")), at: bench.clock.now)
    }
    let pruning = try bench.inbox.prune(rules)
    #expect(pruning.removed.map(\.bundle) == [done.id] && pruning.spared == [open.id] && pruning.kept == [.work: 3])
    #expect(try bench.kept() == Set([waiting, running, received, open].map(\.id)) && bench.kept() == bench.files())
    _ = consume lock
    // One that is taken up between the look and the step.
    let plan = try bench.inbox.retentionPlan(rules)
    #expect(plan.removed.map(\.bundle) == [open.id])
    try bench.inbox.queue.add(.salvage, for: open.id, at: bench.clock.now)
    #expect(try !bench.inbox.records.remove(plan.removed[0], sparing: [.waiting, .running]))
    #expect(try bench.kept().contains(open.id) && bench.inbox.records.removals(after: nil, limit: 9).count == 1)
  }

  @Test(arguments: RecordsKind.available) func whatTheRulesKeepByThenStays(_ kind: RecordsKind) throws {
    let bench = try Bench(kind)
    let rules = InboxRetention(days: 1)
    let old = try bench.receive(9, table: "A")
    let newer = try bench.receive(8, table: "A")
    let plan = try bench.inbox.retentionPlan(rules)
    #expect(plan.removed.map(\.bundle) == [old.id] && plan.removed.first?.group == old.fingerprint?.group)
    // A person discards the newer one before the old one is removed.
    try bench.inbox.discard(newer.id)
    let records = bench.inbox.records
    let removed = try records.remove(plan.removed[0], sparing: [.waiting, .running], newer: 1) { bundle in
      bundle.newer > 0
    }
    #expect(try removed == nil && bench.kept() == [old.id])
    #expect(try records.removals(after: nil, limit: 9).map(\.bundle) == [newer.id])
    #expect(try bench.inbox.prune(rules).removed.isEmpty && bench.kept() == [old.id])
    // What is recorded is what the bundle is then.
    var changed = old
    changed.fingerprint = nil
    try records.save(changed)
    #expect(try records.place(90, of: old.id, totalBytes: nil))
    let told = try #require(
      try records.remove(plan.removed[0], sparing: [.waiting, .running], newer: 1) { $0.newer == 0 })
    #expect(told.group == nil && told.bytes == old.bytes + 90 && told.arrived == old.date)
    let removal = try #require(try records.removals(after: nil, limit: 1).first)
    #expect(removal.bundle == old.id && removal.group == nil && removal.bytes == told.bytes)
  }

  @Test(arguments: RecordsKind.available) func aKillBetweenTheStepsLeavesNothingBehind(_ kind: RecordsKind) throws {
    let rules = InboxRetention(days: 1, keepsOneOfEach: false)
    for next in ["prune", "start", "record"] {
      let bench = try Bench(kind)
      let old = try (0..<3).map { _ in try bench.receive(9, table: "A") }
      let plan = try bench.inbox.retentionPlan(rules)
      // Killed after the record of the first, and of the second with half of its files gone.
      for removal in plan.removed.prefix(2) {
        #expect(try bench.inbox.records.remove(removal, sparing: [.waiting]))
      }
      try FileSystem().unlink(bench.inbox.folders.received(plan.removed[1].bundle, encrypted: false))
      #expect(try bench.files().count == 3 && bench.kept().count == 1)
      #expect(try bench.inbox.records.removalsNotCleared() == plan.removed.prefix(2).map(\.bundle))
      let again = try Bench(kind, in: bench.folder)
      switch next {
      case "prune":
        #expect(try again.inbox.prune(rules).removed.map(\.bundle) == [plan.removed[2].bundle])
        #expect(try again.files().isEmpty && again.kept().isEmpty)
      case "start":
        try again.inbox.finishInterrupted()
        #expect(try again.files() == [plan.removed[2].bundle])
      default:
        try again.inbox.clearRemoved()
        #expect(try again.files() == [plan.removed[2].bundle])
      }
      #expect(try again.inbox.records.removalsNotCleared().isEmpty)
      // What was removed can be sent again.
      for bundle in old where !(try again.kept().contains(bundle.id)) {
        #expect(try again.inbox.records.upload(bundle.id)?.state != .finished)
      }
    }
  }

  @Test(arguments: RecordsKind.available) func whatIsSentAgainIsKeptByDays(_ kind: RecordsKind) throws {
    let bench = try Bench(kind)
    let (announced, sent, old) = (
      try bench.receive(9, table: nil), try bench.receive(9, table: nil), try bench.receive(9, table: nil)
    )
    let now = bench.clock.now
    func upload(_ sum: String?) -> InboxUpload {
      var upload = InboxUpload(
        id: "\(UniversalIdentifier.random())".lowercased(), sender: "me", length: 10, created: now, expires: now)
      upload.sha256 = sum
      return upload
    }
    _ = try bench.inbox.records.admit(upload(announced.sha256), quota: 1 << 40, limits: InboxLimits())
    let again = upload(nil)
    _ = try bench.inbox.records.admit(again, quota: 1 << 40, limits: InboxLimits())
    let kept = try bench.inbox.records.makeBundle(
      InboxBundle(
        id: again.id, sender: "me", date: now, sha256: sent.sha256, bytes: 10, fileName: nil, level: nil,
        isEncrypted: false),
      of: again.id)
    #expect(kept.id == sent.id)
    #expect(try bench.inbox.prune(InboxRetention(days: 1)).removed.map(\.bundle) == [old.id])
    #expect(try bench.kept() == [announced.id, sent.id])
  }

  @Test(arguments: RecordsKind.available) func aStoreIsOnlyDisplacedByAStore(_ kind: RecordsKind) throws {
    let bench = try Bench(kind)
    let rules = InboxRetention(days: 1)
    let store = try bench.receive(9, table: "A", state: .quarantined)
    let words = try bench.receive(8, table: "A")
    #expect(try bench.inbox.prune(rules).kept == [.newest: 2] && bench.kept() == [store.id, words.id])
    let next = try bench.receive(7, table: "A", state: .quarantined)
    #expect(try bench.inbox.prune(rules).removed.map(\.bundle) == [store.id, words.id] && bench.kept() == [next.id])
  }

  @Test(arguments: RecordsKind.available) func oneBundleThatCannotBeRemovedKeepsNoOther(_ kind: RecordsKind) throws {
    let rules = InboxRetention(days: 1, keepsOneOfEach: false)
    let bench = try Bench(kind)
    let old = try [9, 8, 7].map { try bench.receive($0, table: "A") }
    let trouble = Trouble(.failure(.permissionDenied), atStep: 1)
    let troubled = try Bench(kind, in: bench.folder, fileSystem: trouble.fileSystem)
    let pruning = try troubled.inbox.prune(rules)
    #expect(pruning.removed.map(\.bundle) == old.map(\.id) && pruning.failures.map(\.bundle) == [old[0].id])
    #expect(try bench.kept().isEmpty && bench.files() == [old[0].id])
    #expect(try bench.inbox.records.removalsNotCleared() == [old[0].id])
    // The start goes on too, and the next time its files go.
    let start = try Bench(
      kind, in: bench.folder, fileSystem: Trouble(.failure(.permissionDenied), atStep: 1).fileSystem)
    try start.inbox.finishInterrupted()
    #expect(try bench.files() == [old[0].id])
    let next = try bench.inbox.prune(rules)
    #expect(try next.failures.isEmpty && bench.files().isEmpty && bench.inbox.records.removalsNotCleared().isEmpty)
  }

  @Test func whatIsDiscardedIsRecordedToo() throws {
    let desk = try InboxDesk()
    let id = try desk.send(Array("no bundle".utf8))
    try desk.work(desk.pool())
    try desk.inbox.discard(id)
    let removal = try #require(try desk.inbox.records.removals(after: nil, limit: 5).first)
    #expect(removal.bundle == id && removal.rule == .discarded && removal.bytes == 9 && removal.isCleared)
    #expect(throws: InboxError.self) { try desk.inbox.discard(id) }
  }
}
