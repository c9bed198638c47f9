import Inbox
import Platform
import SystemPackage
import TestSupport
import Testing

/// The queue of jobs: leases, attempts, pauses.
@Suite("The queue of the inbox")
struct JobQueueTests {
  private static let rules: JobRules = {
    var rules = JobRules()
    (rules.maximumAttempts, rules.maximumInterruptions, rules.addedAtOnce) = (3, 3, 2)
    return rules
  }()

  private func queue(_ kind: RecordsKind, _ folder: TemporaryFolder) throws -> any JobQueue {
    try kind.open(folder, rules: Self.rules).queue
  }

  private func time(_ seconds: Int64) -> Timestamp { Timestamp(secondsSince1970: 1_000_000 + seconds) }

  @Test(arguments: RecordsKind.available) func jobsAreTakenInTheirOrderAndOnce(_ kind: RecordsKind) throws {
    let folder = try TemporaryFolder()
    let queue = try queue(kind, folder)
    for name in ["a", "b"] { try queue.add(.open, for: name, at: time(0)) }
    try queue.add(.open, for: "a", at: time(1))
    let first = try #require(try queue.lease(by: "me", for: 60, at: time(2)))
    // Another process has its own connection.
    let other = try self.queue(kind, folder)
    let second = try #require(try other.lease(by: "you", for: 60, at: time(2)))
    #expect([first.bundle, second.bundle] == ["a", "b"])
    #expect(try queue.lease(by: "me", for: 60, at: time(3)) == nil)
    #expect(try queue.end(first, .done, at: time(4)) == .done)
    #expect(try queue.pending().map(\.bundle) == ["b"])
    #expect(try queue.jobs(of: "a").map(\.state) == [.done])
  }

  @Test(arguments: RecordsKind.available) func theOneThatWaitedLongestComesFirstWhateverItWaitedFor(
    _ kind: RecordsKind
  ) throws {
    let queue = try queue(kind, try TemporaryFolder())
    for name in ["late", "lost", "new"] { try queue.add(.open, for: name, at: time(0)) }
    let late = try #require(try queue.lease(by: "me", for: 60, at: time(0)))
    #expect(try queue.lease(by: "dead", for: 10, at: time(0))?.bundle == "lost")
    // It is not to be begun before some seconds have passed.
    #expect(try queue.end(late, .tryAgain(.init(code: "x", words: "x")), at: time(1)) == .waiting)
    #expect(try queue.lease(by: "me", for: 60, at: time(2))?.bundle == "new")
    #expect(try queue.lease(by: "me", for: 60, at: time(3)) == nil)
    #expect(try queue.lease(by: "me", for: 60, at: time(59))?.bundle == "lost")
    #expect(try queue.lease(by: "me", for: 60, at: time(59))?.bundle == "late")
    #expect(try queue.lease(by: "me", for: 60, at: time(59)) == nil)
  }

  @Test(arguments: RecordsKind.available) func aJobWhoseWorkerDiedComesBack(_ kind: RecordsKind) throws {
    let queue = try queue(kind, try TemporaryFolder())
    try queue.add(.open, for: "a", at: time(0))
    let dead = try #require(try queue.lease(by: "dead", for: 60, at: time(0)))
    #expect(try queue.lease(by: "me", for: 60, at: time(60)) == nil)
    #expect(try queue.extend(dead, for: 60, at: time(30)))
    #expect(try queue.lease(by: "me", for: 60, at: time(80)) == nil)
    let mine = try #require(try queue.lease(by: "me", for: 60, at: time(91)))
    #expect(mine.attempts == 2)
    // The dead one turns out to live, and is too late.
    #expect(try !queue.extend(dead, for: 60, at: time(92)))
    #expect(try queue.end(dead, .done, at: time(92)) == nil)
    #expect(try queue.end(mine, .done, at: time(93)) == .done)
  }

  @Test(arguments: RecordsKind.available) func whatDiesEachTimeWaitsLongerAndGoesOn(_ kind: RecordsKind) throws {
    let queue = try queue(kind, try TemporaryFolder())
    try queue.add(.open, for: "a", at: time(0))
    for attempt in 0..<3 {
      #expect(try queue.lease(by: "dead", for: 10, at: time(Int64(attempt) * 100)) != nil)
      try queue.release(owner: "dead", at: time(Int64(attempt) * 100 + 1))
    }
    // A killed process is one of a server, of a machine, or of one that lost its database: the bundle is not refused for it.
    var now: Int64 = 1000
    for pause in [60, 120, 240, 300, 300] as [Int64] {
      #expect(try queue.lease(by: "me", for: 10, at: time(now)) == nil)
      let job = try #require(try queue.jobs(of: "a").first)
      #expect(job.state == .waiting && job.isHindered && job.code == "worker-lost", "\(job)")
      #expect(job.words?.contains("died") == false)
      #expect(try queue.hindrances(limit: 5) == ["worker-lost": 1])
      #expect(try queue.lease(by: "me", for: 10, at: time(now + pause - 1)) == nil)
      #expect(try queue.lease(by: "dead", for: 10, at: time(now + pause)) != nil)
      now += pause + 20
    }
    #expect(try queue.lease(by: "me", for: 10, at: time(now)) == nil)
    let last = try #require(try queue.lease(by: "me", for: 10, at: time(now + 300)))
    #expect(last.counted == 1)
    #expect(try queue.end(last, .done, at: time(now + 301)) == .done)
    #expect(try queue.hindrances(limit: 5).isEmpty)
  }

  @Test(arguments: RecordsKind.available) func aServerThatIsKilledOrEndedTakesNoTriesFromAJob(_ kind: RecordsKind)
    throws
  {
    let queue = try queue(kind, try TemporaryFolder())
    let reason = InboxBundle.Failure(code: "locked", words: "Another worker is at it still.")
    try queue.add(.salvage, for: "a", at: time(0))
    var now: Int64 = 0
    for _ in 0..<2 {
      _ = try #require(try queue.lease(by: "dead", for: 60, at: time(now)))
      try queue.release(owner: "dead", at: time(now + 1))
      now += 2
    }
    for _ in 0..<20 {
      let job = try #require(try queue.lease(by: "me", for: 60, at: time(now)))
      #expect(try queue.end(job, .putBack(reason), at: time(now)) == .waiting)
      now += 1
    }
    // All three tries are left.
    for number in 1...3 {
      let job = try #require(try queue.lease(by: "me", for: 60, at: time(now)), "\(number)")
      #expect(try queue.end(job, .tryAgain(reason), at: time(now)) == (number < 3 ? .waiting : .failed))
      now += 1000
    }
    #expect(try queue.jobs(of: "a").first?.state == .failed)
    #expect(try queue.lease(by: "me", for: 60, at: time(now)) == nil)
  }

  @Test(arguments: RecordsKind.available) func aJobThatIsPutBackForEverWaits(_ kind: RecordsKind) throws {
    let queue = try queue(kind, try TemporaryFolder())
    let reason = InboxBundle.Failure(code: "locked", words: "Another worker is at it still.")
    try queue.add(.open, for: "a", at: time(0))
    var now: Int64 = 0
    for _ in 0..<250 {
      let job = try #require(try queue.lease(by: "me", for: 60, at: time(now)))
      #expect(try queue.end(job, .putBack(reason), at: time(now)) == .waiting)
      now += 60
    }
    #expect(try queue.lease(by: "me", for: 60, at: time(now - 1)) == nil)
    #expect(try queue.lease(by: "me", for: 60, at: time(now))?.counted == 1)
  }

  @Test(arguments: RecordsKind.available) func aStorageThatCannotBeUsedTakesNoTriesHoweverLong(
    _ kind: RecordsKind
  ) throws {
    let queue = try queue(kind, try TemporaryFolder())
    let reason = InboxBundle.Failure(code: "s3-access", words: "The server refused it.")
    try queue.add(.open, for: "a", at: time(0))
    var now: Int64 = 0
    for number in 0..<300 {
      let job = try #require(try queue.lease(by: "me", for: 60, at: time(now)), "\(number)")
      #expect(try queue.end(job, .outage(reason), at: time(now)) == .waiting)
      let pause: Int64 = number < 6 ? 1 << Int64(number) : 60
      #expect(try queue.lease(by: "me", for: 60, at: time(now + pause - 1)) == nil)
      now += pause
    }
    #expect(try queue.jobs(of: "a").first?.state == .waiting)
    let job = try #require(try queue.lease(by: "me", for: 60, at: time(now)))
    #expect(try queue.end(job, .tryAgain(reason), at: time(now)) == .waiting)
  }

  @Test(arguments: RecordsKind.available) func anotherTryWaitsLongerEachTime(_ kind: RecordsKind) throws {
    let queue = try queue(kind, try TemporaryFolder())
    try queue.add(.salvage, for: "a", at: time(0))
    let full = InboxBundle.Failure(code: "worker-crashed", words: "It crashed.")
    let first = try #require(try queue.lease(by: "me", for: 60, at: time(0)))
    #expect(try queue.end(first, .tryAgain(full), at: time(0)) == .waiting)
    #expect(try queue.lease(by: "me", for: 60, at: time(4)) == nil)
    let second = try #require(try queue.lease(by: "me", for: 60, at: time(5)))
    #expect(try queue.end(second, .tryAgain(full), at: time(5)) == .waiting)
    #expect(try queue.lease(by: "me", for: 60, at: time(14)) == nil)
    let third = try #require(try queue.lease(by: "me", for: 60, at: time(15)))
    #expect(try queue.end(third, .tryAgain(full), at: time(15)) == .failed)
    let job = try #require(try queue.jobs(of: "a").first)
    #expect(job.state == .failed && job.code == "worker-crashed" && job.attempts == 3)
  }

  @Test(arguments: RecordsKind.available) func surroundingsAtFaultTakeNoTriesAndAreTold(_ kind: RecordsKind) throws {
    let (records, queue) = try desk(kind, try TemporaryFolder())
    let full = InboxBundle.Failure(code: "no-space", words: "The disk is full.")
    var now: Int64 = 0
    for number in 0..<40 {
      let job = try #require(try queue.lease(by: "me", for: 60, at: time(now)), "\(number)")
      #expect(try queue.end(job, .hindered(full), at: time(now)) == .waiting)
      let pause = number < 6 ? [5, 10, 20, 40, 80, 160][number] as Int64 : 300
      #expect(try queue.lease(by: "me", for: 60, at: time(now + pause - 1)) == nil)
      #expect(try queue.hindrances(limit: 5) == ["no-space": 1])
      now += pause
    }
    let entry = try #require(try records.entry("a"))
    #expect(entry.bundle.state == .received && entry.jobs.map(\.isHindered) == [true])
    #expect(entry.jobs.first?.words == "The disk is full.")
    // It goes on, and all its tries are left.
    let crash = InboxBundle.Failure(code: "worker-crashed", words: "It crashed.")
    for number in 1...3 {
      let job = try #require(try queue.lease(by: "me", for: 60, at: time(now)))
      #expect(try queue.end(job, .tryAgain(crash), at: time(now)) == (number < 3 ? .waiting : .failed))
      #expect(try queue.hindrances(limit: 5).isEmpty)
      now += 1000
    }
    #expect(try records.bundle("a")?.state == .refused)
    try queue.restart(.open, of: "a", at: time(now))
    #expect(try queue.jobs(of: "a").map(\.isHindered) == [false])
  }

  /// They are added some at a time, which nothing but their number shows.
  @Test(arguments: RecordsKind.available) func everyBundleOfAStateGetsItsJobInTheOrderOfArrival(_ kind: RecordsKind)
    throws
  {
    let (records, queue) = try desk(kind, try TemporaryFolder())
    let names = ["h", "c", "g", "b", "f", "d", "e"]
    for (number, name) in names.enumerated() {
      let upload = InboxUpload(id: name, sender: "me", length: 4, created: time(0), expires: time(100))
      _ = try records.admit(upload, quota: 1000, limits: InboxLimits())
      // Two arrive at a time.
      let bundle = InboxBundle(
        id: name, sender: "me", date: time(Int64(10 + number / 2)), sha256: name, bytes: 4, fileName: nil, level: nil,
        isEncrypted: false)
      _ = try records.makeBundle(bundle, of: name)
    }
    try queue.add(.open, for: "f", at: time(20))
    for _ in 0..<2 { try queue.add(.open, forAll: .received, at: time(21)) }
    #expect(try queue.pending().map(\.bundle) == ["a", "f", "c", "h", "b", "g", "d", "e"])
    try queue.add(.salvage, forAll: .quarantined, at: time(22))
    #expect(try queue.pending().count == 8)
  }

  /// Records and queue of one file, with the bundle `a` in it.
  private func desk(
    _ kind: RecordsKind, _ folder: TemporaryFolder
  ) throws -> (records: any InboxRecords, queue: any JobQueue) {
    let (records, queue) = try kind.open(folder, rules: Self.rules)
    _ = try records.addSender("me", quota: 1000, at: time(0))
    let upload = InboxUpload(id: "a", sender: "me", length: 4, created: time(0), expires: time(100))
    _ = try records.admit(upload, quota: 1000, limits: InboxLimits())
    let bundle = InboxBundle(
      id: "a", sender: "me", date: time(0), sha256: "00", bytes: 4, fileName: nil, level: nil, isEncrypted: false)
    _ = try records.makeBundle(bundle, of: "a")
    try queue.add(.open, for: "a", at: time(0))
    return (records, queue)
  }

  /// A process that is killed right after the end of a job leaves no bundle that waits for nothing.
  @Test(arguments: RecordsKind.available) func aBundleIsRefusedInTheStepThatFailsItsJob(_ kind: RecordsKind) throws {
    let reason = InboxBundle.Failure(code: "archive-name", words: "A name leads out.")
    let folder = try TemporaryFolder()
    let (records, queue) = try desk(kind, folder)
    let job = try #require(try queue.lease(by: "me", for: 60, at: time(0)))
    #expect(try queue.end(job, .failed(reason), at: time(1)) == .failed)
    let refused = try #require(try records.entry("a"))
    #expect(refused.bundle.state == .refused && refused.bundle.failure == reason)
    #expect(refused.jobs.map(\.state) == [.failed])
    try queue.restart(.open, of: "a", at: time(2))
    let again = try #require(try records.entry("a"))
    #expect(again.bundle.state == .received && again.bundle.failure == nil && again.jobs.map(\.state) == [.waiting])
  }

  @Test(arguments: RecordsKind.available) func aBundleWhoseWorkersDieEachTimeIsNotRefused(_ kind: RecordsKind) throws {
    let (records, queue) = try desk(kind, try TemporaryFolder())
    for attempt in 0..<3 {
      #expect(try queue.lease(by: "dead", for: 10, at: time(Int64(attempt) * 100)) != nil)
      #expect(try records.bundle("a")?.state == .received)
      try queue.release(owner: "dead", at: time(Int64(attempt) * 100 + 1))
    }
    #expect(try queue.lease(by: "me", for: 10, at: time(1000)) == nil)
    let entry = try #require(try records.entry("a"))
    #expect(entry.bundle.state == .received && entry.bundle.failure == nil)
    #expect(entry.jobs.map(\.code) == ["worker-lost"])
  }

  @Test(arguments: RecordsKind.available) func aSalvageThatFailsLeavesItsBundleUnlessItHasNoRoom(_ kind: RecordsKind)
    throws
  {
    for (code, state) in [("not-a-database", InboxBundle.State.received), ("sender-quota", .refused)] {
      let (records, queue) = try desk(kind, try TemporaryFolder())
      let open = try #require(try queue.lease(by: "me", for: 60, at: time(0)))
      #expect(try queue.end(open, .done, at: time(1)) == .done)
      try queue.add(.salvage, for: "a", at: time(1))
      let salvage = try #require(try queue.lease(by: "me", for: 60, at: time(2)))
      #expect(try queue.end(salvage, .failed(.init(code: code, words: "No.")), at: time(3)) == .failed)
      #expect(try records.bundle("a")?.state == state, "\(code)")
    }
  }
}
