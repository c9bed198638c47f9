internal import SQLiteFormat

/// Order-preserving pseudonyms for indexed texts and blobs.
///
/// The values form a tree. The characters at each node are replaced by others of their kind in order, ignoring ASCII
/// case, so BINARY, NOCASE and RTRIM keep their order; the rest of a unique value is replaced freely. This reveals the
/// tree's shape, and first characters in very large columns.
struct OrderedTexts {
  static let limit = 96 << 20

  static let countLimit = 5_000_000

  /// The ordered bytes of a value; the rest is replaced freely.
  static let longest = 256

  struct Entry {
    var offset: UInt32
    var length: UInt16
    var isBlob: Bool
    var seed: UInt64

    /// The bytes in the arena.
    var range: Range<Int> { Int(offset)..<(Int(offset) + Int(length)) }
  }

  private var arena: [UInt8] = []
  private var entries: [Entry] = []

  /// The entries by seed; 0 for none.
  private var places = [UInt32](repeating: 0, count: 1 << 12)

  private let encoding: TextEncoding

  /// The unordered values beyond the limit.
  private(set) var leftOut: Int64 = 0

  /// The values without a clean ordered pseudonym.
  private(set) var unclean: Int64 = 0

  init(encoding: TextEncoding) { self.encoding = encoding }

  private func slot(_ seed: UInt64) -> Int {
    let mask = places.count &- 1
    var index = Int(truncatingIfNeeded: seed ^ seed >> 32) & mask
    while places[index] != 0, entries[Int(places[index]) &- 1].seed != seed { index = (index &+ 1) & mask }
    return index
  }

  /// - Parameter seed: its fingerprint, different for text and blobs.
  mutating func insert(_ bytes: Span<UInt8>, _ range: Range<Int>, isBlob: Bool, seed: UInt64) {
    let slot = slot(seed)
    guard places[slot] == 0 else { return }
    let length = min(range.count, Self.longest)
    guard arena.count + length <= Self.limit, entries.count < Self.countLimit else {
      leftOut += 1
      return
    }
    // Wastes less than doubling.
    if entries.count == entries.capacity { entries.reserveCapacity(entries.count + max(64, entries.count / 4)) }
    if arena.count + length > arena.capacity { arena.reserveCapacity(arena.count + max(4096, arena.count / 4)) }
    entries.append(Entry(offset: UInt32(arena.count), length: UInt16(length), isBlob: isBlob, seed: seed))
    places[slot] = UInt32(entries.count)
    for index in range.lowerBound..<(range.lowerBound + length) { arena.append(bytes[index]) }
    if entries.count * 2 > places.count {
      places = [UInt32](repeating: 0, count: places.count * 2)
      for (place, entry) in entries.enumerated() { places[self.slot(entry.seed)] = UInt32(place + 1) }
    }
  }

  mutating func take(_ other: inout OrderedTexts) {
    let taken = other
    other = OrderedTexts(encoding: encoding)
    for entry in taken.entries { insert(taken.arena.span, entry.range, isBlob: entry.isBlob, seed: entry.seed) }
    leftOut += taken.leftOut
  }

  /// Returns the pseudonym of a value or its prefix.
  func pseudonym(seed: UInt64) -> ArraySlice<UInt8>? {
    guard !entries.isEmpty else { return nil }
    let place = places[slot(seed)]
    return place == 0 ? nil : arena[entries[Int(place) - 1].range]
  }

  // MARK: Making the pseudonyms

  /// Values with a common prefix.
  private struct Node {
    var range: Range<Int>
    var depth: Int
    var path: UInt64
  }

  /// Replaces every value by its pseudonym.
  ///
  /// - Parameters:
  ///   - isClean: whether a pseudonym's prefix contains no value of the store; in longer ones common digits are none.
  ///   - finish: replaces the rest of a value freely.
  mutating func assign(
    _ function: KeyedFunction, isClean: (_ value: Span<UInt8>, _ range: Range<Int>, _ length: Int) -> Bool,
    finish: (_ value: inout [UInt8], _ from: Int, _ isBlob: Bool, _ seed: UInt64) -> Void
  ) {
    guard !entries.isEmpty else { return }
    var order = Array(0..<UInt32(entries.count))
    let (arena, entries, encoding) = (arena, entries, encoding)
    order.sort { Self.isBefore(entries[Int($0)], entries[Int($1)], arena, encoding) }
    var result = arena
    var waiting: [Node] = []
    let firstBlob = order.firstIndex { entries[Int($0)].isBlob } ?? order.count
    if firstBlob > 0 { waiting.append(Node(range: 0..<firstBlob, depth: 0, path: 1)) }
    if firstBlob < order.count { waiting.append(Node(range: firstBlob..<order.count, depth: 0, path: 2)) }
    var value: [UInt8] = []
    while let node = waiting.popLast() {
      let first = entries[Int(order[node.range.lowerBound])]
      if node.range.count == 1 || Self.areSame(order[node.range], from: node.depth, entries, arena, encoding) {
        let group = node.range.map { entries[Int(order[$0])] }
        // Values that differ only in case get the same rest.
        let seed = group.count == 1 ? first.seed : function(node.path, UInt64(node.depth))
        var isDone = false
        for attempt in UInt64(0)..<64 where !isDone {
          isDone = true
          for entry in group {
            let place = entry.range
            value.removeAll(keepingCapacity: true)
            value.append(contentsOf: result[place.lowerBound..<min(place.upperBound, place.lowerBound + node.depth)])
            if value.count < place.count {
              value.append(contentsOf: arena[(place.lowerBound + value.count)..<place.upperBound])
            }
            finish(&value, node.depth, entry.isBlob, attempt == 0 ? seed : function(seed, attempt))
            if isDone, !isClean(value.span, 0..<value.count, place.count) { isDone = false }
            for offset in node.depth..<max(node.depth, place.count) {
              result[place.lowerBound + offset] = value[offset]
            }
          }
          if node.depth >= Int(first.length) { break }
        }
        if !isDone { unclean += Int64(group.count) }
        continue
      }
      var groups = Self.groups(node, order, entries, arena, encoding)
      // If some text is invalid, compare all by bytes.
      let isByBytes = encoding == .utf8 && groups.contains { !$0.symbol.isWhole }
      if isByBytes { groups = Self.groups(node, order, entries, arena, nil) }
      let symbols = groups.map(\.symbol)
      var (isDone, wasReplaced) = (false, false)
      for attempt in UInt64(0)..<32 where !isDone {
        var stream = KeyStream(function, seed: node.path ^ attempt << 32)
        // As a last resort, give up the order.
        let isOrdered = attempt < 16
        guard
          let replaced = isOrdered
            ? OrderedSymbol.replacements(symbols, freedom: Int(attempt / 4), encoding, &stream)
            : wasReplaced ? nil : OrderedSymbol.unordered(symbols, &stream)
        else { continue }
        if !isOrdered, attempt == 16 { leftOut += Int64(node.range.count) }
        if isOrdered { wasReplaced = true }
        isDone = true
        for (number, group) in groups.enumerated() {
          for index in group.range {
            let entry = entries[Int(order[index])]
            let symbol = OrderedSymbol(entry, at: node.depth, arena.span, isByBytes ? nil : encoding)
            symbol.write(replaced[number], into: &result, at: Int(entry.offset) + node.depth, encoding)
          }
          let entry = entries[Int(order[group.range.lowerBound])]
          let end = Int(entry.offset) + node.depth + group.symbol.length
          let start = max(Int(entry.offset), end - WatchedValues.longestForm)
          if !isClean(result.span, start..<end, Int(entry.length)) { isDone = false }
        }
      }
      for group in groups {
        waiting.append(
          Node(
            range: group.range, depth: node.depth + group.symbol.length,
            path: function(node.path, group.symbol.key << 1 | 1)))
      }
    }
    self.arena = result
  }

  /// Groups the values at a node by symbol.
  private static func groups(
    _ node: Node, _ order: [UInt32], _ entries: [Entry], _ arena: [UInt8], _ encoding: TextEncoding?
  ) -> [(symbol: OrderedSymbol, range: Range<Int>)] {
    var groups: [(symbol: OrderedSymbol, range: Range<Int>)] = []
    for index in node.range {
      let entry = entries[Int(order[index])]
      guard node.depth < Int(entry.length) else { continue }
      let symbol = OrderedSymbol(entry, at: node.depth, arena.span, encoding)
      if let last = groups.last, last.symbol.key == symbol.key {
        groups[groups.count - 1].range = last.range.lowerBound..<(index + 1)
      } else {
        groups.append((symbol, index..<(index + 1)))
      }
    }
    return groups
  }

  /// Orders text before blobs, ignoring ASCII case.
  private static func isBefore(_ first: Entry, _ second: Entry, _ arena: [UInt8], _ encoding: TextEncoding) -> Bool {
    if first.isBlob != second.isBlob { return second.isBlob }
    let bytes = arena.span
    let count = Int(min(first.length, second.length))
    let (left, right) = (Int(first.offset), Int(second.offset))
    for index in 0..<count {
      var one = bytes[left &+ index]
      var other = bytes[right &+ index]
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

  /// Whether values are equal from an offset, ignoring case.
  private static func areSame(
    _ order: ArraySlice<UInt32>, from depth: Int, _ entries: [Entry], _ arena: [UInt8], _ encoding: TextEncoding
  ) -> Bool {
    guard let first = order.first, order.count <= 8, !entries[Int(first)].isBlob else { return false }
    let bytes = arena.span
    let entry = entries[Int(first)]
    func character(_ entry: Entry, _ index: Int) -> UInt8 {
      let start = Int(entry.offset)
      return folded(bytes[start + index], index, start, Int(entry.length), bytes, encoding)
    }
    for place in order.dropFirst() {
      let other = entries[Int(place)]
      guard other.length == entry.length else { return false }
      for index in depth..<max(depth, Int(entry.length)) where character(entry, index) != character(other, index) {
        return false
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
