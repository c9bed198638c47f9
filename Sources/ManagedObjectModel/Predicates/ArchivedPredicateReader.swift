package import Platform

/// Reads archived expressions and predicates within limits; unsupported parts become opaque.
package struct ArchivedPredicateReader {
  /// The remaining objects; shared ones count repeatedly.
  private var budget: Int

  private static let maximumDepth = 40

  package init(budget: Int) { self.budget = budget }

  package mutating func expression(_ object: ArchivedObject) -> ModelExpression { expression(object, depth: 0) }

  package mutating func predicate(_ object: ArchivedObject) -> ModelPredicate { predicate(object, depth: 0) }

  private mutating func expression(_ object: ArchivedObject, depth: Int) -> ModelExpression {
    let className = object.className ?? "?"
    budget -= 1
    guard budget > 0, depth < Self.maximumDepth else { return .opaque(className: className) }
    if className == "NSSelfExpression" { return .selfObject }
    // Apple's type numbers: 0 constant, 1 self, 2 variable, 3 key path, 4 function, 10 key path specifier, 14
    // aggregate, 20 conditional, 50 fetch request.
    switch object.integer("NSExpressionType") {
    case 0: return .constant(constant(object))
    case 1: return .selfObject
    case 2: return object.string("NSVariable").map { .variable($0) } ?? .opaque(className: className)
    case 3, 4: return function(object, className: className, depth: depth)
    case 10: return object.string("NSKeyPath").map { .keyPath($0) } ?? .opaque(className: className)
    case 14:
      guard let elements = object.object("NSCollection")?.elements ?? object.object("NSConstantValue")?.elements else {
        return .opaque(className: className)
      }
      return .aggregate(elements.map { expression($0, depth: depth + 1) })
    case 20:
      // Unverified: no archive had a condition.
      guard let condition = object.object("NSPredicate"), let first = object.object("NSTrueExpression"),
        let second = object.object("NSFalseExpression")
      else { return .opaque(className: className) }
      return .conditional(
        predicate(condition, depth: depth + 1), expression(first, depth: depth + 1),
        expression(second, depth: depth + 1))
    case 50:
      guard let request = object.object("NSFRExpression") else { return .opaque(className: className) }
      return .fetch(
        request: expression(request, depth: depth + 1),
        context: object.object("NSMOCExpression").map { expression($0, depth: depth + 1) } ?? .constant(.null),
        isCountOnly: object.boolean("NSCountOnlyFlag"))
    default: return .opaque(className: className)
    }
  }

  private mutating func function(_ object: ArchivedObject, className: String, depth: Int) -> ModelExpression {
    guard let selector = object.string("NSSelectorName") else { return .opaque(className: className) }
    let arguments = (object.object("NSArguments")?.elements ?? []).map { expression($0, depth: depth + 1) }
    guard let operand = object.object("NSOperand") else { return .function(selector, arguments) }
    if operand.string("NSConstantValueClassName") == "_NSPredicateUtilities" { return .function(selector, arguments) }
    let target = expression(operand, depth: depth + 1)
    return .message(target, selector, arguments)
  }

  private func constant(_ object: ArchivedObject) -> ModelExpression.Constant {
    guard let value = object.object("NSConstantValue") else {
      return object.string("NSConstantValueClassName").map { .opaque(className: $0) } ?? .null
    }
    return switch AttributeValue(archived: value) {
    case .boolean(let flag): .boolean(flag)
    case .integer(let number): .integer(number)
    case .real(let number): .real(number)
    case .decimal(let digits): .decimal(digits)
    case .string(let text): .string(text)
    case .date(let seconds): .date(seconds)
    case .data, .uuid, .uri, .opaque: .opaque(className: value.className ?? "?")
    }
  }

  private mutating func predicate(_ object: ArchivedObject, depth: Int) -> ModelPredicate {
    let className = object.className ?? "?"
    budget -= 1
    guard budget > 0, depth < Self.maximumDepth else { return .opaque(className: className) }
    switch className {
    case "NSTruePredicate": return .always(true)
    case "NSFalsePredicate": return .always(false)
    case "NSCompoundPredicate":
      let parts = (object.object("NSSubpredicates")?.elements ?? []).map { predicate($0, depth: depth + 1) }
      switch object.integer("NSCompoundPredicateType") {
      case 0: return parts.first.map { .not($0) } ?? .opaque(className: className)
      case 2: return .or(parts)
      default: return .and(parts)
      }
    case "NSComparisonPredicate":
      guard let left = object.object("NSLeftExpression"), let right = object.object("NSRightExpression"),
        let sign = object.object("NSPredicateOperator"),
        let comparison = sign.integer("NSOperatorType").flatMap({ ModelPredicate.Comparison(rawValue: Int($0)) })
      else { return .opaque(className: className) }
      return .comparison(
        expression(left, depth: depth + 1), comparison, expression(right, depth: depth + 1),
        modifier: ModelPredicate.Modifier(rawValue: Int(sign.integer("NSModifier") ?? 0)) ?? .direct,
        options: Self.options(of: sign, comparison))
    default: return .opaque(className: className)
    }
  }

  /// Options are in `NSOptions`, for text operators in `NSFlags`.
  private static func options(of sign: ArchivedObject, _ comparison: ModelPredicate.Comparison) -> Int {
    let key =
      switch comparison {
      case .isIn, .contains, .matches, .like, .beginsWith, .endsWith: sign["NSFlags"] == nil ? "NSOptions" : "NSFlags"
      case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .equal, .notEqual, .between: "NSOptions"
      }
    return Int((sign.integer(key) ?? 0) & 0xF)
  }
}
