internal import SQLiteFormat
internal import StoreFiles
internal import SystemPackage

/// The entries of one index of numbers, sorted: in memory, or in runs on the disk where there are many.
///
/// An entry is the keys of one or two columns and the rowid, as numbers without sign whose order is SQLite's.
final class EntrySorter {
  /// What all sorters of a store share: the memory they may take, and the file of sorted runs.
  final class Space {
    /// The entries that are in memory at most; each takes 24 bytes.
    private static let limit = 1 << 20

    private let path: FilePath
    private let fileSystem: FileSystem
    private var held = 0
    private var sorters: [EntrySorter] = []
    fileprivate var end: Int64 = 0

    /// Runs are written into a file of that name, which is made where it is needed.
    init(_ path: FilePath, in fileSystem: FileSystem) {
      self.path = path
      self.fileSystem = fileSystem
    }

    fileprivate func join(_ sorter: EntrySorter) { sorters.append(sorter) }

    fileprivate func hold() throws(SalvageError) {
      held += 1
      guard held > Self.limit else { return }
      do throws(FileError) {
        let file = end == 0 ? try fileSystem.create(path) : try fileSystem.update(path)
        for sorter in sorters { try sorter.spill(into: file, self) }
      } catch {
        throw SalvageError(error)
      }
      held = 0
    }

    fileprivate func open() throws(FileError) -> ReadableFile { try fileSystem.open(path) }
  }

  /// What the keys are.
  enum Keys {
    /// Integers.
    case integers

    /// Integers and reals.
    case numbers
  }

  private let space: Space
  private let keys: Keys

  /// The number of columns: one or two.
  let width: Int

  private var first: [UInt64] = []
  private var second: [UInt64] = []
  private var third: [UInt64] = []
  private var runs: [(offset: Int64, count: Int)] = []

  /// Whether every entry could be taken; else SQLite has to make the index.
  private(set) var isUsable = true

  init(_ space: Space, keys: Keys, width: Int) {
    self.space = space
    self.keys = keys
    self.width = width
    space.join(self)
  }

  private static let sign: UInt64 = 1 << 63

  /// The number for an integer.
  private static func number(_ value: Int64) -> UInt64 { UInt64(bitPattern: value) ^ sign }

  /// The number for a value of a record; nil where the sorter cannot take it.
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

  /// Takes an entry; nil keys make the sorter useless.
  @inline(__always)
  func add(_ one: UInt64?, _ two: UInt64?, rowid: Int64) throws(SalvageError) {
    guard isUsable else { return }
    guard let one, width == 1 || (one != 0 && two ?? 0 != 0) else {
      giveUp()
      return
    }
    first.append(one)
    second.append(width == 1 ? Self.number(rowid) : two ?? 0)
    if width == 2 { third.append(Self.number(rowid)) }
    try space.hold()
  }

  /// Forgets all entries: SQLite makes the index.
  func giveUp() {
    isUsable = false
    first = []
    second = []
    third = []
    runs = []
  }

  // MARK: Sorting

  /// The order of the entries in memory, which come in the order of their rowids.
  private func order() -> [UInt32] {
    var order = (0..<UInt32(first.count)).map(\.self)
    var other = order
    if width == 2 { Self.sort(&order, &other, by: second) }
    Self.sort(&order, &other, by: first)
    return order
  }

  /// Sorts by one number, sixteen bits at a time, what is equal staying in its order.
  private static func sort(_ order: inout [UInt32], _ other: inout [UInt32], by keys: [UInt64]) {
    guard let some = keys.first else { return }
    var differing: UInt64 = 0
    for key in keys { differing |= key ^ some }
    for shift in stride(from: UInt64(0), through: 48, by: 16) where (differing >> shift) & 0xffff != 0 {
      var places = [Int32](repeating: 0, count: 65537)
      for key in keys { places[Int((key >> shift) & 0xffff) + 1] += 1 }
      for digit in 1...65536 { places[digit] += places[digit - 1] }
      for index in order {
        let digit = Int((keys[Int(index)] >> shift) & 0xffff)
        other[Int(places[digit])] = index
        places[digit] += 1
      }
      swap(&order, &other)
    }
  }

  private func spill(into file: borrowing WritableFile, _ space: Space) throws(FileError) {
    guard !first.isEmpty else { return }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(1 << 18)
    let start = space.end
    for index in order() {
      let place = Int(index)
      for number in [first[place], second[place], width == 2 ? third[place] : 0] {
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
          bytes.append(UInt8(truncatingIfNeeded: number >> shift))
        }
      }
      if bytes.count >= 1 << 18 {
        try file.write(bytes, at: space.end)
        space.end += Int64(bytes.count)
        bytes.removeAll(keepingCapacity: true)
      }
    }
    try file.write(bytes, at: space.end)
    space.end += Int64(bytes.count)
    runs.append((start, first.count))
    first.removeAll(keepingCapacity: false)
    second.removeAll(keepingCapacity: false)
    third.removeAll(keepingCapacity: false)
  }

  // MARK: Writing

  /// Writes the index; false, and nothing written, where a key that must be unique is there twice.
  func write(to tree: IndexTree, isUnique: Bool) throws(SalvageError) -> Bool {
    if isUnique, try hasTwins() { return false }
    var record = [UInt8](repeating: 0, count: 64)
    try forEach { entry throws(SalvageError) in
      let count = encode(entry.0, entry.1, entry.2, &record)
      try tree.add(record, count: count)
      return true
    }
    try tree.finish()
    giveUp()
    return true
  }

  private func hasTwins() throws(SalvageError) -> Bool {
    var before: (UInt64, UInt64)?
    var found = false
    try forEach { entry throws(SalvageError) in
      if let before, before.0 == entry.0, width == 1 || before.1 == entry.1 { found = true }
      before = (entry.0, entry.1)
      return !found
    }
    return found
  }

  /// Goes through the entries in their order, as long as the body wants more.
  private func forEach(
    _ body: ((UInt64, UInt64, UInt64)) throws(SalvageError) -> Bool
  ) throws(SalvageError) {
    let order = order()
    if runs.isEmpty {
      for index in order {
        let place = Int(index)
        guard try body((first[place], second[place], width == 2 ? third[place] : 0)) else { return }
      }
      return
    }
    var sources: [Run] = []
    do throws(FileError) {
      let file = try space.open()
      for run in runs { sources.append(Run(file, offset: run.offset, count: run.count)) }
      for index in sources.indices { try sources[index].advance() }
    } catch {
      throw SalvageError(error)
    }
    var next = 0
    while true {
      var best = -1
      for index in sources.indices where sources[index].isHere {
        if best < 0 || sources[index].entry < sources[best].entry { best = index }
      }
      if next < order.count {
        let place = Int(order[next])
        let entry = (first[place], second[place], width == 2 ? third[place] : 0)
        if best < 0 || entry < sources[best].entry {
          guard try body(entry) else { return }
          next += 1
          continue
        }
      }
      guard best >= 0 else { return }
      guard try body(sources[best].entry) else { return }
      do throws(FileError) { try sources[best].advance() } catch { throw SalvageError(error) }
    }
  }

  /// A sorted run on the disk while it is read.
  private struct Run {
    private let file: ReadableFile
    private var offset: Int64
    private var left: Int
    private var buffer: [UInt8] = []
    private var place = 0
    private(set) var entry: (UInt64, UInt64, UInt64) = (0, 0, 0)
    private(set) var isHere = true

    init(_ file: ReadableFile, offset: Int64, count: Int) {
      self.file = file
      self.offset = offset
      left = count
    }

    mutating func advance() throws(FileError) {
      guard left > 0 else {
        isHere = false
        return
      }
      if place + 24 > buffer.count {
        buffer = try file.bytes(at: offset, length: 24 * min(left, 2048))
        offset += Int64(buffer.count)
        place = 0
      }
      guard place + 24 <= buffer.count else {
        throw FileError(.inputOutput, operation: "sort an index", path: file.path)
      }
      func number(_ start: Int) -> UInt64 {
        UInt64(bitPattern: buffer.span.signedInteger(at: start, length: 8) ?? 0)
      }
      entry = (number(place), number(place + 8), number(place + 16))
      place += 24
      left -= 1
    }
  }

  // MARK: Records

  /// Encodes an entry as the record of an index; returns its length.
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
