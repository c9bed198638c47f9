import Foundation
import GRDB
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("The numbers of a salvage, and the words for them")
struct RecoveryCountTests {
  private func count(
    _ recovered: Int64, _ reasons: [DoubtReason: Int64] = [:], lost: Int64 = 0,
    basis: SalvageReport.Entity.Basis = .none, isComplete: Bool = false
  ) -> RecoveryCount {
    var count = RecoveryCount(isComplete: isComplete)
    count.add(
      recovered: recovered, doubtful: reasons.values.reduce(0, +), reasons: reasons, lost: lost,
      isExact: basis != .estimate, basis: basis)
    return count
  }

  @Test("The headline has the numbers, the share, and why records are doubtful")
  func headline() {
    let told = count(49_432, [.columnOrder: 40_439], lost: 5_337, basis: .kit)
    #expect(
      told.words
        == "Recovered 49,432 of 54,769 records (90 %), 40,439 of them doubtful because the definition of their "
        + "table is lost and nothing tells some of its columns apart. 5,337 records are lost, counted by a recovery kit."
    )
    #expect(
      count(334, lost: 3, basis: .index).words.hasPrefix("Recovered 334 of 337 records (99.1 %). 3 records are lost,"))
    #expect(count(0, lost: 1, basis: .cells).words.hasPrefix("Recovered 0 of 1 record (0 %). 1 record is lost,"))
    #expect(count(7).words == "Recovered 7 of 7 records (100 %).")
    #expect(count(0).words == "No records were recovered.")
  }

  @Test("Only what is whole is called whole")
  func whole() {
    #expect(count(1_337, isComplete: true).words == "All 1,337 records were recovered.")
    #expect(count(1, isComplete: true).words == "The one record that it held was recovered.")
    #expect(count(0, isComplete: true).words == "It held no records.")
    // 99.99 % is not all.
    #expect(count(99_999, lost: 1, basis: .cells).percent == 99)
    for part in 0...100 { #expect(count(Int64(part), lost: Int64(100 - part), basis: .cells).percent == part) }
    #expect(count(99_999, lost: 1, basis: .cells).share == "99.9 %")
  }

  @Test("Rows that fit no table are of the whole that the share is told of")
  func unplaced() {
    var told = count(200, lost: 10, basis: .index)
    told.unplaced = 190
    #expect(told.percent == 50)
    #expect(
      told.words
        == "Recovered 200 of 400 records (50 %). 10 records are lost, counted by an index. "
        + "190 rows besides fit no table that is known.")
  }

  /// Keys are kept in memory up to some thousand ranges; then the new tables are asked.
  @Test("Lost rows are counted by an index, however far apart their keys are", arguments: [1, 40_000, -40_000])
  func keys(step: Int) throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 512",
      schema: "CREATE TABLE notes (id INTEGER PRIMARY KEY, place INTEGER, text TEXT); CREATE INDEX p ON notes (place)"
    ) { db in
      for number in 1...6000 {
        try db.execute(
          sql: "INSERT INTO notes VALUES (?, ?, ?)",
          arguments: [number * step, number * 7919 % 6007, String(repeating: "word ", count: 5)])
      }
    }
    let inner = Set(try scene.innerPages(of: "notes"))
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    let leaves = try inner.flatMap { page in
      try database.bTreePage(page)?.children.compactMap(\.self).filter { !inner.contains($0) } ?? []
    }.sorted()
    let damaged = scene.overwriting([leaves[20], leaves[21], leaves[300]])
    let raw = try damaged.salvage()
    let lost = scene.missingRows(raw)
    #expect(lost > 10 && scene.falseRows(raw) == 0)
    let place = try TemporaryFolder()
    let path = try place.write(damaged.main, to: "Store.sqlite")
    let rebuilt = try Salvager().salvage(
      path, to: place.appending("Out.sqlite"), model: .sqlite(try SchemaScript(scene.schema)))
    for report in [raw.report, rebuilt] {
      let notes = try #require(report.entities.first { $0.name == "notes" })
      #expect(notes.lost == Int64(lost) && notes.lostBasis == .index)
      #expect(notes.recovered == Int64(6000 - lost))
    }
  }

  @Test("Records without some of their values are no whole recovery")
  func withoutValues() {
    var told = count(7)
    told.valuesSetAside = 1_204
    #expect(
      told.words == "Recovered 7 records. 1,204 values that have no column were set aside.")
    #expect(told.percent == 99 && told.share == "not all")
    told = count(90, lost: 10, basis: .index)
    told.valuesSetAside = 1
    #expect(told.share == "90 %" && told.percent == 90)
    #expect(told.words.hasSuffix("counted by an index. 1 value that has no column was set aside."))
  }

  @Test("What a migration left out of recovered records is no whole recovery")
  func leftOut() {
    var told = count(7)
    told.leaveOut(1_204, isValues: true)
    told.leaveOut(nil, isValues: true)
    #expect(
      told.words
        == "Recovered 7 records. The migration to the app's version left out 1,204 values of what was recovered."
    )
    told.leaveOut(1, isValues: false)
    #expect(told.words.hasSuffix("left out 1 record and 1,204 values of what was recovered."))
    #expect(told.percent == 99 && told.share == "not all")
    told.leaveOut(.max, isValues: true)
    told.leaveOut(-1, isValues: false)
    #expect(told.valuesLeftOut == .max && told.recordsLeftOut == 1)
  }

  @Test("An unknown number is called so, and what is known is a bound")
  func unknown() {
    let alone = count(0, basis: .unknown)
    #expect(alone.lostNumber == "unknown" && alone.isEstimate)
    #expect(alone.headline == "No records were recovered")
    #expect(alone.percent == nil && alone.share == "unknown" && count(0, isComplete: true).percent == 100)
    var sum = count(90, lost: 10, basis: .index)
    sum.add(recovered: 0, doubtful: 0, reasons: [:], lost: 0, isExact: false, basis: .unknown)
    #expect(sum.headline == "Recovered 90 of at least 100 records (at most 90 %)")
    #expect(sum.lostNumber == "at least 10" && sum.share == "at most 90 %")
    #expect(sum.percent == nil, "it is a bound, and no share that is known")
    #expect(
      sum.lossWords?.hasPrefix("10 records are lost, counted by an index. Nothing tells how many records a table held")
        == true)
    sum.add(recovered: 0, doubtful: 0, reasons: [:], lost: 100, isExact: false, basis: .estimate)
    #expect(sum.headline == "Recovered 90 of about 200 records (45 %)")
    #expect(sum.lossWords?.contains("an unknown number more may be lost") == true)
  }

  @Test("Where nothing tells what is lost, no share is told")
  func shareUnknown() {
    var sum = count(99)
    sum.add(recovered: 0, doubtful: 0, reasons: [:], lost: 0, isExact: false, basis: .unknown)
    #expect(sum.percent == nil && sum.share == "unknown" && sum.isEstimate)
    #expect(sum.headline == "Recovered 99 of at least 99 records (share unknown)")
    #expect(!sum.words.contains("100 %"))
    // What others refer to is lost at least.
    sum.add(recovered: 1, doubtful: 0, reasons: [:], lost: 25, isExact: false, basis: .unknown)
    #expect(sum.headline == "Recovered 100 of at least 125 records (at most 80 %)" && sum.lostNumber == "at least 25")
    #expect(sum.lossWords?.hasPrefix("25 records are lost, counted by what refers to them. Nothing tells") == true)
  }

  @Test("Records that were set aside are some of those that the store held")
  func setAside() {
    var told = RecoveryCount(isComplete: false)
    told.add(recovered: 90, doubtful: 4, reasons: [.invalidText: 4], setAside: 6, lost: 4, isExact: true, basis: .index)
    #expect(told.total == 100 && told.percent == 90 && told.setAside == 6)
    #expect(told.headline.hasPrefix("Recovered 90 of 100 records (90 %), 4 of them doubtful"))
    #expect(told.words.hasSuffix("4 records are lost, counted by an index. 6 records were set aside."))
    told = RecoveryCount(isComplete: false)
    told.add(recovered: 99_999, doubtful: 0, reasons: [:], setAside: 1, lost: 0, isExact: true, basis: nil)
    #expect(told.percent == 99 && told.words == "Recovered 99,999 of 100,000 records (99.9 %). 1 record was set aside.")
  }

  @Test("Pairs of many-to-many relationships have numbers of their own, and lost ones are no whole recovery")
  func pairs() {
    var told = count(99)
    #expect(told.pairs.isWhole && told.pairs.known == nil && told.pairs.words == nil)
    told.pairs.add(recovered: 40, setAside: 0, lost: 0, isExact: true, isUnknown: false)
    #expect(told.words == "Recovered 99 of 99 records (100 %)." && told.pairs.isWhole)
    told.pairs.add(recovered: 0, setAside: 0, lost: 12, isExact: true, isUnknown: false)
    #expect(told.percent == 99 && told.total == 99)
    #expect(
      told.words
        == "Recovered 99 records. 12 of 52 pairs of many-to-many relationships are lost.")
    told.pairs.add(recovered: 0, setAside: 3, lost: 5, isExact: false, isUnknown: false)
    #expect(told.pairs.words?.hasPrefix("About 17 of about 60 pairs ") == true && !told.pairs.isLostExact)
    #expect(told.pairs.words?.contains("3 pairs of many-to-many relationships of which a record is not there") == true)
    told = count(99)
    told.pairs.add(recovered: 0, setAside: 0, lost: 0, isExact: false, isUnknown: true)
    #expect(told.percent == nil && !told.pairs.isWhole && !told.words.contains("100 %"))
    #expect(told.pairs.words == "An unknown number of pairs of many-to-many relationships may be lost.")
  }

  @Test("An estimate says about, and what it stands on")
  func estimate() {
    let told = count(300, lost: 40, basis: .estimate)
    #expect(told.headline == "Recovered 300 of about 340 records (88 %)")
    #expect(told.lossWords?.hasPrefix("About 40 records are lost, estimated by ") == true)
    #expect(told.lostNumber == "about 40" && told.share == "about 88 %")
    // One estimate makes the sum one, and an entity that has lost nothing makes no estimate.
    var sum = count(10, lost: 2, basis: .kit)
    sum.add(recovered: 5, doubtful: 0, reasons: [:], lost: 0, isExact: false, basis: .estimate)
    #expect(!sum.isEstimate && sum.lostNumber == "2")
    sum.add(recovered: 5, doubtful: 0, reasons: [:], lost: 1, isExact: false, basis: .estimate)
    #expect(sum.isEstimate && sum.total == 23)
  }

  @Test("Several reasons are told, that of most records first; one that was not noted is not made up")
  func reasons() {
    let told = count(100, [.invalidText: 1, .foundByContent: 7])
    #expect(told.doubtful == 8)
    #expect(told.reasonsByCount == [.foundByContent, .invalidText])
    #expect(told.doubtWords?.hasPrefix("8 of them doubtful because what led to them is destroyed") == true)
    #expect(told.doubtWords?.contains(", or because their text is not valid") == true)
    #expect(count(100, [.notNoted: 3]).doubtWords == "3 of them doubtful")
    #expect(DoubtReason.counts(["free-space": 2, "of-a-later-version": 5], of: 8) == [.freeSpace: 2, .notNoted: 6])
    #expect(DoubtReason.counts(nil, of: 0) == [:])
    #expect(DoubtReason.counts(["free-space": 9], of: 4) == [.notNoted: 4], "more than there are is not believed")
    for reason in DoubtReason.allCases {
      #expect(reason.rawValue.allSatisfy { $0.isLowercase || $0 == "-" })
      #expect(!reason.words.isEmpty && !reason.words.hasSuffix("."))
    }
  }

  @Test("Numbers of a hostile report do no harm")
  func hostile() {
    var sum = count(.max, lost: .max, basis: .kit)
    sum.add(recovered: .max, doubtful: .min, reasons: [.freeSpace: .max], lost: .max, isExact: true, basis: .kit)
    #expect(sum.recovered == .max && sum.lost == .max && sum.total == .max && sum.doubtful == 0)
    #expect(sum.percent ?? 101 <= 100 && !sum.words.isEmpty)
  }

  // MARK: Against stores

  @Test(
    "Recovered are the records that are in the salvaged store, entity by entity, and doubtful is no more",
    arguments: ["zero:20", "bitflip:400", "torn:30", "rand:10"], [UInt64(1), 2])
  func recoveredIsThere(kind: String, seed: UInt64) throws {
    let scene = try RebuildScene(seed: seed)
    let result = try scene.rebuild(scene.damaged(kind, seed: seed))
    let queue = try DatabaseQueue(path: result.store.string)
    try queue.read { database in
      for (entity, table) in [
        ("Ship", "ZSHIP"), ("Ferry", "ZSHIP"), ("Person", "ZPERSON"), ("Port", "ZPORT"), ("Flag", "ZFLAG"),
      ] {
        let there = try Int64.fetchOne(
          database,
          sql: "SELECT count(*) FROM \(table) WHERE Z_ENT = (SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME = ?)",
          arguments: [entity])
        let account = try #require(result.report.records.first { $0.name == entity })
        #expect(account.recovered == there, "\(entity), \(kind), seed \(seed)")
        #expect(account.doubtful <= account.recovered, "\(entity), \(kind), seed \(seed)")
      }
    }
    try queue.close()
    let sum = result.report.records.reduce(Int64(0)) { $0 + $1.recovered }
    #expect(result.report.recovered == sum && result.report.count.recovered == sum)
    #expect(!result.report.records.contains { $0.table.hasPrefix("Z_") })
    #expect(result.report.ownTables.contains { $0.table == "Z_PRIMARYKEY" })
    let json = try #require(
      try JSONSerialization.jsonObject(with: JSONEncoder().encode(result.report)) as? [String: Any])
    let summary = try #require(json["summary"] as? [String: Any])
    #expect(summary["recovered"] as? Int64 == sum)
    #expect(summary["words"] as? String == result.report.count.words)
  }

  @Test("A table that never held a row loses none, though its page is destroyed")
  func empty() throws {
    let model = ManagedObjectModel(
      entities: ["Note", "Unused"].map { name in
        Entity(
          name: name,
          properties: [
            .attribute(Attribute(traits: PropertyTraits(name: "title", isOptional: true), type: .string))
          ])
      })
    let image = try StoreCreation(
      model: model, uuid: "6D7E5C0A-9E1B-4A55-8C11-0123456789AC", modelCache: try model.modelCache()
    ).bytes()
    let folder = try TemporaryFolder()
    let store = try folder.write(image, to: "Notes.sqlite")
    let queue = try DatabaseQueue(path: store.string)
    let root: Int = try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
          INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTITLE) SELECT i, 1, 1, 'title ' || i FROM n;
          UPDATE Z_PRIMARYKEY SET Z_MAX = 200 WHERE Z_NAME = 'Note';
          PRAGMA wal_checkpoint(TRUNCATE)
          """)
      return try #require(
        try Int.fetchOne(database, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'ZUNUSED'"))
    }
    try queue.close()
    var bytes = try FileSystem().contents(of: store, limit: 1 << 24)
    let pageSize = Int(bytes[16]) << 8 | Int(bytes[17])
    for offset in 0..<pageSize { bytes[(root - 1) * pageSize + offset] = 0 }
    let damaged = try folder.write(bytes, to: "Damaged.sqlite")
    for known in [true, false] {
      let bundle = try #require(
        ModelBundle(name: "Notes", versions: [ModelVersion(name: "V1", model: model, isCurrent: true)]))
      let report = try Salvager().salvageRaw(
        damaged, to: folder.appending("Out\(known).sqlite"), model: known ? .coreData(bundle) : nil)
      let unused = try #require(report.entities.first { $0.table == "ZUNUSED" })
      #expect(unused.recovered == 0 && unused.lost == 0 && unused.isLostExact, "\(unused)")
      #expect(report.recovered == 200 && report.lost == 0)
    }
  }
}
