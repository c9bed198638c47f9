import Foundation
import GRDB
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// The check for original values.
@Suite("The scanner")
struct ValueScannerTests {
  @Test("It finds what is there, raw, in UTF-16 and packed")
  func finds() throws {
    let scene = try ScrubScene.plain(seed: 6, rows: 60)
    let result = try scene.scrubbed().result
    let own = try result.scanner.scan(scene.store)
    #expect(own.count > 100)
    let folder = try TemporaryFolder()
    let place = try folder.write(try scene.files()["main"] ?? [], to: "plain")
    let packed = try ChildProcess.run("gzip", ["-k", "-1", place.string])
    #expect(packed.status == 0)
    #expect(try result.scanner.scan(folder.appending("plain.gz")).count >= own.count)
    let wide = try ScrubScene.plain(seed: 6, rows: 60, setup: "PRAGMA encoding = 'UTF-16le'")
    #expect(try result.scanner.scan(wide.store).count > 100)
    #expect(!result.scanner.scan(Array("nothing of it".utf8), named: "x").places.contains { $0.length > 20 })
  }

  /// A store of a few values of each kind.
  static func scene() throws -> ScrubScene {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { db in
      try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT, number INTEGER, part REAL, bytes BLOB)")
      for (index, word) in words.enumerated() {
        try db.execute(
          sql: "INSERT INTO t VALUES (?, ?, ?, ?, ?)",
          arguments: [index + 1, word, 40_717_253 + index * 1_000_003, 3.141592653 + Double(index), Data(blob)])
      }
    }
    try queue.close()
    return ScrubScene(folder, path)
  }

  static let words = ["Quokka", "naïveté", "東京タワー", "Wandergeselle im Regen", "мандарин", "😀😁😂🤣"]
  static let blob: [UInt8] = [0x9d, 0x21, 0x77, 0xee, 0x4b, 0xc3, 0x55, 0x1a, 0x68, 0x90]

  /// Bytes that no value is in.
  static let around = Array("<~ ~>".utf8)

  @Test("It finds every value in every form, at any place")
  func forms() throws {
    let result = try Self.scene().scrubbed().result
    var needles: [(String, [UInt8])] = []
    for word in Self.words {
      let text = Array(word.utf8)
      needles.append(("UTF-8 of \(word)", text))
      let little = word.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
      let big = word.utf16.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
      needles += [("UTF-16LE of \(word)", little), ("UTF-16BE of \(word)", big)]
    }
    needles.append(("blob", Self.blob))
    needles.append(("digits", Array("41717256".utf8)))
    needles.append(("digits of a real", Array("4.141592653".utf8)))
    for (name, bytes) in needles where !name.hasPrefix("UTF-16") && bytes.count >= 6 {
      for shift in 0..<3 {
        let packed = Data([UInt8](repeating: 0xf5, count: shift) + bytes + [0xf5, 0xf5]).base64EncodedString()
        needles.append(("base64 + \(shift) of \(name)", Array(packed.utf8)))
      }
      needles.append(("hexadecimal of \(name)", Array(bytes.map { String(format: "%02x", $0) }.joined().utf8)))
      needles.append(("HEXADECIMAL of \(name)", Array(bytes.map { String(format: "%02X", $0) }.joined().utf8)))
    }
    for (name, bytes) in needles {
      for shift in 0..<2 {
        let file = [UInt8](repeating: 0x7e, count: shift) + Self.around + bytes + Self.around
        #expect(!result.scanner.scan(file, named: "x").isEmpty, "\(name), \(shift)")
      }
      // Over the border of two pieces.
      let border = (1 << 18) - bytes.count / 2
      let folder = try TemporaryFolder()
      let place = try folder.write(
        [UInt8](repeating: 0x7e, count: border) + bytes + [UInt8](repeating: 0x7e, count: 99), to: "x")
      #expect(try !result.scanner.scan(place).isEmpty, "\(name), at a border")
    }
    #expect(result.scanner.scan(Self.around + Array("Quokk Wandergesell".utf8), named: "x").isEmpty)
  }

  @Test("Short values in base64 are found where padding shows that they stand by themselves")
  func padded() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { db in
      try db.execute(
        sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT); INSERT INTO t (word) VALUES ('Quok'), ('Emuse')")
    }
    try queue.close()
    let result = try ScrubScene(folder, path).scrubbed().result
    let long = [UInt8](repeating: 0x7e, count: 300)
    for word in ["Quok", "Emuse"] {
      let packed = Array(Data(word.utf8).base64EncodedString().utf8)
      #expect(packed.last == UInt8(ascii: "="))
      for around in [[], Self.around, long] {
        #expect(!result.scanner.scan(around + packed + around, named: "x").isEmpty, "\(word)")
      }
      // Part of something else.
      #expect(result.scanner.scan(long + Array("xy".utf8) + packed + long, named: "x").isEmpty, "\(word)")
    }
  }

  @Test("Any part of a long value is found", arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
  func pieces(_ encoding: String) throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    var random = SeededGenerator(seed: 77)
    let text = ScrubScene.text(&random, 3000)
    let blob = (0..<20_000).map { _ in UInt8.random(in: 0...255, using: &random) }
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { db in
      try db.execute(sql: "PRAGMA encoding = '\(encoding)'")
      try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT, blob BLOB)")
      try db.execute(sql: "INSERT INTO t VALUES (1, ?, ?)", arguments: [text, Data(blob)])
    }
    try queue.close()
    let scene = ScrubScene(folder, path)
    let (scrubbed, result) = try scene.scrubbed()
    #expect(try result.scanner.scan(scrubbed.store).isEmpty)
    let bytes = Array(text.utf8)
    for start in stride(from: 100, to: 10_000, by: 613) {
      // Room for a piece from any place on: twice as far where a unit has two bytes.
      #expect(!result.scanner.scan(Array(bytes[start..<(start + 1300)]), named: "x").isEmpty, "text from \(start)")
      #expect(!result.scanner.scan(Array(blob[start..<(start + 600)]), named: "x").isEmpty, "blob from \(start)")
    }
  }

  @Test("A value that structure happens to spell is found anywhere else")
  func chance() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { db in
      // Text of 26 characters has the serial type 65, which is the letter A.
      let columns = (0..<6).map { "c\($0) TEXT" }.joined(separator: ", ")
      try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, \(columns)); CREATE TABLE u (word TEXT)")
      for row in 0..<20 {
        let values = (0..<6).map { "'\(String(repeating: "bcdefghijk"[$0 + row % 4], count: 26))'" }
        try db.execute(sql: "INSERT INTO t VALUES (\(row + 1), \(values.joined(separator: ", ")))")
      }
      try db.execute(sql: "INSERT INTO u VALUES ('AAAA')")
    }
    try queue.close()
    let (scrubbed, result) = try ScrubScene(folder, path).scrubbed()
    #expect(result.report.chanceMatches >= 20)
    #expect(try scrubbed.integrityCheck() == ["ok"])
    #expect(!result.scanner.scan(Self.around + Array("AAAA".utf8) + Self.around, named: "x").isEmpty)
    let words = try DatabaseQueue(path: scrubbed.store.string).read {
      try String.fetchAll($0, sql: "SELECT word FROM u")
    }
    #expect(words.count == 1 && words != ["AAAA"])
  }

  @Test("Reals without fractions are replaced in their order where an index has them")
  func largeReals() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    var random = SeededGenerator(seed: 5)
    var originals: [Double] = []
    for _ in 0..<3000 {
      let number = Double.random(in: 4_503_599_627_370_496...1e300, using: &random)
      originals += [
        number, -number.squareRoot() - 4.6e15, 4_503_599_627_370_496 + Double(Int.random(in: 0...5000, using: &random)),
      ]
    }
    try queue.write { db in
      try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, number REAL); CREATE INDEX t_number ON t (number)")
      for number in originals { try db.execute(sql: "INSERT INTO t (number) VALUES (?)", arguments: [number]) }
    }
    try queue.close()
    let (scrubbed, result) = try ScrubScene(folder, path).scrubbed()
    #expect(try scrubbed.integrityCheck() == ["ok"])
    #expect(result.report.tightValues == 0)
    let found = try DatabaseQueue(path: scrubbed.store.string).read {
      try Double.fetchAll($0, sql: "SELECT number FROM t ORDER BY id")
    }
    #expect(found.count == originals.count)
    #expect(Set(found).intersection(originals).isEmpty)
    #expect(zip(found, originals).allSatisfy { $0.exponent == $1.exponent && $0.sign == $1.sign })
    let order = originals.indices.sorted { originals[$0] < originals[$1] }
    #expect(zip(order, order.dropFirst()).allSatisfy { found[$0] <= found[$1] })
    #expect(Set(found).count == Set(originals).count)
  }

  @Test("A UUID as text stays one in every encoding", arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
  func identifiers(_ encoding: String) throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    let originals = (0..<50).map { String(format: "6E4C5A52-0F3B-4A6C-9D7A-2B1C5D8E%04X", $0 * 977) }
    try queue.write { db in
      try db.execute(sql: "PRAGMA encoding = '\(encoding)'")
      try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, mark TEXT)")
      for mark in originals { try db.execute(sql: "INSERT INTO t (mark) VALUES (?)", arguments: [mark]) }
    }
    try queue.close()
    let (scrubbed, _) = try ScrubScene(folder, path).scrubbed()
    let found = try DatabaseQueue(path: scrubbed.store.string).read {
      try String.fetchAll($0, sql: "SELECT mark FROM t ORDER BY id")
    }
    #expect(found.count == 50 && Set(found).count == 50 && Set(found).intersection(originals).isEmpty)
    for mark in found {
      #expect(UUID(uuidString: mark)?.uuidString == mark && mark.dropFirst(14).first == "4", "\(mark)")
    }
  }

  @Test("A store whose codes leave no other of their kind free is scrubbed all the same", arguments: [true, false])
  func dense(_ isIndexed: Bool) throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { db in
      try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, code TEXT, other TEXT)")
      if isIndexed { try db.execute(sql: "CREATE UNIQUE INDEX t_code ON t (code)") }
      for number in 0..<10_000 {
        try db.execute(
          sql: "INSERT INTO t (code, other) VALUES (?, ?)",
          arguments: [String(format: "%04d", number * 7 % 10_000), "w\(number % 100)"])
      }
    }
    try queue.close()
    let scene = ScrubScene(folder, path)
    let (scrubbed, result) = try scene.scrubbed()
    #expect(try scrubbed.integrityCheck() == ["ok"])
    #expect(try result.scanner.scan(scrubbed.store).isEmpty)
    #expect(result.report.tightValues == 0)
    #expect(result.report.exemptValues < 100)
  }

  @Test(
    "No number of more than six digits is one of the store's, in whatever width and column", arguments: [true, false])
  func numbers(_ isIndexed: Bool) throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    // Negative numbers of seven digits have three bytes; of a hundred thousand in a row half are not there.
    let originals =
      (0..<50_000).map { -1_000_001 - 2 * $0 } + (0..<5000).map { 1_000_000 + $0 * 1001 } + [1 << 40, 1 << 50]
    try queue.write { db in
      try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, number INTEGER)")
      if isIndexed { try db.execute(sql: "CREATE INDEX t_number ON t (number)") }
      for number in originals { try db.execute(sql: "INSERT INTO t (number) VALUES (?)", arguments: [number]) }
    }
    try queue.close()
    let (scrubbed, _) = try ScrubScene(folder, path).scrubbed()
    #expect(try scrubbed.integrityCheck() == ["ok"])
    let found = try DatabaseQueue(path: scrubbed.store.string).read {
      try Int.fetchAll($0, sql: "SELECT number FROM t")
    }
    #expect(found.count == originals.count)
    #expect(found.allSatisfy { abs($0) > 999_999 })
    #expect(Set(found).intersection(originals).isEmpty)
    #expect(Set(found).count > originals.count / 2)
  }
}

extension String {
  fileprivate subscript(offset: Int) -> Character { self[index(startIndex, offsetBy: offset)] }
}
