import Foundation
import GRDB
import SQLiteFormat
import SystemPackage

/// How many rows of a store a tool brought back, by comparing every row with those of the undamaged store.
struct RecoveryScore {
  /// Rows in the table of their name, every value the same.
  var right = 0

  /// Rows of the store anywhere else in the result.
  var elsewhere = 0

  /// Rows in a table of the store that were never in it.
  var wrong = 0

  /// Scores a result; no rows where it cannot be opened.
  init(_ result: FilePath, truth: [String: [UInt64: Int]]) {
    do {
      let queue = try DatabaseQueue(path: "file://\(result.string)?mode=ro")
      defer { Self.closeQuietly(queue) }
      var left = truth
      let (found, foreign) = try queue.read { database in
        let names = try String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
        return (
          try Self.rows(of: names.filter { truth[$0] != nil }, database),
          try names.filter { $0.hasPrefix("lost_and_found") || $0 == "lazaret_lost_and_found" }
            .map { try Self.lostRows(of: $0, database) }
        )
      }
      for (table, rows) in found {
        for (digest, count) in rows {
          let hits = min(count, left[table]?[digest] ?? 0)
          right += hits
          wrong += count - hits
          left[table]?[digest, default: 0] -= hits
        }
      }
      var anywhere: [UInt64: Int] = [:]
      for rows in left.values { anywhere.merge(rows, uniquingKeysWith: +) }
      for rows in foreign {
        for ways in rows {
          guard let digest = ways.first(where: { anywhere[$0, default: 0] > 0 }) else { continue }
          anywhere[digest, default: 0] -= 1
          elsewhere += 1
        }
      }
    } catch {
      // What cannot be opened holds no row; the table shows that.
    }
  }

  private static func closeQuietly(_ queue: DatabaseQueue) {
    // Nothing was written, so closing cannot lose anything.
    try? queue.close()
  }

  /// The digests of the rows of tables.
  static func rows(of tables: [String], _ database: GRDB.Database) throws -> [String: [UInt64: Int]] {
    var result: [String: [UInt64: Int]] = [:]
    for table in tables {
      var rows: [UInt64: Int] = [:]
      let cursor = try GRDB.Row.fetchCursor(database, sql: "SELECT * FROM \"\(table)\" NOT INDEXED")
      while let row = try cursor.next() { rows[digest(row.map { value($0.1) }), default: 0] += 1 }
      result[table] = rows
    }
    return result
  }

  /// For each row of a table of lost rows, the digests that it can have: as it is, and with its key in the first column.
  private static func lostRows(of table: String, _ database: GRDB.Database) throws -> [[UInt64]] {
    var result: [[UInt64]] = []
    let cursor = try GRDB.Row.fetchCursor(database, sql: "SELECT * FROM \"\(table)\"")
    while let row = try cursor.next() {
      var values = row.map { value($0.1) }
      guard values.count > 4, case .integer(let count) = values[2] else { continue }
      let id = values[3]
      values.removeFirst(4)
      values = Array(values.prefix(Int(clamping: count)))
      var ways = [digest(values)]
      if case .null? = values.first { ways.append(digest([id] + values.dropFirst())) }
      result.append(ways)
    }
    return result
  }

  private static func value(_ value: DatabaseValue) -> Value {
    switch value.storage {
    case .null: .null
    case .int64(let number): .integer(number)
    case .double(let number): .real(number)
    case .string(let text): .text(EncodedText(text))
    case .blob(let data): .blob(Array(data))
    }
  }

  /// A digest of values and their storage classes (FNV-1a).
  static func digest(_ values: [Value]) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    func add(_ bits: UInt64) { for shift in 0..<8 { add(UInt8(truncatingIfNeeded: bits >> (8 * UInt64(shift)))) } }
    for value in values {
      switch value {
      case .null: add(UInt8(0))
      case .integer(let number):
        add(UInt8(1))
        add(UInt64(bitPattern: number))
      case .real(let number):
        add(UInt8(2))
        add(number.bitPattern)
      case .text(let text):
        add(UInt8(3))
        for byte in text.bytes { add(byte) }
        add(UInt64(text.bytes.count))
      case .blob(let bytes):
        add(UInt8(4))
        for byte in bytes { add(byte) }
        add(UInt64(bytes.count))
      }
    }
    return hash
  }
}
