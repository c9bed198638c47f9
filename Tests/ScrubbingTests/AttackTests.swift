import Foundation
import GRDB
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// What a receiver can infer of a scrubbed store, by three attacks; the numbers are those of `Documentation/SCRUBBING.md`.
@Suite("Attacks on a scrubbed store")
struct AttackTests {
  /// A store before and after, row for row.
  struct Pair {
    var before: [Row]
    var after: [Row]
  }

  private static let day = 86400.0

  private func pair(_ seed: UInt8, _ table: String, fill: (GRDB.Database) throws -> Void) throws -> Pair {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write(fill)
    try queue.close()
    let target = try TemporaryFolder()
    let key = try ScrubbingKey((0..<32).map { UInt8(truncatingIfNeeded: $0 * 7) &+ seed })
    _ = try StoreScrubber(key: key).scrub(StoreFileSet(main: path), into: target.path)
    func rows(_ path: FilePath) throws -> [Row] {
      let queue = try DatabaseQueue(path: path.string)
      return try queue.read { try Row.fetchAll($0, sql: "SELECT * FROM \(table) ORDER BY id") }
    }
    return Pair(before: try rows(path), after: try rows(target.appending("Store.sqlite")))
  }

  /// The correlation of the ranks of two lists.
  private func correlation(_ first: [Double], _ second: [Double]) -> Double {
    func ranks(_ values: [Double]) -> [Double] {
      let places = Dictionary(uniqueKeysWithValues: Set(values).sorted().enumerated().map { ($1, Double($0)) })
      return values.map { places[$0] ?? 0 }
    }
    let (a, b) = (ranks(first), ranks(second))
    let (meanA, meanB) = (a.reduce(0, +) / Double(a.count), b.reduce(0, +) / Double(b.count))
    let both = zip(a, b).reduce(0) { $0 + ($1.0 - meanA) * ($1.1 - meanB) }
    let squares = a.reduce(0) { $0 + ($1 - meanA) * ($1 - meanA) } * b.reduce(0) { $0 + ($1 - meanB) * ($1 - meanB) }
    return both / squares.squareRoot()
  }

  // MARK: Dates

  @Test("Dates: no anchor gives nothing, the newest one gives weeks and months, with the average of the jitter days")
  func dates() throws {
    let now = 780_000_000.0
    var shifts: [Double] = []
    for seed in UInt8(1)...4 {
      let pair = try pair(seed, "events") { db in
        try db.execute(sql: "CREATE TABLE events (id INTEGER PRIMARY KEY, at TIMESTAMP)")
        var random = SeededGenerator(seed: 5)
        for _ in 0..<300 {
          try db.execute(
            sql: "INSERT INTO events (at) VALUES (?)",
            arguments: [now - Double.random(in: 1...(4 * 365 * Self.day), using: &random)])
        }
        try db.execute(sql: "INSERT INTO events (at) VALUES (?)", arguments: [now])
      }
      let (before, after) = (pair.before.map { $0["at"] as Double }, pair.after.map { $0["at"] as Double })
      // Order is told; it is what a date keeps.
      #expect(correlation(before, after) > 0.9999)
      let newest = try #require(after.max())
      shifts.append((newest - now) / Self.day)
      // The attack: the newest date is that of the bundle.
      var (plain, corrected, near): ([Double], [Double], [Double]) = ([], [], [])
      for (old, new) in zip(before, after) {
        let error = abs(new - newest + now - old) / Self.day
        if now - old > 365 * Self.day {
          plain.append(error)
          corrected.append(abs(now - (newest - new) / 1.15 - old) / Self.day)
        } else if now - old < 30 * Self.day {
          near.append(error)
        }
      }
      plain.sort()
      #expect(plain[plain.count / 2] > 60)
      #expect((near.max() ?? 0) < 10)
      // With the average of the jitter, which is known, dates of four years are found to some days, and none to the hour.
      let mean = corrected.reduce(0, +) / Double(corrected.count)
      #expect(mean > 0.5 && mean < 30)
    }
    // Without an anchor the shift may be any of years.
    #expect((shifts.max() ?? 0) - (shifts.min() ?? 0) > 100)
  }

  // MARK: Names

  /// Names of one capital and small letters, all different.
  private static func names(_ count: Int) -> [String] {
    var random = SeededGenerator(seed: 17)
    var names: Set<String> = []
    while names.count < count {
      let length = Int.random(in: 4...10, using: &random)
      let letters = (0..<length).map { _ in Character(UnicodeScalar(UInt8.random(in: 97...122, using: &random))) }
      names.insert(String(letters).capitalized)
    }
    return names.sorted()
  }

  @Test(
    "Names: a dictionary finds no more than chance in a column without an index, and all by rank in one with an index")
  func dictionary() throws {
    let names = Self.names(10_000)
    var random = SeededGenerator(seed: 23)
    let (indexed, other) = (
      names.shuffled(using: &random), names.map { String($0.reversed()) }.shuffled(using: &random)
    )
    let pair = try pair(9, "people") { db in
      try db.execute(sql: "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, plain TEXT)")
      try db.execute(sql: "CREATE INDEX byName ON people (name)")
      for (name, plain) in zip(indexed, other) {
        try db.execute(sql: "INSERT INTO people (name, plain) VALUES (?, ?)", arguments: [name, plain])
      }
    }
    let (byRank, plain) = (pair.after.map { $0["name"] as String }, pair.after.map { $0["plain"] as String })
    // Length and classes of characters are told, equality is, and no name is there.
    for (old, new) in zip(other, plain) { #expect(old.utf8.count == new.utf8.count && old != new) }
    #expect(Set(plain).isDisjoint(with: other))
    #expect(Set(byRank).isDisjoint(with: indexed))
    // Without an index: the best guess is by length, and within one by rank. Chance finds one of each length on average.
    var guesses: [String: String] = [:]
    for length in 4...10 {
      let pseudonyms = Set(plain).filter { $0.utf8.count == length }.sorted()
      guesses.merge(zip(pseudonyms, other.filter { $0.utf8.count == length }.sorted())) { first, _ in first }
    }
    #expect(zip(other, plain).count { guesses[$1] == $0 } <= 40)
    // With an index: a list of all names, and of no others, matches by rank alone.
    let ranked = Dictionary(zip(byRank.sorted(), indexed.sorted())) { first, _ in first }
    #expect(zip(indexed, byRank).count { ranked[$1] == $0 } == names.count)
  }

  // MARK: Numbers

  @Test("Numbers: sign and width are told, order only with an index, ratios only to a factor of two")
  func numbers() throws {
    var random = SeededGenerator(seed: 31)
    let pair = try pair(4, "people") { db in
      try db.execute(
        sql: "CREATE TABLE people (id INTEGER PRIMARY KEY, age INT, salary INT, income INT, lat REAL)")
      try db.execute(sql: "CREATE INDEX byIncome ON people (income)")
      for _ in 0..<4000 {
        try db.execute(
          sql: "INSERT INTO people (age, salary, income, lat) VALUES (?, ?, ?, ?)",
          arguments: [
            Int.random(in: 18...90, using: &random), Int.random(in: 33_000...99_000, using: &random),
            Int.random(in: 33_000...99_000, using: &random), Double.random(in: 32.5..<63.5, using: &random),
          ])
      }
    }
    func column(_ name: String) -> [(old: Double, new: Double)] {
      zip(pair.before, pair.after).map { ($0[name] as Double, $1[name] as Double) }
    }
    func correlation(_ name: String) -> Double {
      let distinct = Dictionary(column(name).map { ($0.old, $0.new) }) { first, _ in first }.sorted { $0.key < $1.key }
      return self.correlation(distinct.map(\.key), distinct.map(\.value))
    }
    // Equal numbers have equal pseudonyms in a column, and none is its own.
    for name in ["age", "salary"] {
      let values = column(name)
      let pseudonyms = Dictionary(values.map { ($0.old, $0.new) }) { first, _ in first }
      #expect(values.allSatisfy { pseudonyms[$0.old] == $0.new && $0.old != $0.new }, "\(name)")
    }
    // Widths: 2 to 127, and 32,768 to 999,999.
    #expect(column("age").allSatisfy { (2...127).contains($0.new) })
    #expect(column("salary").allSatisfy { (32_768...999_999).contains($0.new) })
    // Several ages may have one pseudonym.
    #expect(Set(column("age").map(\.new)).count <= 73)
    // Order: chance alone without an index, all of it with one.
    #expect(abs(correlation("age")) < 0.5)
    #expect(abs(correlation("salary")) < 0.1)
    #expect(correlation("income") > 0.9999)
    // Reals stay between the same powers of two, so that a ratio is known to a factor of two, and no order within.
    #expect(column("lat").allSatisfy { (32..<64).contains($0.new) && $0.old != $0.new })
    #expect(abs(correlation("lat")) < 0.1)
  }
}
