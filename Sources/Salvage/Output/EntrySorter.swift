import SQLiteFormat

/// Sorts a numeric index in memory or in runs on disk.
///
/// An entry has one or two keys and the rowid, as unsigned numbers in SQLite's order.
struct EntrySorter {
  enum Keys {
    case integers

    case numbers
  }

  private let space: SortingSpace
  private let keys: Keys

  let width: Int

  private let number: Int

  /// Whether all entries were accepted; otherwise SQLite builds the index.
  private(set) var isUsable = true

  init(_ space: SortingSpace, keys: Keys, width: Int) {
    self.space = space
    self.keys = keys
    self.width = width
    number = space.join(width: width)
  }

  private static let sign: UInt64 = 1 << 63

  private static func number(_ value: Int64) -> UInt64 { UInt64(bitPattern: value) ^ sign }

  /// The sort key of a value; nil if unsupported.
  @inline(__always)
  func key(_ code: Int64, _ bytes: Span<UInt8>, at offset: Int, _ width: Int) -> UInt64? {
    let integer: Int64
    switch code {
    case 0: return 0
    case 8: integer = 0
    case 9: integer = 1
    case 1...6:
      guard let value = bytes.signedInteger(at: offset, length: width) else { return nil }
      integer = value
    case 7:
      guard case .numbers = keys, let bits = bytes.signedInteger(at: offset, length: 8) else { return nil }
      return Self.number(Double(bitPattern: UInt64(bitPattern: bits)))
    default: return nil
    }
    switch keys {
    case .integers: return integer == .min ? nil : Self.number(integer)
    case .numbers:
      guard abs(integer >> 53) == 0 || integer >> 53 == -1 else { return nil }
      return Self.number(Double(integer))
    }
  }

  private static func number(_ value: Double) -> UInt64? {
    let bits = value.bitPattern
    guard !value.isNaN, bits != sign else { return nil }
    return bits & sign == 0 ? bits | sign : ~bits
  }

  /// Adds an entry; a nil key makes the sorter unusable.
  @inline(__always)
  mutating func add(_ one: UInt64?, _ two: UInt64?, rowid: Int64) throws {
    guard isUsable else { return }
    guard let one, width == 1 || (one != 0 && two ?? 0 != 0) else {
      isUsable = false
      return
    }
    let row = Self.number(rowid)
    try space.add(
      SortingSpace.Entry(one: one, two: width == 1 ? row : two ?? 0, three: width == 1 ? 0 : row, sorter: number))
  }

  // MARK: Writing

  /// Writes the index; returns false, without writing, if a unique key repeats.
  func write(to tree: IndexTree, isUnique: Bool) throws -> Bool {
    if isUnique, try hasTwins() { return false }
    var tree = tree
    var record = [UInt8](repeating: 0, count: 64)
    var entries = try space.entries(of: number)
    while let entry = try entries.next() {
      let count = encode(entry.one, entry.two, entry.three, &record)
      try tree.add(record, count: count)
    }
    try tree.finish()
    return true
  }

  private func hasTwins() throws -> Bool {
    var entries = try space.entries(of: number)
    guard var before = try entries.next() else { return false }
    while let entry = try entries.next() {
      if entry.one == before.one, width == 1 || entry.two == before.two { return true }
      before = entry
    }
    return false
  }

  // MARK: Records

  private func encode(_ one: UInt64, _ two: UInt64, _ three: UInt64, _ record: inout [UInt8]) -> Int {
    let headerLength = 2 + width
    record[0] = UInt8(headerLength)
    var body = headerLength
    append(one, isKey: true, at: 1, &body, &record)
    append(two, isKey: width == 2, at: 2, &body, &record)
    if width == 2 { append(three, isKey: false, at: 3, &body, &record) }
    return body
  }

  private func append(_ number: UInt64, isKey: Bool, at header: Int, _ body: inout Int, _ record: inout [UInt8]) {
    if isKey, number == 0 {
      record[header] = 0
      return
    }
    var integer = Int64(bitPattern: number ^ Self.sign)
    if isKey, case .numbers = keys {
      let bits = number & Self.sign != 0 ? number ^ Self.sign : ~number
      let value = Double(bitPattern: bits)
      if let exact = Int64(exactly: value), abs(exact) < 1 << 47 {
        integer = exact
      } else {
        record[header] = 7
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
          record[body] = UInt8(truncatingIfNeeded: bits >> shift)
          body += 1
        }
        return
      }
    }
    let width: Int
    switch integer {
    case 0:
      record[header] = 8
      return
    case 1:
      record[header] = 9
      return
    case -128...127: (record[header], width) = (1, 1)
    case -32768...32767: (record[header], width) = (2, 2)
    case -8_388_608...8_388_607: (record[header], width) = (3, 3)
    case -2_147_483_648...2_147_483_647: (record[header], width) = (4, 4)
    case -140_737_488_355_328...140_737_488_355_327: (record[header], width) = (5, 6)
    default: (record[header], width) = (6, 8)
    }
    for shift in stride(from: 8 * (width - 1), through: 0, by: -8) {
      record[body] = UInt8(truncatingIfNeeded: integer >> Int64(shift))
      body += 1
    }
  }
}
