import Foundation
import GRDB
import Scrubbing
import StoreExport
import StoreFiles
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
}
