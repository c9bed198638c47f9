import Foundation
import GRDB
import SystemPackage
import TestSupport

/// A store's values as SQL gives them, and a search for them that has nothing in common with the scrubber's own.
struct OriginalValues {
  /// Every byte string that must not be found.
  private(set) var needles: Set<[UInt8]> = []

  /// Reads a sound store; keys and what belongs to Core Data are left out.
  init(_ store: FilePath, leavingOut: Set<String> = []) throws {
    let folder = try TemporaryFolder()
    let copy = try RealMaterial.copy(store, into: folder, as: "Copy.sqlite")
    let queue = try DatabaseQueue(path: copy.string)
    var values: Set<[UInt8]> = []
    var words: [UInt8] = []
    try queue.read { db in
      for sql in try String.fetchAll(db, sql: "SELECT sql FROM sqlite_master WHERE sql NOT NULL") {
        words += Array(sql.utf8)
      }
      let tables = try String.fetchAll(
        db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND rootpage > 0")
      let own: Set<String> = ["Z_METADATA", "Z_PRIMARYKEY", "Z_MODELCACHE"]
      for table in tables where !own.contains(table) && !table.hasPrefix("Z_") {
        let name = table.replacingOccurrences(of: "\"", with: "\"\"")
        let cursor = try Row.fetchCursor(db, sql: "SELECT * FROM \"\(name)\"")
        while let row = try cursor.next() {
          for (column, value) in row where !leavingOut.contains("\(table).\(column)") {
            switch value.storage {
            case .string(let text) where text.unicodeScalars.count >= 4: values.insert(Array(text.utf8))
            // References to files stay, as the files keep their names.
            case .blob(let data) where data.count >= 8 && !(data.count == 38 && data[0] == 2):
              values.insert(Array(data))
            case .int64(let number) where (number > 999_999 || number < -999_999) && !column.hasPrefix("Z_"):
              values.insert(Array(String(number).utf8))
            default: break
            }
          }
        }
      }
    }
    try queue.close()
    for value in values {
      // What has no letter and no digit, or is all zeros behind a signature, stays by rule.
      guard value.contains(where: Self.changes), !Self.contains(words, value) else { continue }
      needles.insert(value)
    }
  }

  /// How many of the values are found in bytes, in UTF-8 and both orders of UTF-16.
  func found(in bytes: [UInt8]) -> Int {
    let wide = needles.compactMap { value in
      String(validating: value, as: UTF8.self).map { Array($0.utf16) }
    }
    var all = Array(needles)
    for units in wide {
      var (little, big): ([UInt8], [UInt8]) = ([], [])
      for unit in units {
        let (high, low) = (UInt8(unit >> 8), UInt8(truncatingIfNeeded: unit))
        little += [low, high]
        big += [high, low]
      }
      all += [little, big]
    }
    var byStart: [UInt32: [[UInt8]]] = [:]
    for value in all { byStart[Self.start(value, 0), default: []].append(value) }
    var count = 0
    var offset = 0
    while offset + 4 <= bytes.count {
      for value in byStart[Self.start(bytes, offset)] ?? []
      where offset + value.count <= bytes.count && bytes[offset..<(offset + value.count)].elementsEqual(value) {
        count += 1
      }
      offset += 1
    }
    return count
  }

  private static func changes(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x80...0xff: true
    default: false
    }
  }

  private static func start(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
    bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
  }

  private static func contains(_ bytes: [UInt8], _ value: [UInt8]) -> Bool {
    guard bytes.count >= value.count else { return false }
    return (0...(bytes.count - value.count)).contains { start in
      bytes[start] == value[0] && bytes[start..<(start + value.count)].elementsEqual(value)
    }
  }
}
