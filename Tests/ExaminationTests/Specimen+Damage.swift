import Platform
import SQLiteFormat
import TestSupport

extension Specimen {
  static let pageSize = 4096

  /// Bytes without any pattern, always the same ones.
  static func noise(_ count: Int, seed: UInt64 = 7) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  /// The root page of a table or index.
  func root(of name: String) throws -> UInt32 {
    let schema = try database().schema()
    return try require(schema.entries.first { $0.name == name }?.rootPage)
  }

  func database() throws -> SQLiteFormat.Database {
    try SQLiteFormat.Database(main: MemoryBytes(main ?? []), writeAheadLog: log.map { MemoryBytes($0) })
  }

  /// The store with a leaf of a table, deep inside, overwritten.
  func losingLeaf(of table: String) throws -> Specimen {
    let page = try database().bTreePage(try root(of: table))
    let leaf = try require(page?.children.dropFirst().first ?? nil)
    return with { bytes in
      let start = Int(leaf - 1) * Self.pageSize
      for index in start..<(start + Self.pageSize) { bytes[index] = 0xAA }
    }
  }

  /// The main file with bytes from an offset on replaced.
  func overwriting(_ offset: Int, with new: [UInt8]) -> Specimen {
    with { bytes in for (index, byte) in new.enumerated() { bytes[offset + index] = byte } }
  }

  /// The main file cut to a length.
  func cut(to length: Int) -> Specimen { with { $0 = Array($0.prefix(length)) } }
}

/// The value, or an error that ends the test.
func require<Value>(_ value: Value?) throws -> Value {
  guard let value else { throw FixtureError() }
  return value
}

struct FixtureError: Error {}
