/// The expected value of a migrated attribute, derived from the source record.
struct ValueExpectation {
  /// The accepted values, and whether the source's value is preserved.
  struct Expected {
    var values: [RecordValue]
    var isExact = true
  }

  private enum Rule {
    case copy(String)
    case convert(String, AttributeType)
    case constant(RecordValue)
    case unknown
  }

  /// The destination attribute, or a composite leaf's path.
  let name: String

  private let rule: Rule

  /// The replacement of nil: none, a default, or unknown because the app makes it.
  private let replacement: Replacement

  private enum Replacement {
    case none, unknown
    case value(RecordValue)
  }

  var isUnknown: Bool { if case .unknown = rule { true } else { false } }

  static func all(of mapping: EntityMapping, _ old: StoreLayout, _ new: StoreLayout) throws -> [ValueExpectation] {
    guard let from = mapping.sourceEntityName, let to = mapping.destinationEntityName else { return [] }
    let (before, after) = (old.model.properties(of: from), new.model.properties(of: to))
    return mapping.propertyMappings.compactMap { property in
      guard let attribute = after[property.destination.name]?.property.attribute else { return nil }
      return ValueExpectation(property, leaf(property.destination, of: attribute), top: attribute, before: before)
    }
  }

  private init(
    _ mapping: PropertyMapping, _ attribute: Attribute, top: Attribute, before: [String: InheritedProperty]
  ) {
    name = mapping.destination.description
    let usual = attribute.defaultValue.map { RecordValue($0, type: attribute.type) } ?? .some(.null)
    replacement = mapping.replacesNilWithDefault ? usual.map { Replacement.value($0) } ?? Replacement.unknown : .none
    switch mapping.value {
    case .copy(let path), .externalize(let path): rule = .copy(path.description)
    case .convert(let path, _, let type): rule = .convert(path.description, type)
    case .defaultValue: rule = usual.map { Rule.constant($0) } ?? .unknown
    case .null: rule = .constant(.null)
    case .recompute: rule = Self.derivation(top, before)
    case .relationship, .inverse, .destinations, .expression: rule = .unknown
    }
  }

  /// Handles derived values: known if the source derives them alike from the record alone; those over relationships or
  /// the clock are checked elsewhere or not at all.
  private static func derivation(_ attribute: Attribute, _ before: [String: InheritedProperty]) -> Rule {
    guard let old = before[attribute.name]?.property.attribute, old.isDerived, old.type == attribute.type,
      old.derivationExpression == attribute.derivationExpression,
      old.filteringPredicate == attribute.filteringPredicate, let text = attribute.derivationExpression
    else { return .unknown }
    switch DerivationExpression(text) {
    case .now: return .copy(attribute.name)
    case .keyPath(let path) where path.count == 1: return .copy(attribute.name)
    case nil, .keyPath?, .function?: return .unknown
    }
  }

  private static func leaf(_ path: PropertyPath, of attribute: Attribute) -> Attribute {
    var current = attribute
    for name in path.leaf {
      guard let next = current.compositeElements.first(where: { $0.name == name }) else { return current }
      current = next
    }
    return current
  }

  /// Returns nil if unknown.
  func expected(_ record: StoreRecord) -> Expected? {
    var expected: Expected
    switch rule {
    case .unknown: return nil
    case .constant(let value): expected = Expected(values: [value])
    case .copy(let path): expected = Expected(values: [record.values[path] ?? .null])
    case .convert(let path, let type):
      let value = record.values[path] ?? .null
      if let converted = ConvertedNumber(value, to: type) {
        expected = Expected(values: converted.accepted, isExact: converted.isExact)
      } else {
        // Nil stays nil; a value that is no number stays none, and its result is unknown.
        guard value == .null else { return nil }
        expected = Expected(values: [.null])
      }
    }
    if expected.values == [.null] {
      switch replacement {
      case .none: break
      case .unknown: return nil
      case .value(let value): expected = Expected(values: [value])
      }
    }
    return expected
  }
}

/// A converted number, computed in Swift instead of SQL.
///
/// By the rules of `NSNumber`: fractions are truncated, integers keep the low bits of the new width, all but zero is
/// true.
struct ConvertedNumber {
  let accepted: [RecordValue]

  let isExact: Bool

  /// Returns nil for other values than numbers.
  init?(_ value: RecordValue, to type: AttributeType) {
    let whole: Int64?
    let real: Double
    switch value {
    case .integer(let number): (whole, real) = (number, Double(number))
    case .boolean(let flag): (whole, real) = (flag ? 1 : 0, flag ? 1 : 0)
    case .real(let number): (whole, real) = (Int64(exactly: number), number)
    case .decimal(let digits):
      guard let number = Double(digits) else { return nil }
      (whole, real) = (Int64(digits) ?? Int64(exactly: number), number)
    case .null, .string, .date, .uuid, .uri, .data, .externalData, .unexpected: return nil
    }
    switch type {
    case .integer16, .integer32, .integer64:
      let cut = whole ?? Self.cutOff(real)
      let kept = Self.truncated(cut, to: type)
      accepted = [.integer(kept)]
      isExact = whole == kept
    case .boolean:
      accepted = [.boolean(whole.map { $0 != 0 } ?? (real != 0))]
      isExact = whole == 0 || whole == 1
    case .double:
      accepted = [.real(real)]
      isExact = whole.map { Int64(exactly: real) == $0 } ?? true
    case .float:
      let single = Double(Float(real))
      accepted = [.real(real), .real(single)]
      isExact = single == real && (whole.map { Int64(exactly: real) == $0 } ?? true)
    case .decimal:
      accepted = [.decimal(whole.map { String($0) } ?? "\(real)")]
      isExact = true
    case .undefined, .string, .date, .binary, .uuid, .uri, .transformable, .objectID, .composite: return nil
    }
  }

  /// Truncates and clamps to 64 bits.
  private static func cutOff(_ value: Double) -> Int64 {
    if value.isNaN { return 0 }
    return Int64(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
  }

  private static func truncated(_ value: Int64, to type: AttributeType) -> Int64 {
    switch type {
    case .integer16: Int64(Int16(truncatingIfNeeded: value))
    case .integer32: Int64(Int32(truncatingIfNeeded: value))
    case .undefined, .integer64, .decimal, .double, .float, .string, .boolean, .date, .binary, .uuid, .uri,
      .transformable, .objectID, .composite:
      value
    }
  }
}

extension RecordValue {
  /// Whether two stored values are the same; decimals have several spellings.
  func isSame(as other: RecordValue) -> Bool {
    if self == other { return true }
    guard case .decimal(let digits) = self, case .decimal(let others) = other, let one = Double(digits),
      let two = Double(others)
    else { return false }
    return one == two
  }

  /// Whether two values are the same number regardless of type, or identical.
  func isEqual(to other: RecordValue) -> Bool {
    if isSame(as: other) { return true }
    guard let one = ConvertedNumber(self, to: .double), let two = ConvertedNumber(other, to: .double), one.isExact,
      two.isExact
    else { return false }
    return one.accepted == two.accepted
  }

  init?(_ value: AttributeValue?, type: AttributeType) {
    switch (value, type) {
    case (.integer(let number), .integer16), (.integer(let number), .integer32), (.integer(let number), .integer64):
      self = .integer(number)
    case (.boolean(let flag), .boolean): self = .boolean(flag)
    case (.real(let number), .double), (.real(let number), .float): self = .real(number)
    case (.decimal(let digits), .decimal): self = .decimal(digits)
    case (.string(let text), .string): self = .string(text)
    case (.uri(let text), .uri): self = .uri(text)
    case (.date(let seconds), .date): self = .date(seconds)
    case (.uuid(let bytes), .uuid): self = .uuid(bytes)
    case (.data(let bytes), .binary): self = .data(bytes)
    default: return nil
    }
  }
}
