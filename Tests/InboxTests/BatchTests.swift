import Foundation
import Inbox
import Lazaret
import ManagedObjectModel
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Bundles of a damage that are salvaged again together.
@Suite("The batches of the inbox")
struct BatchTests {
  private func time(_ seconds: Int64) -> Timestamp { Timestamp(secondsSince1970: 1_000_000 + seconds) }

  /// A count of a few entities: recovered, doubtful and lost of each.
  private func count(
    _ library: String?, _ entities: [String: (Int64, Int64, Int64)], isUsable: Bool = true
  ) -> SalvageCount {
    let accounts = entities.sorted { $0.key < $1.key }.map { name, numbers in
      Receipt.Salvage.Entity(
        name: name, table: "Z\(name)", recovered: numbers.0, doubtful: numbers.1, lost: numbers.2, lostIsExact: true)
    }
    return SalvageCount(
      Receipt.Salvage.Result(
        name: PathText(FilePath("a")), report: PathText(FilePath("b")), setAside: nil, date: time(0), bytes: 1,
        sha256: "", version: nil, isUsable: isUsable, isComplete: false, score: nil, entities: accounts,
        evidence: library.map { .init(kit: nil, backup: nil, deleted: false, library: $0) }))
  }

  @Test func whatWasSetAsideIsKept() throws {
    let result = Receipt.Salvage.Result(
      name: PathText(FilePath("a")), report: PathText(FilePath("b")), setAside: nil, date: time(0), bytes: 1,
      sha256: "",
      version: nil, isUsable: true, isComplete: false, score: nil,
      entities: [
        .init(name: "Car", table: "ZCAR", recovered: 8, doubtful: 0, setAside: 2, lost: 0, lostIsExact: true)
      ],
      pairs: [
        .init(name: "Z_1TAGS", table: "Z_1TAGS", recovered: 3, doubtful: 0, setAside: 1, lost: 4, lostIsExact: true)
      ],
      unplacedRows: 41)
    let told = RecoveryCount(result)
    #expect(told.unplaced == 41 && told.words.hasSuffix("41 rows besides fit no table that is known."))
    let count = SalvageCount(result)
    #expect(count.entities.map(\.setAside) == [2] && count.pairs?.map(\.lost) == [4])
    #expect(count.pairs?.map(\.setAside) == [1] && count.unplacedRows == 41)
    let data = try JSONEncoder().encode(count)
    #expect(try JSONDecoder().decode(SalvageCount.self, from: data) == count)
    let old = Data(#"{"entities":[{"name":"Car","recovered":8,"doubtful":0,"lost":0}],"isUsable":true}"#.utf8)
    let earlier = try JSONDecoder().decode(SalvageCount.self, from: old)
    #expect(earlier.recovered == 8 && earlier.pairs == nil && earlier.unplacedRows == nil)
    #expect(earlier.entities.map(\.setAside) == [nil])
  }

  @Test func whatIsBetterAndWhatIsWorse() {
    let base = count("1", ["Car": (10, 2, 5), "Owner": (4, 0, 0)])
    func change(_ entities: [String: (Int64, Int64, Int64)], isUsable: Bool = true) -> SalvageChange {
      SalvageChange(from: base, to: count("2", entities, isUsable: isUsable))
    }
    #expect(SalvageChange(from: nil, to: base) == .first)
    #expect(change(["Car": (10, 2, 5), "Owner": (4, 0, 0)]) == .same)
    #expect(change(["Car": (11, 2, 4), "Owner": (4, 0, 0)]) == .better)
    #expect(change(["Car": (10, 1, 5), "Owner": (4, 0, 0)]) == .better)
    #expect(change(["Car": (12, 4, 3), "Owner": (4, 0, 0)]) == .better)
    #expect(change(["Car": (10, 2, 4), "Owner": (4, 0, 0)]) == .better)
    #expect(change(["Car": (10, 3, 5), "Owner": (4, 0, 0)]) == .worse)
    #expect(change(["Car": (15, 2, 0)]) == .mixed)
    #expect(change(["Car": (10, 2, 5)]) == .worse)
    #expect(change(["Car": (99, 0, 0), "Owner": (4, 0, 0)], isUsable: false) == .worse)
    // One that lost every record is worse, usable or not; one that is usable now is better only where no certain record is lost.
    #expect(change([:]) == .worse)
    let unusable = count("1", ["Car": (10, 2, 5), "Owner": (4, 0, 0)], isUsable: false)
    #expect(SalvageChange(from: unusable, to: count("2", [:])) == .worse)
    #expect(SalvageChange(from: unusable, to: count("2", ["Car": (0, 0, 15), "Owner": (0, 0, 4)])) == .worse)
    #expect(SalvageChange(from: unusable, to: base) == .better)
    #expect(SalvageChange(from: unusable, to: count("2", ["Car": (99, 0, 0)])) == .mixed)
    #expect(SalvageChange(from: unusable, to: count("2", ["Car": (9, 2, 5), "Owner": (4, 0, 0)])) == .mixed)
    let empty = count("1", [:], isUsable: false)
    #expect(SalvageChange(from: empty, to: count("2", [:])) == .better)
    // Numbers of a worker that was taken over are bounded.
    #expect(count(nil, ["A": (.max, -1, .max)]).recovered == 1 << 40)
    #expect(count(nil, ["A": (.max, .max, .max), "B": (.max, .max, .max)]).lost == 1 << 40)
  }

  @Test(arguments: RecordsKind.available) func aBatchTakesWhatAnEarlierVersionSalvaged(_ kind: RecordsKind) throws {
    let folder = try TemporaryFolder()
    let (records, queue) = try kind.open(folder)
    try records.add(InboxSender(name: "me", quota: 1 << 40, created: time(0)), tokenSum: [1])
    let fingerprint = DamageFingerprint(InboxDesk.facts())
    func receive(_ number: Int, _ state: InboxBundle.State = .quarantined) throws -> String {
      let id = "\(UniversalIdentifier.random())".lowercased()
      let upload = InboxUpload(id: id, sender: "me", length: 1, created: time(0), expires: time(100))
      _ = try records.admit(upload, quota: 1 << 40, limits: InboxLimits(openUploads: 1000))
      var bundle = try records.makeBundle(
        InboxBundle(
          id: id, sender: "me", date: time(Int64(number)), sha256: id, bytes: 1, fileName: nil, level: nil,
          isEncrypted: false),
        of: id)
      bundle.state = state
      bundle.fingerprint = fingerprint
      try records.save(bundle)
      return id
    }
    let bundles = try (0..<6).map { try receive($0) }
    _ = try receive(6, .unpacked)
    try records.note(
      InboxSighting(bundle: bundles[0], store: "s", fingerprint: fingerprint, appVersion: nil, date: time(0).rfc3339))
    let group = fingerprint.group
    let old = count("0.9", ["Car": (10, 2, 5)])
    // Salvaged by an earlier version, by this one, by a later one, and before that was noted.
    try records.noteSalvage(of: bundles[0], before: nil, after: old)
    try records.noteSalvage(of: bundles[1], before: old, after: count("0.10", ["Car": (10, 2, 5)]))
    try records.noteSalvage(of: bundles[2], before: old, after: count("0.11", ["Car": (10, 2, 5)]))
    try queue.add(.salvage, forEach: bundles, at: time(1))
    var jobs: [InboxJob] = []
    while let job = try queue.lease(by: "me", for: 1000, at: time(1)) { jobs.append(job) }
    for job in jobs where job.bundle != bundles[5] { _ = try queue.end(job, .done, at: time(2)) }
    #expect(try records.salvagedEarlier(of: group, than: "0.10") == 4)
    #expect(try records.beginBatch(of: "none", version: "0.10", at: time(3)) == nil)
    let batch = try #require(try records.beginBatch(of: group, version: "0.10", at: time(3)))
    #expect(batch.total == 4 && batch.remaining == 4 && batch.done == 0 && !batch.isOver && batch.group == group)
    #expect(throws: InboxError.self) { try records.beginBatch(of: group, version: "0.10", at: time(3)) }
    #expect(try queue.counts()[.waiting] == 3 && queue.counts()[.running] == 1)
    let items = try records.items(of: batch.number, change: nil, after: nil, limit: 10)
    #expect(items.map(\.bundle) == [0, 3, 4, 5].map { bundles[$0] }.sorted() && items.allSatisfy { $0.change == nil })

    // One gets better, one worse, one fails, one is removed.
    let (better, worse) = (count("0.10", ["Car": (12, 2, 3)]), count("0.10", ["Car": (9, 2, 6)]))
    // A worker of an earlier version, or of one that is not known, is no result of this batch.
    try records.noteSalvage(of: bundles[0], before: nil, after: old)
    try records.noteSalvage(of: bundles[0], before: nil, after: count(nil, ["Car": (99, 0, 0)]))
    #expect(try records.batch(batch.number)?.done == 0)
    try records.noteSalvage(of: bundles[0], before: old, after: better)
    // Done again after a kill: what was noted first stays.
    try records.noteSalvage(of: bundles[0], before: better, after: better)
    try records.noteSalvage(of: bundles[3], before: old, after: worse)
    while let job = try queue.lease(by: "me", for: 1000, at: time(4)) {
      let outcome: InboxJobOutcome =
        job.bundle == bundles[4] ? .failed(.init(code: "x", words: "It failed.")) : .done
      _ = try queue.end(job, outcome, at: time(5))
    }
    try records.remove(bundles[5])
    try queue.remove(of: bundles[5])
    let now = try #require(try kind.open(folder).records.batch(batch.number))
    #expect(now.isOver && now.changes == [.better: 1, .worse: 1] && now.failed == 1 && now.unknown == 1)
    #expect([now.before, now.after].map(\.recovered) == [20, 21])
    #expect([now.before, now.after].map(\.doubtful) == [4, 4] && [now.before, now.after].map(\.lost) == [10, 9])
    let found = try records.items(of: batch.number, change: .worse, after: nil, limit: 10)
    #expect(found.map(\.bundle) == [bundles[3]] && found.first?.before == old && found.first?.after == worse)
    let sorted = items.map(\.bundle)
    #expect(
      try records.items(of: batch.number, change: nil, after: sorted[1], limit: 1).map(\.bundle) == [sorted[2]])
    // The one that failed is taken again.
    #expect(try records.salvagedEarlier(of: group, than: "0.10") == 1)
    let second = try #require(try records.beginBatch(of: group, version: "0.10", at: time(9)))
    #expect(second.total == 1 && second.number > batch.number)
    #expect(try records.batches(of: group, after: nil, limit: 5).map(\.number) == [second.number, batch.number])
    #expect(try records.batches(of: nil, after: second.number, limit: 5).map(\.number) == [batch.number])
    #expect(try records.batches(of: "none", after: nil, limit: 5).isEmpty && records.batch(99) == nil)
  }

  @Test func storesAreSalvagedAgainAndCompared() throws {
    let desk = try InboxDesk()
    let ids = try (0..<2).map { number in
      try desk.send(
        try desk.bundle([
          ("facts.json", try InboxDesk.json(InboxDesk.facts())),
          ("store/App.sqlite", try BundleWorkTests().damagedStore(UInt64(3 + number))),
        ]))
    }
    let pool = desk.pool()
    try desk.work(pool)
    let group = try #require(try desk.inbox.records.bundle(ids[0])?.fingerprint?.group)
    // All of them are of this version.
    #expect(try desk.inbox.salvageAgain(group) == nil)
    // As an earlier version had left one that found less.
    var recovered: Int64 = 0
    let id = try #require(try desk.inbox.records.bundle(ids[0])?.quarantineID)
    let folder = desk.folders.bundle(ids[0]).appending(QuarantineFolder.name)
    try QuarantineFolder(folder, surroundings: .machine).update(id) { receipt in
      recovered = receipt.salvage?.result?.entities.reduce(0) { $0 + $1.recovered } ?? 0
      receipt.salvage?.result?.evidence?.library = "0.0.1"
      receipt.salvage?.result?.entities[0].recovered -= 5
      receipt.salvage?.result?.entities[0].lost += 5
    }
    try desk.inbox.records.noteSalvage(of: ids[0], before: nil, after: count("0.0.1", [:]))
    let batch = try #require(try desk.inbox.salvageAgain(group))
    #expect(batch.total == 1 && batch.remaining == 1)
    try desk.work(pool)
    let now = try #require(try desk.inbox.records.batch(batch.number))
    #expect(now.isOver && now.changes == [.better: 1], "\(now)")
    #expect(recovered > 5 && now.before.recovered == recovered - 5 && now.after.recovered == recovered)
    let item = try #require(try desk.inbox.records.items(of: batch.number, change: nil, after: nil, limit: 5).first)
    #expect(item.before?.library == "0.0.1" && item.after?.library == LibraryVersion.current)
    #expect(try desk.inbox.salvageAgain(group) == nil)
  }
}
