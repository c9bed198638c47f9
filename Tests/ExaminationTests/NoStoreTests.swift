import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// What is no store, and what is one though its main file is blank or missing.
@Suite("Verdicts: what is no store")
struct NoStoreTests {
  /// A page of a table that SQLite wrote, in a file of 4096 bytes a page.
  private static func page() throws -> [UInt8] {
    let plain = try Specimen.plain(
      "CREATE TABLE t(a)",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30) INSERT INTO t SELECT hex(zeroblob(40)) FROM n"
    )
    return Array(try require(plain.main)[4096..<8192])
  }

  /// A log with pages of a store, which its connection has not brought into the main file.
  private static func log() throws -> [UInt8] {
    try require(try Specimen.sound().running(Specimen.insert(3, from: 50)).log)
  }

  static let cases: [VerdictCase] = [
    VerdictCase(
      "random bytes", .unavailable, "encrypted-or-random", coreData: 259, sqlite: 26, mentions: ["SQLCipher", "random"]
    ) { Specimen(main: Specimen.noise(40_960)) },
    VerdictCase(
      "random bytes behind a header that systems can read", .unavailable, "encrypted-or-random", coreData: 259,
      sqlite: 26
    ) { Specimen(main: Array(try require(try Specimen.sound().main).prefix(100)) + Specimen.noise(40_960 - 100)) },
    VerdictCase(
      "random bytes with one page", .damaged, "first-page-lost", coreData: 259, sqlite: 26, mentions: ["4,096"]
    ) { Specimen(main: Specimen.noise(40_960)).overwriting(5 * 4096, with: try page()) },
    VerdictCase("random bytes with one page far behind", .damaged, "first-page-lost", coreData: 259, sqlite: 26) {
      Specimen(main: Specimen.noise((1 << 20) + 65_536)).overwriting((1 << 20) + 8192, with: try page())
    },
    VerdictCase("a text with a page far behind", .damaged, "first-page-lost", coreData: 259, sqlite: 26) {
      Specimen(main: Array(repeating: UInt8(ascii: "x"), count: (1 << 20) + 65_536))
        .overwriting((1 << 20) + 8192, with: try page())
    },
    VerdictCase("random bytes and zeros", .damaged, "not-sqlite", coreData: 259, sqlite: 26) {
      Specimen(main: Specimen.noise(20_480) + [UInt8](repeating: 0, count: 20_480))
    },
    VerdictCase("a log with pages, without its store", .damaged, "main-file-missing", coreData: 259, mentions: ["log"])
    {
      Specimen(main: nil, log: try log())
    },
    VerdictCase("zeros beside a log with pages", .damaged, "zeroed", coreData: 259, sqlite: 26, mentions: ["log"]) {
      Specimen(main: [UInt8](repeating: 0, count: 20_480), log: try log())
    },
    VerdictCase("no byte, and nothing beside it", .damaged, "empty-file", mentions: ["empty", "without tables"]) {
      Specimen(main: [])
    },
  ]

  @Test(arguments: cases)
  func verdicts(_ verdict: VerdictCase) throws { try verdict.check() }

  @Test("Random bytes with a log of their own are a damaged store")
  func randomWithLog() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen(main: Specimen.noise(40_960), log: try Self.log()).place(in: folder)
    #expect(try examiner().look(path).verdict == .damaged)
  }

  @Test(
    "A file that is plainly of another kind is called so, whatever its content",
    arguments: [
      ([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], "a picture"), ([0xff, 0xd8, 0xff, 0xe0], "a picture"),
      ([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0], "a program"), ([0xcf, 0xfa, 0xed, 0xfe], "a program"),
      (Array("%PDF-1.7".utf8), "a document"), ([0x28, 0xb5, 0x2f, 0xfd], "an archive"), ([0x1f, 0x8b, 8], "gzip"),
      (Array("age-encryption.org/v1\n".utf8), "an encrypted file"), (Array("ID3".utf8), "sound"),
      ([0, 6, 0x15, 0x61, 0, 0, 0, 2], "Berkeley DB"), (Array("\0mlocate".utf8), "mlocate"),
      (Array("LTX1".utf8), "LTX"),
    ] as [([UInt8], String)])
  func foreign(signature: [UInt8], words: String) throws {
    let folder = try TemporaryFolder()
    let examination = try examiner().look(try Specimen(main: signature + Specimen.noise(20_000)).place(in: folder))
    #expect(examination.verdict == .damaged && examination.reason.code == "not-sqlite")
    #expect(examination.reason.words.contains(words), "\(examination.reason.words)")
    #expect(examination.isForeignFile)
    #expect(examination.reason.hint.contains("right file"))
  }

  @Test("What may be a store is never taken for a file of another kind")
  func notForeign() throws {
    let folder = try TemporaryFolder()
    let text = Specimen(main: Array(repeating: UInt8(ascii: "x"), count: 9000), log: try Self.log())
    for specimen in [
      text, Specimen(main: []), Specimen(main: [UInt8](repeating: 7, count: 3000)), try Specimen.sound().cut(to: 60),
    ] {
      let examination = try examiner().look(try specimen.place(in: folder))
      #expect(!examination.isForeignFile && examination.verdict == .damaged, "\(examination.reason.words)")
      for suffix in ["-wal", ""] { try FileSystem().unlink(folder.appending("Store.sqlite" + suffix)) }
    }
  }

  @Test("Without a main file the pages that the log counts are told as the log's")
  func pagesOfLog() throws {
    let folder = try TemporaryFolder()
    let sound = try Specimen.sound(cars: 200)
    let pages = try require(sound.main).count / 4096
    let log = try require(try sound.running("CREATE TABLE extra(a)").log)
    let health = try examiner().look(try Specimen(main: nil, log: log).place(in: folder)).health
    #expect(health.pageCount == nil)
    let facts = try require(health.log)
    #expect(facts.databasePages.map(Int.init) == pages + 1)
    #expect(facts.pages > 0 && facts.pages < pages)
  }

  @Test("What was written over a header is not told as the store's size or origin", arguments: [0..<100, 24..<100])
  func overwrittenHeader(bytes: Range<Int>) throws {
    let folder = try TemporaryFolder()
    let sound = try Specimen.sound(cars: 200)
    let pages = try require(sound.main).count / 4096
    let over = [UInt8](repeating: UInt8(ascii: "x"), count: bytes.count)
    let path = try sound.overwriting(bytes.lowerBound, with: over).place(in: folder)
    for depth in Examination.Depth.allCases {
      let examination = try examiner().look(path, nil, depth)
      #expect(examination.verdict == .damaged)
      #expect(examination.health.pageCount.map(Int.init) == pages)
      #expect(examination.health.writtenBySQLite == nil)
      #expect(examination.health.encoding == nil)
      #expect(!examination.reason.words.contains("2021161080"))
    }
  }
}
