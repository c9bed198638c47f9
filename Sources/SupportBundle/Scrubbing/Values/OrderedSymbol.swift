internal import SQLiteFormat

/// A character of an indexed value or a byte of a blob, with its replacements.
///
/// Its key is SQLite's sort key: the stored bytes, ignoring ASCII case. In little-endian UTF-16 the low byte comes
/// first; replacements share the high byte, which keeps the order by either.
struct OrderedSymbol {
  /// Possible keys at equal distances.
  struct Choice: Equatable {
    var first: UInt64
    var count: UInt64
    var step: UInt64 = 1

    func count(below key: UInt64) -> UInt64 { key <= first ? 0 : min(count, (key - first - 1) / step + 1) }
  }

  private(set) var key: UInt64

  private(set) var length: Int

  /// Whether it is a character or blob byte.
  private(set) var isWhole = true

  private var choice: Choice
  private let isBlob: Bool
  private var isUpper = false
  private var isDigit = false
  private var isByte = false

  /// - Parameter encoding: the text's encoding; nil to read a byte of invalid text.
  init(_ entry: OrderedTexts.Entry, at depth: Int, _ bytes: Span<UInt8>, _ encoding: TextEncoding?) {
    isBlob = entry.isBlob
    let value = entry.range
    let start = value.lowerBound + depth
    guard let encoding else {
      var byte = bytes[start]
      isByte = true
      length = 1
      if (0x41...0x5a).contains(byte) {
        isUpper = true
        byte |= 0x20
      }
      isDigit = (0x30...0x39).contains(byte)
      key = UInt64(byte)
      let range = Pseudonyms.byteClass(byte) ?? byte...byte
      choice = Choice(first: UInt64(range.lowerBound), count: UInt64(range.count))
      return
    }
    if entry.isBlob {
      let byte = UInt64(bytes[start])
      key = byte
      length = 1
      choice = Choice(first: 1, count: 255)
      // Identifiers keep version and variant.
      if byte == 0 || depth < BlobForm.keptPrefix(bytes, value) {
        choice = Choice(first: byte, count: 1)
      } else if value.count == 16, depth == 6 {
        choice = byte < 16 ? Choice(first: 1, count: 15) : Choice(first: byte & 0xf0, count: 16)
      } else if value.count == 16, depth == 8 {
        choice = byte < 64 ? Choice(first: 1, count: 63) : Choice(first: byte & 0xc0, count: 64)
      }
      return
    }
    let character = TextCoding.read(bytes, at: start, before: value.upperBound, encoding)
    length = character.length
    guard var scalar = character.scalar else {
      isWhole = false
      if encoding == .utf8 {
        key = 1 << 40 | UInt64(bytes[start]) << 8 | (length == 2 ? UInt64(bytes[start + 1]) : 0)
      } else {
        // An unpaired surrogate or last byte sorts by bytes.
        key = UInt64(bytes[start]) << 24 | (length == 2 ? UInt64(bytes[start + 1]) << 16 : 0)
      }
      choice = Choice(first: key, count: 1)
      return
    }
    if (0x41...0x5a).contains(scalar) {
      isUpper = true
      scalar |= 0x20
    }
    isDigit = (0x30...0x39).contains(scalar)
    key = Self.key(scalar, encoding)
    let block = (0x61...0x7a).contains(scalar) ? 0x61...0x7a : Pseudonyms.block(of: scalar) ?? scalar...scalar
    choice = Self.choice(block, around: scalar, encoding)
  }

  private static func swapped(_ unit: UInt32) -> UInt64 { UInt64((unit & 0xff) << 8 | unit >> 8) }

  private static func key(_ scalar: UInt32, _ encoding: TextEncoding) -> UInt64 {
    guard encoding != .utf8 else { return UInt64(scalar) }
    let isLittle = encoding == .utf16LittleEndian
    guard scalar >= 0x10000 else { return (isLittle ? swapped(scalar) : UInt64(scalar)) << 16 }
    let (high, low) = (0xd800 + (scalar - 0x10000) >> 10, 0xdc00 + (scalar - 0x10000) & 0x3ff)
    return isLittle ? swapped(high) << 16 | swapped(low) : UInt64(high) << 16 | UInt64(low)
  }

  /// Returns low bytes that keep their order to ASCII letters.
  private static func zone(of byte: UInt32) -> ClosedRange<UInt32> {
    switch byte {
    case 0x00...0x40: 0x00...0x40
    case 0x41...0x5a: 0x41...0x5a
    case 0x5b...0x60: 0x5b...0x60
    case 0x61...0x7a: 0x61...0x7a
    default: 0x7b...0xff
    }
  }

  /// Whether a non-ASCII character has the low byte of a capital.
  private var isAmongCapitals: Bool { (0x41...0x5a).contains(key >> 24) && key >> 16 & 0xff != 0 }

  private var isLetter: Bool { (0x61...0x7a).contains(key >> 24) && key >> 16 & 0xff == 0 }

  /// Returns characters at equal key distances.
  private static func choice(_ block: ClosedRange<UInt32>, around scalar: UInt32, _ encoding: TextEncoding) -> Choice {
    var (low, high) = (block.lowerBound, block.upperBound)
    switch encoding {
    case .utf8: break
    case .utf16BigEndian:
      if scalar >= 0x10000 { (low, high) = (max(low, scalar & ~0x3ff), min(high, scalar | 0x3ff)) }
    case .utf16LittleEndian:
      let zone = zone(of: scalar & 0xff)
      (low, high) = (max(low, scalar & ~0xff | zone.lowerBound), min(high, scalar & ~0xff | zone.upperBound))
    }
    let first = key(low, encoding)
    let step = high > low ? key(low + 1, encoding) - first : 1
    return Choice(first: first, count: UInt64(high - low) + 1, step: step)
  }

  // MARK: Replacing

  /// Returns ordered replacement keys for ascending symbols, if possible.
  ///
  /// - Parameter freedom: 0 for the same kind; from 1, digits may become other signs, and must from 2.
  static func replacements(
    _ symbols: [OrderedSymbol], freedom: Int, _ encoding: TextEncoding, _ stream: inout KeyStream
  ) -> [UInt64]? {
    var choices = symbols.map(\.choice)
    if encoding == .utf8, symbols.contains(where: { !$0.isWhole }) {
      // Invalid bytes have no order; only ASCII certainly precedes them.
      for (index, symbol) in symbols.enumerated() where symbol.key >= 0x80 {
        choices[index] = Choice(first: symbol.key, count: 1)
      }
    } else if encoding == .utf16LittleEndian, symbols.contains(where: \.isUpper),
      symbols.contains(where: \.isAmongCapitals)
    {
      // They sort differently among capital and small letters.
      for (index, symbol) in symbols.enumerated() where symbol.isAmongCapitals || symbol.isLetter {
        choices[index] = Choice(first: symbol.key, count: 1)
      }
    } else if freedom > 0 {
      let signs: ClosedRange<UInt32> = freedom == 1 ? 0x21...0x40 : freedom == 2 ? 0x21...0x2f : 0x3a...0x40
      for (index, symbol) in symbols.enumerated() where symbol.isDigit && !symbol.isBlob {
        choices[index] = choice(signs, around: signs.lowerBound, encoding)
      }
    }
    // The largest choice that leaves space for the next ones.
    var largest = [UInt64](repeating: 0, count: choices.count)
    var limit = UInt64.max
    for index in choices.indices.reversed() {
      let count = choices[index].count(below: limit)
      guard count > 0 else { return nil }
      largest[index] = choices[index].first + (count - 1) * choices[index].step
      limit = largest[index]
    }
    var result: [UInt64] = []
    result.reserveCapacity(choices.count)
    var run = 0
    for index in choices.indices {
      let choice = choices[index]
      if run <= index { run = choices[index...].firstIndex { $0 != choice } ?? choices.count }
      let lowest = result.last.map { choice.count(below: $0 + 1) } ?? 0
      guard lowest < choice.count else { return nil }
      let first = choice.first + lowest * choice.step
      guard first <= largest[index], first <= largest[run - 1] else { return nil }
      let left = UInt64(run - index)
      let room = (largest[run - 1] - first) / choice.step + 1
      let free = room > left ? room - left : 0
      let most = (largest[index] - first) / choice.step
      let gap = min(most, min(free, stream.below64(2 * free / (left + 1) + 1)))
      result.append(first + gap * choice.step)
    }
    return result
  }

  /// Returns keys that ignore the order.
  static func unordered(_ symbols: [OrderedSymbol], _ stream: inout KeyStream) -> [UInt64] {
    symbols.map { $0.choice.first + stream.below64($0.choice.count) * $0.choice.step }
  }

  func write(_ replaced: UInt64, into bytes: inout [UInt8], at offset: Int, _ encoding: TextEncoding) {
    guard isWhole else { return }
    if isBlob || isByte {
      let byte = UInt8(truncatingIfNeeded: replaced)
      bytes[offset] = isUpper && (0x61...0x7a).contains(byte) ? byte & ~0x20 : byte
      return
    }
    var scalar: UInt32
    switch encoding {
    case .utf8: scalar = UInt32(truncatingIfNeeded: replaced)
    case .utf16BigEndian, .utf16LittleEndian:
      func unit(_ shift: UInt64) -> UInt32 {
        let unit = UInt32(replaced >> shift & 0xffff)
        return encoding == .utf16LittleEndian ? (unit & 0xff) << 8 | unit >> 8 : unit
      }
      scalar = length == 4 ? 0x10000 + (unit(16) - 0xd800) << 10 + (unit(0) - 0xdc00) : unit(16)
    }
    if isUpper, (0x61...0x7a).contains(scalar) { scalar &= ~0x20 }
    TextCoding.write(scalar, length: length, into: &bytes, at: offset, encoding)
  }
}
