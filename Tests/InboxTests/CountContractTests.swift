import Foundation
import Inbox
import Platform
import SystemPackage
import TestSupport
import Testing

/// What is counted of records of every kind, held against the rows themselves.
@Suite("The counts of the inbox")
struct CountContractTests {
  private func time(_ seconds: Int64) -> Timestamp { Timestamp(secondsSince1970: 1_000_000 + seconds) }

  private static let senders = ["me", "you", "Zoë"]

  /// Bundles of three senders and two damages, with uploads that are not over, jobs and sightings.
  private func fill(_ records: any InboxRecords, _ queue: any JobQueue, count: Int) throws -> [String] {
    for (number, name) in Self.senders.enumerated() {
      try records.add(InboxSender(name: name, quota: 1 << 40, created: time(0)), tokenSum: [UInt8(number)])
    }
    let fingerprints = (0..<2).map { DamageFingerprint(InboxDesk.facts(tables: ["Table \($0)"])) }
    for number in 0..<count {
      let id = "\(UniversalIdentifier.random())".lowercased()
      let sender = Self.senders[number % 3]
      let upload = InboxUpload(
        id: id, sender: sender, length: Int64(number + 1), created: time(0), expires: time(100))
      #expect(try records.admit(upload, quota: 1 << 40, limits: InboxLimits(openUploads: 1000)) == .begun)
      if number % 5 == 4 { continue }
      var bundle = try records.makeBundle(
        InboxBundle(
          id: id, sender: sender, date: time(Int64(number)), sha256: id, bytes: Int64(number + 1), fileName: nil,
          level: nil, isEncrypted: false),
        of: id)
      if number % 7 != 0 {
        bundle.state = .quarantined
        bundle.fingerprint = fingerprints[number % 2]
        try records.save(bundle)
      }
      try queue.add(.open, for: id, at: time(0))
      try records.note(
        InboxSighting(
          bundle: id, store: "\(number)", fingerprint: fingerprints[number % 2],
          appVersion: [nil, "", "1.0", "=1"][number % 4], date: time(Int64(number)).rfc3339))
    }
    return fingerprints.map(\.group)
  }

  /// Rows of a name and a number.
  private func numbers(_ kind: RecordsKind, _ sql: String, _ folder: TemporaryFolder) throws -> [String: Int64] {
    try kind.run(sql, folder).reduce(into: [:]) { numbers, row in
      let parts = row.split(separator: "|", omittingEmptySubsequences: false)
      numbers[String(parts[0])] = Int64(parts[1])
    }.filter { $0.value != 0 }
  }

  /// Holds every count against the rows.
  private func check(
    _ kind: RecordsKind, _ folder: TemporaryFolder, _ groups: [String], after change: String
  ) throws {
    let (records, queue) = try kind.open(folder)
    func numbers(_ sql: String) throws -> [String: Int64] { try self.numbers(kind, sql, folder) }
    let jobs = try Dictionary(uniqueKeysWithValues: queue.counts().map { ($0.key.rawValue, Int64($0.value)) })
    #expect(try jobs == numbers("SELECT state, count(*) FROM jobs GROUP BY state"), "\(change)")
    let bundles = try Dictionary(
      uniqueKeysWithValues: records.bundleCounts().map { ($0.key.rawValue, Int64($0.value)) })
    #expect(try bundles == numbers("SELECT state, count(*) FROM bundles GROUP BY state"), "\(change)")
    let used = try numbers(
      """
      SELECT name, coalesce((SELECT sum(bytes + coalesce(placed, 0)) FROM bundles WHERE sender = name), 0)
        + coalesce((SELECT sum(length) FROM uploads WHERE sender = name AND state = 'open'), 0) FROM senders
      """)
    #expect(try records.usage().filter { $0.value != 0 } == used, "\(change)")
    #expect(try records.usedBytes() == used.values.reduce(0, +), "\(change)")
    for sender in try records.senders(after: nil, limit: 10) {
      #expect(sender.used == used[sender.sender.name] ?? 0, "\(change)")
      #expect(
        try records.room(of: sender.sender.name, totalBytes: 1 << 20)
          == min((1 << 40) - sender.used, (1 << 20) - used.values.reduce(0, +)), "\(change)")
    }
    for group in groups {
      let kept = try numbers("SELECT 'n', count(*) FROM bundles WHERE damage = '\(group)'")["n"] ?? 0
      let seen = try numbers(
        """
        SELECT coalesce('known ' || version, 'none'), count(*) FROM sightings WHERE damage = '\(group)' GROUP BY version
        """)
      let earlier =
        try numbers(
          """
          SELECT 'n', count(*) FROM bundles WHERE damage = '\(group)' AND state = 'quarantined'
            AND (salvaged_by IS NULL OR salvaged_by IN ('0.2', '0.9'))
          """)["n"] ?? 0
      let found = try records.group(group)
      let told = (found?.versions ?? []).reduce(into: [:]) { told, version in
        told[version.version.map { "known \($0)" } ?? "none"] = version.count
      }
      #expect(told == seen, "\(change)")
      if let found { #expect(found.bundlesKept == kept && found.count == seen.values.reduce(0, +), "\(change)") }
      #expect(try Int64(records.salvagedEarlier(of: group, than: "0.10")) == earlier, "\(change)")
    }
  }

  @Test(arguments: RecordsKind.available) func countsAreRightWhateverStatementChangesTheRows(
    _ kind: RecordsKind
  ) throws {
    let folder = try TemporaryFolder()
    let (records, queue) = try kind.open(folder)
    let groups = try fill(records, queue, count: 60)
    try check(kind, folder, groups, after: "the first rows")
    for change in [
      "UPDATE jobs SET state = 'running' WHERE id % 2 = 0", "UPDATE jobs SET state = 'done', attempts = 7",
      "UPDATE bundles SET placed = 1000 WHERE bytes % 2 = 0",
      "UPDATE bundles SET placed = NULL, bytes = 5 WHERE bytes % 4 = 0",
      "UPDATE bundles SET salvaged_by = '0.2' WHERE bytes % 3 = 0",
      "UPDATE bundles SET salvaged_by = '0.10' WHERE bytes % 5 = 0",
      "UPDATE bundles SET damage = '\(groups[1])' WHERE damage = '\(groups[0])' AND bytes % 2 = 1",
      "UPDATE bundles SET state = 'refused', damage = NULL WHERE bytes % 6 = 1",
      "UPDATE bundles SET sender = 'me' WHERE bytes % 9 = 0", "UPDATE bundles SET words = 'none'",
      "UPDATE uploads SET state = 'dropped' WHERE length % 2 = 0",
      "UPDATE uploads SET length = 70 WHERE state = 'open'",
      "UPDATE sightings SET version = '2.0' WHERE version = '1.0'",
      "UPDATE sightings SET damage = '\(groups[1])' WHERE version = '2.0'",
      "DELETE FROM sightings WHERE version IS NULL",
      "DELETE FROM jobs WHERE id % 3 = 0", "DELETE FROM uploads WHERE length % 3 = 0",
      "DELETE FROM bundles WHERE bytes % 4 = 1", "UPDATE jobs SET state = 'waiting' WHERE id < 0",
      "DELETE FROM jobs", "DELETE FROM uploads", "DELETE FROM bundles",
    ] {
      try kind.run(change, folder)
      try check(kind, folder, groups, after: change)
    }
    #expect(try records.usedBytes() == 0 && records.bundleCount() == 0 && queue.counts().isEmpty)
  }

  /// What pages read for a count does not grow with what a statement changed, nor with how many statements there were.
  @Test(arguments: RecordsKind.available) func manyChangesLeaveFewRowsToSumUp(_ kind: RecordsKind) throws {
    let folder = try TemporaryFolder()
    let (_, queue) = try kind.open(folder)
    try kind.run(
      """
      WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2999)
        INSERT INTO jobs (kind, bundle, state, attempts, not_before, lease_ends, date)
        SELECT 'open', CAST(n AS text), 'waiting', 0, 0, 0, '\(time(0).rfc3339)' FROM numbers
      """, folder)
    try kind.run("UPDATE jobs SET state = 'failed' WHERE id % 2 = 0", folder)
    try kind.run("UPDATE jobs SET state = 'waiting' WHERE id % 3 = 0", folder)
    let errors = Mutex<[any Error]>([])
    let (before, after) = (time(1), time(2))
    DispatchQueue.concurrentPerform(iterations: 4) { worker in
      do {
        for _ in 0..<25 {
          if let job = try queue.lease(by: "\(worker)", for: 1000, at: before) {
            _ = try queue.end(job, .done, at: after)
          }
        }
      } catch {
        errors.withLock { $0.append(error) }
      }
    }
    #expect(errors.withLock { $0.isEmpty }, "\(errors.withLock { $0 })")
    let counts = try queue.counts()
    #expect(counts == [.done: 100, .waiting: 1900, .failed: 1000])
    // At most one for each of the four states and for each of the four connections.
    let rows = try kind.run("SELECT count(*) FROM tallies WHERE kind = 'jobs'", folder)
    #expect(try #require(Int(rows[0])) <= 16)
  }
}
