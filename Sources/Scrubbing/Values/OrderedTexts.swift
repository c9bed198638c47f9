internal import SQLiteFormat

/// Pseudonyms that keep the order of the values of indexed columns, text and blobs.
///
/// The values form a tree of characters. At each node the characters that occur are replaced by others of their blocks in
/// the same order, letters of both cases alike, so that BINARY, NOCASE and RTRIM keep their order; where only one value is
/// left, what remains of it is replaced freely. What this gives away is the shape of that tree, and for columns with a
/// great many values their first characters.
struct OrderedTexts {
  /// The bytes of values that are held at most.
  static let limit = 40 << 20

  /// How much of a value is put in order; the rest of longer ones is replaced freely.
  static let longest = 256

  private struct Entry {
    var offset: UInt32
    var length: UInt16
    var isBlob: Bool
    var seed: UInt64
  }

  private var arena: [UInt8] = []
  private var entries: [Entry] = []
  private var places = FingerprintSet(hasExtra: true)
  private let encoding: TextEncoding

  /// The values that found no room, whose order is not kept.
  private(set) var leftOut: Int64 = 0

  init(encoding: TextEncoding) { self.encoding = encoding }

  /// The number of different values.
  var count: Int { entries.count }

  /// The bytes that it takes.
  var memory: Int { arena.capacity + entries.capacity * 16 + places.memory }

  /// Adds a value.
  ///
  /// - Parameter seed: its fingerprint, which differs between text and blobs.
  mutating func insert(_ bytes: Span<UInt8>, _ range: Range<Int>, isBlob: Bool, seed: UInt64) {
    if places.contains(seed) { return }
    let length = min(range.count, Self.longest)
    guard arena.count + length <= Self.limit, entries.count < 3_000_000 else {
      leftOut += 1
      return
    }
    places.insert(seed, adding: UInt32(entries.count))
    entries.append(
      Entry(offset: UInt32(arena.count), length: UInt16(length), isBlob: isBlob, seed: seed))
    for index in range.lowerBound..<(range.lowerBound + length) { arena.append(bytes[index]) }
  }

  /// The pseudonym of a value, or of its beginning; nil where the value is not among those.
  func pseudonym(seed: UInt64) -> ArraySlice<UInt8>? {
    guard let place = places.number(of: seed) else { return nil }
    let entry = entries[Int(place)]
    return arena[Int(entry.offset)..<(Int(entry.offset) + Int(entry.length))]
  }

  /// Calls `body` with each value, or with each pseudonym once they are made.
  func visit(_ body: (Span<UInt8>, Range<Int>) -> Void) {
    for entry in entries { body(arena.span, Int(entry.offset)..<(Int(entry.offset) + Int(entry.length))) }
  }

  // MARK: Making the pseudonyms

  /// Replaces every value by its pseudonym.
  ///
  /// - Parameter finish: replaces the rest of a value freely, from an offset on; given the whole value, replaced up to there.
  mutating func assign(
    _ function: KeyedFunction,
    finish: (_ value: inout [UInt8], _ from: Int, _ isBlob: Bool, _ seed: UInt64) -> Void
  ) {
    var order = Array(entries.indices)
    let (arena, entries, encoding) = (arena, entries, encoding)
    order.sort { Self.isBefore(entries[$0], entries[$1], arena, encoding) }
    var result = arena
    var waiting: [(range: Range<Int>, depth: Int, path: UInt64)] = []
    // Text and blobs are trees of their own.
    let firstBlob = order.firstIndex { entries[$0].isBlob } ?? order.count
    if firstBlob > 0 { waiting.append((0..<firstBlob, 0, 1)) }
    if firstBlob < order.count { waiting.append((firstBlob..<order.count, 0, 2)) }
    var value: [UInt8] = []
    while let (range, depth, path) = waiting.popLast() {
      let isBlob = entries[order[range.lowerBound]].isBlob
      if range.count == 1 || Self.areSame(order[range], from: depth, entries, arena, encoding) {
        for index in range {
          let entry = entries[order[index]]
          let place = Int(entry.offset)..<(Int(entry.offset) + Int(entry.length))
          value.removeAll(keepingCapacity: true)
          value.append(contentsOf: result[place])
          // Values that only differ in the case of letters have the same rest.
          let seed = range.count == 1 ? entry.seed : function(path, UInt64(depth))
          finish(&value, depth, isBlob, seed)
          for (offset, byte) in value.enumerated() where offset < place.count {
            result[place.lowerBound + offset] = byte
          }
        }
        continue
      }
      var stream = KeyStream(function, seed: path)
      var groups: [(symbol: Symbol, range: Range<Int>)] = []
      for index in range {
        let entry = entries[order[index]]
        guard depth < Int(entry.length) else { continue }
        let symbol = Symbol(entry, at: depth, arena, encoding)
        if let last = groups.last, last.symbol.key == symbol.key {
          groups[groups.count - 1].range = last.range.lowerBound..<(index + 1)
        } else {
          groups.append((symbol, index..<(index + 1)))
        }
      }
      let isFixed = encoding == .utf16LittleEndian && !isBlob && groups.contains { $0.symbol.isWide }
      let replaced = isFixed ? groups.map(\.symbol.key) : Self.replacements(groups.map(\.symbol), &stream)
      for (number, group) in groups.enumerated() {
        for index in group.range {
          let entry = entries[order[index]]
          let offset = Int(entry.offset) + depth
          Symbol(entry, at: depth, arena, encoding).write(
            replaced[number], into: &result, at: offset, isBlob: isBlob, encoding)
        }
        waiting.append((group.range, depth + group.symbol.length, function(path, UInt64(group.symbol.key) << 1 | 1)))
      }
    }
    self.arena = result
  }

  /// For characters in ascending order, others of their blocks in the same order.
  private static func replacements(_ symbols: [Symbol], _ stream: inout KeyStream) -> [UInt32] {
    var result: [UInt32] = []
    var index = 0
    while index < symbols.count {
      guard let block = symbols[index].block else {
        result.append(symbols[index].key)
        index += 1
        continue
      }
      var end = index
      while end < symbols.count, symbols[end].block == block { end += 1 }
      var free = Int(block.upperBound - block.lowerBound) + 1 - (end - index)
      var next = block.lowerBound
      while index < end {
        let gap = free <= 0 ? 0 : min(free, stream.below(2 * free / (end - index + 1) + 1))
        free -= gap
        next += UInt32(gap)
        result.append(next)
        next += 1
        index += 1
      }
    }
    return result
  }

  /// A character of a value, or a byte of a blob, letters in lower case.
  private struct Symbol {
    var key: UInt32
    var length: Int
    var block: ClosedRange<UInt32>?
    var isUpper = false
    var isValid = true

    /// Whether it is outside of ASCII.
    var isWide: Bool { key >= 0x80 || !isValid }

    init(_ entry: Entry, at depth: Int, _ arena: [UInt8], _ encoding: TextEncoding) {
      let start = Int(entry.offset) + depth
      let bytes = arena.span
      if entry.isBlob {
        key = UInt32(bytes[start])
        length = 1
        // Identifiers keep their version and variant.
        if key == 0 || depth < BlobForm.keptPrefix(bytes, Int(entry.offset)..<(Int(entry.offset) + Int(entry.length))) {
          block = nil
        } else if entry.length == 16, depth == 6 {
          block = key < 16 ? 1...15 : (key & 0xf0)...(key | 0x0f)
        } else if entry.length == 16, depth == 8 {
          block = key < 64 ? 1...63 : (key & 0xc0)...(key | 0x3f)
        } else {
          block = 1...255
        }
        return
      }
      let character = TextCoding.read(
        bytes, at: start, before: Int(entry.offset) + Int(entry.length), encoding)
      length = character.length
      guard let scalar = character.scalar else {
        // Bytes that are no text come behind all characters of their beginning; they stay.
        key = 0x20_0000 + UInt32(bytes[start])
        if length == 2 { key = 0x20_0000 + UInt32(bytes[start]) << 8 + UInt32(bytes[start + 1]) }
        isValid = false
        return
      }
      key = scalar
      switch scalar {
      case 0x30...0x39: block = 0x30...0x39
      case 0x41...0x5a:
        isUpper = true
        key = scalar | 0x20
        block = 0x61...0x7a
      case 0x61...0x7a: block = 0x61...0x7a
      case 0..<0x80: block = nil
      default: block = CharacterBlock.block(of: scalar)
      }
    }

    func write(
      _ replaced: UInt32, into bytes: inout [UInt8], at offset: Int, isBlob: Bool, _ encoding: TextEncoding
    ) {
      guard isValid, block != nil else { return }
      if isBlob {
        bytes[offset] = UInt8(truncatingIfNeeded: replaced)
      } else {
        TextCoding.write(isUpper ? replaced & ~0x20 : replaced, length: length, into: &bytes, at: offset, encoding)
      }
    }
  }

  /// The order of the tree: blobs behind text, ASCII letters without their case.
  private static func isBefore(_ first: Entry, _ second: Entry, _ arena: [UInt8], _ encoding: TextEncoding) -> Bool {
    if first.isBlob != second.isBlob { return second.isBlob }
    let bytes = arena.span
    let count = Int(min(first.length, second.length))
    let (left, right) = (Int(first.offset), Int(second.offset))
    for index in 0..<count {
      var one = bytes[left + index]
      var other = bytes[right + index]
      if one == other { continue }
      if !first.isBlob {
        one = folded(one, index, left, Int(first.length), bytes, encoding)
        other = folded(other, index, right, Int(second.length), bytes, encoding)
      }
      if one != other { return one < other }
    }
    if first.length != second.length { return first.length < second.length }
    return first.offset < second.offset
  }

  /// Whether values are the same from an offset on but for the case of letters.
  private static func areSame(
    _ order: ArraySlice<Int>, from depth: Int, _ entries: [Entry], _ arena: [UInt8], _ encoding: TextEncoding
  ) -> Bool {
    guard let first = order.first, order.count <= 8, !entries[first].isBlob else { return false }
    let bytes = arena.span
    let entry = entries[first]
    for place in order.dropFirst() {
      let other = entries[place]
      guard other.length == entry.length else { return false }
      for index in depth..<max(depth, Int(entry.length)) {
        let one = folded(
          bytes[Int(entry.offset) + index], index, Int(entry.offset), Int(entry.length), bytes, encoding)
        let two = folded(
          bytes[Int(other.offset) + index], index, Int(other.offset), Int(other.length), bytes, encoding)
        if one != two { return false }
      }
    }
    return true
  }

  @inline(__always)
  private static func folded(
    _ byte: UInt8, _ index: Int, _ start: Int, _ length: Int, _ bytes: Span<UInt8>, _ encoding: TextEncoding
  ) -> UInt8 {
    guard byte >= 0x41, byte <= 0x5a else { return byte }
    if encoding == .utf8 { return byte | 0x20 }
    let isLow = (index & 1 == 0) == (encoding == .utf16LittleEndian)
    let other = index ^ 1
    return isLow && other < length && bytes[start + other] == 0 ? byte | 0x20 : byte
  }
}
