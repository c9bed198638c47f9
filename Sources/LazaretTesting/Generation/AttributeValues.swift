internal import Foundation
internal import GRDB

struct AttributeValues: Sendable {
  enum Value {
    case stored(DatabaseValue)

    case external(fileName: String, [UInt8])
  }

  let attribute: Attribute
  let profile: StoreProfile
  let numbers: SeededNumbers

  let isUnique: Bool

  let isOptional: Bool

  /// Whether values start with the external storage marker (format section 3.7).
  let isMarked: Bool

  let bounds: AttributeBounds

  init(
    _ attribute: Attribute, profile: StoreProfile, numbers: SeededNumbers, isUnique: Bool, isOptional: Bool,
    isLeaf: Bool
  ) {
    self.attribute = attribute
    self.profile = profile
    self.numbers = numbers
    self.isUnique = isUnique
    self.isOptional = isOptional
    isMarked =
      !isLeaf && attribute.allowsExternalBinaryDataStorage
      && (attribute.type == .binary || attribute.type == .transformable)
    bounds = AttributeBounds(attribute)
  }

  func value(_ index: Int, primaryKey: Int64) -> Value {
    if attribute.isDerived || isNil(index, primaryKey) { return .stored(.null) }
    let index = profile == .uniform ? 0 : index
    if isUnique { return .stored(unique(primaryKey)) }
    switch attribute.type {
    case .binary, .transformable: return data(index)
    case .undefined, .integer16, .integer32, .integer64, .decimal, .double, .float, .string, .boolean, .date, .uuid,
      .uri, .objectID, .composite:
      return .stored(plain(index))
    }
  }

  private func isNil(_ index: Int, _ primaryKey: Int64) -> Bool {
    switch attribute.type {
    case .undefined, .objectID, .composite: return true
    case .integer16, .integer32, .integer64, .decimal, .double, .float, .string, .boolean, .date, .binary, .uuid, .uri,
      .transformable:
      break
    }
    guard isOptional else { return false }
    if isUnique, primaryKey > bounds.capacity { return true }
    switch profile {
    case .sparse, .empty: return true
    case .uniform: return false
    case .typical, .edge: return numbers.number(index, below: 5) == 0
    }
  }

  private func plain(_ index: Int) -> DatabaseValue {
    if profile != .edge, attribute.defaultValue != nil, numbers.number(~index, below: 6) == 0 || isRuled,
      let value = defaultValue
    {
      return value
    }
    switch attribute.type {
    case .integer16, .integer32, .integer64, .boolean: return integer(index).databaseValue
    case .double, .float, .date: return real(index).databaseValue
    case .decimal: return decimal(index)
    case .string: return text(index).databaseValue
    case .uri: return address(index).databaseValue
    case .uuid: return Data(uuid(index)).databaseValue
    case .binary, .transformable, .undefined, .objectID, .composite: return .null
    }
  }

  /// Whether only the default is known to satisfy the model's rules.
  private var isRuled: Bool { attribute.regularExpression != nil || !attribute.validationPredicates.isEmpty }

  private var defaultValue: DatabaseValue? {
    switch (attribute.defaultValue, attribute.type) {
    case (.integer(let value), .integer16), (.integer(let value), .integer32), (.integer(let value), .integer64):
      value.databaseValue
    case (.boolean(let value), .boolean): (value ? 1 : 0).databaseValue
    case (.real(let value), .double), (.real(let value), .float), (.date(let value), .date): value.databaseValue
    case (.string(let value), .string), (.uri(let value), .uri): value.databaseValue
    case (.uuid(let value), .uuid): Data(value).databaseValue
    default: nil
    }
  }

  // MARK: Numbers

  private func integer(_ index: Int) -> Int64 {
    let range = bounds.integers
    if attribute.type == .boolean { return Int64(numbers.number(index, below: 2)).clamped(to: range) }
    if profile == .edge {
      let edges = [
        range.lowerBound, range.upperBound, 0, 1, -1, range.lowerBound &+ 1, range.upperBound &- 1, 255, -128,
      ]
      return edges[index % edges.count].clamped(to: range)
    }
    return (Int64(numbers[index] % 1000) + (bounds.isLimited ? max(range.lowerBound, 0) : 0)).clamped(to: range)
  }

  private func real(_ index: Int) -> Double {
    let range = bounds.reals
    var value: Double
    if profile == .edge {
      let edges =
        attribute.type == .date
        ? [range.lowerBound, range.upperBound, 0, -0.5, 0.123_456_789, 1e-3, -978_307_200, 721_692_799.999_999]
        : [
          range.lowerBound, range.upperBound, -0.0, .leastNonzeroMagnitude, -Double.leastNormalMagnitude, .pi, 0.1,
          9_007_199_254_740_991, -1e15, 1.0 / 3,
        ]
      value = edges[index % edges.count]
    } else if bounds.isLimited, range.upperBound - range.lowerBound < 1e9 {
      value = range.lowerBound + numbers.fraction(index) * (range.upperBound - range.lowerBound)
    } else if attribute.type == .date {
      value = 600_000_000 + (numbers.fraction(index) * 2e8 * 1000).rounded() / 1000
    } else {
      value = (numbers.fraction(index) * 2_000_000).rounded() / 100 - 5000
    }
    value = value.clamped(to: range)
    return attribute.type == .float ? Double(Float(value)).clamped(to: range) : value
  }

  /// Returns a decimal as an integer or binary number, as the column's affinity stores it (format section 3.5).
  private func decimal(_ index: Int) -> DatabaseValue {
    let edges = [10.11, 10, -0.5, 99_999_999_999_999.98, 1e30, 0, 0.000_001, -123_456_789_012]
    let value =
      profile == .edge
      ? edges[index % edges.count].clamped(to: bounds.reals) : Double(numbers.number(index, below: 1_000_000)) / 100
    let limited = bounds.isLimited ? value.clamped(to: bounds.reals) : value
    return Int64(exactly: limited)?.databaseValue ?? limited.databaseValue
  }

  // MARK: Text

  private static let words = [
    "harbour", "lantern", "Quarantäne", "ship", "月", "crew", "привет", "cargo", "anchor", "señor", "tide", "ﬁn",
  ]

  private static let edgeTexts = [
    "", " ", "a", "👩‍👩‍👧‍👦🏴‍☠️", "e\u{301}\u{323}\u{302}", "שלום\u{200F} عربى", "'; DROP TABLE Z; --", "\"quoted\" \\ back",
    "line\nbreak\r\n\ttab", "\u{FEFF}bom\u{10FFFF}", "NULL", "0x1F", "1e309", "ıİßẞ", "\u{1B}[31mred",
  ]

  private func text(_ index: Int) -> String {
    let text: String
    if profile == .edge {
      let place = index % (Self.edgeTexts.count + 1)
      if place < Self.edgeTexts.count {
        text = Self.edgeTexts[place]
      } else {
        // Few records have long text, for speed.
        let count = index < 64 ? Int(bounds.integers.upperBound) : 300
        text = String(repeating: "long ⛵️ ", count: count / 7 + 1)
      }
    } else {
      let count = 1 + numbers.number(index, below: 4)
      text = (0..<count).map { Self.words[numbers.number(index &* 7 &+ $0, below: Self.words.count)] }
        .joined(separator: " ")
    }
    return fitted(text)
  }

  private func fitted(_ text: String) -> String {
    let (least, most) = (Int(bounds.integers.lowerBound), Int(bounds.integers.upperBound))
    var length = text.utf16.count
    if length > most {
      var kept = String.UnicodeScalarView()
      length = 0
      for scalar in text.unicodeScalars {
        length += UTF16.width(scalar)
        if length > most { break }
        kept.append(scalar)
      }
      return padded(String(kept), to: least)
    }
    return padded(text, to: least)
  }

  private func padded(_ text: String, to length: Int) -> String {
    text + String(repeating: "x", count: max(0, length - text.utf16.count))
  }

  private func address(_ index: Int) -> String {
    let edges = ["", "x-coredata:///Car/t1", "https://example.org/%C3%BC?q=a%20b#c", "file:///", "urn:uuid:0"]
    return profile == .edge ? edges[index % edges.count] : "https://example.org/\(numbers.number(index, below: 10_000))"
  }

  private func uuid(_ index: Int) -> [UInt8] {
    if profile == .edge, index < 2 { return [UInt8](repeating: index == 0 ? 0 : 0xFF, count: 16) }
    return numbers.bytes(index, count: 16)
  }

  // MARK: Unique values

  /// Derives a value from the primary key, unique within the hierarchy.
  private func unique(_ primaryKey: Int64) -> DatabaseValue {
    switch attribute.type {
    case .integer16, .integer32, .integer64, .boolean:
      // Around zero if possible, else from the lower bound.
      let range = bounds.integers
      let start = range.contains(0) && range.upperBound >= primaryKey ? 0 : range.lowerBound
      let offset = start == 0 ? primaryKey - (range.lowerBound == 0 ? 1 : 0) : primaryKey - 1
      return (start.addingReportingOverflow(offset).partialValue).clamped(to: range).databaseValue
    case .double, .float, .date, .decimal:
      let span = bounds.reals.upperBound - bounds.reals.lowerBound
      if span.isFinite, span < 1e9 {
        // A distinct fraction in any range.
        return (bounds.reals.lowerBound + span * (Double(primaryKey) / Double(primaryKey + 1))).databaseValue
      }
      let start = bounds.reals.contains(0) ? 0 : bounds.reals.lowerBound
      return (start + Double(primaryKey)).databaseValue
    case .string: return uniqueText(primaryKey).databaseValue
    case .uri: return "https://example.org/\(primaryKey)".databaseValue
    case .uuid: return Data(numbers.bytes(Int(primaryKey), count: 8) + primaryKey.bigEndianBytes).databaseValue
    case .binary, .transformable:
      let bytes = primaryKey.bigEndianBytes + numbers.bytes(Int(primaryKey), count: 8)
      return Data(isMarked ? [1] + bytes : bytes).databaseValue
    case .undefined, .objectID, .composite: return .null
    }
  }

  private func uniqueText(_ primaryKey: Int64) -> String {
    let digits = String(primaryKey, radix: 36)
    let (least, most) = (Int(bounds.integers.lowerBound), Int(bounds.integers.upperBound))
    let word = profile == .edge ? "é👩‍👧 " : "unique "
    let text = most >= 24 ? word + digits : digits
    // Leading zeros do not change a number.
    return String(repeating: "0", count: max(0, least - text.utf16.count)) + text
  }
}

extension AttributeValues {
  /// The threshold for external files, about Core Data's own.
  static let externalLength = 110_000

  /// The number of records with large data, for speed.
  private static let largeRecords = 12

  func data(_ index: Int) -> Value {
    let bytes = attribute.type == .transformable ? archive(index) : binary(index)
    guard isMarked else { return .stored(Data(bytes).databaseValue) }
    if bytes.count >= Self.externalLength, let name = UniversalIdentifier(bytes: numbers.bytes(~index, count: 16)) {
      return .external(fileName: name.description, bytes)
    }
    return .stored(Data([1] + bytes).databaseValue)
  }

  private func binary(_ index: Int) -> [UInt8] {
    guard profile == .edge else {
      let isLarge = isMarked && profile == .typical && index < Self.largeRecords && numbers.number(index, below: 4) == 1
      return numbers.bytes(index, count: isLarge ? Self.externalLength : numbers.number(index &+ 1, below: 200))
    }
    switch index % 8 {
    case 0: return []
    case 1: return [0]
    // Data like the markers of external storage.
    case 2: return [1, 2, 3]
    case 3: return [2] + Array("0F0E0D0C-0B0A-4908-8706-050403020100".utf8) + [0]
    case 4: return index < Self.largeRecords ? numbers.bytes(index, count: 150_000) : [1]
    case 5: return index < Self.largeRecords ? numbers.bytes(index, count: 90_000) : [2]
    case 6: return [UInt8](repeating: 0xFF, count: 4096)
    default: return numbers.bytes(index, count: 37)
    }
  }

  /// Archives a list of texts like Core Data's default transformer.
  private func archive(_ index: Int) -> [UInt8] {
    var writer = KeyedArchiveWriter()
    let texts = (0..<(1 + numbers.number(index, below: 3))).map { place in
      writer.string(profile == .edge ? "⛵️ \(place)" : "text \(numbers.number(index &+ place, below: 100))")
    }
    let root = writer.array(texts)
    // An archive of plain text always fits; otherwise any data will do.
    let bytes = (try? writer.bytes(root: root)) ?? [0x62]
    guard isMarked, profile == .edge, index == 4 else { return bytes }
    return bytes + numbers.bytes(index, count: Self.externalLength)
  }
}

/// The value range of an attribute, by type and validation; for text a range of lengths in UTF-16 units, as in Core
/// Data.
struct AttributeBounds: Sendable {
  /// The bounds of integers, or of text lengths.
  let integers: ClosedRange<Int64>

  /// The bounds of fractional numbers and dates.
  let reals: ClosedRange<Double>

  let isLimited: Bool

  let isImpossible: Bool

  /// The number of distinct values for primary keys from 1.
  let capacity: Int64

  static let longestText: Int64 = 20_000

  init(_ attribute: Attribute) {
    let low = attribute.minimumValue.flatMap(Double.init)
    let high = attribute.maximumValue.flatMap(Double.init)
    isLimited = low != nil || high != nil
    isImpossible = low.flatMap { low in high.map { low > $0 } } ?? false
    let whole: ClosedRange<Int64> =
      switch attribute.type {
      case .integer16: Int64(Int16.min)...Int64(Int16.max)
      case .integer32: Int64(Int32.min)...Int64(Int32.max)
      case .boolean: 0...1
      case .string: 0...Self.longestText
      case .undefined, .integer64, .decimal, .double, .float, .date, .binary, .uuid, .uri, .transformable, .objectID,
        .composite:
        .min ... .max
      }
    integers = Self.narrowed(whole, low, high)
    let real: ClosedRange<Double> =
      switch attribute.type {
      case .float: -Double(Float.greatestFiniteMagnitude)...Double(Float.greatestFiniteMagnitude)
      // Foundation's distant past and distant future.
      case .date: -63_114_076_800...63_113_904_000
      case .undefined, .integer16, .integer32, .integer64, .decimal, .double, .string, .boolean, .binary, .uuid, .uri,
        .transformable, .objectID, .composite:
        -Double.greatestFiniteMagnitude...Double.greatestFiniteMagnitude
      }
    let lowest = low.map { $0.clamped(to: real) } ?? real.lowerBound
    let highest = high.map { $0.clamped(to: real) } ?? real.upperBound
    reals = lowest <= highest ? lowest...highest : lowest...lowest
    switch attribute.type {
    case .integer16, .integer32, .integer64, .boolean:
      let (span, overflow) = integers.upperBound.subtractingReportingOverflow(integers.lowerBound)
      capacity = overflow || span == .max ? .max : span + 1
    case .string:
      // Digits of base 36.
      var count: Int64 = 1
      for _ in 0..<min(integers.upperBound, 12) { count *= 36 }
      capacity = integers.upperBound >= 12 ? .max : max(0, count - 1)
    case .undefined, .objectID, .composite: capacity = 0
    case .decimal, .double, .float, .date, .binary, .uuid, .uri, .transformable: capacity = .max
    }
  }

  private static func narrowed(_ whole: ClosedRange<Int64>, _ low: Double?, _ high: Double?) -> ClosedRange<Int64> {
    func integer(_ value: Double?, _ rule: FloatingPointRoundingRule, _ usual: Int64) -> Int64 {
      guard let value else { return usual }
      let rounded = value.rounded(rule)
      return (Int64(exactly: rounded) ?? (value < 0 ? .min : .max)).clamped(to: whole)
    }
    let lowest = integer(low, .up, whole.lowerBound)
    let highest = integer(high, .down, whole.upperBound)
    return lowest <= highest ? lowest...highest : lowest...lowest
  }
}
