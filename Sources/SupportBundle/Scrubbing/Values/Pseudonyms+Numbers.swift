import SQLiteFormat

extension Pseudonyms {
  /// Returns a comparison key, independent of storage.
  static func bits(of number: Double) -> UInt64 {
    if number.rounded() == number, abs(number) < 9e18 { return UInt64(bitPattern: Int64(number)) }
    return number.bitPattern
  }

  func replaceInteger(_ bytes: inout [UInt8], _ range: Range<Int>, _ rule: FieldRule) -> Outcome {
    guard rule.kind != .keep, rule.kind != .own,
      let number = bytes.span.signedInteger(at: range.lowerBound, length: range.count)
    else { return .kept }
    guard NumberRegion.isLong(number) || rule.kind == .date else { return replaceShort(number, &bytes, range, rule) }
    if rule.kind == .key, rule.domain < 0 || domains.keeps(long: rule.domain) { return .kept }
    if rule.kind == .date, !ranksDates, !DateShift.isStuck(Double(number)) {
      let shifted = dates(number)
      // The date of a newly found row may not fit.
      if shifted != number, NumberRegion.width(shifted) <= range.count {
        Self.write(shifted, &bytes, range)
        return .shifted
      }
    }
    guard NumberRegion.isLong(number) else { return replaceShort(number, &bytes, range, rule) }
    let isOrdered = rule.isOrdered || rule.kind == .date
    if rule.kind == .drop, !isOrdered {
      Self.write(NumberRegion.region(of: number).lowerBound, &bytes, range)
      return .dropped
    }
    // Equal numbers stay equal in the whole store.
    Self.write(orderedNumbers.pseudonym(number) ?? pseudonym(of: number, range.count), &bytes, range)
    return .ordered
  }

  /// Replaces an integer of up to six digits, unless it is a flag, a key or one of few values.
  private func replaceShort(
    _ number: Int64, _ bytes: inout [UInt8], _ range: Range<Int>, _ rule: FieldRule
  ) -> Outcome {
    switch rule.kind {
    case .keep, .own, .word, .key, .metadata: return .kept
    case .drop where !rule.isOrdered:
      Self.write(NumberRegion.shortRegion(of: number).lowerBound, &bytes, range)
      return .dropped
    case .replace, .model, .date, .drop: break
    }
    let pseudonym = domains.pseudonym(short: number, rule.domain, function)
    guard pseudonym != number else { return .kept }
    Self.write(pseudonym, &bytes, range)
    return .ordered
  }

  /// Returns a rowid's pseudonym of the same length; nil if it stays.
  func pseudonym(rowid number: Int64, _ rule: FieldRule) -> Int64? {
    guard NumberRegion.isLong(number) else { return nil }
    switch rule.kind {
    case .keep, .own: return nil
    case .key where rule.domain >= 0 && domains.keeps(long: rule.domain): return nil
    case .replace, .word, .model, .key, .date, .drop, .metadata:
      return orderedNumbers.pseudonym(number) ?? pseudonym(of: number, NumberRegion.width(number))
    }
  }

  /// Returns an unordered pseudonym of a longer integer.
  private func pseudonym(of number: Int64, _ bytes: Int) -> Int64 {
    let region = NumberRegion.region(of: number)
    let width = UInt64(bitPattern: region.upperBound &- region.lowerBound)
    var stream = KeyStream(function, seed: UInt64(bitPattern: number) ^ 0x696e_7465)
    var pseudonym = number
    var isFree = false
    for _ in 0..<64 where !isFree {
      pseudonym = region.lowerBound &+ Int64(bitPattern: stream.below64(width))
      isFree = self.isFree(pseudonym, bytes)
    }
    // If nearly all are taken, search for the next free one.
    for _ in 0..<min(width, Self.nextNumbers) where !isFree {
      pseudonym = pseudonym == region.upperBound ? region.lowerBound : pseudonym + 1
      isFree = self.isFree(pseudonym, bytes)
    }
    if !isFree { stuckNumbers += 1 }
    return pseudonym
  }

  private static let nextNumbers: UInt64 = 1 << 16

  /// Whether an integer is not in the store and contains no value.
  private func isFree(_ number: Int64, _ width: Int) -> Bool {
    !watched.contains(number: UInt64(bitPattern: number)) && Self.isClean(number, width, watched)
  }

  func replaceReal(_ bytes: inout [UInt8], _ range: Range<Int>, _ rule: FieldRule) -> Outcome {
    guard rule.kind != .keep, rule.kind != .own,
      let stored = bytes.span.signedInteger(at: range.lowerBound, length: range.count), range.count == 8
    else { return .kept }
    let number = Double(bitPattern: UInt64(bitPattern: stored))
    guard number.isFinite, number != 0 else { return .kept }
    if rule.kind == .date, !ranksDates, !DateShift.isStuck(number) {
      let shifted = dates(number)
      if shifted != number {
        Self.write(Int64(bitPattern: shifted.bitPattern), &bytes, range)
        return .shifted
      }
    }
    let isOrdered = rule.isOrdered || rule.kind == .date
    if rule.kind == .drop, !isOrdered {
      Self.write(Int64(bitPattern: number.binade.bitPattern), &bytes, range)
      return .dropped
    }
    if isOrdered, let pseudonym = orderedNumbers.pseudonym(large: number) {
      if watched.contains(number: Self.bits(of: pseudonym)) { tightNumbers += 1 }
      Self.write(Int64(bitPattern: pseudonym.bitPattern), &bytes, range)
      return .ordered
    }
    var stream = KeyStream(function, seed: number.bitPattern ^ 0x7265_616c)
    var pseudonym = Int64(bitPattern: number.bitPattern)
    let place = isOrdered ? orderedNumbers.place(of: number) : nil
    var isFree = false
    for _ in 0..<64 where !isFree {
      if let place {
        let other = orderedNumbers.pseudonym(place, &stream) { domains.pseudonym(short: $0, rule.domain, function) }
        pseudonym = Int64(bitPattern: other.bitPattern)
      } else {
        let mantissa: UInt64 = 1 << 52 - 1
        pseudonym = Int64(bitPattern: number.bitPattern & ~mantissa | stream.next64() & mantissa)
      }
      let isTaken = watched.contains(number: Self.bits(of: Double(bitPattern: UInt64(bitPattern: pseudonym))))
      isFree = !isTaken && Self.isClean(pseudonym, 8, watched)
    }
    if !isFree { tightNumbers += 1 }
    Self.write(pseudonym, &bytes, range)
    return .ordered
  }

  static func isClean(_ number: Int64, _ width: Int, _ watched: WatchedValues) -> Bool {
    width < 4 || watched.firstHit(bytes(of: number, width).span, from: 0, before: width) == nil
  }

  /// Returns the stored form of an integer.
  static func bytes(of number: Int64, _ width: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: width)
    write(number, &bytes, 0..<width)
    return bytes
  }

  private static func write(_ number: Int64, _ bytes: inout [UInt8], _ range: Range<Int>) {
    var rest = number
    for index in range.reversed() {
      bytes[index] = UInt8(truncatingIfNeeded: rest)
      rest >>= 8
    }
  }
}

/// The integers of the same sign and storage width.
enum NumberRegion {
  static let kept: Int64 = 999_999

  /// The least integers of SQLite's widths, in records or as rowids.
  private static let bounds: [Int64] = [
    kept + 1, 1 << 21, 1 << 23, 1 << 28, 1 << 31, 1 << 35, 1 << 42, 1 << 47, 1 << 49, 1 << 56,
  ]

  static func region(of number: Int64) -> ClosedRange<Int64> {
    if number > kept {
      let place = bounds.lastIndex { $0 <= number } ?? 0
      return bounds[place]...(place + 1 < bounds.count ? bounds[place + 1] - 1 : Int64.max)
    }
    if number >= -8_388_608 { return -8_388_608...(-kept - 1) }
    if number >= Int64(Int32.min) { return Int64(Int32.min)...(-8_388_609) }
    if number >= -(1 << 47) { return -(1 << 47)...(Int64(Int32.min) - 1) }
    return Int64.min...(-(1 << 47) - 1)
  }

  /// Returns a short integer's region; 0 and 1, stored in no bytes, stay.
  static func shortRegion(of number: Int64) -> ClosedRange<Int64> {
    switch number {
    case 0, 1: number...number
    case 2...127: 2...127
    case 128...32767: 128...32767
    case 32768...kept: 32768...kept
    case -128 ... -1: -128 ... -1
    case -32768 ... -129: -32768 ... -129
    case -kept ... -32769: -kept ... -32769
    default: number...number
    }
  }

  /// Whether an integer has more than six digits.
  @inline(__always)
  static func isLong(_ number: Int64) -> Bool { number > kept || number < -kept }

  /// Returns SQLite's storage width in bytes.
  static func width(_ number: Int64) -> Int {
    let bits = 64 - (number < 0 ? ~number : number).leadingZeroBitCount + 1
    return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 24 ? 3 : bits <= 32 ? 4 : bits <= 48 ? 6 : 8
  }
}
