internal import Platform

/// Core Data's property order: two historic hash tables, one filled from the other (format section 3.6.1).
///
/// It decides the naming side of a same-entity join table, suffixes within an entity and the order of `Z_FOK_` columns.
/// Arithmetic is 32-bit and wraps.
package enum LegacyOrder {
  /// Returns the distinct keys in Core Data's order, or by code unit beyond 1,364 keys, where the second table's sizes
  /// are unknown.
  package static func ordered(_ keys: [String]) -> [String] {
    let sorted = Set(keys).ordered(by: NameOrder.byCodeUnits)
    guard let limit = sizes.last, sorted.count <= limit.capacity else { return sorted }
    let first = firstTable(sorted)
    guard let size = sizes.first(where: { $0.capacity >= first.count })?.buckets else { return sorted }
    var table = [String?](repeating: nil, count: size)
    for key in first {
      var index = Int(secondHash(Array(key.utf16))) % size
      while table[index] != nil { index = (index + 1) % size }
      table[index] = key
    }
    return table.compactMap(\.self)
  }

  private static let sizes: [(capacity: Int, buckets: Int)] = [
    (4, 5), (8, 11), (17, 23), (29, 41), (47, 67), (76, 113), (123, 199), (199, 317), (322, 521), (521, 839),
    (843, 1361), (1364, 2207),
  ]

  private static func firstTable(_ keys: [String]) -> [String] {
    var capacity = 3
    var buckets: [(key: String, hash: UInt32)?] = Array(repeating: nil, count: bucketCount(capacity: capacity))
    var count = 0
    func insert(_ entry: (key: String, hash: UInt32), into buckets: inout [(key: String, hash: UInt32)?]) {
      let mask = buckets.count - 1
      var index = Int(entry.hash) & mask
      while buckets[index] != nil { index = (index + 1) & mask }
      buckets[index] = entry
    }
    for key in keys {
      if count == capacity {
        capacity = 3 << bitLength(count / 3)
        var grown: [(key: String, hash: UInt32)?] = Array(repeating: nil, count: bucketCount(capacity: capacity))
        for entry in buckets {
          if let entry { insert(entry, into: &grown) }
        }
        buckets = grown
      }
      insert((key, mixed(firstHash(Array(key.utf16)))), into: &buckets)
      count += 1
    }
    return buckets.compactMap { $0?.key }
  }

  private static func bucketCount(capacity: Int) -> Int { 4 << bitLength((capacity - 1) / 3) }

  private static func bitLength(_ value: Int) -> Int { Int.bitWidth - value.leadingZeroBitCount }

  /// Long text uses 32 units of start, middle and end.
  private static func firstHash(_ units: [UInt16]) -> UInt32 {
    let count = units.count
    guard count > 96 else { return mixed(folded(units[...], into: UInt32(truncatingIfNeeded: count)), count: count) }
    let middle = count >> 1
    let parts = Array(units[..<32] + units[(middle - 16)..<(middle + 16)] + units[(count - 32)...])
    return mixed(folded(parts[...], into: UInt32(truncatingIfNeeded: count)), count: count)
  }

  /// Text over 23 units uses the first 8 and last 16.
  private static func secondHash(_ units: [UInt16]) -> UInt32 {
    let count = units.count
    var hash = UInt32(truncatingIfNeeded: count)
    guard count > 23 else { return mixed(folded(units[...], into: hash), count: count) }
    hash = folded(units[..<8], into: hash)
    hash = folded(units[(count - 16)...], into: hash)
    return mixed(hash, count: count)
  }

  private static func folded(_ units: ArraySlice<UInt16>, into start: UInt32) -> UInt32 {
    var hash = start
    var rest = units
    while rest.count >= 4 {
      let group = Array(rest.prefix(4)).map(UInt32.init)
      hash = hash &* 67_503_105 &+ group[0] &* 16_974_593 &+ group[1] &* 66_049 &+ group[2] &* 257 &+ group[3]
      rest = rest.dropFirst(4)
    }
    for unit in rest { hash = hash &* 257 &+ UInt32(unit) }
    return hash
  }

  private static func mixed(_ hash: UInt32, count: Int) -> UInt32 { hash &+ (hash << UInt32(count & 31)) }

  private static func mixed(_ hash: UInt32) -> UInt32 {
    let a = (1_264_676_453 &- hash) ^ ((hash &- 1) << 8)
    let b = (2 &- hash &- a) ^ (a >> 13)
    let c = (hash &- 1 &- a &- b) ^ (b >> 12)
    let d = (a &- b &- c) ^ (c << 16)
    let e = (b &- c &- d) ^ (d >> 5)
    let f = (c &- d &- e) ^ (e >> 3)
    let g = (d &- e &- f) ^ (f << 10)
    return (e &- f &- g) ^ (g >> 15)
  }
}

enum NameOrder {
  /// Sorts by the code points of upper-cased names, ties by the names.
  ///
  /// Format section 3.3: upper-casing reproduces the numbering of every checked store.
  static func withoutCase(_ names: some Sequence<String>) -> [String] {
    names.map { (name: $0, key: Array($0.uppercased().utf8)) }
      .ordered { first, second in
        first.key == second.key
          ? byCodeUnits(first.name, second.name) : first.key.lexicographicallyPrecedes(second.key)
      }
      .map(\.name)
  }

  /// Compares by code unit, independent of locale and normalization.
  static func byCodeUnits(_ first: String, _ second: String) -> Bool {
    first.utf8.lexicographicallyPrecedes(second.utf8)
  }
}
