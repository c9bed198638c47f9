internal import ManagedObjectModel
internal import Platform
internal import SQLiteFormat

extension RecoveryKit {
  static let magic: [UInt8] = Array("LazaKit\n".utf8)

  private static let limit = 256 << 20

  /// Encodes the kit file: magic, format, checksum and length of the body, and the deflated body.
  ///
  /// - Throws: `kit-packing` if memory is short.
  public func bytes() throws -> [UInt8] { try bytes(level: Self.levels[0]) }

  /// The compression levels: the current one, and older versions'.
  ///
  /// Level 9 takes twelve times as long as level 6, for a kit one twentieth smaller.
  package static let levels = [6, 9]

  package func bytes(level: Int) throws -> [UInt8] {
    var writer = KitWriter()
    writer.number(Int64(date.secondsSince1970))
    writer.text(storeUUID)
    writer.count(versionHashes.count)
    for (name, hash) in versionHashes.ordered(by: { $0.key < $1.key }) {
      writer.text(name)
      writer.count(hash.count)
      writer.bytes += hash
    }
    for value in [
      Int64(file.pageSize), Int64(file.reservedBytes), Int64(file.pageCount), Int64(file.encoding.rawValue),
      file.isAutoVacuum ? 1 : 0, file.usesWriteAheadLog ? 1 : 0, Int64(file.changeCounter), Int64(file.schemaCookie),
      file.log == nil ? 0 : 1, Int64(file.log?.salt1 ?? 0), Int64(file.log?.salt2 ?? 0), Int64(file.log?.frames ?? 0),
    ] { writer.number(value) }
    writer.count(entries.count)
    for entry in entries {
      writer.text(entry.kind)
      writer.text(entry.name)
      writer.text(entry.tableName)
      writer.number(Int64(entry.root))
      writer.text(entry.sql)
    }
    writer.count(tables.count)
    for table in tables {
      writer.text(table.name)
      writer.number(Int64(table.root))
      writer.number(table.hasRowids ? 1 : 0)
      writer.number(table.rows)
      writer.ascending(table.leaves.map(Int64.init))
      writer.count(table.sums.count)
      for sum in table.sums { writer.word(sum) }
      writer.count(table.groups.count)
      for group in table.groups {
        writer.number(group.entity)
        writer.number(group.rows)
        writer.number(group.keys == nil ? 0 : 1)
        writer.ascending(group.keys?.ranges.flatMap { [$0.lowerBound, $0.upperBound] } ?? [])
      }
    }
    if let generation { writer.text(generation) }
    guard let packed = RawDeflate.pack(writer.bytes, level: level), writer.bytes.count <= Self.limit else {
      throw SalvageError(
        .kitPacking, operation: "pack the recovery kit", detail: "it is too large, or there is not enough memory")
    }
    var head = KitWriter()
    // Older versions can read a kit without generation.
    head.bytes = Self.magic + [generation == nil ? 1 : Self.currentFormat]
    head.word(PageSum.of(writer.bytes.span))
    head.word(UInt32(writer.bytes.count))
    return head.bytes + packed
  }

  /// Decodes a kit file.
  ///
  /// - Throws: `kit-unreadable` for anything but a whole kit, `kit-later-format` for a later format.
  public init(bytes: [UInt8]) throws {
    let head = Self.magic.count + 1
    guard bytes.starts(with: Self.magic), bytes.count > head + 8, bytes[head - 1] > 0 else {
      throw SalvageError.unreadableKit
    }
    guard bytes[head - 1] <= Self.currentFormat else {
      throw SalvageError(.kitLaterFormat, operation: "read the recovery kit", detail: "a later version wrote it")
    }
    let sum = bytes.span.uint32(at: head) ?? 0
    let length = Int(bytes.span.uint32(at: head + 4) ?? 0)
    guard length <= Self.limit, let body = RawDeflate.unpack(Array(bytes[(head + 8)...]), limit: length),
      body.count == length, PageSum.of(body.span) == sum, let kit = KitReader(body).kit(format: bytes[head - 1])
    else { throw SalvageError.unreadableKit }
    self = kit
  }
}

struct KitWriter {
  var bytes: [UInt8] = []

  /// Writes a zigzag varint: seven bits per byte, lowest first, sign in the lowest bit.
  mutating func number(_ value: Int64) {
    var rest = UInt64(bitPattern: (value << 1) ^ (value >> 63))
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  mutating func count(_ value: Int) { number(Int64(value)) }

  mutating func word(_ value: UInt32) {
    for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
  }

  mutating func text(_ value: String?) {
    guard let value else { return number(-1) }
    let utf8 = Array(value.utf8)
    count(utf8.count)
    bytes += utf8
  }

  /// Writes numbers as differences.
  mutating func ascending(_ values: [Int64]) {
    count(values.count)
    var previous: Int64 = 0
    for value in values {
      number(value &- previous)
      previous = value
    }
  }
}

/// Decodes a kit, with bounds checks against hostile input.
struct KitReader {
  private let bytes: [UInt8]
  private var place = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  private mutating func takeNumber() -> Int64? {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while place < bytes.count, shift < 64 {
      let byte = bytes[place]
      place += 1
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1) }
      shift += 7
    }
    return nil
  }

  /// Reads the count of items of at least a byte each.
  private mutating func takeCount() -> Int? {
    guard let value = takeNumber(), value >= 0, value <= Int64(bytes.count - place) else { return nil }
    return Int(value)
  }

  private mutating func takePage() -> UInt32? { takeNumber().flatMap { UInt32(exactly: $0) } }

  private mutating func takeWord() -> UInt32? {
    guard let value = bytes.span.uint32(at: place) else { return nil }
    place += 4
    return value
  }

  private mutating func takeRaw(_ length: Int) -> [UInt8]? {
    guard length >= 0, length <= bytes.count - place else { return nil }
    place += length
    return Array(bytes[(place - length)..<place])
  }

  /// Reads a text; the inner nil is an absent text.
  private mutating func takeText() -> String?? {
    guard let length = takeNumber() else { return nil }
    if length == -1 { return .some(nil) }
    guard length >= 0, length <= Int64(bytes.count), let raw = takeRaw(Int(length)) else { return nil }
    return String(utf8: raw)
  }

  private mutating func takeName() -> String? { takeText() ?? nil }

  private mutating func takeAscending() -> [Int64]? {
    guard let count = takeCount() else { return nil }
    var values: [Int64] = []
    values.reserveCapacity(count)
    var previous: Int64 = 0
    for _ in 0..<count {
      guard let step = takeNumber() else { return nil }
      previous = previous &+ step
      values.append(previous)
    }
    return values
  }

  consuming func kit(format: UInt8) -> RecoveryKit? {
    guard let seconds = takeNumber(), let uuid = takeText(), let hashCount = takeCount() else { return nil }
    var hashes: [String: [UInt8]] = [:]
    for _ in 0..<hashCount {
      guard let name = takeName(), let length = takeCount(), let hash = takeRaw(length) else { return nil }
      hashes[name] = hash
    }
    guard let file = takeFacts(), let entries = takeEntries(), let tables = takeTables() else { return nil }
    var generation: String?
    if format > 1 {
      guard let name = takeName() else { return nil }
      generation = name
    }
    guard place == bytes.count else { return nil }
    return RecoveryKit(
      date: Timestamp(secondsSince1970: seconds), storeUUID: uuid, generation: generation, versionHashes: hashes,
      file: file, entries: entries, tables: tables)
  }

  private mutating func takeFacts() -> RecoveryKit.FileFacts? {
    guard let size = takeNumber(), DatabaseHeader.isPageSize(Int(clamping: size)), let reserved = takeNumber(),
      (0...255).contains(reserved), let pages = takePage(), let code = takePage(),
      let encoding = TextEncoding(rawValue: code),
      let vacuum = takeNumber(), let log = takeNumber(), let counter = takePage(), let cookie = takePage(),
      let hasMark = takeNumber(),
      let salt1 = takePage(), let salt2 = takePage(), let frames = takePage()
    else { return nil }
    return RecoveryKit.FileFacts(
      pageSize: Int(size), reservedBytes: Int(reserved), pageCount: pages, encoding: encoding,
      isAutoVacuum: vacuum != 0, usesWriteAheadLog: log != 0, changeCounter: counter, schemaCookie: cookie,
      log: hasMark == 0 ? nil : RecoveryKit.LogMark(salt1: salt1, salt2: salt2, frames: frames))
  }

  private mutating func takeEntries() -> [RecoveryKit.Entry]? {
    guard let count = takeCount() else { return nil }
    var entries: [RecoveryKit.Entry] = []
    for _ in 0..<count {
      guard let kind = takeName(), let name = takeName(), let table = takeName(), let root = takePage(),
        let sql = takeText()
      else {
        return nil
      }
      entries.append(RecoveryKit.Entry(kind: kind, name: name, tableName: table, root: root, sql: sql))
    }
    return entries
  }

  private mutating func takeTables() -> [RecoveryKit.Table]? {
    guard let count = takeCount() else { return nil }
    var tables: [RecoveryKit.Table] = []
    for _ in 0..<count {
      guard let name = takeName(), let root = takePage(), let hasRowids = takeNumber(), let rows = takeNumber(),
        let leaves = takeAscending(), leaves.allSatisfy({ UInt32(exactly: $0) != nil }), let sumCount = takeCount(),
        sumCount == 0 || sumCount == leaves.count
      else { return nil }
      var sums: [UInt32] = []
      for _ in 0..<sumCount {
        guard let sum = takeWord() else { return nil }
        sums.append(sum)
      }
      guard let groups = takeGroups() else { return nil }
      tables.append(
        RecoveryKit.Table(
          name: name, root: root, hasRowids: hasRowids != 0, leaves: leaves.map { UInt32(truncatingIfNeeded: $0) },
          sums: sums, rows: rows, groups: groups))
    }
    return tables
  }

  private mutating func takeGroups() -> [RecoveryKit.Group]? {
    guard let count = takeCount() else { return nil }
    var groups: [RecoveryKit.Group] = []
    for _ in 0..<count {
      guard let entity = takeNumber(), let rows = takeNumber(), let isListed = takeNumber(),
        let bounds = takeAscending(),
        bounds.count.isMultiple(of: 2)
      else { return nil }
      var ranges: [ClosedRange<Int64>] = []
      for place in stride(from: 0, to: bounds.count, by: 2) {
        guard bounds[place] <= bounds[place + 1] else { return nil }
        ranges.append(bounds[place]...bounds[place + 1])
      }
      groups.append(
        RecoveryKit.Group(entity: entity, rows: rows, keys: isListed == 0 ? nil : KeyRanges(ranges: ranges)))
    }
    return groups
  }
}

/// The page checksum of recovery kits: CRC-32 as in gzip.
///
/// It is linear, so a difference of checksums identifies a single flipped bit.
package enum PageSum {
  /// The CRCs of a byte followed by zero to seven zero bytes.
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var value = UInt32(byte)
      for _ in 0..<8 { value = value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
      tables[byte] = value
    }
    for table in 1..<8 {
      for byte in 0..<256 {
        let previous = tables[(table - 1) * 256 + byte]
        tables[table * 256 + byte] = tables[Int(previous & 0xFF)] ^ (previous >> 8)
      }
    }
    return tables
  }()

  package static func of(_ bytes: Span<UInt8>) -> UInt32 {
    let table = tables.span
    var sum: UInt32 = 0xFFFF_FFFF
    var index = 0
    let wholes = bytes.count & ~7
    while index < wholes {
      let low =
        sum
        ^ (UInt32(bytes[index]) | UInt32(bytes[index &+ 1]) << 8 | UInt32(bytes[index &+ 2]) << 16
          | UInt32(bytes[index &+ 3]) << 24)
      sum =
        table[Int(low & 0xFF) | 0x700] ^ table[Int(low >> 8 & 0xFF) | 0x600] ^ table[Int(low >> 16 & 0xFF) | 0x500]
        ^ table[Int(low >> 24) | 0x400] ^ table[Int(bytes[index &+ 4]) | 0x300] ^ table[Int(bytes[index &+ 5]) | 0x200]
        ^ table[Int(bytes[index &+ 6]) | 0x100] ^ table[Int(bytes[index &+ 7])]
      index &+= 8
    }
    while index < bytes.count {
      sum = table[Int((sum ^ UInt32(bytes[index])) & 0xFF)] ^ (sum >> 8)
      index &+= 1
    }
    return ~sum
  }

  /// Finds the single differing bit of two pages by the difference of their checksums.
  ///
  /// - Returns: the byte offset, and the bit from 0 for the lowest.
  static func flippedBit(difference: UInt32, count: Int) -> (offset: Int, bit: Int)? {
    guard difference != 0 else { return nil }
    let table = tables.span
    // The CRC of each bit in the last byte; every step appends a zero byte.
    var sums = (0..<8).map { table[1 << $0] }
    var offset = count - 1
    while offset >= 0 {
      for bit in 0..<8 {
        if sums[bit] == difference { return (offset, bit) }
        sums[bit] = table[Int(sums[bit] & 0xFF)] ^ (sums[bit] >> 8)
      }
      offset -= 1
    }
    return nil
  }
}

extension RecoveryKit {
  /// Returns the kit's checksum of a page.
  public static func sum(of page: [UInt8]) -> UInt32 { PageSum.of(page.span) }

  /// Finds the single bit in which a page differs from a checksum; nil if it matches or differs in more.
  ///
  /// One in 100,000 other differences looks like a single bit.
  public static func flippedBit(of page: [UInt8], expected: UInt32) -> (offset: Int, bit: Int)? {
    PageSum.flippedBit(difference: PageSum.of(page.span) ^ expected, count: page.count)
  }
}
