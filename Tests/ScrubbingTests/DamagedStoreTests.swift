import LazaretTesting
import TestSupport
import Testing

/// Every kind of damage: what fails on the original fails alike on the scrubbed store.
@Suite("Scrubbing damaged stores")
struct DamagedStoreTests {
  static var kinds: [String] {
    // A wrong field of the header can lead to values where none should be; then nothing is exported.
    DamageKind.Name.allCases.filter { $0 != .field }.flatMap { name -> [String] in
      switch name {
      case .zero, .random: ["\(name.rawValue):4", "\(name.rawValue):20"]
      case .header: ["header:zero", "header:rand"]
      case .firstPage: ["page1:zero", "page1:rand", "page1:stale"]
      case .truncated: ["trunc:10", "trunc:50"]
      case .prefix: ["prefix:1000"]
      case .embedded: ["embed:12288"]
      default: [name.rawValue]
      }
    }
  }

  /// Two seeds for each kind, one for either size of pages, or three with LAZARET_LONG=1.
  private static func seeds(of kind: String) -> [UInt64] {
    if environment("LAZARET_LONG") != nil { return [1, 2, 3] }
    return kinds.firstIndex(of: kind).map { $0 % 2 == 0 } == true ? [1, 2] : [2, 3]
  }

  @Test("Every kind", arguments: kinds)
  func kind(_ kind: String) throws {
    for seed in Self.seeds(of: kind) {
      let pageSize = seed % 2 == 0 ? 1024 : 4096
      let isLog = kind.hasPrefix("wal")
      let isJournal = kind.hasPrefix("journal")
      let finish =
        isLog
        ? ["UPDATE people SET note = note || ' more' WHERE id % 5 = 0", "DELETE FROM words WHERE uses % 9 = 0"]
        : isJournal
          ? ["PRAGMA cache_size = 3; PRAGMA cache_spill = 3; BEGIN; UPDATE people SET note = 'back ' || note"] : []
      let vacuum = kind == "pointer-maps" ? "; PRAGMA auto_vacuum = FULL" : ""
      let plain = try ScrubScene.plain(
        seed: seed, setup: "PRAGMA page_size = \(pageSize)\(vacuum)", journal: isLog ? "WAL" : "DELETE", finish: finish)
      try Self.compare(plain, kind, seed)
      if !isJournal, kind != "pointer-maps" {
        try Self.compare(try ScrubScene.coreData(seed: seed, journal: isLog ? .log : .none), kind, seed)
      }
    }
  }

  @Test(
    "Every kind in UTF-16, with a log", arguments: kinds.filter { !$0.hasPrefix("journal") && $0 != "pointer-maps" })
  func wide(_ kind: String) throws {
    for (seed, encoding) in [(UInt64(4), "UTF-16le"), (5, "UTF-16be")] {
      let scene = try ScrubScene.plain(
        seed: seed, setup: "PRAGMA page_size = 2048; PRAGMA encoding = '\(encoding)'", journal: "WAL",
        finish: ["UPDATE people SET note = note || ' more' WHERE id % 5 = 0", "DELETE FROM words WHERE uses % 9 = 0"])
      try Self.compare(scene, kind, seed, numbers: false)
    }
  }

  /// - Parameter numbers: whether SQLite's complaints are the same to the numbers of pages that it reads out of values, and of
  ///   free pages in a list that it takes for one.
  static func compare(_ sound: ScrubScene, _ kind: String, _ seed: UInt64, numbers: Bool = true) throws {
    guard let scene = try sound.damaged(kind, seed: seed) else { return }
    let name = "\(kind), seed \(seed)"
    let before = try FolderContents(of: scene.folder.path)
    let (scrubbed, _) = try scene.scrubbed()
    #expect(try FolderContents(of: scene.folder.path) == before, "\(name): the evidence was changed")
    if !altersScrubbed.contains(kind) {
      var (ours, theirs) = (scrubbed.salvage(), scene.salvage())
      if altersEstimates.contains(kind) { (ours, theirs) = (ours.map(withoutEstimate), theirs.map(withoutEstimate)) }
      expectSame(ours, theirs, "\(name): salvage")
    }
    var (ours, theirs) = (try scrubbed.integrityCheck(), try scene.integrityCheck())
    if !numbers {
      let hasList = (ours + theirs).contains { $0.contains("freelist") }
      (ours, theirs) = (Self.withoutNumbers(ours, hasList), Self.withoutNumbers(theirs, hasList))
    }
    if !altersScrubbed.contains(kind) { expectSame(ours, theirs, "\(name): integrity_check") }
    let originals = try OriginalValues(sound.store)
    for (part, bytes) in try scrubbed.files() {
      let found = originals.found(in: bytes)
      #expect(found == 0, "\(name): \(part)")
    }
  }

  /// Kinds of which a scrubbed store gives other rows: what is left of values tells where pages and rows lie, and goes.
  private static let altersScrubbed: Set = ["sector", "insert", "remove", "wal-shape", "wal-partial"]

  /// Kinds of which it gives other estimates of losses: free bytes tell whether all rows of a page were found.
  private static let altersEstimates: Set = ["page-headers"]

  private static func withoutEstimate(_ line: String) -> String {
    line.replacing(/lost (\d+ estimate|0 none)/, with: "lost")
  }

  private static func withoutNumbers(_ lines: [String], _ hasList: Bool) -> [String] {
    // Pages that a list of free pages names are not among the unused.
    lines.filter { !$0.contains("freelist") && !(hasList && $0.hasSuffix("is never used")) }
      .map { $0.replacing(/invalid page number -?\d+/, with: "invalid page number") }
  }

  /// Lines are the same; if not, the first that differ are shown.
  static func expectSame(_ ours: [String], _ theirs: [String], _ name: String) {
    guard ours != theirs else { return }
    let differences = zip(ours, theirs).filter { $0 != $1 }.prefix(4).map { "\($1)  →  \($0)" }
    Issue.record("\(name): \(theirs.count) → \(ours.count) lines; \(differences.joined(separator: " | "))")
  }
}
