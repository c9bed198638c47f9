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

  @Test func ourOwnWordsAreNoValues() throws {
    let check = try check(
      [
        "page", "damaged", "healthy", "Zeros", "the first page", "sqlite", "ZCAR", "Car.name", "1048576", "2026-11-21",
        "0123456789abcdef", 1_048_576, "facts", "integrity check",
      ], names: ["CREATE TABLE ZCAR (name)", "Car", "name"])
    let sum = String(repeating: "0123456789abcdef", count: 4)
    let text = """
      {"state": "damaged", "bytes": 1048576, "date": "2026-11-21T10:11:12Z", "sha256": "\(sum)",
      "words": "the first page of ZCAR is damaged; zeros", "name": "Car.name", "level": "facts", "kind": "sqlite",
      "id": "2026-11-21-10-11-12", "evidence": {"backup": "b-2026-11-21-10-11-12-2"}}
      """
    #expect(check.leaks(in: Array(text.utf8), named: "facts.json") == nil)
  }

  @Test func aThousandHitsAreAllLookedAt() throws {
    let check = try check(["page", "Anna Smith"])
    let text = String(repeating: "page ", count: 5000) + "Anna Smith"
    let leaks = try #require(check.leaks(in: Array(text.utf8), named: "log.txt"))
    #expect(leaks.first.offset == 25_000)
  }

  @Test func aStoreOfOurOwnWordsIsExported() throws {
    let scene = try ExportScene()
    let queue = try DatabaseQueue(path: scene.store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "CREATE TABLE words (word TEXT, number INTEGER)")
      for word in ["page", "Damaged pages", "healthy", "examination", "Linux", "3.40.1", "SQLite", "rowid", "words"] {
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

  @Test func theListOfOurOwnWordsIsWhole() throws {
    guard ChildProcess.exists("python3") else { return }
    let folder = try TemporaryFolder()
    let path = RealMaterial.projectRoot.appending("Sources/StoreExport/Check/OwnWords.swift")
    let before = try FileSystem().contents(of: path, limit: 1 << 20)
    let made = folder.appending("OwnWords.swift")
    let run = try ChildProcess.run(
      "python3", [RealMaterial.projectRoot.appending("Scripts/own-words").string, made.string])
    #expect(run.status == 0, "\(run.errors)")
    let after = try FileSystem().contents(of: made, limit: 1 << 20)
    func words(_ bytes: [UInt8]) -> Set<Substring> {
      Set(String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace))
    }
    let missing = words(after).subtracting(words(before))
    // A few new words do no harm before it is run.
    #expect(missing.count <= 60, "run Scripts/own-words: \(missing.sorted().prefix(20))")
  }
}
