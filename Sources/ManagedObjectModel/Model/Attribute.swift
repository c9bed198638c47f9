import Platform

/// An attribute of an entity.
public struct Attribute: Sendable, Hashable {
  /// The common traits.
  public var traits: PropertyTraits

  /// The value type.
  public var type: AttributeType

  /// The default value, if any.
  public var defaultValue: AttributeValue?

  /// The transformer of a transformable attribute.
  public var valueTransformerName: String?

  /// The value class in compiled models (`NSString`), or a transformable's own class.
  public var valueClassName: String?

  /// Whether large values may use external files.
  public var allowsExternalBinaryDataStorage: Bool

  /// Whether persistent history keeps values of deleted records.
  public var preservesValueInHistoryOnDeletion: Bool

  /// A derived attribute's expression, in hashed format.
  public var derivationExpression: String?

  /// A derived attribute's filter, in predicate format.
  public var filteringPredicate: String?

  /// The elements of a composite attribute in model order, possibly composite themselves.
  public var compositeElements: [Attribute]

  /// The composite type's name, if the source gave one.
  public var compositeTypeName: String?

  /// The lower bound of the value (of the length, for text), as in model source.
  public var minimumValue: String?

  /// The upper bound of the value (of the length, for text), as in model source.
  public var maximumValue: String?

  /// The regular expression for text.
  public var regularExpression: String?

  /// The further validation rules, in predicate format.
  public var validationPredicates: [String]

  /// Creates an attribute.
  public init(
    traits: PropertyTraits, type: AttributeType, defaultValue: AttributeValue? = nil,
    valueTransformerName: String? = nil, valueClassName: String? = nil, allowsExternalBinaryDataStorage: Bool = false,
    preservesValueInHistoryOnDeletion: Bool = false, derivationExpression: String? = nil,
    filteringPredicate: String? = nil, compositeElements: [Attribute] = [], compositeTypeName: String? = nil,
    minimumValue: String? = nil, maximumValue: String? = nil, regularExpression: String? = nil,
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

  /// Whether the store computes the value.
  public var isDerived: Bool { derivationExpression != nil }
}

/// An attribute type, with Core Data's raw values.
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

extension Attribute {
  /// Reads a rule as a bound or pattern, or keeps its text.
  ///
  /// Bounds compare the value (`SELF >= 3`), or a text's length (`length <= 50`).
  mutating func add(rule: ModelPredicate) {
    switch rule {
    case .and(let parts) where parts.allSatisfy(isBound): for part in parts { add(rule: part) }
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

  /// Bounds, pattern, then other readable rules.
  var rules: [ModelPredicate] {
    let measure: ModelExpression = type == .string ? .keyPath("length") : .selfObject
    var rules: [ModelPredicate] = []
    if let minimumValue { rules.append(.comparison(measure, .greaterThanOrEqual, bound(minimumValue))) }
    if let maximumValue { rules.append(.comparison(measure, .lessThanOrEqual, bound(maximumValue))) }
    if let regularExpression { rules.append(.comparison(.selfObject, .matches, .constant(.string(regularExpression)))) }
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
  fileprivate var plainText: String {
    switch self {
    case .string(let text): text
    case .date(let seconds): numberFormat(seconds)
    case .null, .boolean, .integer, .real, .decimal, .opaque: format
    }
  }
}

extension AttributeType {
  /// The type's name in model sources (`Integer 16`).
  public var sourceName: String {
    switch self {
    case .undefined: "Undefined"
    case .integer16: "Integer 16"
    case .integer32: "Integer 32"
    case .integer64: "Integer 64"
    case .decimal: "Decimal"
    case .double: "Double"
    case .float: "Float"
    case .string: "String"
    case .boolean: "Boolean"
    case .date: "Date"
    case .binary: "Binary"
    case .uuid: "UUID"
    case .uri: "URI"
    case .transformable: "Transformable"
    case .objectID: "ObjectID"
    case .composite: "Composite"
    }
  }

  init?(sourceName: String) {
    if sourceName == "Binary Data" {
      self = .binary
      return
    }
    guard let type = Self.allCases.first(where: { $0.sourceName == sourceName }) else { return nil }
    self = type
  }

  /// The class in compiled models; nil if the attribute must name it.
  var valueClassName: String? {
    switch self {
    case .integer16, .integer32, .integer64, .double, .float, .boolean: "NSNumber"
    case .decimal: "NSDecimalNumber"
    case .string: "NSString"
    case .date: "NSDate"
    case .binary: "NSData"
    case .uuid: "NSUUID"
    case .uri: "NSURL"
    case .undefined, .transformable, .objectID, .composite: nil
    }
  }
}
