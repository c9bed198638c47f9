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

// MARK: Writing

/// Archives expressions and predicates as Core Data does; unsupported ones become null.
///
/// Key paths, functions, constants and `<`, `==` and `CONTAINS` comparisons follow real stores; other operators are
/// unverified.
package enum ArchivedPredicateWriter {
  private static let expressionClasses = ["NSExpression", "NSObject"]

  package static func add(_ expression: ModelExpression, to archive: inout KeyedArchiveWriter)
    -> KeyedArchiveWriter.Reference
  {
    switch expression {
    case .constant(let constant):
      let value = add(constant, to: &archive)
      return object("NSConstantValueExpression", 0, ["NSConstantValue": value.value], &archive)
    case .selfObject: return object("NSSelfExpression", 1, [:], &archive)
    case .variable(let name):
      return object("NSVariableExpression", 2, ["NSVariable": archive.string(name).value], &archive)
    case .keyPath(let path): return keyPath(path, of: .selfObject, type: 3, &archive)
    case .keyPathOf(let base, let path): return keyPath(path, of: base, type: 4, &archive)
    case .function(let selector, let arguments):
      let className = archive.string("_NSPredicateUtilities")
      let utilities = object("NSConstantValueExpression", 0, ["NSConstantValueClassName": className.value], &archive)
      return function(selector, of: utilities, arguments, &archive)
    case .method(let target, let selector, let arguments):
      return function(selector, of: add(target, to: &archive), arguments, &archive)
    case .aggregate(let elements):
      let list = archive.array(elements.map { add($0, to: &archive) })
      return object("NSAggregateExpression", 14, ["NSCollection": list.value], &archive)
    case .conditional(let predicate, let first, let second):
      let condition = add(predicate, to: &archive)
      let (yes, no) = (add(first, to: &archive), add(second, to: &archive))
      return object(
        "NSTernaryExpression", 20,
        ["NSPredicate": condition.value, "NSTrueExpression": yes.value, "NSFalseExpression": no.value], &archive)
    case .fetch(let request, let context, let isCountOnly):
      let (wanted, place) = (add(request, to: &archive), add(context, to: &archive))
      return object(
        "NSFetchRequestExpression", 50,
        ["NSFRExpression": wanted.value, "NSMOCExpression": place.value, "NSCountOnlyFlag": .boolean(isCountOnly)],
        &archive)
    case .opaque: return .null
    }
  }

  package static func add(_ predicate: ModelPredicate, to archive: inout KeyedArchiveWriter)
    -> KeyedArchiveWriter.Reference
  {
    switch predicate {
    case .comparison(let left, let comparison, let right, let modifier, let options):
      let leftSide = add(left, to: &archive)
      let rightSide = add(right, to: &archive)
      let sign = add(comparison, modifier, options, to: &archive)
      return archive.add(
        classes: ["NSComparisonPredicate", "NSPredicate", "NSObject"],
        ["NSLeftExpression": leftSide.value, "NSRightExpression": rightSide.value, "NSPredicateOperator": sign.value])
    case .and(let parts): return compound(1, parts, &archive)
    case .or(let parts): return compound(2, parts, &archive)
    case .not(let part): return compound(0, [part], &archive)
    case .always(let value):
      return archive.add(classes: [value ? "NSTruePredicate" : "NSFalsePredicate", "NSPredicate", "NSObject"], [:])
    case .opaque: return .null
    }
  }

  private static func object(
    _ name: String, _ type: Int64, _ fields: [String: PropertyList], _ archive: inout KeyedArchiveWriter
  ) -> KeyedArchiveWriter.Reference {
    var fields = fields
    fields["NSExpressionType"] = .integer(type)
    return archive.add(classes: [name] + expressionClasses, fields)
  }

  private static func keyPath(
    _ path: String, of base: ModelExpression, type: Int64, _ archive: inout KeyedArchiveWriter
  ) -> KeyedArchiveWriter.Reference {
    let operand = add(base, to: &archive)
    let specifier = object("NSKeyPathSpecifierExpression", 10, ["NSKeyPath": archive.string(path).value], &archive)
    let arguments = archive.array([specifier], isMutable: true)
    let isSingleKey = base == .selfObject && !path.contains(".")
    let selector = archive.string(isSingleKey ? "valueForKey:" : "valueForKeyPath:")
    return archive.add(
      classes: ["NSKeyPathExpression", "NSFunctionExpression"] + expressionClasses,
      [
        "NSExpressionType": .integer(type), "NSOperand": operand.value, "NSSelectorName": selector.value,
        "NSArguments": arguments.value,
      ])
  }

  private static func function(
    _ selector: String, of operand: KeyedArchiveWriter.Reference, _ arguments: [ModelExpression],
    _ archive: inout KeyedArchiveWriter
  ) -> KeyedArchiveWriter.Reference {
    let list = archive.array(arguments.map { add($0, to: &archive) })
    let name = archive.string(selector)
    return object(
      "NSFunctionExpression", 4,
      ["NSOperand": operand.value, "NSSelectorName": name.value, "NSArguments": list.value], &archive)
  }

  private static func compound(
    _ type: Int64, _ parts: [ModelPredicate], _ archive: inout KeyedArchiveWriter
  ) -> KeyedArchiveWriter.Reference {
    let list = archive.array(parts.map { add($0, to: &archive) })
    return archive.add(
      classes: ["NSCompoundPredicate", "NSPredicate", "NSObject"],
      ["NSCompoundPredicateType": .integer(type), "NSSubpredicates": list.value])
  }

  private static func add(
    _ constant: ModelExpression.Constant, to archive: inout KeyedArchiveWriter
  ) -> KeyedArchiveWriter.Reference {
    switch constant {
    case .null, .opaque: .null
    case .boolean(let value): archive.value(.boolean(value))
    case .integer(let value): archive.value(.integer(value))
    case .real(let value): archive.value(.real(value))
    case .decimal(let digits): ArchivedValues.add(.decimal(digits), to: &archive)
    case .string(let text): archive.string(text)
    case .date(let seconds): ArchivedValues.add(.date(seconds), to: &archive)
    }
  }

  private static func add(
    _ comparison: ModelPredicate.Comparison, _ modifier: ModelPredicate.Modifier, _ options: Int,
    to archive: inout KeyedArchiveWriter
  ) -> KeyedArchiveWriter.Reference {
    var fields: [String: PropertyList] = [
      "NSOperatorType": .integer(Int64(comparison.rawValue)), "NSModifier": .integer(Int64(modifier.rawValue)),
    ]
    let name: String
    switch comparison {
    case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
      name = "NSComparisonPredicateOperator"
      fields["NSOptions"] = .integer(Int64(options))
      fields["NSVariant"] = .integer(Int64(comparison.rawValue))
    case .equal, .notEqual:
      name = "NSEqualityPredicateOperator"
      fields["NSOptions"] = .integer(Int64(options))
      fields["NSNegate"] = .boolean(comparison == .notEqual)
    case .matches: name = "NSMatchingPredicateOperator"
    case .like: name = "NSLikePredicateOperator"
    case .beginsWith, .endsWith: name = "NSSubstringPredicateOperator"
    case .isIn, .contains: name = "NSInPredicateOperator"
    case .between: name = "NSBetweenPredicateOperator"
    }
    if fields["NSOptions"] == nil, comparison != .between { fields["NSFlags"] = .integer(Int64(options)) }
    if comparison == .beginsWith || comparison == .endsWith {
      fields["NSSubstringPosition"] = .integer(comparison == .beginsWith ? 0 : 1)
    }
    return archive.add(classes: [name, "NSPredicateOperator", "NSObject"], fields)
  }
}
