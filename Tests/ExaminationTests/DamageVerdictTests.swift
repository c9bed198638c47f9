import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

@Suite("Verdicts: files and pages")
struct DamageVerdictTests {
  private static func file(_ kind: String, _ words: String, _ bytes: @escaping @Sendable () -> [UInt8]) -> VerdictCase {
    VerdictCase("\(kind) in its place", .damaged, "not-sqlite", coreData: 259, sqlite: 26, mentions: [words]) {
      Specimen(main: bytes())
    }
  }

  static let files: [VerdictCase] = [
    VerdictCase("no byte", .damaged, "empty-file") { Specimen(main: []) },
    VerdictCase("no byte, but a log", .damaged, "empty-file", mentions: ["log"]) {
      Specimen(main: [], log: try Specimen.sound().running(Specimen.insert(3, from: 50)).log)
    },
    VerdictCase("zeros", .damaged, "zeroed", coreData: 259, sqlite: 26) {
      Specimen(main: [UInt8](repeating: 0, count: 20_000))
    },
    file("text", "a text file") { Array("Dear Sir,\n\nI enclose \(Specimen.secret).\n".utf8) },
    file("HTML", "HTML") { Array("<!DOCTYPE html><html><body>404 \(Specimen.secret)</body></html>".utf8) },
    file("JSON", "JSON") { Array("{\"error\": \"\(Specimen.secret)\"}".utf8) },
    file("gzip", "gzip") { [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3] + Specimen.noise(3000) },
    file("zip", "zip") { [0x50, 0x4b, 3, 4] + Specimen.noise(3000) },
    file("a property list", "property list") { Array("bplist00".utf8) + Specimen.noise(60) },
    file("bytes without any pattern but the last ones", "encrypted") {
      Specimen.noise(40_960) + [UInt8](repeating: 0, count: 8192)
    },
    file("SQLite 2", "SQLite 2") {
      Array("** This file contains an SQLite 2.1 database **\0".utf8) + Specimen.noise(2000)
    },
    file("a log", "write-ahead log") { [0x37, 0x7f, 6, 0x82] + Specimen.noise(5000) },
    file("a journal", "rollback journal") { [0xd9, 0xd5, 5, 0xf9, 0x20, 0xa1, 0x63, 0xd7] + Specimen.noise(5000) },
    file("something else", "unknown") { [UInt8](repeating: 7, count: 3000) },
  ]

  static let headers: [VerdictCase] = [
    VerdictCase(
      "a page size that is none", .damaged, "page-size-invalid", coreData: 259, sqlite: 26, mentions: ["1,000"]
    ) {
      try Specimen.sound().overwriting(16, with: [0x03, 0xE8])
    },
    VerdictCase(
      "a page size that is too small", .damaged, "page-size-wrong", coreData: 259, sqlite: 11,
      mentions: ["512", "4,096"]
    ) { try Specimen.sound(cars: 300).overwriting(16, with: [0x02, 0x00]) },
    VerdictCase(
      "a page size that is too large", .damaged, "page-size-wrong", coreData: 259, sqlite: 11,
      mentions: ["8,192", "4,096"]
    ) { try Specimen.sound(cars: 300).overwriting(16, with: [0x20, 0x00]) },
    VerdictCase(
      "the magic string destroyed", .damaged, "header-damaged", coreData: 259, sqlite: 26, mentions: ["4,096"]
    ) {
      try Specimen.sound().overwriting(0, with: Array("xxxxxxxxxxxxxxxx".utf8))
    },
    VerdictCase("one letter of the magic string", .damaged, "header-damaged", coreData: 259, sqlite: 26) {
      try Specimen.sound().overwriting(3, with: [0])
    },
    VerdictCase("the whole header zeroed", .damaged, "header-damaged", coreData: 259, sqlite: 26, mentions: ["4,096"]) {
      try Specimen.sound().overwriting(0, with: [UInt8](repeating: 0, count: 100))
    },
    VerdictCase("the whole header random", .damaged, "header-damaged", coreData: 259, sqlite: 26, mentions: ["4,096"]) {
      try Specimen.sound().overwriting(0, with: Specimen.noise(100))
    },
    VerdictCase(
      "the first page zeroed", .damaged, "first-page-lost", coreData: 259, sqlite: 26, mentions: ["zeros", "4,096"]
    ) {
      try Specimen.sound().overwriting(0, with: [UInt8](repeating: 0, count: 4096))
    },
    VerdictCase(
      "the first page random", .damaged, "first-page-lost", coreData: 259, sqlite: 26, mentions: ["destroyed"]
    ) {
      try Specimen.sound().overwriting(0, with: Specimen.noise(4096))
    },
    VerdictCase("a file format from the future", .damaged, "file-format-unknown", coreData: 259, sqlite: 26) {
      try Specimen.sound().overwriting(18, with: [9, 9])
    },
    VerdictCase("behind other bytes", .damaged, "embedded", coreData: 259, sqlite: 26, mentions: ["1,000"]) {
      try .sound().with { $0 = [UInt8](repeating: 7, count: 1000) + $0 }
    },
    VerdictCase("behind as many as a page has", .damaged, "embedded", coreData: 259, sqlite: 26, mentions: ["4,096"]) {
      try .sound().with { $0 = Specimen.noise(4096) + $0 }
    },
    VerdictCase("cut between pages", .damaged, "truncated", coreData: 259, sqlite: 11, mentions: ["16,384"]) {
      try Specimen.sound(cars: 300).cut(to: 16384)
    },
    VerdictCase("cut inside a page", .damaged, "truncated", coreData: 259, sqlite: 11, mentions: ["17,000"]) {
      try Specimen.sound(cars: 300).cut(to: 17000)
    },
    VerdictCase("cut inside the first page", .damaged, "truncated", coreData: 259, sqlite: 11, mentions: ["700"]) {
      try Specimen.sound().cut(to: 700)
    },
    VerdictCase("cut inside the header", .damaged, "truncated", coreData: 259, sqlite: 26, mentions: ["60 bytes"]) {
      try Specimen.sound().cut(to: 60)
    },
  ]

  static let pages: [VerdictCase] = [
    VerdictCase("a root page of the wrong kind", .damaged, "roots-damaged", coreData: 259, sqlite: 11) {
      let sound = try Specimen.sound()
      let page = Int(try sound.root(of: "ZCAR"))
      return sound.overwriting((page - 1) * 4096, with: [10])
    },
    VerdictCase("a root page zeroed", .damaged, "roots-damaged", coreData: 259, sqlite: 11) {
      let sound = try Specimen.sound()
      let page = Int(try sound.root(of: "ZPERSON"))
      return sound.overwriting((page - 1) * 4096, with: [UInt8](repeating: 0, count: 4096))
    },
    VerdictCase("two tables with one root page", .damaged, "schema-damaged", coreData: 259, sqlite: 11) {
      try Specimen.sound().running(
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'ZPERSON') WHERE name = 'ZCAR'",
        "PRAGMA wal_checkpoint(TRUNCATE)")
    },
    VerdictCase("the list of tables damaged", .damaged, "schema-damaged", coreData: 259, sqlite: 11) {
      // The cell pointers of page 1 begin behind its header, which begins at byte 100.
      try Specimen.sound().overwriting(108, with: [0xFF, 0xFF])
    },
    VerdictCase(
      "a page deep inside overwritten", .compatible, "current-version", full: (.damaged, "pages-damaged"),
      isMetByCounting: true
    ) {
      try Specimen.sound(cars: 300).losingLeaf(of: "ZCAR")
    },
    VerdictCase(
      "a freelist of the wrong length", .compatible, "current-version", full: (.damaged, "pages-damaged")
    ) {
      try Specimen.sound(cars: 300).running("DELETE FROM ZCAR", "PRAGMA wal_checkpoint(TRUNCATE)")
        .with { $0[39] &+= 5 }
    },
    VerdictCase(
      "a freelist that leads outside", .compatible, "current-version", full: (.damaged, "pages-damaged")
    ) {
      try Specimen.sound(cars: 300).running("DELETE FROM ZCAR", "PRAGMA wal_checkpoint(TRUNCATE)")
        .with { for index in 32..<36 { $0[index] = 0x7F } }
    },
    VerdictCase(
      "an index that lacks an entry", .compatible, "no-model-given", full: (.damaged, "indexes-damaged"), model: nil
    ) {
      let sound = try Specimen.plain("CREATE TABLE t(a); CREATE INDEX i ON t(a); INSERT INTO t VALUES (1), (2), (3)")
      let page = Int(try sound.root(of: "i"))
      // The number of cells stands in bytes 3 and 4 of the page's header.
      return sound.overwriting((page - 1) * 4096 + 4, with: [2])
    },
  ]

  @Test("Every kind of file in a store's place", arguments: files)
  func file(_ verdictCase: VerdictCase) throws { try verdictCase.check() }

  @Test("Every flaw of header and length", arguments: headers)
  func header(_ verdictCase: VerdictCase) throws { try verdictCase.check() }

  @Test("Every flaw of pages", arguments: pages)
  func page(_ verdictCase: VerdictCase) throws { try verdictCase.check() }

  @Test("A lost header does not hide what is behind it", arguments: [16, 100])
  func lostHeader(length: Int) throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound(cars: 40).overwriting(0, with: Specimen.noise(length)).place(in: folder)
    let examination = try examiner().look(path, Models.bundle())
    #expect(examination.kind == .coreData)
    #expect(examination.modelVersion == "V3")
    #expect(
      examination.counts == ["Car in ZCAR: 40", "Person in ZPERSON: 0"])
    #expect(examination.health.pageSize == 4096)
  }

  @Test(
    "A wrong page size does not hide what is behind it",
    arguments: [[0x02, 0x00], [0x40, 0x00], [0, 0], [0xFF, 0xFF]])
  func wrongPageSize(bytes: [UInt8]) throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound(cars: 200).overwriting(16, with: bytes).place(in: folder)
    let examination = try examiner().look(path, Models.bundle())
    #expect(examination.verdict == .damaged)
    #expect(examination.health.pageSize == 4096)
    #expect(examination.entities.first?.rows == 200)
  }

  @Test(
    "Page sizes of all kinds are told without a header", arguments: [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536])
  func pageSizes(size: Int) throws {
    let folder = try TemporaryFolder()
    let sound = try Specimen.plain(
      "PRAGMA page_size = \(size)", "CREATE TABLE t(a)",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO t SELECT hex(zeroblob(i % 90)) FROM n"
    )
    for length in [100, size] {
      let path = try sound.overwriting(0, with: [UInt8](repeating: 0, count: length)).place(in: folder)
      let examination = try examiner().look(path)
      #expect(examination.reason.code == (length == 100 ? "header-damaged" : "first-page-lost"))
      let grouped = size < 1000 ? "\(size)" : "\(size / 1000),\(String("\(size)".suffix(3)))"
      #expect(examination.reason.words.contains("\(grouped) bytes"), "\(examination.reason.words)")
      #expect(examination.entities.map(\.rows) == (length == 100 ? [3000] : []))
    }
  }

  @Test("A table that cannot be counted has no count, and a note says why")
  func uncounted() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound(cars: 300).losingLeaf(of: "ZCAR").place(in: folder)
    let examination = try examiner().look(path, Models.bundle())
    #expect(examination.entities.map(\.rows) == [nil, 0])
    #expect(examination.health.isDamaged)
    let full = try examiner().look(path, Models.bundle(), .full)
    #expect(full.health.integrity?.isSound == false)
    #expect(full.reason.coreDataCode == 259)
    #expect(full.reason.sqliteCode == 11)
  }

  @Test("The version of SQLite that wrote last, and its known bug")
  func writtenBy() throws {
    let folder = try TemporaryFolder()
    let sound = try Specimen.sound()
    func notes(_ version: UInt32, mode: UInt8 = 2) throws -> (String?, Bool) {
      let bytes = (0..<4).map { UInt8(truncatingIfNeeded: version >> (24 - 8 * $0)) }
      let path = try sound.overwriting(96, with: bytes).overwriting(18, with: [mode, mode]).place(in: folder)
      let examination = try examiner().look(path, Models.bundle())
      #expect(examination.verdict == .compatible)
      return (
        examination.health.writtenBySQLite,
        examination.health.notes.contains { $0.code == "written-with-wal-reset-bug" && $0.severity == .note }
      )
    }
    #expect(try notes(3_040_001) == ("3.40.1", true))
    #expect(try notes(3_007_000) == ("3.7.0", true))
    #expect(try notes(3_051_002) == ("3.51.2", true))
    #expect(try notes(3_051_003) == ("3.51.3", false))
    #expect(try notes(3_044_006) == ("3.44.6", false))
    #expect(try notes(3_050_007) == ("3.50.7", false))
    #expect(try notes(3_006_023) == ("3.6.23", false))
    #expect(try notes(3_040_001, mode: 1) == ("3.40.1", false))
  }

  @Test("Links: a symbolic one is followed, a hard one mentioned")
  func links() throws {
    let folder = try TemporaryFolder()
    let other = try TemporaryFolder()
    // All rows are in the log, which lies beside the file and not beside the link.
    let path = try Specimen.sound(cars: 0).running(Specimen.insert(9)).place(in: folder)
    let link = other.appending("Link.sqlite")
    try #require(symbolicLink(at: link.string, to: path.string))
    let examination = try examiner().look(link, Models.bundle())
    #expect(examination.verdict == .compatible)
    #expect(examination.files?.main == path)
    #expect(examination.entities.first?.rows == 9)
    #expect(!examination.health.notes.contains { $0.code == "hard-linked" })
    try FileSystem().link(path, to: folder.appending("Second.sqlite"))
    let linked = try examiner().look(path, Models.bundle())
    #expect(linked.verdict == .compatible)
    #expect(linked.health.notes.contains { $0.code == "hard-linked" && $0.severity == .warning })
  }
}
