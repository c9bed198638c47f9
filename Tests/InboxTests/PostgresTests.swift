import Foundation
import Inbox
import Platform
import SystemPackage
import TestSupport
import Testing

/// What only a database server has: versions of its schema, restarts, notifications, addresses.
@Suite(
  "The inbox in PostgreSQL", .enabled(if: PostgresServer.shared != nil, "no PostgreSQL server can be started here"))
struct PostgresTests {
  private var server: PostgresServer { get throws { try #require(PostgresServer.shared) } }

  private func time(_ seconds: Int64) -> Timestamp { Timestamp(secondsSince1970: 1_000_000 + seconds) }

  @Test func processesThatMakeTheSchemaAtOnceMakeItOnce() throws {
    let address = try server.makeDatabase()
    let children = try (0..<4).map { number in
      let child = try ChildProcess(
        "/usr/bin/env",
        ["LAZARET_DATABASE=\(address)", ChildProcess.tool, "inbox", "token", "new", "sender \(number)"])
      return child
    }
    for child in children {
      let result = try child.finish()
      #expect(result.status == 0, "\(result.errors)")
    }
    let versions = try server.run("SELECT string_agg(version::text, ',') FROM lazaret.versions", in: address)
    #expect(versions == "1,2,3,4,5,6,7,8")
    #expect(try server.run("SELECT count(*) FROM lazaret.senders", in: address) == "4")
  }

  @Test func aMachineWhoseClockIsWrongTakesNoJobFromAnother() throws {
    let address = try server.makeDatabase()
    let start = Surroundings.machine.now().secondsSince1970
    func queue(ahead: Int64) throws -> any JobQueue {
      let clock: @Sendable () -> Timestamp = {
        Timestamp(secondsSince1970: Surroundings.machine.now().secondsSince1970 + ahead)
      }
      return try PostgresDatabase(PostgresAddress(address, from: .environment), clock: clock).queue()
    }
    func time(_ seconds: Int64) -> Timestamp { Timestamp(secondsSince1970: start + seconds) }
    let back = InboxJobOutcome.putBack(.init(code: "x", words: "x"))
    let right = try queue(ahead: 0)
    try right.add(.open, for: "b", at: time(0))
    for (round, ahead) in ([3600, -3600] as [Int64]).enumerated() {
      let wrong = try queue(ahead: ahead)
      let begin = Int64(round) * 1000
      let job = try #require(try right.lease(by: "right", for: 60, at: time(begin)))
      #expect(try wrong.lease(by: "wrong", for: 60, at: time(begin + ahead)) == nil)
      #expect(try right.end(job, back, at: time(begin)) == .waiting)
      let own = try #require(try wrong.lease(by: "wrong", for: 60, at: time(begin + 10 + ahead)))
      #expect(try right.lease(by: "right", for: 60, at: time(begin + 10)) == nil)
      #expect(try wrong.extend(own, for: 60, at: time(begin + 10 + ahead)))
      // Once the lease is over by the server's clock, it is anyone's.
      let taken = try #require(try right.lease(by: "right", for: 60, at: time(begin + 100)))
      #expect(try !wrong.extend(own, for: 60, at: time(begin + 100 + ahead)))
      #expect(try right.end(taken, back, at: time(begin + 100)) == .waiting)
    }
  }

  @Test func aDatabaseOfALaterVersionIsRefused() throws {
    let address = try server.makeDatabase()
    _ = try server.open(address)
    try server.run("INSERT INTO lazaret.versions (version) VALUES (99)", in: address)
    let error = #expect(throws: InboxError.self) { try server.open(address) }
    #expect(error?.code == "inbox-records" && error?.detail.contains("version 99") == true)
    #expect(error?.isEnvironmental == false)
  }

  @Test func aDatabaseOfTheFirstVersionIsBroughtToThisOne() throws {
    let address = try server.makeDatabase()
    let fingerprints = (0..<3).map { DamageFingerprint(InboxDesk.facts(tables: ["Table \($0 / 2)", "\($0)"])) }
    do {
      let records = try server.open(address).records
      for (number, fingerprint) in fingerprints.enumerated() {
        try records.note(
          InboxSighting(
            bundle: "b", store: "\(number)", fingerprint: fingerprint, appVersion: nil, date: time(0).rfc3339))
      }
    }
    let related = try server.open(address).records.related(to: fingerprints[0], limit: 5)
    #expect(related.count == 2)
    // As the first version left it.
    try server.run(
      """
      DROP TABLE lazaret.damage_bands, lazaret.removals, lazaret.batches, lazaret.batch_items;
      DROP INDEX lazaret.uploads_open_by_id; ALTER TABLE lazaret.jobs DROP COLUMN hindered;
      ALTER TABLE lazaret.bundles DROP COLUMN salvaged_by, DROP COLUMN received; DROP INDEX lazaret.bundles_of_sender, lazaret.jobs_by_state;
      CREATE INDEX jobs_failed ON lazaret.jobs (id) WHERE state = 'failed';
      DROP FUNCTION lazaret.tally, lazaret.use_more, lazaret.count_jobs, lazaret.count_bundles, lazaret.count_uploads,
        lazaret.count_senders, lazaret.count_sightings CASCADE;
      DELETE FROM lazaret.tallies WHERE kind = 'used';
      DROP INDEX lazaret.tallies_by_part; CREATE INDEX tallies_by_name ON lazaret.tallies (kind, name);
      CREATE FUNCTION lazaret.count_job() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
      CREATE FUNCTION lazaret.count_bundle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
      CREATE FUNCTION lazaret.count_upload() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
      CREATE FUNCTION lazaret.count_sighting() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
      INSERT INTO lazaret.senders (name, quota, token, created, used) VALUES ('early', 1, 'a', 0, 77);
      INSERT INTO lazaret.bundles (id, sender, sha256, bytes, date, state, damage, words, summary, details)
        SELECT 'b' || n, 'early', n::text, 7, n::text, CASE n WHEN 1 THEN 'refused' ELSE 'quarantined' END, 'd', '', '', ''
          FROM generate_series(1, 11) AS n;
      INSERT INTO lazaret.jobs (kind, bundle, state, date) SELECT 'open', 'b' || n, 'waiting', '' FROM generate_series(1, 11) AS n;
      INSERT INTO lazaret.tallies SELECT 'bundles', CASE n WHEN 1 THEN 'refused' ELSE 'quarantined' END, NULL, 1
        FROM generate_series(1, 11) AS n;
      INSERT INTO lazaret.tallies SELECT 'jobs', 'running', NULL, 1 FROM generate_series(1, 5);
      INSERT INTO lazaret.tallies SELECT 'jobs', 'running', NULL, -1 FROM generate_series(1, 5);
      INSERT INTO lazaret.tallies SELECT 'jobs', 'waiting', NULL, 1 FROM generate_series(1, 11);
      DELETE FROM lazaret.versions WHERE version > 1
      """, in: address)
    let database = try server.open(address)
    let again = database.records
    #expect(try again.related(to: fingerprints[0], limit: 5) == related)
    #expect(try again.usedBytes() == 77)
    #expect(try again.bundleCounts() == [.refused: 1, .quarantined: 10])
    #expect(try database.queue().counts() == [.waiting: 11])
    #expect(try again.salvagedEarlier(of: "d", than: "0.1") == 10)
    #expect(
      try server.run("SELECT count(*) FROM lazaret.tallies WHERE kind IN ('jobs', 'bundles')", in: address) == "3")
  }

  @Test func aClockThatIsSetWhileItIsConnectedTakesNoJobFromAnother() throws {
    let address = try server.makeDatabase()
    let ahead = Mutex<Int64>(0)
    let clock: @Sendable () -> Timestamp = {
      Timestamp(secondsSince1970: Surroundings.machine.now().secondsSince1970 + ahead.withLock { $0 })
    }
    let right = try server.open(address, connections: 1).queue()
    let wrong = try PostgresDatabase(
      PostgresAddress(address, from: .environment), connections: 1, clock: clock
    ).queue()
    try right.add(.open, for: "a", at: clock())
    try right.add(.open, for: "b", at: clock())
    #expect(try right.lease(by: "right", for: 600, at: clock())?.bundle == "a")
    // It is connected, and its clock is right until now.
    let own = try #require(try wrong.lease(by: "wrong", for: 600, at: clock()))
    for set in [3600, -3600, 0] as [Int64] {
      ahead.withLock { $0 = set }
      #expect(try wrong.lease(by: "wrong", for: 600, at: clock()) == nil, "\(set)")
      #expect(try wrong.extend(own, for: 600, at: clock()))
      #expect(try right.lease(by: "right", for: 600, at: Surroundings.machine.now()) == nil, "\(set)")
      let ends = try #require(try right.running().first { $0.bundle == "b" }?.leaseEnds)
      #expect(abs(ends - Surroundings.machine.now().secondsSince1970 - 600) < 60, "\(set)")
    }
  }

  @Test func wordsThatNoIndexFindsAreLookedForPageByPage() throws {
    let address = try server.makeDatabase()
    let records = try server.open(address).records
    try records.add(InboxSender(name: "me", quota: 1 << 40, created: time(0)), tokenSum: [1])
    let bundle = InboxBundle(
      id: "old", sender: "me", date: time(0), sha256: "s", bytes: 1, fileName: "zq!", level: nil, isEncrypted: false)
    try server.run(
      """
      INSERT INTO lazaret.bundles (id, sender, sha256, bytes, date, state, words, summary, details)
        SELECT 'id ' || n, 'me', n::text, 1, '1980-01-01T00:00:00Z', 'received', CASE n WHEN 0 THEN 'zq!' ELSE 'other' END,
          '\(try InboxRecordText.text(bundle))', '{"files":[]}' FROM generate_series(0, \(PostgresDatabase.maximumLooked)) AS n;
      UPDATE lazaret.bundles SET id = 'old', date = '\(bundle.date)' WHERE id = 'id 0'
      """, in: address)
    let first = try records.entries(InboxFilter(words: "ZQ"), after: nil, limit: 10)
    #expect(first.items.isEmpty && first.next != nil)
    let second = try records.entries(InboxFilter(words: "ZQ"), after: first.next, limit: 10)
    #expect(second.items.map(\.bundle.id) == ["old"] && second.next == nil)
    // Three letters are found at once.
    #expect(try records.entries(InboxFilter(words: "other"), after: nil, limit: 10).items.count == 10)
  }

  @Test func aDatabaseThatIsNotInUTF8IsRefused() throws {
    let address = try server.makeDatabase("ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    #expect(throws: InboxError.self) { try server.open(address) }
    #expect(try server.run("SELECT to_regnamespace('lazaret') IS NULL", in: address) == "t")
  }

  @Test func textThatPostgreSQLCannotKeepIsAnErrorAndNotCutOff() throws {
    let database = try server.open(try server.makeDatabase())
    let records = database.records
    try records.add(InboxSender(name: "me", quota: 100, created: time(0)), tokenSum: [1])
    let upload = InboxUpload(id: "a\u{0}b", sender: "me", length: 1, created: time(0), expires: time(1))
    let error = #expect(throws: InboxError.self) { try records.admit(upload, quota: 100, limits: InboxLimits()) }
    #expect(error?.isEnvironmental == false && error?.code == "inbox-records")
    #expect(try records.upload("a") == nil && records.openUploads().isEmpty)
  }

  @Test func aServerThatRestartsIsMetAgain() throws {
    let own = try PostgresServer(isShared: false)
    let database = try own.open(try own.makeDatabase(), connections: 3)
    let (records, queue) = (database.records, database.queue())
    try records.add(InboxSender(name: "me", quota: 100, created: time(0)), tokenSum: [1])
    try queue.add(.open, forEach: (0..<300).map { "\($0)" }, at: time(0))
    for word in ["restart", "crash"] {
      // All connections are open, and all are lost.
      DispatchQueue.concurrentPerform(iterations: 3) { _ in _ = try? records.senders() }
      try own.restart(word)
      #expect(try records.senders().count == 1)
      let job = try #require(try queue.lease(by: "me", for: 60, at: time(1)))
      #expect(try queue.end(job, .done, at: time(1)) == .done)
    }
    // In the middle of work: what was said to be done is done, and nothing is done twice.
    let ended = Mutex<[String]>([])
    let errors = Mutex<[InboxError]>([])
    let done = DispatchGroup()
    for worker in 0..<3 {
      let (date, later) = (time(2), time(3))
      DispatchQueue.global().async(group: done) {
        for _ in 0..<400 {
          do {
            guard let job = try queue.lease(by: "worker \(worker)", for: 1_000_000, at: date) else { return }
            if try queue.end(job, .done, at: later) == .done { ended.withLock { $0.append(job.bundle) } }
          } catch let error as InboxError {
            errors.withLock { $0.append(error) }
          } catch {
            Issue.record("\(error)")
          }
        }
      }
    }
    for word in ["crash", "restart"] {
      Thread.sleep(forTimeInterval: 0.05)
      try own.restart(word)
    }
    done.wait()
    let told = ended.withLock { $0 }
    #expect(Set(told).count == told.count)
    #expect(errors.withLock { $0.allSatisfy(\.isEnvironmental) })
    // A crash loses nothing that was committed: all that was told is there.
    for bundle in told { #expect(try queue.jobs(of: bundle).first?.state == .done) }
    let counts = try queue.counts()
    #expect(counts.values.reduce(0, +) == 300 && counts[.waiting] == nil)
    #expect(counts[.done, default: 0] >= told.count + 2)
  }

  @Test func aServerThatIsAwayIsTheEnvironment() throws {
    let start = ContinuousClock.now
    let address = try PostgresAddress("postgresql:///x?host=/nonexistent", from: .commandLine)
    let error = #expect(throws: InboxError.self) { try PostgresDatabase(address) }
    #expect(error?.isEnvironmental == true && error?.code == "inbox-records")
    #expect(start.duration(to: .now) < .seconds(60))
  }

  @Test func changesOfAnotherProcessAreHeardAndOnesOwnAreNot() throws {
    let address = try server.makeDatabase()
    let (mine, other) = (try server.open(address), try server.open(address))
    let changes = InboxChanges()
    let heard = Mutex(0)
    changes.listen { heard.withLock { $0 += 1 } }
    let listener = PostgresListener(mine, to: changes)
    defer { listener.stop() }
    func waits(for count: Int) -> Bool {
      for _ in 0..<6000 {
        if heard.withLock({ $0 }) >= count { return true }
        Thread.sleep(forTimeInterval: 0.01)
      }
      return false
    }
    // It tells that it has begun to listen.
    #expect(waits(for: 1))
    try mine.queue().add(.open, for: "a", at: time(0))
    Thread.sleep(forTimeInterval: 0.3)
    #expect(heard.withLock { $0 } == 1)
    try other.queue().add(.open, for: "b", at: time(0))
    #expect(waits(for: 2))
    // Its connection is lost: it makes another, and tells of it.
    try server.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()",
      in: address)
    #expect(waits(for: 3))
    Thread.sleep(forTimeInterval: 0.3)
    let before = heard.withLock { $0 }
    try other.queue().add(.open, for: "c", at: time(0))
    #expect(waits(for: before + 1))
  }

  @Test func homesAndDatabasesThatDoNotBelongTogetherAreRefused() throws {
    let folder = try TemporaryFolder()
    let system = FileSystem()
    func home(_ name: String) throws -> FilePath {
      try system.makeDirectory(folder.appending(name))
      return folder.appending(name)
    }
    let (one, other) = (try server.open(try server.makeDatabase()), try server.open(try server.makeDatabase()))
    let first = try home("first")
    _ = try Inbox(home: first, database: one)
    _ = try Inbox(home: first, database: one)
    try folder.write("x", to: "first/Inbox/Bundles/00000000-0000-0000-0000-000000000000/bundle.lazaret.tar.gz")
    let second = try home("second")
    _ = try Inbox(home: second)
    for (home, database) in [(first, other), (try self.empty(folder), one), (second, other), (second, one)] {
      let error = #expect(throws: InboxError.self) { try Inbox(home: home, database: database) }
      #expect(error?.code == "inbox-address")
    }
    // A file of records is not made beside it either.
    let error = #expect(throws: InboxError.self) { try Inbox(home: first) }
    #expect(error?.code == "inbox-address")
    #expect(try !system.entries(of: first.appending("Inbox")).map(\.string).contains("records.sqlite"))
    #expect(
      try system.entries(of: first.appending("Inbox/Bundles")).map(\.string) == ["00000000-0000-0000-0000-000000000000"]
    )
  }

  private func empty(_ folder: TemporaryFolder) throws -> FilePath {
    let home = folder.appending("empty \(UniversalIdentifier.random())")
    try FileSystem().makeDirectory(home)
    return home
  }
}

/// Addresses, which need no server.
@Suite("Addresses of databases")
struct PostgresAddressTests {
  @Test(arguments: [
    "postgresql://me:secret@host:5432/x", "postgresql://me:secret@host/x", "postgres://me:@host/x",
    "postgresql://host/x?password=secret",
    "postgresql://host/x?user=me&pass%77ord=secret", "postgresql://me:se/cret@host/x",
    "postgresql://host/x?sslpassword=secret",
  ])
  func aPasswordOnACommandLineIsRefusedAndNotRepeated(_ text: String) {
    let error = #expect(throws: InboxError.self) { try PostgresAddress(text, from: .commandLine) }
    #expect(error?.code == "inbox-address" && error?.hint.contains("PGPASSFILE") == true)
    #expect(!"\(String(describing: error))".contains("cret"))
  }

  @Test(arguments: [
    "postgresql://host/x", "postgresql://me@host:5432/x", "postgres://[::1]:5432/x", "postgresql:///x?host=/run",
    "postgresql://one:1,two:2/x?target_session_attrs=read-write", "postgresql://?service=inbox",
  ])
  func addressesWithoutOneAreTaken(_ text: String) throws {
    _ = try PostgresAddress(text, from: .commandLine)
    _ = try PostgresAddress("postgresql://me:secret@host/x", from: .environment)
  }

  /// libpq would take a part of these passwords for the host, and name it.
  @Test(arguments: ["postgresql://u:p@sscret@db/x", "postgresql://u:12/cret@db/x", "postgresql://u@x/cret@db"])
  func aPasswordThatIsNotWrittenAsItShouldBeIsNotRepeated(_ text: String) {
    let error = #expect(throws: InboxError.self) { try PostgresAddress(text, from: .environment) }
    #expect(error?.code == "inbox-address" && error?.hint.contains("%40") == true)
    #expect(!"\(String(describing: error))".contains("cret"))
  }

  @Test(arguments: ["", "host=/run dbname=x", "mysql://host/x", "postgresql:", "https://host", "postgresql://a\u{0}b"])
  func whatIsNoAddressIsRefused(_ text: String) {
    #expect(throws: InboxError.self) { try PostgresAddress(text, from: .environment) }
  }
}
