import Foundation
import GRDB
import Inbox
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// Lists by keys, and related damage, of every kind of records.
@Suite("The lists of the inbox")
struct ListContractTests {
  private func time(_ seconds: Int64) -> Timestamp { Timestamp(secondsSince1970: 1_000_000 + seconds) }

  private func add(_ names: [String], _ records: any InboxRecords) throws {
    for name in names {
      try records.add(InboxSender(name: name, quota: 1 << 40, created: time(0)), tokenSum: Array(name.utf8))
    }
  }

  /// Admits an upload, and makes a bundle of it.
  @discardableResult
  private func receive(
    _ records: any InboxRecords, from sender: String, at seconds: Int64, fileName: String? = nil
  ) throws -> InboxBundle {
    let id = "\(UniversalIdentifier.random())".lowercased()
    let upload = InboxUpload(id: id, sender: sender, length: 10, created: time(0), expires: time(100))
    #expect(try records.admit(upload, quota: 1 << 40, limits: InboxLimits(openUploads: 1000)) == .begun)
    let bundle = InboxBundle(
      id: id, sender: sender, date: time(seconds), sha256: id, bytes: 10, fileName: fileName, level: nil,
      isEncrypted: false)
    return try records.makeBundle(bundle, of: id)
  }

  /// All pages of a list, one after the other.
  private func pages<Item>(
    _ page: (InboxKey?) throws -> InboxList<Item>, between: () throws -> Void = {}
  ) throws -> [[Item]] {
    var (pages, key) = ([[Item]](), InboxKey?.none)
    repeat {
      let list = try page(key)
      pages.append(list.items)
      key = list.next
      // The key goes through a link.
      if let text = key?.text { #expect(InboxKey(text) == key) }
      try between()
    } while key != nil && pages.count < 100
    return pages
  }

  @Test(arguments: RecordsKind.available) func everyBundleIsOnOnePageWhateverComesMeanwhile(
    _ kind: RecordsKind
  ) throws {
    let records = try kind.open(try TemporaryFolder()).records
    try add(["me", "you"], records)
    // Many of one second.
    var sent: [InboxBundle] = []
    for number in 0..<23 {
      sent.append(
        try receive(
          records, from: number % 3 == 0 ? "you" : "me", at: Int64(number / 5), fileName: "File \(number).tar"))
    }
    let order = sent.sorted { ($1.date, $1.id) < ($0.date, $0.id) }
    func found(_ filter: InboxFilter, limit: Int) throws -> [[String]] {
      try pages { try records.entries(filter, after: $0, limit: limit) }.map { $0.map(\.bundle.id) }
    }
    for limit in [1, 4, 22, 23, 24] {
      let pages = try found(InboxFilter(), limit: limit)
      #expect(pages.flatMap(\.self) == order.map(\.id), "\(limit)")
      #expect(pages.dropLast().allSatisfy { $0.count == limit } && pages.last?.isEmpty == false)
    }
    var later: Int64 = 100
    let walked = try pages { key in
      try records.entries(InboxFilter(), after: key, limit: 4)
    } between: {
      later += 1
      try receive(records, from: "me", at: later)
    }
    #expect(walked.flatMap { $0.map(\.bundle.id) } == order.map(\.id))
    // A filter holds on every page.
    let yours = order.filter { $0.sender == "you" }.map(\.id)
    #expect(try found(InboxFilter(sender: "you"), limit: 3).flatMap(\.self) == yours)
    #expect(try found(InboxFilter(words: "FILE 1", state: .received), limit: 2).flatMap(\.self).count == 11)
    #expect(try found(InboxFilter(words: "1.", sender: "you"), limit: 1).flatMap(\.self).count == 1)
    #expect(try found(InboxFilter(sender: "none"), limit: 3) == [[]])
    // The bundle at the edge goes meanwhile.
    let first = try records.entries(InboxFilter(sender: "you"), after: nil, limit: 3)
    try records.remove(try #require(first.items.last?.bundle.id))
    let rest = try records.entries(InboxFilter(sender: "you"), after: first.next, limit: 100)
    #expect(rest.items.map(\.bundle.id) == Array(yours.dropFirst(3)) && rest.next == nil)
  }

  @Test func whatIsNoPageTokenIsNone() {
    for text in ["", "_", "a_", "_a", "a", "a b_c", "a_\u{7f}", "a_" + String(repeating: "x", count: 300), "ä_b"] {
      #expect(InboxKey(text) == nil, "\(text)")
    }
  }

  @Test(arguments: RecordsKind.available) func damageIsListedByKeys(_ kind: RecordsKind) throws {
    let records = try kind.open(try TemporaryFolder()).records
    for number in 0..<12 {
      let fingerprint = DamageFingerprint(InboxDesk.facts(tables: ["Table \(number)"]))
      try records.note(
        InboxSighting(
          bundle: "b", store: "store \(number)", fingerprint: fingerprint, appVersion: "1",
          date: time(Int64(number / 3)).rfc3339))
    }
    let all = try records.groups(after: nil, limit: 100)
    #expect(all.items.count == 12 && all.next == nil)
    #expect(all.items.map(\.last) == all.items.map(\.last).sorted(by: >))
    for limit in [1, 2, 5, 12] {
      let walked = try pages { try records.groups(after: $0, limit: limit) }
      #expect(walked.flatMap { $0.map(\.id) } == all.items.map(\.id), "\(limit)")
    }
  }

  @Test(arguments: RecordsKind.available) func sendersAndJobsAreListedByKeys(_ kind: RecordsKind) throws {
    let (records, queue) = try kind.open(try TemporaryFolder())
    let names = ["Zoë", "a", "b", "c d", "it's", "É"]
    try add(names, records)
    try receive(records, from: "b", at: 0)
    let open = InboxUpload(id: "open", sender: "b", length: 7, created: time(0), expires: time(100))
    #expect(try records.admit(open, quota: 1 << 40, limits: InboxLimits()) == .begun)
    var (listed, last) = ([InboxSenderUsage](), String?.none)
    while true {
      let page = try records.senders(after: last, limit: 2)
      guard let name = page.last?.sender.name else { break }
      (listed, last) = (listed + page, name)
    }
    #expect(listed.map(\.sender) == (try records.senders()))
    #expect(listed.map { $0.sender.name == "b" ? 17 : 0 } == listed.map(\.used))
    #expect(try records.usedBytes() == 17)
    #expect(try records.openUploads(limit: 5).count == 1 && records.openUploads(limit: 0).isEmpty)

    try queue.add(.open, forEach: (0..<7).map { "bundle \($0)" }, at: time(0))
    for _ in 0..<5 {
      let job = try #require(try queue.lease(by: "me", for: 10, at: time(1)))
      _ = try queue.end(job, .failed(.init(code: "x", words: "It failed.")), at: time(1))
    }
    var (jobs, id) = ([InboxJob](), Int64?.none)
    while true {
      let page = try queue.jobs(in: .failed, after: id, limit: 2)
      guard let last = page.last else { break }
      (jobs, id) = (jobs + page, last.id)
    }
    #expect(jobs.map(\.bundle) == (0..<5).reversed().map { "bundle \($0)" } && jobs.allSatisfy { $0.code == "x" })
    #expect(try queue.jobs(in: .waiting, after: nil, limit: 10).map(\.bundle) == ["bundle 6", "bundle 5"])
  }

  // MARK: Related damage

  @Test func fingerprintsThatDifferInOnePartShareMarks() {
    let base = DamageFingerprint(InboxDesk.facts(tables: ["Car", "Owner"]))
    func other(_ change: (inout BundleFacts) -> Void) -> DamageFingerprint {
      var facts = InboxDesk.facts(tables: ["Car", "Owner"])
      change(&facts)
      return DamageFingerprint(facts)
    }
    func shared(_ fingerprint: DamageFingerprint) -> Int {
      Set(base.bands).intersection(fingerprint.bands).count
    }
    #expect(base.bands.map(\.mark) == base.bands.map(\.mark).sorted() && Set(base.bands.map(\.mark)).count == 12)
    #expect(other { $0.versions.app = "9" }.bands == base.bands)
    let close = [
      other { $0.versions.storeWrittenBySQLite = "3.43.2" }, other { $0.modelVersion = "V3" },
      other { $0.pageStates["damaged"] = 200 }, other { $0.damagedTables = ["Wheel"] },
      other { $0.verdict = "incompatible" }, other { $0.app = "com.example.Other" },
      other {
        $0.versions.storeWrittenBySQLite = "3.43.2"
        $0.modelVersion = "V3"
      },
    ]
    for fingerprint in close {
      #expect(shared(fingerprint) > 0, "\(fingerprint)")
      #expect(fingerprint.likeness(to: base) < 1 && !fingerprint.differences(from: base).isEmpty)
    }
    #expect(close[0].differences(from: base) == ["SQLite"] && close[3].differences(from: base) == ["entities"])
    #expect(base.likeness(to: base) == 1 && base.differences(from: base).isEmpty)
    let far = other {
      $0.app = "com.example.Other"
      $0.verdict = "incompatible"
      $0.damagedTables = ["Wheel"]
      $0.pageStates = ["unreadable": 4]
    }
    #expect(shared(far) == 0 && far.likeness(to: base) < close.map { $0.likeness(to: base) }.min() ?? 0)
    // Kept in records: another value here is another version of them.
    #expect(DamageFingerprint(InboxDesk.facts()).bands.first?.mark == Self.leastBand)
  }

  private static let leastBand: Int64 = -9_126_704_650_985_478_423

  @Test(arguments: RecordsKind.available) func relatedDamageIsFoundAmongOthers(_ kind: RecordsKind) throws {
    let records = try kind.open(try TemporaryFolder()).records
    var facts: [BundleFacts] = []
    // A few hundred damages of several apps, entities, models and versions of SQLite, by a fixed seed.
    var state: UInt64 = 7
    func next(_ bound: UInt64) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int((state >> 33) % bound)
    }
    for _ in 0..<400 {
      var fact = InboxDesk.facts(
        app: "com.example.App\(next(3))", damaged: Int64([1, 3, 90, 300][next(4)]),
        tables: (0..<(1 + next(5))).map { _ in "Entity\(next(12))" })
      fact.modelVersion = "V\(next(4))"
      fact.versions.storeWrittenBySQLite = "3.\(40 + next(4))"
      facts.append(fact)
    }
    let fingerprints = facts.map { DamageFingerprint($0) }
    for (number, fingerprint) in fingerprints.enumerated() {
      try records.note(
        InboxSighting(
          bundle: "b", store: "\(number)", fingerprint: fingerprint, appVersion: nil,
          date: time(Int64(number)).rfc3339))
    }
    let known = Dictionary(fingerprints.map { ($0.group, $0) }) { first, _ in first }
    var (found, wanted) = (0, 0)
    for fingerprint in fingerprints.prefix(60) {
      let related = try records.related(to: fingerprint, limit: 10)
      #expect(!related.contains { $0.group.id == fingerprint.group })
      #expect(related.map(\.likeness) == related.map(\.likeness).sorted(by: >))
      #expect(related.allSatisfy { $0.likeness == fingerprint.likeness(to: $0.group.fingerprint) })
      // Compared with every other one: what differs in one part alone is never missed.
      let others = known.values.filter { $0.group != fingerprint.group }
      let single = others.filter { $0.differences(from: fingerprint).count == 1 }.map(\.group)
      let ids = Set(related.map(\.group.id))
      if single.count <= 10 {
        let worst = related.last?.likeness ?? 0
        for id in single where !ids.contains(id) {
          #expect((known[id]?.likeness(to: fingerprint) ?? 1) <= worst, "\(id)")
        }
      }
      // And of those that are most alike by all parts most are found.
      let best = others.map { $0.likeness(to: fingerprint) }.sorted(by: >).prefix(5)
      wanted += best.count
      found += zip(best, related).count { $0.0 <= $0.1.likeness }
    }
    #expect(Double(found) >= 0.85 * Double(wanted), "\(found) of \(wanted)")
  }

  @Test(arguments: RecordsKind.available) func whatNoNameCanBeIsFoundNowhere(_ kind: RecordsKind) throws {
    let records = try kind.open(try TemporaryFolder()).records
    try add(["me"], records)
    try receive(records, from: "me", at: 0)
    for name in ["m\u{0}e", "\u{0}", "me\u{0}"] {
      #expect(try records.entries(InboxFilter(sender: name), after: nil, limit: 5).items.isEmpty)
      #expect(try records.entries(InboxFilter(group: name), after: nil, limit: 5).items.isEmpty)
      #expect(try records.groups([name]).isEmpty)
    }
    #expect(try records.entries(InboxFilter(sender: "me"), after: nil, limit: 5).items.count == 1)
  }

  @Test func wordsInAFileAreLookedForPageByPage() throws {
    let folder = try TemporaryFolder()
    let records = try RecordsKind.sqlite.open(folder).records
    try add(["me"], records)
    let old = try receive(records, from: "me", at: -5, fileName: "zqx!")
    let newer = try receive(records, from: "me", at: 5, fileName: "zqx?")
    try RecordsKind.sqlite.run(
      """
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(InboxDatabase.maximumLooked))
        INSERT INTO bundles (id, sender, sha256, bytes, date, state, words, content)
          SELECT 'id ' || n, sender, n, 1, '\(time(0).rfc3339)', state, 'other', content FROM numbers, bundles WHERE id = '\(old.id)'
      """, folder)
    let first = try records.entries(InboxFilter(words: "ZQX"), after: nil, limit: 10)
    #expect(first.items.map(\.bundle.id) == [newer.id])
    let next = try #require(first.next)
    let second = try records.entries(InboxFilter(words: "ZQX"), after: next, limit: 10)
    #expect(second.items.map(\.bundle.id) == [old.id] && second.next == nil)
    // Without words nothing is left out, and a page is whole.
    #expect(try records.entries(InboxFilter(), after: nil, limit: 10).items.count == 10)
    let one = try records.entries(InboxFilter(words: "zqx"), after: nil, limit: 0)
    #expect(one.items.isEmpty)
  }

  /// Makes of a file what the second version would have left.
  private func leaveAsTheSecondVersion(_ path: FilePath) throws {
    try DatabaseQueue(path: path.string).write { database in
      try database.execute(
        sql: """
          DROP TRIGGER count_jobs_come; DROP TRIGGER count_jobs_gone; DROP TRIGGER count_jobs_changed;
          DROP TRIGGER count_bundles_come; DROP TRIGGER count_bundles_gone; DROP TRIGGER count_bundles_changed;
          DROP TRIGGER count_uploads_come; DROP TRIGGER count_uploads_gone; DROP TRIGGER count_uploads_changed;
          DROP TRIGGER count_sightings_come; DROP TRIGGER count_sightings_gone; DROP TRIGGER count_sightings_changed;
          DROP TABLE tallies; CREATE INDEX bundles_by_sender ON bundles (sender, bytes, placed);
          DROP INDEX uploads_open; DROP INDEX jobs_hindered; ALTER TABLE jobs DROP COLUMN hindered;
          DROP TABLE removals; DROP TABLE batches; DROP TABLE batch_items; ALTER TABLE bundles DROP COLUMN salvaged_by;
          ALTER TABLE bundles DROP COLUMN received;
          DROP TABLE damages; DROP TABLE damage_bands; DROP INDEX bundles_of_sender; DROP INDEX bundles_by_state;
          DROP INDEX bundles_by_damage; CREATE INDEX bundles_by_damage ON bundles (damage, date); DROP INDEX jobs_in_state;
          DELETE FROM grdb_migrations WHERE identifier > '2'
          """)
    }
  }

  @Test func severalProcessesBringAFileToThisVersion() async throws {
    let folder = try TemporaryFolder()
    for round in 0..<5 {
      let path = folder.appending("records \(round).sqlite")
      _ = try InboxDatabase(path)
      try leaveAsTheSecondVersion(path)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<4 { group.addTask { _ = try InboxDatabase(path) } }
        try await group.waitForAll()
      }
      #expect(try InboxDatabase(path).records.removals(after: nil, limit: 1).isEmpty)
    }
    withExtendedLifetime(folder) {}
  }

  @Test func aFileOfALaterVersionIsRefused() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("records.sqlite")
    _ = try InboxDatabase(path)
    try DatabaseQueue(path: path.string).write { database in
      try database.execute(sql: "INSERT INTO grdb_migrations VALUES ('later')")
    }
    let error = #expect(throws: InboxError.self) { _ = try InboxDatabase(path) }
    #expect(error?.kind == .records && error?.detail.contains("later version") == true)
    withExtendedLifetime(folder) {}
  }

  @Test func aFileOfTheSecondVersionIsBroughtToThisOne() throws {
    let folder = try TemporaryFolder()
    let fingerprints = (0..<3).map { DamageFingerprint(InboxDesk.facts(tables: ["Table \($0 / 2)", "\($0)"])) }
    let path = folder.appending("records.sqlite")
    do {
      let records = try InboxDatabase(path).records
      for (number, fingerprint) in fingerprints.enumerated() {
        try records.note(
          InboxSighting(
            bundle: "b", store: "\(number)", fingerprint: fingerprint, appVersion: nil,
            date: time(Int64(number)).rfc3339))
      }
    }
    let before = try InboxDatabase(path).records
    let (groups, related) = (
      try before.groups(limit: 5), try before.related(to: fingerprints[0], limit: 5)
    )
    #expect(groups.count == 3 && related.count == 2)
    try leaveAsTheSecondVersion(path)
    let after = try InboxDatabase(path).records
    #expect(try after.groups(limit: 5) == groups && after.related(to: fingerprints[0], limit: 5) == related)
  }
}
