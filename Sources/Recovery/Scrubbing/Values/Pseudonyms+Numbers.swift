internal import SQLiteFormat

extension Pseudonyms {
  /// What a number is compared by, however it is stored.
  static func bits(of number: Double) -> UInt64 {
    if number.rounded() == number, abs(number) < 9e18 { return UInt64(bitPattern: Int64(number)) }
    return number.bitPattern
  }

  func replaceInteger(_ bytes: inout [UInt8], _ range: Range<Int>, _ rule: FieldRule) -> Outcome {
    guard rule.kind != .keep, rule.kind != .own,
      let number = bytes.span.signedInteger(at: range.lowerBound, length: range.count)
    else { return .kept }
    guard NumberRegion.isLong(number) || rule.kind == .date else {
      return replaceShort(number, &bytes, range, rule)
    }
    if rule.kind == .key, rule.domain < 0 || domains.keeps(long: rule.domain) { return .kept }
    if rule.kind == .date, !ranksDates, !DateShift.isStuck(Double(number)) {
      let shifted = dates(number)
      // A date of a row that was not found before was not asked whether it fits.
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
    if let pseudonym = orderedNumbers.pseudonym(number) {
      Self.write(pseudonym, &bytes, range)
      return .ordered
    }
    Self.write(pseudonym(of: number, range.count), &bytes, range)
    return .ordered
  }

  /// Replaces an integer of up to six digits, where its column is not one of flags, of few different values or of keys.
  private func replaceShort(
    _ number: Int64, _ bytes: inout [UInt8], _ range: Range<Int>, _ rule: FieldRule
  ) -> Outcome {
    switch rule.kind {
    case .keep, .own, .word, .key, .metadata: return .kept
    case .replace, .date, .drop: break
    }
    if rule.kind == .drop, !rule.isOrdered {
      let filling = NumberRegion.shortRegion(of: number).lowerBound
      Self.write(filling, &bytes, range)
      return .dropped
    }
    let pseudonym = domains.pseudonym(short: number, rule.domain, function)
    guard pseudonym != number else { return .kept }
    Self.write(pseudonym, &bytes, range)
    return .ordered
  }

  /// The pseudonym of the number of a row, of as many bytes in every place; nil where it stays.
  func pseudonym(rowid number: Int64, _ rule: FieldRule) -> Int64? {
    guard NumberRegion.isLong(number) else { return nil }
    switch rule.kind {
    case .keep, .own: return nil
    case .key where rule.domain >= 0 && domains.keeps(long: rule.domain): return nil
    case .replace, .word, .key, .date, .drop, .metadata:
      return orderedNumbers.pseudonym(number) ?? pseudonym(of: number, NumberRegion.width(number))
    }
  }

  /// The pseudonym of an integer of more than six digits, whatever its order.
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
    // Where nearly all numbers of a width are the store's, the next that is free is looked for.
    for _ in 0..<min(width, Self.nextNumbers) where !isFree {
      pseudonym = pseudonym == region.upperBound ? region.lowerBound : pseudonym + 1
      isFree = self.isFree(pseudonym, bytes)
    }
    if !isFree { stuckNumbers += 1 }
    return pseudonym
  }

  private static let nextNumbers: UInt64 = 1 << 16

  /// Whether an integer is none of the store's, and no value is in its bytes.
  private func isFree(_ number: Int64, _ width: Int) -> Bool {
    !watched.contains(number: UInt64(bitPattern: number)) && Self.isClean(number, width, watched)
  }

  func replaceReal(_ bytes: inout [UInt8], _ range: Range<Int>, _ rule: FieldRule) -> Outcome {
    guard rule.kind != .keep, rule.kind != .own,
      let stored = bytes.span.signedInteger(at: range.lowerBound, length: range.count),
      range.count == 8
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

  /// Whether no value is in the bytes of a number.
  static func isClean(_ number: Int64, _ width: Int, _ watched: WatchedValues) -> Bool {
    guard width >= 4 else { return true }
    var bytes = [UInt8](repeating: 0, count: 8)
    for index in 0..<width { bytes[index] = UInt8(truncatingIfNeeded: number >> Int64(8 * (width - 1 - index))) }
    return watched.firstHit(bytes.span, from: 0, before: width) == nil
  }

  private static func write(_ number: Int64, _ bytes: inout [UInt8], _ range: Range<Int>) {
    var rest = number
    for index in range.reversed() {
      bytes[index] = UInt8(truncatingIfNeeded: rest)
      rest >>= 8
    }
  }
}
