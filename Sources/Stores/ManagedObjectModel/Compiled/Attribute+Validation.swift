internal import StoreFiles

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
