import Foundation
import GRDB
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// The check that no value of the store is in the texts of a bundle.
struct CheckTests {
  private func check(_ values: [any DatabaseValueConvertible], names: [String] = []) throws -> ExportCheck {
    let scene = try ExportScene()
    let queue = try DatabaseQueue(path: scene.store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "CREATE TABLE t (a)")
      for value in values { try database.execute(sql: "INSERT INTO t VALUES (?)", arguments: [value]) }
    }
    try queue.close()
    let scanner = try StoreScrubber(key: .random()).scanner(of: StoreFileSet(main: scene.store))
    return ExportCheck(scanner, names: names)
  }

  @Test(arguments: [
    "Anna Smith", "12 Main Street", "anna@example.com", "Müller", "東京タワー", "secret-4711", "the secret Rezept",
    "0151 2345678",
  ])
  func aValueIsFound(_ value: String) throws {
    let check = try check([value])
    for text in [value, "{\"words\": \"\(value)\"}", "page 7 of \(value), damaged", "x\(value)y"] {
      let leaks = try #require(check.leaks(in: Array(text.utf8), named: "log.txt"), "\(text)")
      #expect(leaks.count >= 1)
      #expect(leaks.first.name == "log.txt")
    }
    let before = String(repeating: "The first page is damaged. ", count: 300)
    let leaks = try #require(check.leaks(in: Array((before + value + before).utf8), named: "log.txt"))
    #expect(leaks.first.offset == Int64(before.utf8.count))
    #expect(check.leaks(in: Array(before.utf8), named: "log.txt") == nil)
  }

  @Test(arguments: ["Quirinus Vandermeer", "quokka@meadow.example", "Wandergeselle im Regen"])
  func theSearchOfTheCheckFindsAValueInTheLog(_ value: String) throws {
    let scene = try ExportScene()
    let queue = try DatabaseQueue(path: scene.store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "CREATE TABLE t (a)")
      try database.execute(sql: "INSERT INTO t VALUES (?)", arguments: [value])
    }
    try queue.close()
    let result = try StoreScrubber(key: .random()).scrub(StoreFileSet(main: scene.store), into: scene.out)
    // A scanner of nothing, so that only the search can find it.
    let empty = try ExportScene()
    let other = try DatabaseQueue(path: empty.store.string)
    try other.writeWithoutTransaction { try $0.execute(sql: "CREATE TABLE t (a)") }
    try other.close()
    let scanner = try StoreScrubber(key: .random()).scanner(of: StoreFileSet(main: empty.store))
    let search = try #require(result.search)
    let check = ExportCheck(scanner, search: search, names: [])
    let before = "2026-11-21T10:11:12Z info check: a page\n"
    let base64 = Data(value.utf8).base64EncodedString()
    for text in [value, base64] {
      let leaks = try #require(check.leaks(in: Array((before + "words " + text + " behind\n").utf8), named: "log.txt"))
      #expect(leaks.first.offset >= Int64(before.utf8.count))
    }
    #expect(check.leaks(in: Array(before.utf8), named: "log.txt") == nil)
  }

  @Test func aNameAndASumOfAFileAreFound() throws {
    let name = "Letter to Quirinus.pdf"
    // That of "abc", as FIPS 180-2 has it.
    let digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    let sum = stride(from: 0, to: 64, by: 2).compactMap { UInt8(digits.dropFirst($0).prefix(2), radix: 16) }
    #expect(sum.count == 32)
    var check = ExportCheck(nil, marks: FileMarks(names: [name], sums: [sum]), names: [])
    let line = Array("{\"bytes\": 7, \"sha256\": \"".utf8)
    let forms = [
      Array(digits.utf8), Array(digits.uppercased().utf8), Array(digits.prefix(16).utf8), sum,
      Array(Data(sum).base64EncodedString().utf8), Array(name.utf8), Array(Data(name.utf8).base64EncodedString().utf8),
    ]
    for isOthers in [false, true] {
      for form in forms {
        let leaks = check.leaks(in: line + form + Array("\"}\n".utf8), named: "receipt.json", isOthers: isOthers)
        #expect(leaks?.count == 1, "\(String(decoding: form, as: UTF8.self))")
      }
      let other = Array(String(repeating: "0123456789abcdef", count: 4).utf8)
      #expect(check.leaks(in: line + other, named: "receipt.json", isOthers: isOthers) == nil)
    }
    // A name that the text would have without the file too is none of its; a sum always is.
    for form in [digits, name] { check.know(line + Array(form.utf8), named: "receipt.json") }
    #expect(check.leaks(in: line + Array(name.utf8), named: "receipt.json") == nil)
    #expect(check.leaks(in: line + Array(digits.utf8), named: "receipt.json") != nil)
  }

  @Test func namesSumsTimesAndMembersOfJSONAreNoLeaks() throws {
    let check = try check(
      ["ZCAR", "Car.name", "2026-11-21", "0123456789abcdef", "damaged", "words"],
      names: ["CREATE TABLE ZCAR (name)", "Car", "name"])
    let sum = String(repeating: "0123456789abcdef", count: 4)
    let text = """
      {
        "damaged" : 7, "words": 1,
        "date": "2026-11-21T10:11:12Z", "sha256": "\(sum)", "name": "Car.name", "table": "ZCAR",
        "id": "2026-11-21-10-11-12", "evidence": {"backup": "b-2026-11-21-10-11-12-2"}
      }
      """
    #expect(check.leaks(in: Array(text.utf8), named: "facts.json") == nil)
    #expect(check.leaks(in: Array("{\"state\": \"damaged\"}".utf8), named: "facts.json") != nil)
  }

  @Test func whatIsMadeWithoutTheValuesTooIsNoLeak() throws {
    var check = try check(["page", "the first page", "1048576", 1_048_576, "Anna Smith"])
    let own = "  \"bytes\" : 1048576,\n  \"words\" : \"the first page is damaged\"\n"
    #expect(check.leaks(in: Array(own.utf8), named: "salvage.json") != nil)
    let known = "  \"words\" : \"the first page is damaged\",\n  \"bytes\" : 1048576\n"
    check.know(Array(known.utf8), named: "salvage.json")
    #expect(check.leaks(in: Array(own.utf8), named: "salvage.json") == nil)
    // In another text, or in another line, it is one.
    #expect(check.leaks(in: Array(own.utf8), named: "log.txt") != nil)
    let other = own + "  \"more\" : \"the first page of Anna Smith\"\n"
    let leaks = try #require(check.leaks(in: Array(other.utf8), named: "salvage.json"))
    #expect(leaks.first.offset >= Int64(own.utf8.count))
    // Lines of a log begin with the time.
    check.know(Array("2026-11-21T10:11:12Z info check: a page\n".utf8), named: "log.txt")
    #expect(check.leaks(in: Array("2026-11-21T10:11:13Z info check: a page\n".utf8), named: "log.txt") == nil)
  }

  @Test func aThousandHitsAreAllLookedAt() throws {
    let check = try check(["page", "Anna Smith"], names: ["page"])
    let text = String(repeating: "page ", count: 5000) + "Anna Smith"
    let leaks = try #require(check.leaks(in: Array(text.utf8), named: "log.txt"))
    #expect(leaks.first.offset == 25_000)
  }

  @Test func aStoreOfOurOwnWordsIsExported() throws {
    let scene = try ExportScene()
    let queue = try DatabaseQueue(path: scene.store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "CREATE TABLE words (word TEXT, number INTEGER)")
      let words = [
        "name", "value", "level", "page", "Damaged pages", "healthy", "examination", "Linux", "3.40.1", "SQLite",
        "rowid",
        "words",
      ]
      for word in words {
        for number in [4096, 8192, 1_048_576, 20_261_121] {
          try database.execute(sql: "INSERT INTO words VALUES (?, ?)", arguments: [word, number])
        }
      }
    }
    try queue.close()
    for level in [BundleLevel.facts, .scrubbed] {
      let (summary, received) = try scene.export(level)
      #expect(received.level == level)
      try scene.system.unlink(try #require(summary.path.path))
    }
  }

  /// A damaged store of which SQLite says words that are also a value of it, because of bytes that a scrub replaces.
  ///
  /// The header says that the last page of a long value is one of the list of free pages, and the value's bytes say that page 261
  /// is in that list too.
  private func storeWhoseDamageReads(_ words: String) throws -> ExportScene {
    let scene = try ExportScene()
    let queue = try DatabaseQueue(path: scene.store.string)
    let value = Data((0..<3000).map { UInt8(7 + $0 % 240) })
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA page_size = 1024")
      try database.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT, data BLOB)")
      try database.execute(sql: "INSERT INTO t (word, data) VALUES (?, ?)", arguments: [words, value])
      try database.execute(
        sql: """
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
          INSERT INTO t (word) SELECT 'quokka ' || i || hex(zeroblob(400)) FROM n
          """)
    }
    try queue.close()
    var bytes = try scene.system.contents(of: scene.store, limit: 1 << 24)
    func isLast(_ start: Int) -> Bool {
      guard bytes[start..<(start + 4)].allSatisfy({ $0 == 0 }) else { return false }
      return value.range(of: Data(bytes[(start + 4)..<(start + 36)])) != nil
    }
    let last = try #require(stride(from: 0, to: bytes.count, by: 1024).first(where: isLast))
    bytes.replaceSubrange((last + 4)..<(last + 12), with: [0, 0, 0, 1, 0, 0, 1, 5])
    bytes.replaceSubrange(32..<40, with: [0, 0, 0, UInt8(last / 1024 + 1), 0, 0, 0, 2])
    try scene.system.writeAtomically(bytes, to: scene.store, replacing: true)
    let copy = scene.folder.appending("Copy.sqlite")
    try scene.system.writeAtomically(bytes, to: copy, replacing: false)
    let other = try DatabaseQueue(path: copy.string)
    let complaints = try other.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") }
    try other.close()
    try #require(complaints.contains { $0.contains(words) }, "\(complaints)")
    return scene
  }

  @Test(arguments: [BundleLevel.facts, .scrubbed])
  func aTextInWhichAValueIsIsTheOneOfTheScrubbedCopy(_ level: BundleLevel) throws {
    let words = "2nd reference to page 261"
    let scene = try storeWhoseDamageReads(words)
    let preview = try scene.exporter().make(ExportOptions(level: level)).preview
    let replaced = preview.files.filter { $0.words.contains("made of the scrubbed copy") }.map(\.name)
    #expect(replaced.contains("log.txt"), "\(replaced)")
    let (_, received) = try scene.export(level)
    #expect(received.level == level)
    let log = String(decoding: try scene.content("log.txt", of: received), as: UTF8.self)
    // It is a log still, of a store with the same damage.
    #expect(log.contains("verdict damaged"))
    #expect(log.contains("error check: *** in database main ***"))
    for file in preview.files {
      let bytes = Data(try scene.content(file.name, of: received))
      #expect(bytes.range(of: Data(words.utf8)) == nil, "\(file.name)")
    }
    try scene.expectTidy()
  }
}
