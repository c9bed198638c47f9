import Foundation
import GRDB
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// The check of a scrubbed store by what shares nothing with the scrubber: values are put into an honest result by hand.
@Suite("The check of a result")
struct ResultCheckTests {
  /// A store whose values are known, and its honest result.
  struct Leaks {
    let store: FilePath
    let original: [UInt8]
    let honest: [UInt8]
    let folders: [TemporaryFolder]

    static let name = "Quirinus Vandermeer"
    static let short = "Zoltan"
    static let mail = "quokka.zebrafish@meadow.example"
    static let phone: Int64 = 49_151_234_567_890
    static let height = 1834.590_817_263_5
    static let picture: [UInt8] = (0..<80).map { UInt8(truncatingIfNeeded: 17 + $0 * 89 + ($0 * $0) % 61) }

    init() throws {
      let folder = try TemporaryFolder()
      store = folder.appending("Store.sqlite")
      let queue = try DatabaseQueue(path: store.string)
      var random = SeededGenerator(seed: 11)
      try queue.writeWithoutTransaction { db in
        try db.execute(sql: "PRAGMA page_size = 4096; PRAGMA secure_delete = 0")
        try db.execute(
          sql:
            "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, nick TEXT, mail TEXT, phone INT, height REAL, pic BLOB)"
        )
        try db.execute(sql: "CREATE TABLE gone (t TEXT)")
        for index in 0..<400 {
          func word(_ count: Int) -> String {
            String((0..<count).map { _ in Character(UnicodeScalar(UInt8.random(in: 97...122, using: &random))) })
          }
          let isKnown = index == 200
          try db.execute(
            sql: "INSERT INTO people (name, nick, mail, phone, height, pic) VALUES (?, ?, ?, ?, ?, ?)",
            arguments: [
              isKnown ? Self.name : word(14), isKnown ? Self.short : word(6), isKnown ? Self.mail : word(20),
              isKnown ? Self.phone : Int64.random(in: (1 << 36)...(1 << 45), using: &random),
              isKnown ? Self.height : Double.random(in: 1...9999, using: &random),
              Data(isKnown ? Self.picture : (0..<60).map { _ in UInt8.random(in: 0...255, using: &random) }),
            ])
          try db.execute(sql: "INSERT INTO gone VALUES (?)", arguments: [word(200)])
        }
        try db.execute(sql: "DROP TABLE gone")
      }
      try queue.close()
      let target = try TemporaryFolder()
      let key = try #require(ScrubScene.key)
      _ = try StoreScrubber(key: key).scrub(StoreFileSet(main: store), into: target.path)
      original = try FileSystem().contents(of: store, limit: 1 << 26)
      honest = try FileSystem().contents(of: target.appending("Store.sqlite"), limit: 1 << 26)
      folders = [folder, target]
    }

    /// Where a value begins in the original.
    func place(of value: [UInt8]) throws -> Int {
      let range = try #require(Data(original).range(of: Data(value)))
      return range.lowerBound
    }

    /// A place on a free page, which holds no header.
    func freePlace() throws -> Int {
      let trunk = original[32..<36].reduce(0) { $0 << 8 | Int($1) }
      let start = (trunk - 1) * 4096
      return (original[(start + 8)..<(start + 12)].reduce(0) { $0 << 8 | Int($1) } - 1) * 4096 + 1000
    }

    /// The result with bytes put over a place.
    func result(_ bytes: [UInt8], at place: Int) -> [UInt8] {
      var result = honest
      result.replaceSubrange(place..<(place + bytes.count), with: bytes)
      return result
    }

    /// What the check finds in a result, and in a file of a large value beside it.
    func findings(_ result: [UInt8], external: [UInt8]? = nil) throws -> CheckFindings {
      let folder = try TemporaryFolder()
      let path = try folder.write(result, to: "Store.sqlite")
      if let external {
        let values = StoreFileSet(main: path).path(of: .externalData)
        try FileSystem().makeDirectory(values)
        try FileSystem().writeAtomically(external, to: values.appending("value"), replacing: false)
      }
      let outcome = try ResultCheck(of: StoreFileSet(main: store)).run(on: StoreFileSet(main: path))
      return try #require(outcome).findings
    }
  }

  @Test("An honest result is not refused")
  func honest() throws {
    let leaks = try Leaks()
    #expect(try leaks.findings(leaks.honest).isEmpty)
    let noise = (0..<200_000).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 11) }
    #expect(try leaks.findings(leaks.honest, external: noise).isEmpty)
    #expect(try !leaks.findings(leaks.original).isEmpty)
  }

  @Test("A value at its own place is found, with its page and table, and is not told")
  func samePlace() throws {
    let leaks = try Leaks()
    let phone = (0..<6).map { UInt8(truncatingIfNeeded: Leaks.phone >> Int64(40 - 8 * $0)) }
    let height = (0..<8).map { UInt8(truncatingIfNeeded: Leaks.height.bitPattern >> UInt64(56 - 8 * $0)) }
    let record = Array(Leaks.name.utf8) + Array(Leaks.short.utf8) + Array(Leaks.mail.utf8) + phone
    let start = try leaks.place(of: record)
    let values: [(String, [UInt8], Int)] = [
      ("text", Array(Leaks.name.utf8), start),
      ("short text", Array(Leaks.short.utf8), start + Leaks.name.utf8.count),
      ("integer", phone, start + record.count - 6), ("real", height, start + record.count),
      ("blob", Leaks.picture, try leaks.place(of: Leaks.picture)),
    ]
    for (name, bytes, place) in values {
      let findings = try leaks.findings(leaks.result(bytes, at: place))
      let found = try #require(findings.places.first { $0.kind == .samePlace }, "\(name)")
      #expect(found.page == place / 4096 + 1, "\(name)")
      #expect(found.table == "people", "\(name)")
      #expect(!found.words.contains(Leaks.short) && !found.words.contains(Leaks.name))
    }
  }

  @Test("Free pages and the space between rows are compared too")
  func freeSpace() throws {
    let leaks = try Leaks()
    let place = try leaks.freePlace()
    let findings = try leaks.findings(leaks.result(Array(leaks.original[place..<(place + 30)]), at: place))
    #expect(findings.places.contains { $0.kind == .samePlace && $0.table == nil && $0.page == place / 4096 + 1 })
  }

  @Test("A value elsewhere is found in every form")
  func forms() throws {
    let leaks = try Leaks()
    let place = try leaks.freePlace()
    let value = Array(Leaks.mail.utf8)
    var forms: [(String, [UInt8])] = [
      ("as it is", value), ("UTF-16LE", Leaks.mail.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }),
      ("UTF-16BE", Leaks.mail.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }),
      ("hexadecimal", Array(value.map { String(format: "%02x", $0) }.joined().utf8)),
      ("HEXADECIMAL", Array(value.map { String(format: "%02X", $0) }.joined().utf8)),
      ("digits", Array(String(Leaks.phone).utf8)), ("blob", Array(Leaks.picture.prefix(40))),
    ]
    for shift in 0..<3 {
      let packed = Data([UInt8](repeating: 0xfb, count: shift) + value + [0xff, 0xfe]).base64EncodedString()
      forms.append(("base64 + \(shift)", Array(packed.utf8)))
      let url = packed.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
      forms.append(("base64url + \(shift)", Array(url.utf8)))
    }
    let folder = try TemporaryFolder()
    let plain = try folder.write(Array("before ".utf8) + value + Array(" behind".utf8), to: "plain")
    #expect(try ChildProcess.run("gzip", ["-n", plain.string]).status == 0)
    forms.append(("gzip", try FileSystem().contents(of: folder.appending("plain.gz"), limit: 1 << 20)))
    for (name, bytes) in forms {
      #expect(try !leaks.findings(leaks.result(bytes, at: place)).isEmpty, "\(name)")
      let file = Array("<~ ~>".utf8) + bytes + Array("<~ ~>".utf8)
      let findings = try leaks.findings(leaks.honest, external: file)
      #expect(findings.places.contains { $0.kind == .elsewhere && $0.page == nil }, "\(name) in a file")
    }
  }

  @Test("A packed stream that is longer than a piece is followed")
  func longStream() throws {
    let leaks = try Leaks()
    let folder = try TemporaryFolder()
    var random = SeededGenerator(seed: 4)
    let noise = (0..<1_500_000).map { _ in UInt8.random(in: 0...255, using: &random) }
    let plain = try folder.write(noise + Array(Leaks.mail.utf8) + noise.prefix(100), to: "plain")
    #expect(try ChildProcess.run("gzip", ["-n", plain.string]).status == 0)
    let packed = try FileSystem().contents(of: folder.appending("plain.gz"), limit: 1 << 24)
    #expect(try !leaks.findings(leaks.honest, external: packed).isEmpty)
  }

  @Test("Sound and damaged stores of every encoding pass")
  func passes() throws {
    for encoding in ["UTF-8", "UTF-16le", "UTF-16be"] {
      let scene = try ScrubScene.plain(seed: 21, rows: 120, setup: "PRAGMA encoding = '\(encoding)'")
      _ = try scene.scrubbed()
      for kind in ["rand:20", "zero:20", "bitflip:30", "page1:rand"] {
        if let damaged = try scene.damaged(kind, seed: 5) { _ = try damaged.scrubbed() }
      }
    }
    _ = try ScrubScene.coreData(seed: 8).scrubbed()
  }

  @Test("It has an end where the caller wants one")
  func ends() throws {
    let leaks = try Leaks()
    let store = StoreFileSet(main: leaks.store)
    let outcome = try withExtendedLifetime(leaks) { try ResultCheck(of: store).run(on: store) { _, _ in false } }
    #expect(outcome == nil)
  }

  @Test("Values are found in both halves of a large file, and across the middle")
  func halves() throws {
    let scene = try StandingTests.scene([
      "PRAGMA page_size = 512", "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) INSERT INTO t "
        + "SELECT i, printf('Quirinus %d %x %x %x', i * 7919, i * 2654435761, i * 40503 * 65537, i * 2246822519) FROM n",
    ])
    let (scrubbed, _) = try scene.scrubbed()
    let honest = Array(try StandingTests.bytes(of: scrubbed))
    let texts: [String] = try StandingTests.column(scene, "SELECT a FROM t WHERE id = 20000")
    let value = Array(try #require(texts.first).utf8)
    let pages = honest.count / 512
    try #require(pages > 4096)
    // The last of these places is on two pages.
    for place in [nil, 100 * 512 + 200, pages * 3 / 4 * 512 + 200, pages / 2 * 512 - 12] as [Int?] {
      var result = honest
      if let place { result.replaceSubrange(place..<(place + value.count), with: value) }
      let folder = try TemporaryFolder()
      let path = try folder.write(result, to: "Store.sqlite")
      let outcome = try ResultCheck(of: StoreFileSet(main: scene.store)).run(on: StoreFileSet(main: path))
      let findings = try #require(outcome).findings
      #expect(findings.places.compactMap(\.page) == (place.map { [$0 / 512 + 1] } ?? []))
      #expect(findings.bytes >= Int64(honest.count))
    }
  }

  @Test("Small negative numbers of rows, which stay, are no finding")
  func smallNumbers() throws {
    let scene = try StandingTests.scene([
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)", StandingTests.rows(into: "t", "-i, 'value of ' || i"),
    ])
    let (scrubbed, _) = try scene.scrubbed()
    #expect(try StandingTests.column(scrubbed, "SELECT id FROM t ORDER BY id DESC") == Array((1...500).map { -$0 }))
  }
}
