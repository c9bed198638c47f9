import Platform
import SQLiteFormat

extension Health {
  package static let indexesUncompared = "indexes-uncompared"

  /// Adds findings grouped by kind, without duplicates.
  mutating func add(_ findings: Findings) {
    for (kind, count) in findings.counts.ordered(by: { $0.key.rawValue < $1.key.rawValue }) {
      let pages = findings.items.filter { $0.kind == kind }.compactMap(\.page)
      if let index = notes.firstIndex(where: { $0.code == kind.rawValue }) {
        notes[index].count = max(notes[index].count, count)
        continue
      }
      notes.append(
        HealthNote(kind.rawValue, kind.severity, kind.words, count: count, pages: Array(Set(pages).sorted().prefix(10)))
      )
    }
  }

  /// Adds known bugs of the last writer's SQLite (header bytes 96–99).
  mutating func addKnownBugs(sqliteVersion version: UInt32, usesLog: Bool) {
    // The WAL-reset bug (https://sqlite.org/wal.html#walresetbug): 3.7.0 to 3.51.2, fixed in 3.44.6 and 3.50.7 too.
    let mended: [ClosedRange<UInt32>] = [3_044_006...3_044_999, 3_050_007...3_050_999]
    guard usesLog, (3_007_000...3_051_002).contains(version), !mended.contains(where: { $0.contains(version) }) else {
      return
    }
    notes.append(
      HealthNote(
        "written-with-wal-reset-bug", .note,
        "it was written by SQLite \(Self.name(ofSQLite: version)), whose WAL-reset bug can, very rarely, damage a store that two connections write to"
      ))
  }

  static func name(ofSQLite version: UInt32) -> String {
    "\(version / 1_000_000).\(version / 1000 % 1000).\(version % 1000)"
  }
}
