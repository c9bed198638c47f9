internal import ManagedObjectModel
internal import Migration
internal import PersistentStore

/// What one attribute of a migrated record must hold, worked out from the record it was made of.
struct ValueExpectation {
  /// The values that are right, and whether the source's value is still the same.
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

  /// The attribute of the destination, or the path of a leaf of a composite one.
  let name: String

  private let rule: Rule

  /// What takes the place of nil: nothing, a default, or one that only the app can make.
  private let replacement: Replacement

  private enum Replacement {
    case none, unknown
    case value(RecordValue)
  }

  /// Whether nothing can be said, because a custom step makes the value.
  var isUnknown: Bool { if case .unknown = rule { true } else { false } }

  /// The expectations for all attributes of the records that a mapping makes.
  static func all(of mapping: EntityMapping, _ old: StoreLayout, _ new: StoreLayout) throws -> [ValueExpectation] {
    guard let from = mapping.sourceEntityName, let to = mapping.destinationEntityName else { return [] }
    let (before, after) = (old.model.properties(of: from), new.model.properties(of: to))
    return mapping.propertyMappings.compactMap { property in
      guard let attribute = after[property.destination.name]?.property.attribute else { return nil }
      return ValueExpectation(
        property, leaf(property.destination, of: attribute), top: attribute, before: before)
    }
  }

  private init(
    _ mapping: PropertyMapping, _ attribute: Attribute, top: Attribute, before: [String: InheritedProperty]
  ) {
    name = mapping.destination.description
    let usual = attribute.defaultValue.map { RecordValue($0, type: attribute.type) } ?? .some(.null)
    replacement =
      mapping.replacesNilWithDefault ? usual.map { Replacement.value($0) } ?? Replacement.unknown : .none
    switch mapping.value {
    case .copy(let path), .externalize(let path): rule = .copy(path.description)
    case .convert(let path, _, let type): rule = .convert(path.description, type)
    case .defaultValue: rule = usual.map { Rule.constant($0) } ?? .unknown
    case .null: rule = .constant(.null)
    case .recompute: rule = Self.derivation(top, before)
    case .relationship, .inverse, .destinations, .expression: rule = .unknown
    }
  }

  /// A derived value is known where the source derives it in the same way from the record itself alone; those that follow
  /// relationships or the clock are checked elsewhere or not at all.
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

  /// What the attribute must hold; nil where nothing can be said.
  func expected(_ record: Record) -> Expected? {
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
        // Nil stays nil; what is no number is none in the new type either, and nothing more can be said.
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

/// What becomes of a number that changes its type, worked out in Swift and not in SQL.
///
/// The rules are those of `NSNumber`: fractions are cut off, a whole number keeps the bits that its new width has room for,
/// everything but zero is true.
struct ConvertedNumber {
  /// The values that are right.
  let accepted: [RecordValue]

  /// Whether the number is still the same.
  let isExact: Bool

  /// Converts a value; nil for what is no number.
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

  /// Fractions go, and what is beyond 64 bits becomes the nearest number that is not.
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
  /// Whether two stored values are the same; decimal numbers may be written in different ways.
  func isSame(as other: RecordValue) -> Bool {
    if self == other { return true }
    guard case .decimal(let digits) = self, case .decimal(let others) = other, let one = Double(digits),
      let two = Double(others)
    else { return false }
    return one == two
  }

  /// Whether two values are the same number, whatever their types are, or the same value.
  func isEqual(to other: RecordValue) -> Bool {
    if isSame(as: other) { return true }
    guard let one = ConvertedNumber(self, to: .double), let two = ConvertedNumber(other, to: .double), one.isExact,
      two.isExact
    else { return false }
    return one.accepted == two.accepted
  }

  /// A default of a model as records have it; nil where it is not of the attribute's type.
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
