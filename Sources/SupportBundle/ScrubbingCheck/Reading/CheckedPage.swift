/// A b-tree page: structure bytes and record fields.
struct CheckedPage: Sendable {
  struct Field: Sendable {
    /// The local bytes.
    var range: Range<Int>

    var type: Int64

    var place: Int

    var isWhole: Bool
  }

  struct Record: Sendable {
    var fields = 0..<0

    var count = 0

    var rowid: Range<Int>

    var number: Int64

    /// The first overflow page, or 0.
    var overflow: Int

    /// The payload's length, and its local part.
    var length: Int
    var local: Int

    /// The offsets and types of fields with overflow.
    var long: [(start: Int, type: Int64)] = []
  }

  /// A byte of no field.
  static let loose: UInt8 = 0

  /// A byte of a header, pointer or length.
  static let structure: UInt8 = 1

  static let field: UInt8 = 2

  /// The role of each byte.
  private(set) var marks: [UInt8] = []

  private(set) var fields: [Field] = []
  private(set) var records: [Record] = []

  private(set) var children: [Int] = []

  /// The page type: 2, 5, 10 or 13; otherwise 0.
  private(set) var kind: UInt8 = 0

  private(set) var isFirst = false

  private static let fieldLimit = 4096

  private var types: [Int64] = []
  private var cells: [(payload: Int, record: Record)] = []

  /// Reads a page.
  ///
  /// - Parameter isMarking: whether to make ``marks``, which doubles the time.
  mutating func read(_ bytes: Span<UInt8>, number: Int, _ format: PageFormat, isMarking: Bool = true) {
    let start = number == 1 && bytes.count > 112 && bytes[0] != 13 && bytes[0] != 10 ? 100 : 0
    isFirst = start > 0
    fields.removeAll(keepingCapacity: true)
    records.removeAll(keepingCapacity: true)
    children.removeAll(keepingCapacity: true)
    cells.removeAll(keepingCapacity: true)
    marks.removeAll(keepingCapacity: true)
    if isMarking { marks.append(contentsOf: repeatElement(Self.loose, count: bytes.count)) }
    kind = 0
    guard start + 12 <= bytes.count, bytes.count >= format.usableSize, [2, 5, 10, 13].contains(bytes[start]) else {
      return
    }
    kind = bytes[start]
    let isLeaf = kind >= 10
    let pointers = start + (isLeaf ? 8 : 12)
    mark(0..<pointers, Self.structure)
    if !isLeaf, let right = Bytes.four(bytes, start + 8) { children.append(right) }
    let stored = Bytes.two(bytes, start + 3) ?? 0
    guard stored <= (format.usableSize - 8) / 6 else { return }
    let count = min(stored, max(0, (format.usableSize - pointers) / 2))
    mark(pointers..<(pointers + 2 * count), Self.structure)
    markFreeBlocks(bytes, first: Bytes.two(bytes, start + 1) ?? 0, after: pointers, format)
    for index in 0..<count {
      guard let pointer = Bytes.two(bytes, pointers + 2 * index) else { break }
      cell(bytes, at: pointer & (format.pageSize - 1), after: pointers + 2 * count, format)
    }
    for cell in cells { record(bytes, cell.payload, cell.record) }
  }

  /// Returns bytes of the page with a zero between touching fields, as no value is in two fields.
  ///
  /// Fields that overlap are damaged, so their bytes stay as they are.
  func parted(_ bytes: [UInt8]) -> [UInt8] {
    func isCharacter(_ byte: UInt8) -> Bool { byte == 0 || Information.text[Int(byte)] > 0 }
    var borders: [Int] = []
    for (field, next) in zip(fields, fields.dropFirst()) where field.range.upperBound == next.range.lowerBound {
      let border = next.range.lowerBound
      if isCharacter(bytes[border - 1]), isCharacter(bytes[border]) { borders.append(border) }
    }
    let length = fields.reduce(0) { $0 + $1.range.count }
    guard !borders.isEmpty, length == marks.count(where: { $0 == Self.field }) else { return bytes }
    var parted: [UInt8] = []
    var start = 0
    for border in borders.sorted() {
      parted += bytes[start..<border]
      parted.append(0)
      start = border
    }
    return parted + bytes[start...]
  }

  private mutating func mark(_ range: Range<Int>, _ mark: UInt8) {
    let end = min(range.upperBound, marks.count)
    var index = max(0, range.lowerBound)
    while index < end {
      if mark == Self.structure || marks[index] == Self.loose { marks[index] = mark }
      index &+= 1
    }
  }

  private mutating func markFreeBlocks(_ bytes: Span<UInt8>, first: Int, after pointers: Int, _ format: PageFormat) {
    var block = first
    var steps = 0
    while block >= pointers, block + 4 <= format.usableSize, steps < format.usableSize / 4 {
      mark(block..<(block + 4), Self.structure)
      let next = Bytes.two(bytes, block) ?? 0
      guard next > block else { return }
      block = next
      steps += 1
    }
  }

  private mutating func cell(_ bytes: Span<UInt8>, at start: Int, after pointers: Int, _ format: PageFormat) {
    guard start >= pointers, start + 4 <= format.usableSize else { return }
    var offset = start
    if kind < 10 {
      if let child = Bytes.four(bytes, start) { children.append(child) }
      offset += 4
    }
    if kind == 5 {
      _ = Bytes.varint(bytes, &offset, before: format.usableSize)
      mark(start..<offset, Self.structure)
      return
    }
    guard let size = Bytes.varint(bytes, &offset, before: format.usableSize) else { return }
    let rowidStart = offset
    guard let number = kind == 13 ? Bytes.varint(bytes, &offset, before: format.usableSize) : 0 else { return }
    mark(start..<offset, Self.structure)
    guard size > 0, size <= Int64(Int32.max) else { return }
    let length = Int(size)
    let local = format.localLength(of: length, isTableLeaf: kind == 13)
    guard local <= format.usableSize - offset else { return }
    var overflow = 0
    if local < length {
      guard let next = Bytes.four(bytes, offset + local) else { return }
      mark((offset + local)..<(offset + local + 4), Self.structure)
      overflow = next
    }
    let record = Record(rowid: rowidStart..<offset, number: number, overflow: overflow, length: length, local: local)
    cells.append((offset, record))
  }

  private mutating func record(_ bytes: Span<UInt8>, _ payload: Int, _ found: Record) {
    var record = found
    let end = payload + record.local
    var offset = payload
    guard let header = Bytes.varint(bytes, &offset, before: end), header >= 1, header <= Int64(record.length) else {
      return
    }
    let headerEnd = payload + Int(header)
    types.removeAll(keepingCapacity: true)
    var body = 0
    while offset < min(headerEnd, end), types.count < Self.fieldLimit {
      guard let type = Bytes.varint(bytes, &offset, before: min(headerEnd, end)),
        let length = Bytes.length(ofType: type), length <= record.length
      else { return }
      types.append(type)
      body += length
    }
    // Records have consistent lengths, except schema rows on page 1.
    let isRow = Int(header) + body == record.length || isFirst && kind == 13 && types.count == 5
    guard headerEnd > end || offset == headerEnd && isRow else { return }
    mark(payload..<min(headerEnd, end), Self.structure)
    record.count = types.count
    let first = fields.count
    var start = headerEnd
    for (place, type) in types.enumerated() {
      let length = Bytes.length(ofType: type) ?? 0
      if start < end, length > 0 {
        let range = start..<min(end, start + length)
        fields.append(Field(range: range, type: type, place: place, isWhole: range.count == length))
        mark(range, Self.field)
      }
      if start + length > end { record.long.append((start - payload, type)) }
      start += length
    }
    record.fields = first..<fields.count
    records.append(record)
  }
}

/// SQLite's number formats, independent of other modules.
enum Bytes {
  @inline(__always)
  static func two(_ bytes: Span<UInt8>, _ offset: Int) -> Int? {
    guard offset >= 0, offset &+ 2 <= bytes.count else { return nil }
    return Int(bytes[offset]) << 8 | Int(bytes[offset &+ 1])
  }

  @inline(__always)
  static func four(_ bytes: Span<UInt8>, _ offset: Int) -> Int? {
    guard offset >= 0, offset &+ 4 <= bytes.count else { return nil }
    var value = 0
    for index in offset..<(offset &+ 4) { value = value << 8 | Int(bytes[index]) }
    return value
  }

  @inline(__always)
  static func signed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int64 {
    guard let first = range.first else { return 0 }
    var value = Int64(Int8(bitPattern: bytes[first]))
    for index in range.dropFirst() { value = value << 8 | Int64(bytes[index]) }
    return value
  }

  /// Reads a varint and advances the offset; nil if too long.
  @inline(__always)
  static func varint(_ bytes: Span<UInt8>, _ offset: inout Int, before end: Int) -> Int64? {
    guard offset >= 0, end <= bytes.count else { return nil }
    var value: UInt64 = 0
    var index = offset
    var taken = 0
    while index < end {
      let byte = bytes[index]
      index &+= 1
      taken &+= 1
      if taken == 9 {
        offset = index
        return Int64(bitPattern: value << 8 | UInt64(byte))
      }
      value = value << 7 | UInt64(byte & 0x7f)
      if byte < 0x80 {
        offset = index
        return Int64(bitPattern: value)
      }
    }
    return nil
  }

  /// Returns a field's length; nil for the two reserved types.
  @inline(__always)
  static func length(ofType type: Int64) -> Int? {
    switch type {
    case 0, 8, 9: 0
    case 1...4: Int(type)
    case 5: 6
    case 6, 7: 8
    case 12...: Int((type - 12) / 2)
    default: nil
    }
  }
}
