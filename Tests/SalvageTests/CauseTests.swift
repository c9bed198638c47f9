import Foundation
import LazaretTesting
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("What happened to a store")
struct CauseTests {
  /// The report on a damaged copy.
  private func report(_ kinds: [String], seed: UInt64, of store: FilePath, model: SalvageModel?) throws -> SalvageReport
  {
    let folder = try TemporaryFolder()
    let copy = folder.appending("Damaged.sqlite")
    _ = try DamagedCopy.make(of: store, at: copy, kinds: kinds.map { try DamageKind($0) }, seed: seed)
    return try Salvager().salvageRaw(copy, to: folder.appending("Out.sqlite"), model: model)
  }

  static let kinds: [(String, DamageCause.Code)] = [
    ("zero:5", .zeroedPages), ("rand:5", .randomPages), ("trunc:20", .truncated), ("header:zero", .headerDestroyed),
    ("header:rand", .headerDestroyed), ("page1:zero", .zeroedPages), ("page1:rand", .randomPages),
    ("page1:stale", .staleFirstPage), ("roots", .randomPages), ("interior", .randomPages), ("swap:6", .misplacedPages),
    ("torn:5", .tornSectors), ("torn1", .tornSectors), ("freelist", .freelistDamaged), ("stale:5", .pageCopies),
    ("cell-pointers:10", .lostCellPointers), ("pointer-maps", .pointerMapsDamaged),
    ("page-count", .headerContradicted), ("page-size", .headerContradicted), ("encoding", .headerContradicted),
    ("text", .overwritten), ("prefix:10000", .embedded), ("embed:8192", .embedded),
  ]

  @Test("The kind of damage is the cause that is told", arguments: kinds, [UInt64(1), 2])
  func pages(kind: (String, DamageCause.Code), seed: UInt64) throws {
    let scene = try RebuildScene(seed: 5, records: 600)
    let report = try report([kind.0], seed: seed, of: scene.store, model: .coreData(scene.bundle))
    let codes = report.causes.map(\.code.rawValue)
    #expect(codes.contains(kind.1.rawValue), "\(kind.0), seed \(seed): \(codes)")
    #expect(report.causes.allSatisfy { !$0.words.isEmpty && $0.words.hasSuffix(".") })
  }

  @Test(
    "What is done to a log is told",
    arguments: [
      ("wal-badsum", DamageCause.Code.logFrameDamaged), ("wal-header", .logHeaderDestroyed), ("wal-tail", .logCutOff),
      ("wal-foreign", .foreignLog),
    ])
  func log(kind: (String, DamageCause.Code)) throws {
    var finish: [String] = []
    for index in 1...12 { finish.append("UPDATE ZBOOK SET ZTITLE = 'x\(index)' WHERE Z_PK % 12 = \(index - 1)") }
    let scene = try SalvageScene(seed: 3, finish: finish, keepsLog: true)
    let place = try TemporaryFolder()
    let store = try place.write(scene.main, to: "Store.sqlite")
    try place.write(try #require(scene.log), to: "Store.sqlite-wal")
    let sound = try Salvager().salvageRaw(store, to: place.appending("Sound.sqlite"))
    #expect(sound.causes.isEmpty, "\(sound.causes.map(\.code))")
    let report = try report([kind.0], seed: 4, of: store, model: nil)
    let cause = try #require(report.causes.first { $0.code == kind.1 }, "\(report.causes.map(\.code))")
    #expect(cause.part == .wal)
  }

  @Test("Nothing is told of a store that is sound", arguments: [UInt64(1), 2])
  func sound(seed: UInt64) throws {
    for journal in [0, 1] {
      let scene = try RebuildScene(seed: seed, journal: journal == 0 ? .none : .log)
      let report = try report(["none"], seed: 1, of: scene.store, model: .coreData(scene.bundle))
      #expect(report.causes == [])
      #expect(report.isComplete)
      #expect(report.score == 100)
    }
    let scene = try SalvageScene(seed: seed)
    #expect(try scene.salvage().report.causes == [])
    let deleting = try SalvageScene(
      seed: seed, finish: ["DELETE FROM ZBOOK WHERE Z_PK BETWEEN 100 AND 700", "DELETE FROM WORDS WHERE USES < 90"])
    #expect(try deleting.salvage().report.causes == [])
  }

  @Test("What is missing from the end is told in bytes where it is less than a page", arguments: [1, 700, 4096, 5000])
  func end(bytes: Int) throws {
    var scene = try SalvageScene(seed: 2)
    let size = 4096
    let pages = scene.main.count / size
    scene.main.removeLast(bytes)
    let cause = try #require(try scene.salvage().report.causes.first { $0.code == .truncated })
    let words =
      switch bytes {
      case 1: "The file ends within a page, of which 1 byte is missing: it"
      case 700: "The file ends within a page, of which 700 bytes are missing: it"
      case 4096: "1 of \(pages) pages is missing from the end of the file: it"
      default: "1 of \(pages) pages is missing from the end of the file, and 904 bytes of the page before it: it"
      }
    #expect(cause.words.replacing(",", with: "").hasPrefix(words.replacing(",", with: "")), "\(cause.words)")
  }

  @Test("Of a main file that is missing nothing is said of pages that nobody misses")
  func mainFileMissing() throws {
    let scene = try SalvageScene(seed: 3, finish: ["UPDATE ZBOOK SET ZTITLE = 'x'"], keepsLog: true)
    let place = try TemporaryFolder()
    try place.write(try #require(scene.log), to: "Store.sqlite-wal")
    let report = try Salvager().salvageRaw(place.appending("Store.sqlite"), to: place.appending("Out.sqlite"))
    let words = report.causes.map(\.words).joined(separator: " ")
    #expect(words.contains("The main file is missing") && !words.contains("none of the others"), "\(words)")
  }

  @Test("Several kinds at once are all told, and pages are named")
  func several() throws {
    let scene = try SalvageScene(seed: 9)
    var random = SeededGenerator(seed: 9)
    let pages = scene.somePages(0.05, &random)
    var damaged = scene.overwriting(pages) { 0 }
    damaged.main.replaceSubrange(0..<100, with: repeatElement(0, count: 100))
    let causes = try damaged.salvage().report.causes
    #expect(causes.first?.code == .headerDestroyed)
    #expect(causes.first?.confidence == .certain)
    let zeroed = try #require(causes.first { $0.code == .zeroedPages })
    let listed = Set(zeroed.pages.flatMap { $0.first...$0.last })
    #expect(listed.isSubset(of: pages))
    #expect(!listed.isEmpty)
  }
}
