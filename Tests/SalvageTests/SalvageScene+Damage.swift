import Platform
import SQLiteFormat
import TestSupport

extension SalvageScene {
  static let pageSize = 4096

  var pageCount: Int { main.count / Self.pageSize }

  /// The number of rows that lie wholly on pages that are not hit; rows with overflow are left out.
  func survivors(hit: Set<UInt32>) throws -> Int {
    let database = try Database(main: MemoryBytes(main))
    var count = 0
    for entry in try database.schema().tables where Self.tables.contains(entry.name) {
      guard entry.tableDefinition?.isWithoutRowid != true else { continue }
      var rows = try database.rows(root: entry.rootPage)
      while let row = try rows.next() {
        if !hit.contains(row.page), row.record.payload.count < 3000 { count += 1 }
      }
    }
    return count
  }

  /// The pages of a kind, by the first byte of their header.
  func pages(ofKind kinds: Set<UInt8>) -> [UInt32] {
    (2...pageCount).filter { kinds.contains(main[($0 - 1) * Self.pageSize]) }.map { UInt32($0) }
  }

  func roots() throws -> [UInt32] {
    try Database(main: MemoryBytes(main)).schema().tables.filter { Self.tables.contains($0.name) }.map(\.rootPage)
  }

  /// Some pages, page 1 not among them.
  func somePages(_ share: Double, _ random: inout SeededGenerator) -> [UInt32] {
    Array((2...UInt32(pageCount)).shuffled(using: &random).prefix(max(1, Int(Double(pageCount) * share)))).sorted()
  }

  func overwriting(_ pages: [UInt32], _ byte: () -> UInt8) -> SalvageScene {
    var copy = self
    for page in pages {
      let start = (Int(page) - 1) * Self.pageSize
      for index in start..<(start + Self.pageSize) { copy.main[index] = byte() }
    }
    return copy
  }

  func swapping(_ pages: [UInt32]) -> SalvageScene {
    var copy = self
    for index in stride(from: 0, to: pages.count - 1, by: 2) {
      let first = (Int(pages[index]) - 1) * Self.pageSize
      let second = (Int(pages[index + 1]) - 1) * Self.pageSize
      let bytes = Array(copy.main[first..<(first + Self.pageSize)])
      copy.main.replaceSubrange(first..<(first + Self.pageSize), with: main[second..<(second + Self.pageSize)])
      copy.main.replaceSubrange(second..<(second + Self.pageSize), with: bytes)
    }
    return copy
  }

  func tearing(_ pages: [UInt32], _ random: inout SeededGenerator) -> SalvageScene {
    var copy = self
    for page in pages {
      let start = (Int(page) - 1) * Self.pageSize + 512 * Int.random(in: 0..<8, using: &random)
      for index in start..<(start + 512) { copy.main[index] = 0 }
    }
    return copy
  }

  func changing(_ change: (inout SalvageScene) throws -> Void) rethrows -> SalvageScene {
    var copy = self
    try change(&copy)
    return copy
  }
}
