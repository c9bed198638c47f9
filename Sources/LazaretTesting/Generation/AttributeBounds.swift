internal import ManagedObjectModel

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
