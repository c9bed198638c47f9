import Foundation
import GRDB
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// What leaves the machine at the levels that hold none of the user's data.
struct PrivacyTests {
  /// Odd values of all types, in a store of all encodings.
  private struct Planted {
    var texts: [String] = []
    var numbers: [Int64] = []
    var blobs: [[UInt8]] = []

    init(seed: UInt64) {
      var random = SeededGenerator(seed: seed)
      let letters = Array("abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ0123456789éøłжД日本ñ -_.@")
      for _ in 0..<250 {
        texts.append(
          String((0..<Int.random(in: 8...60, using: &random)).map { _ in letters.randomElement(using: &random) ?? "x" })
        )
      }
      for _ in 0..<125 { numbers.append(Int64.random(in: 10_000_000...Int64.max, using: &random)) }
      for _ in 0..<125 {
        blobs.append(
          (0..<Int.random(in: 8...90, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) })
      }
    }

    /// Every spelling in which one of them could be found.
    func needles() -> [[UInt8]] {
      var result: [[UInt8]] = []
      func add(_ bytes: [UInt8]) {
        result.append(bytes)
        result.append(Array(bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined().utf8))
        result.append(Array(bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined().utf8))
        result.append(Array(Data(bytes).base64EncodedString().utf8.prefix { $0 != UInt8(ascii: "=") }))
      }
      for text in texts {
        add(Array(text.utf8))
        result.append(text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] })
        result.append(text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)] })
      }
      for number in numbers {
        result.append(Array("\(number)".utf8))
        add((0..<8).map { UInt8(truncatingIfNeeded: number >> Int64(56 - 8 * $0)) })
      }
      for blob in blobs { add(blob) }
      return result
    }

    func fill(_ store: FilePath, encoding: String) throws {
      let queue = try DatabaseQueue(path: store.string)
      try queue.writeWithoutTransaction { database in
        try database.execute(sql: "PRAGMA encoding = '\(encoding)'; PRAGMA page_size = 1024")
        try database.execute(
          sql: "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT UNIQUE, phone INTEGER, picture BLOB, any)")
        try database.execute(sql: "CREATE TABLE keyed (word TEXT PRIMARY KEY, stamp INTEGER) WITHOUT ROWID")
        try database.execute(sql: "CREATE INDEX byPhone ON people (phone, name)")
        for (index, text) in texts.enumerated() {
          try database.execute(
            sql: "INSERT INTO people (name, phone, picture, any) VALUES (?, ?, ?, ?)",
            arguments: [
              text, numbers[index % numbers.count], Data(blobs[index % blobs.count]),
              index % 2 == 0 ? Double(numbers[index % numbers.count]) : nil,
            ])
          if index % 3 == 0 {
            try database.execute(sql: "INSERT INTO keyed VALUES (?, ?)", arguments: [text, numbers[index % 125]])
          }
          // Where an app chooses its own keys they are its user's values.
          if index % 5 == 0 {
            try database.execute(
              sql: "INSERT INTO people (id, name) VALUES (?, ?)", arguments: [numbers[index / 5], "\(text) again"])
          }
        }
        try database.execute(sql: "DELETE FROM people WHERE id % 11 = 0; ANALYZE")
      }
      try queue.close()
    }
  }

  /// The texts found in any file of a folder: how many, and where the first is.
  private func found(_ needles: [[UInt8]], in folder: FilePath, _ system: FileSystem) throws -> [String] {
    var byStart: [[UInt8]: [[UInt8]]] = [:]
    for needle in needles where needle.count >= 8 { byStart[Array(needle.prefix(8)), default: []].append(needle) }
    var result: [String] = []
    for file in try system.descendants(of: folder).files {
      let bytes = try system.contents(of: file.path, limit: 1 << 26)
      guard bytes.count >= 8 else { continue }
      for start in 0...(bytes.count - 8) {
        guard let candidates = byStart[Array(bytes[start..<(start + 8)])] else { continue }
        for needle in candidates where bytes[start...].starts(with: needle) {
          result.append("\(file.path.lastComponent?.string ?? "") at \(start)")
        }
      }
    }
    return result
  }

  @Test(arguments: ["UTF-8", "UTF-16le", "UTF-16be"], ["none", "zero:20", "page1:rand", "rand:20", "bitflip:30"])
  func noValueIsInTheFacts(_ encoding: String, _ damage: String) throws {
    let scene = try ExportScene()
    let planted = Planted(seed: 5)
    try planted.fill(scene.store, encoding: encoding)
    if damage != "none" { try scene.damage(damage) }
    let (_, received) = try scene.export(.facts)
    let hits = try found(planted.needles(), in: received.folder, scene.system)
    #expect(hits.isEmpty, "\(hits.count), the first in \(hits.first ?? "")")
    // The search finds them where they are.
    let (_, all) = try scene.export(.full, as: "full")
    #expect(try !found(planted.needles(), in: all.folder, scene.system).isEmpty)
  }

  @Test func noNumberOfARowIsInAnyTextAtAnyLevel() throws {
    let scene = try ExportScene()
    let queue = try DatabaseQueue(path: scene.store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "CREATE TABLE people (phone INTEGER PRIMARY KEY, name TEXT)")
      for number in 0..<6 {
        try database.execute(
          sql: "INSERT INTO people VALUES (?, 'Anna Smith')", arguments: [4_917_512_345_670 + Int64(number)])
      }
    }
    try queue.close()
    // Two rows of the only page change places, so that their order is complained of.
    var bytes = try scene.system.contents(of: scene.store, limit: 1 << 20)
    let page = bytes.count / 2
    #expect(bytes[page] == 13)
    bytes.replaceSubrange(
      (page + 8)..<(page + 12), with: [bytes[page + 10], bytes[page + 11], bytes[page + 8], bytes[page + 9]])
    try scene.system.writeAtomically(bytes, to: scene.store, replacing: true)
    let needles = (0..<6).map { Array("491751234567\($0)".utf8) }
    for level in BundleLevel.allCases {
      let (summary, received) = try scene.export(level)
      let log = String(decoding: try scene.content("log.txt", of: received), as: UTF8.self)
      #expect(log.contains("Rowid N out of order"), "\(level): \(log)")
      let hits = try found(needles, in: received.folder, scene.system)
      #expect(hits.isEmpty, "\(level): \(hits)")
      try scene.system.unlink(try #require(summary.path.path))
    }
  }

  @Test func aScrubbedBundleTellsOnlyTheMonthThatItWasMadeIn() throws {
    let scene = try ExportScene.plain()
    for (level, date) in [(BundleLevel.scrubbed, "2026-11-01T00:00:00Z"), (.facts, "2026-11-21T10:11:12Z")] {
      let (summary, received) = try scene.export(level)
      #expect(received.date == Timestamp(date))
      let facts = try scene.json(BundleFacts.name, of: received)
      #expect((facts["date"] as? String).flatMap { Timestamp($0) } == Timestamp(date))
      let log = String(decoding: try scene.content("log.txt", of: received), as: UTF8.self)
      #expect(log.hasPrefix(date), "\(log.prefix(40))")
      if level == .scrubbed {
        let day = Array("2026-11-21".utf8)
        #expect(
          try found(
            [Array("2026-11-21T".utf8), day + [0x20]].map { Array($0.prefix(11)) }, in: received.folder, scene.system
          ).isEmpty)
      }
      try scene.system.unlink(try #require(summary.path.path))
    }
  }

  @Test func noFolderOfTheUsersIsTold() throws {
    let scene = try ExportScene.plain()
    try scene.damage("zero:20")
    for level in [BundleLevel.facts, .damagedPages, .scrubbed, .full] {
      let (summary, received) = try scene.export(level)
      let needle = Array(try #require(scene.folder.path.lastComponent).string.utf8)
      #expect(try found([needle], in: received.folder, scene.system).isEmpty, "\(level)")
      try scene.system.unlink(try #require(summary.path.path))
    }
  }

  @Test func theKeyIsInNoBundle() throws {
    let scene = try ExportScene.plain()
    try scene.damage("zero:20")
    let (_, received) = try scene.export(.scrubbed) { $0.usesSameKey = true }
    let file = scene.home.appending("Keys/scrubbing.key")
    let status = try #require(try scene.system.status(of: file))
    #expect(status.permissions == .ownerReadWrite)
    let digits = Array(try scene.system.contents(of: file, limit: 1000).prefix(64))
    let key = stride(from: 0, to: 64, by: 2).compactMap {
      UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16)
    }
    #expect(key.count == 32)
    let upper = String(decoding: digits, as: UTF8.self).uppercased()
    var needles = [key, digits, Array(upper.utf8), Array(key.reversed())]
    for drop in 0..<3 {
      let text = Data(key.dropFirst(drop)).base64EncodedString()
      needles.append(Array(text.utf8.prefix(36)))
    }
    #expect(try found(needles, in: received.folder, scene.system).isEmpty)
    #expect(try found(needles, in: scene.out, scene.system).isEmpty)
    #expect(try !found(needles, in: scene.home, scene.system).isEmpty)
  }

  @Test func twoScrubbedBundlesAgreeWhereTheSameKeyIsWanted() throws {
    let scene = try ExportScene.plain()
    let (first, one) = try scene.export(.scrubbed, { $0.usesSameKey = true }, as: "one")
    try scene.system.unlink(try #require(first.path.path))
    let (second, two) = try scene.export(.scrubbed, { $0.usesSameKey = true }, as: "two")
    try scene.system.unlink(try #require(second.path.path))
    let (third, three) = try scene.export(.scrubbed, as: "three")
    try scene.system.unlink(try #require(third.path.path))
    let (_, four) = try scene.export(.scrubbed, as: "four")
    let original = try scene.system.contents(of: scene.store, limit: 1 << 24)
    let stores = try [one, two, three, four].map { try scene.content("store/App.sqlite", of: $0) }
    #expect(stores[0] == stores[1])
    #expect(stores[0] != stores[2])
    #expect(stores[2] != stores[3])
    #expect(stores[0] != original)
    #expect(stores.allSatisfy { $0.count == original.count })
  }

  @Test func keysOfAnAppsOwnAreNotListed() throws {
    let scene = try ExportScene.plain(log: false)
    try scene.damage("rand:30")
    let (_, received) = try scene.export(.facts)
    let text = String(decoding: try scene.content("salvage.json", of: received), as: UTF8.self)
    #expect(!text.contains("lostKeys\"") && !text.contains("lostKeysEstimated"))
    #expect(text.contains("\"lost\""))
  }
}
