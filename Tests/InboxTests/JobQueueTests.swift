import Inbox
import StoreFiles
import SystemPackage
import TestSupport
import Testing

/// The queue of jobs: leases, attempts, pauses.
@Suite("The queue of the inbox")
struct JobQueueTests {
  private func queue(_ folder: TemporaryFolder) throws -> SQLiteJobQueue {
    SQLiteJobQueue(try InboxDatabase(folder.appending("records.sqlite")), maximumAttempts: 3, maximumInterruptions: 3)
  }

  private func time(_ seconds: Int64) -> Timestamp { Timestamp(secondsSince1970: 1_000_000 + seconds) }

  @Test func jobsAreTakenInTheirOrderAndOnce() throws {
    let folder = try TemporaryFolder()
    let queue = try queue(folder)
    for name in ["a", "b"] { try queue.add(.open, for: name, at: time(0)) }
    try queue.add(.open, for: "a", at: time(1))
    let first = try #require(try queue.lease(by: "me", for: 60, at: time(2)))
    // Another process has its own connection.
    let other = try self.queue(folder)
    let second = try #require(try other.lease(by: "you", for: 60, at: time(2)))
    #expect([first.bundle, second.bundle] == ["a", "b"])
    #expect(try queue.lease(by: "me", for: 60, at: time(3)) == nil)
    #expect(try queue.end(first, .done, at: time(4)))
    #expect(try queue.pending().map(\.bundle) == ["b"])
    #expect(try queue.jobs(of: "a").map(\.state) == [.done])
  }

  @Test func aJobWhoseWorkerDiedComesBack() throws {
    let queue = try queue(try TemporaryFolder())
    try queue.add(.open, for: "a", at: time(0))
    let dead = try #require(try queue.lease(by: "dead", for: 60, at: time(0)))
    #expect(try queue.lease(by: "me", for: 60, at: time(60)) == nil)
    #expect(try queue.extend(dead, for: 60, at: time(30)))
    #expect(try queue.lease(by: "me", for: 60, at: time(80)) == nil)
    let mine = try #require(try queue.lease(by: "me", for: 60, at: time(91)))
    #expect(mine.attempts == 2)
    // The dead one turns out to live, and is too late.
    #expect(try !queue.extend(dead, for: 60, at: time(92)))
    #expect(try !queue.end(dead, .done, at: time(92)))
    #expect(try queue.end(mine, .done, at: time(93)))
  }

  @Test func whatDiesEachTimeFails() throws {
    let queue = try queue(try TemporaryFolder())
    try queue.add(.open, for: "a", at: time(0))
    for attempt in 0..<3 {
      #expect(try queue.lease(by: "dead", for: 10, at: time(Int64(attempt) * 100)) != nil)
      try queue.release(owner: "dead", at: time(Int64(attempt) * 100 + 1))
    }
    #expect(try queue.lease(by: "me", for: 10, at: time(1000)) == nil)
    let job = try #require(try queue.jobs(of: "a").first)
    #expect(job.state == .failed && job.code == "worker-tries")
    try queue.restart(.open, of: "a", at: time(2000))
    #expect(try queue.lease(by: "me", for: 10, at: time(2000))?.attempts == 1)
  }

  @Test func aServerThatIsKilledOrEndedTakesNoTriesFromAJob() throws {
    let queue = try queue(try TemporaryFolder())
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
      #expect(try queue.end(job, .putBack(reason), at: time(now)))
      now += 1
    }
    // All three tries are left.
    for number in 1...3 {
      let job = try #require(try queue.lease(by: "me", for: 60, at: time(now)), "\(number)")
      #expect(try queue.end(job, .tryAgain(reason), at: time(now)))
      now += 1000
    }
    #expect(try queue.jobs(of: "a").first?.state == .failed)
    #expect(try queue.lease(by: "me", for: 60, at: time(now)) == nil)
  }

  @Test func aJobThatIsPutBackForEverFails() throws {
    let queue = try queue(try TemporaryFolder())
    let reason = InboxBundle.Failure(code: "locked", words: "Another worker is at it still.")
    try queue.add(.open, for: "a", at: time(0))
    var now: Int64 = 0
    while let job = try queue.lease(by: "me", for: 60, at: time(now)), now < 1_000_000 {
      #expect(try queue.end(job, .putBack(reason), at: time(now)))
      now += 1000
    }
    #expect(now < 1_000_000)
    #expect(try queue.jobs(of: "a").first?.state == .failed)
  }

  @Test func anotherTryWaitsLongerEachTime() throws {
    let queue = try queue(try TemporaryFolder())
    try queue.add(.salvage, for: "a", at: time(0))
    let full = InboxBundle.Failure(code: "no-space", words: "The disk is full.")
    let first = try #require(try queue.lease(by: "me", for: 60, at: time(0)))
    #expect(try queue.end(first, .tryAgain(full), at: time(0)))
    #expect(try queue.lease(by: "me", for: 60, at: time(4)) == nil)
    let second = try #require(try queue.lease(by: "me", for: 60, at: time(5)))
    #expect(try queue.end(second, .tryAgain(full), at: time(5)))
    #expect(try queue.lease(by: "me", for: 60, at: time(14)) == nil)
    let third = try #require(try queue.lease(by: "me", for: 60, at: time(15)))
    #expect(try queue.end(third, .tryAgain(full), at: time(15)))
    let job = try #require(try queue.jobs(of: "a").first)
    #expect(job.state == .failed && job.code == "no-space" && job.attempts == 3)
  }
}
