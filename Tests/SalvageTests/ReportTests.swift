import Foundation
import GRDB
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("The report of a salvage")
struct ReportTests {
  @Test("It is the same after it was written and read, whatever is in it")
  func coding() throws {
    let scene = try RebuildScene(seed: 4)
    let result = try scene.rebuild(scene.damaged("zero:10", seed: 2))
    let path = try result.report.write(beside: result.store)
    #expect(path.lastComponent?.string == "Out.salvage.json")
    #expect(try SalvageReport.read(path) == result.report)
    let text = String(decoding: try FileSystem().contents(of: path, limit: 1 << 22), as: UTF8.self)
    #expect(text.contains("\"complete\" : false"))
    #expect(text.contains("\"incompleteBecause\""))
    #expect(text.contains("\"format\" : 1"))
    let later = text.replacingOccurrences(of: "\"format\" : 1", with: "\"format\" : 99")
    let changed = try result.folder.write(Array(later.utf8), to: "Later.json")
    #expect(throws: SalvageError.self) { try SalvageReport.read(changed) }
  }

  @Test(
    "It names the same lost keys whether the rows go into a store or stay as found",
    arguments: [("zero:4", UInt64(1)...6), ("bitflip:400", 3...3)])
  func lostKeys(kind: String, seeds: ClosedRange<UInt64>) throws {
    var hasKeys = false
    for seed in seeds {
      let scene = try RebuildScene(seed: 6)
      let damaged = try scene.damaged(kind, seed: seed)
      let folder = try TemporaryFolder()
      let raw = try Salvager().salvageRaw(damaged, to: folder.appending("Raw.sqlite"))
      let rebuilt = try Salvager().salvage(damaged, to: folder.appending("Out.sqlite"), options: .init(migrates: false))
      if raw.entities.contains(where: { $0.lostKeysKnown > 0 }) { hasKeys = true }
      for entity in raw.entities {
        let other = rebuilt.entities.first { $0.name == entity.name && $0.table == entity.table }
        #expect(other?.lostKeys == entity.lostKeys, "\(entity.table)")
        // References of the new store may lead to more records than lost pages are taken to have held.
        let (found, told) = (entity.lost, other?.lost ?? 0)
        #expect(told == found || told > found && !entity.isLostExact, "\(entity.table): \(found), \(told)")
      }
    }
    // Flipped bits lie in indexes too, which then name no keys.
    #expect(hasKeys || kind != "zero:4", "lost pages leave lost keys to be named")
  }

  @Test("The name of the report follows that of the result")
  func names() {
    func name(_ text: FilePath) -> String { SalvageReport.path(beside: text).string }
    #expect(name("a/Rescued.sqlite") == "a/Rescued.salvage.json")
    #expect(name("a/2026-11-21-10-11-12.salvaged.sqlite") == "a/2026-11-21-10-11-12.salvage.json")
    #expect(name("Rescued") == "./Rescued.salvage.json")
    #expect(name("a/.sqlite") == "a/.sqlite.salvage.json")
  }

  @Test("Each entity of a hierarchy has its own account, and the accounts add up", arguments: [UInt64(1), 2, 3])
  func hierarchy(seed: UInt64) throws {
    let scene = try RebuildScene(seed: seed, records: 600)
    let whole = try Salvager().salvageRaw(
      scene.store, to: scene.folder.appending("Whole-\(seed).sqlite"), model: .coreData(scene.bundle))
    let report = try Salvager().salvageRaw(
      scene.damaged("zero:15", seed: seed), to: scene.folder.appending("Raw-\(seed).sqlite"),
      model: .coreData(scene.bundle))
    for name in ["Ship", "Ferry"] {
      let account = try #require(report.entities.first { $0.name == name })
      let truth = try #require(whole.entities.first { $0.name == name })
      #expect(account.recovered <= truth.recovered)
      // An estimate is allowed to be wrong, but not wildly.
      let really = truth.recovered - account.recovered
      #expect(abs(account.lost - really) <= max(12, really), "\(name) \(account.lost), really \(really), seed \(seed)")
      if account.lost > 0 { #expect(!account.isLostExact) }
    }
    let lost = report.lost
    let really = whole.recovered - report.recovered
    #expect(abs(lost - really) <= max(30, really / 2), "\(lost), really \(really), seed \(seed)")
    #expect(report.score < 100)
    #expect(report.score > 40)
  }

  @Test("A table whose end is gone is missed, by the highest key that was noted or by the pages that are lost")
  func tail() throws {
    for isNoted in [true, false] {
      let scene = try SalvageScene(
        seed: 6, finish: isNoted ? ["UPDATE Z_PRIMARYKEY SET Z_MAX = 1500 WHERE Z_NAME = 'Book'"] : [])
      let result = try scene.changing { $0.main.removeLast($0.main.count / 3) }.salvage()
      let books = try #require(result.report.entities.first { $0.name == "Book" })
      let really = 1500 - books.recovered
      #expect(really > 100)
      if isNoted {
        let likely = books.lostKeysEstimated
        #expect(likely.ranges.last?.upperBound == 1500)
        #expect(!books.areLostKeysComplete && likely.intersection(books.lostKeys).isEmpty)
        let found = try #require(result.rows["ZBOOK"]).compactMap { Int64.fromDatabaseValue($0[0]) }
        #expect(!found.isEmpty && !found.contains { likely.contains($0) })
      }
      let slack = isNoted ? really / 5 : really / 2 + 20
      #expect(abs(books.lost - really) <= slack, "\(books.lost), really \(really), noted: \(isNoted)")
    }
  }

  @Test("The maps of pages can be read back, run by run")
  func maps() throws {
    let scene = try SalvageScene(seed: 8)
    var random = SeededGenerator(seed: 8)
    let hit = scene.somePages(0.1, &random)
    let pages = try scene.overwriting(hit) { 0 }.salvage().report.pages
    #expect(pages.mapped == pages.total)
    let runs = pages.runs
    #expect(runs.first?.pages.lowerBound == 1)
    #expect(runs.last?.pages.upperBound == UInt32(pages.total))
    for (one, next) in zip(runs, runs.dropFirst()) { #expect(one.pages.upperBound + 1 == next.pages.lowerBound) }
    for (state, count) in pages.counts {
      #expect(runs.filter { $0.state == state }.reduce(0) { $0 + $1.pages.count } == count)
    }
    for page in hit {
      let run = try #require(runs.first { $0.pages.contains(page) })
      #expect([.unreadable, .free].contains(run.state), "page \(page): \(run.state)")
    }
    let book = try #require(pages.owners.firstIndex { $0.name == "ZBOOK" && !$0.isIndex })
    let root = try #require(try scene.roots().first)
    if !hit.contains(root) { #expect(runs.first { $0.pages.contains(root) }?.owner == book) }
    var broken = pages
    broken.ownerMap = "99999:4,x:2"
    #expect(broken.runs.isEmpty)
  }

  @Test("An index that is whole tells which rows are lost")
  func index() throws {
    let scene = try RebuildScene(seed: 11, records: 500)
    let report = try Salvager().salvageRaw(
      scene.damaged("zero:12", seed: 3), to: scene.folder.appending("Raw.sqlite"), model: .coreData(scene.bundle))
    for entity in report.entities where entity.lostBasis == .index {
      #expect(entity.lostKeys.count == entity.lost, "\(entity.name)")
      #expect(entity.isLostExact)
    }
  }
}
