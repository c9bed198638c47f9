import Backup
import Foundation
import GRDB
import Lazaret
import Platform
import SystemPackage
import TestSupport
import Testing

/// Stores that are damaged more and more while backups are taken and pruned by the usual policy, one a day.
struct ProgressiveDamageTests {
  private enum Kind: CaseIterable {
    case leafZeroed, leafRandom, leavesExchanged, indexZeroed, entryChanged, tailCut, headerGarbled
  }

  /// All rows of a store that SQLite finds sound; nil for one that it does not.
  private func content(_ path: FilePath) -> String? {
    var configuration = Configuration()
    configuration.readonly = true
    // What SQLite cannot open or read is not sound.
    return try? DatabaseQueue(path: path.string, configuration: configuration).read { database in
      guard try String.fetchAll(database, sql: "PRAGMA integrity_check") == ["ok"] else { return nil }
      return try String.fetchAll(database, sql: "SELECT id || ' ' || name || ' ' || size FROM notes ORDER BY id")
        .joined(separator: "\n")
    }
  }

  private func make(_ path: FilePath, rows: Int) throws {
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { database in
      try database.execute(
        sql: """
          CREATE TABLE notes (id INTEGER PRIMARY KEY, name TEXT, size INTEGER);
          CREATE INDEX notes_name ON notes (name);
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
          INSERT INTO notes SELECT i, 'Note ' || (i * 7919 % 10007) || hex(zeroblob(30)), i * 3 FROM n;
          """)
    }
    try queue.close()
  }

  private func change(_ path: FilePath, _ random: inout SeededGenerator) throws {
    let queue = try DatabaseQueue(path: path.string)
    let id = Int.random(in: 1...100, using: &random)
    try queue.write { database in
      try database.execute(
        sql:
          "UPDATE notes SET name = name || 'x', size = size + 1 WHERE id = ?; INSERT INTO notes (name) VALUES ('New')",
        arguments: [id])
      try database.execute(sql: "UPDATE notes SET size = 0 WHERE size IS NULL")
    }
    try queue.close()
  }

  private func damage(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
    let pages = stride(from: 4096, to: bytes.count, by: 4096)
    let leaves = pages.filter { bytes[$0] == 13 }
    let entries = pages.filter { bytes[$0] == 10 }
    guard let leaf = leaves.randomElement(using: &random), let other = leaves.randomElement(using: &random) else {
      return
    }
    let entry = entries.randomElement(using: &random) ?? leaf
    switch Kind.allCases.randomElement(using: &random) ?? .leafZeroed {
    case .leafZeroed: for index in leaf..<(leaf + 4096) { bytes[index] = 0 }
    case .leafRandom: for index in leaf..<(leaf + 4096) { bytes[index] = UInt8.random(in: 0...255, using: &random) }
    case .leavesExchanged:
      let content = Array(bytes[leaf..<(leaf + 4096)])
      bytes.replaceSubrange(leaf..<(leaf + 4096), with: Array(bytes[other..<(other + 4096)]))
      bytes.replaceSubrange(other..<(other + 4096), with: content)
    case .indexZeroed: for index in entry..<(entry + 4096) { bytes[index] = 0 }
    case .entryChanged:
      if let place = (entry..<(entry + 4090)).first(where: { Array(bytes[$0..<($0 + 5)]) == Array("Note ".utf8) }) {
        bytes[place + 1] = UInt8(ascii: "u")
      }
    case .tailCut: if bytes.count > 5 * 4096 { bytes.removeLast(4096) }
    case .headerGarbled: for index in 0..<100 { bytes[index] = UInt8.random(in: 0...255, using: &random) }
    }
  }

  @Test(arguments: UInt64(1)...8)
  func aGoodBackupCanBeRestoredAtEveryMoment(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let folder = try TemporaryFolder()
    let store = folder.appending("App.sqlite")
    let home = folder.appending("Home")
    try make(store, rows: 300 + 40 * Int(seed))
    var good: [String] = []
    let system = FileSystem()
    for day in 0..<60 {
      let told = Comment(rawValue: "seed \(seed), day \(day)")
      var isSound = content(store) != nil
      if day < 12 || good.isEmpty || (isSound && Int.random(in: 0..<3, using: &random) == 0) {
        try change(store, &random)
      } else if !isSound, Int.random(in: 0..<12, using: &random) == 0 {
        // The app is given the last good backup back.
        try system.writeAtomically(
          try system.contents(of: folder.appending("Restored.sqlite"), limit: 1 << 28), to: store, replacing: true)
      } else {
        var bytes = try system.contents(of: store, limit: 1 << 28)
        damage(&bytes, &random)
        try system.writeAtomically(bytes, to: store, replacing: true)
      }
      let now = content(store)
      isSound = now != nil
      if let now { good.append(now) }
      let date = Timestamp(secondsSince1970: 1_767_261_600 + Int64(day) * 86400)
      let surroundings = Surroundings.still(at: date.rfc3339, seed: seed)
      let backups = Backups(home: home, surroundings: surroundings)
      let taken = try backups.backUpIfDue(store)
      let backup = try #require(taken.backup, told)
      #expect(backup.isApart == !isSound, told)
      #expect((taken.proof?.result == .proven) == isSound && (taken.pruning != nil) == isSound, told)
      // Whatever was dropped, the last good one restores.
      let last = try #require(try backups.catalog(of: store).backups.first(where: \.isProvenGood), told)
      let path = folder.appending("Restored.sqlite")
      if try system.status(of: path) != nil { try system.unlink(path) }
      _ = try BackupRestorer(of: backups.place(of: store), surroundings: surroundings).restore(last.id, to: path)
      #expect(content(path) == good.last, told)
    }
  }
}
