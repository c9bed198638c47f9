import Platform

/// An attribute of an entity.
public struct Attribute: Sendable, Hashable {
  /// What all kinds of properties have in common.
  public var traits: PropertyTraits

  /// The type of its values.
  public var type: AttributeType

  /// The value of new records, where one is given.
  public var defaultValue: AttributeValue?

  /// The transformer of a transformable attribute.
  public var valueTransformerName: String?

  /// The class of the value, as compiled models name it (`NSString`), or a transformable's own class.
  public var valueClassName: String?

  /// Whether large values may lie in files beside the store.
  public var allowsExternalBinaryDataStorage: Bool

  /// Whether persistent history keeps the value of deleted records.
  public var preservesValueInHistoryOnDeletion: Bool

  /// The expression a derived attribute is computed from, in the format that enters the version hash.
  public var derivationExpression: String?

  /// The filter of a derived attribute, in predicate format.
  public var filteringPredicate: String?

  /// The leaves of a composite attribute, in the order of the model; a leaf may be composite itself.
  public var compositeElements: [Attribute]

  /// The name of the composite type, where the model source gave one.
  public var compositeTypeName: String?

  /// Lower and upper bound of the value (of the length, for text), as the model source writes them.
  public var minimumValue: String?

  /// The upper bound of the value (of the length, for text), as the model source writes it.
  public var maximumValue: String?

  /// The pattern that text must match.
  public var regularExpression: String?

  /// The rules a value must obey beyond the bounds and the pattern, in predicate format.
  public var validationPredicates: [String]

  /// An attribute; whatever is left out it does not have.
  public init(
    traits: PropertyTraits,
    type: AttributeType,
    defaultValue: AttributeValue? = nil,
    valueTransformerName: String? = nil,
    valueClassName: String? = nil,
    allowsExternalBinaryDataStorage: Bool = false,
    preservesValueInHistoryOnDeletion: Bool = false,
    derivationExpression: String? = nil,
    filteringPredicate: String? = nil,
    compositeElements: [Attribute] = [],
    compositeTypeName: String? = nil,
    minimumValue: String? = nil,
    maximumValue: String? = nil,
    regularExpression: String? = nil,
    validationPredicates: [String] = []
  ) {
    self.traits = traits
    self.type = type
    self.defaultValue = defaultValue
    self.valueTransformerName = valueTransformerName
    self.valueClassName = valueClassName
    self.allowsExternalBinaryDataStorage = allowsExternalBinaryDataStorage
    self.preservesValueInHistoryOnDeletion = preservesValueInHistoryOnDeletion
    self.derivationExpression = derivationExpression
    self.filteringPredicate = filteringPredicate
    self.compositeElements = compositeElements
    self.compositeTypeName = compositeTypeName
    self.minimumValue = minimumValue
    self.maximumValue = maximumValue
    self.regularExpression = regularExpression
    self.validationPredicates = validationPredicates
  }

  /// The name, unique within the entity and its ancestors.
  public var name: String { traits.name }

  /// Whether the store computes the value itself.
  public var isDerived: Bool { derivationExpression != nil }
}

/// The type of an attribute; raw values are Core Data's own numbers.
public enum AttributeType: Int, Sendable, Hashable, CaseIterable {
  case undefined = 0
  case integer16 = 100
  case integer32 = 200
  case integer64 = 300
  case decimal = 400
  case double = 500
  case float = 600
  case string = 700
  case boolean = 800
  case date = 900
  case binary = 1000
  case uuid = 1100
  case uri = 1200
  case transformable = 1800
  case objectID = 2000
  case composite = 2100
}

/// A value of an attribute, as models hold them for defaults.
public enum AttributeValue: Sendable, Hashable {
  case integer(Int64)
  case real(Double)

  /// A decimal number as plain digits (`-12.50`), so that no precision is lost.
  case decimal(String)
  case boolean(Bool)
  case string(String)

  /// Seconds since 2001-01-01T00:00:00Z.
  case date(Double)
  case data([UInt8])

  /// The 16 bytes of a UUID.
  case uuid([UInt8])
  case uri(String)

  /// A default of a kind that is not read, such as an archived object; its class name.
  case opaque(className: String)
}

extension Attribute {
  /// Takes a validation rule apart into a bound or the pattern, or keeps it as text.
  ///
  /// Bounds are compared with the value itself (`SELF >= 3`), those of text with its length (`length <= 50`).
  mutating func add(rule: ModelPredicate) {
    switch rule {
    case .and(let parts) where parts.allSatisfy(isBound):
      for part in parts { add(rule: part) }
    case .comparison(let left, .greaterThanOrEqual, .constant(let value), _, _)
    where minimumValue == nil && isMeasure(left):
      minimumValue = value.plainText
    case .comparison(let left, .lessThanOrEqual, .constant(let value), _, _)
    where maximumValue == nil && isMeasure(left):
      maximumValue = value.plainText
    case .comparison(.selfObject, .matches, .constant(.string(let pattern)), _, 0) where regularExpression == nil:
      regularExpression = pattern
    case .comparison, .and, .or, .not, .always, .opaque: validationPredicates.append(rule.format)
    }
  }

  /// The rules as predicates: bounds, pattern, then the others that could be read.
  var rules: [ModelPredicate] {
    let measure: ModelExpression = type == .string ? .keyPath("length") : .selfObject
    var rules: [ModelPredicate] = []
    if let minimumValue { rules.append(.comparison(measure, .greaterThanOrEqual, bound(minimumValue))) }
    if let maximumValue { rules.append(.comparison(measure, .lessThanOrEqual, bound(maximumValue))) }
    if let regularExpression {
      rules.append(.comparison(.selfObject, .matches, .constant(.string(regularExpression))))
    }
    rules += validationPredicates.compactMap { FormatParser.predicate($0) }.filter(\.isComplete)
    return rules
  }

  private func isBound(_ rule: ModelPredicate) -> Bool {
    switch rule {
    case .comparison(let left, .greaterThanOrEqual, .constant, _, _): minimumValue == nil && isMeasure(left)
    case .comparison(let left, .lessThanOrEqual, .constant, _, _): maximumValue == nil && isMeasure(left)
    case .comparison, .and, .or, .not, .always, .opaque: false
    }
  }

  private func isMeasure(_ expression: ModelExpression) -> Bool {
    type == .string ? expression == .keyPath("length") : expression == .selfObject
  }

  private func bound(_ text: String) -> ModelExpression {
    if type == .date, let seconds = Double(text) { return .constant(.date(seconds)) }
    if type == .decimal, DecimalNumber(text) != nil { return .constant(.decimal(text)) }
    if let whole = Int64(text) { return .constant(.integer(whole)) }
    if let real = Double(text) { return .constant(.real(real)) }
    return .constant(.string(text))
  }
}

extension ModelExpression.Constant {
  /// The value as a model source would write it.
  fileprivate var plainText: String {
    switch self {
    case .string(let text): text
    case .date(let seconds): numberFormat(seconds)
    case .null, .boolean, .integer, .real, .decimal, .opaque: format
    }
  }
}

extension AttributeValue {
  /// The value as plain text, as a model source would write it; data as hexadecimal digits.
  package var plainText: String {
    switch self {
    case .integer(let value): String(value)
    case .real(let value): numberFormat(value)
    case .decimal(let digits): digits
    case .boolean(let value): value ? "YES" : "NO"
    case .string(let text), .uri(let text): text
    case .date(let seconds): numberFormat(seconds)
    case .data(let bytes), .uuid(let bytes): bytes.prefix(64).hexadecimal
    case .opaque(let className): "<\(className)>"
    }
  }
}
