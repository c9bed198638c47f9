/// A filter of a fetch request or index, or a validation rule.
package indirect enum ModelPredicate: Sendable, Hashable {
  /// Apple's raw values.
  package enum Comparison: Int, Sendable, Hashable {
    case lessThan = 0
    case lessThanOrEqual = 1
    case greaterThan = 2
    case greaterThanOrEqual = 3
    case equal = 4
    case notEqual = 5
    case matches = 6
    case like = 7
    case beginsWith = 8
    case endsWith = 9
    case isIn = 10
    case contains = 99
    case between = 100

    package var format: String {
      switch self {
      case .lessThan: "<"
      case .lessThanOrEqual: "<="
      case .greaterThan: ">"
      case .greaterThanOrEqual: ">="
      case .equal: "=="
      case .notEqual: "!="
      case .matches: "MATCHES"
      case .like: "LIKE"
      case .beginsWith: "BEGINSWITH"
      case .endsWith: "ENDSWITH"
      case .isIn: "IN"
      case .contains: "CONTAINS"
      case .between: "BETWEEN"
      }
    }
  }

  /// Apple's raw values.
  package enum Modifier: Int, Sendable, Hashable {
    case direct = 0
    case all = 1
    case any = 2
  }

  /// `options`: 1 ignores case, 2 ignores diacritics, 4 normalized, 8 locale.
  case comparison(ModelExpression, Comparison, ModelExpression, modifier: Modifier = .direct, options: Int = 0)
  case and([ModelPredicate])
  case or([ModelPredicate])
  case not(ModelPredicate)
  case always(Bool)

  case opaque(className: String)
}

extension ModelPredicate {
  var format: String {
    switch self {
    case .comparison(let left, let comparison, let right, let modifier, let options):
      let prefix =
        switch modifier {
        case .direct: ""
        case .all: "ALL "
        case .any: "ANY "
        }
      return "\(prefix)\(left.format) \(comparison.format)\(Self.suffix(options)) \(right.format)"
    case .and(let parts): return parts.map(\.partFormat).joined(separator: " AND ")
    case .or(let parts): return parts.map(\.partFormat).joined(separator: " OR ")
    case .not(let part): return "NOT \(part.partFormat)"
    case .always(let value): return value ? "TRUEPREDICATE" : "FALSEPREDICATE"
    case .opaque(let className): return "<\(className)>"
    }
  }

  private var partFormat: String {
    switch self {
    case .and, .or, .not: "(\(format))"
    case .comparison, .always, .opaque: format
    }
  }

  private static func suffix(_ options: Int) -> String {
    let letters = [(1, "c"), (2, "d"), (4, "n"), (8, "l")].filter { options & $0.0 != 0 }.map(\.1).joined()
    return letters.isEmpty ? "" : "[\(letters)]"
  }

  /// Whether it is fully supported.
  var isComplete: Bool {
    switch self {
    case .comparison(let left, _, let right, _, _): left.isComplete && right.isComplete
    case .and(let parts), .or(let parts): parts.allSatisfy(\.isComplete)
    case .not(let part): part.isComplete
    case .always: true
    case .opaque: false
    }
  }
}

// MARK: Expressions

/// An expression of a derived attribute or predicate.
package indirect enum ModelExpression: Sendable, Hashable {
  package enum Constant: Sendable, Hashable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case real(Double)
    case decimal(String)
    case string(String)

    /// Seconds since 2001-01-01T00:00:00Z.
    case date(Double)

    case opaque(className: String)
  }

  case constant(Constant)
  case selfObject
  case variable(String)

  /// From the object itself.
  case keyPath(String)

  /// From another expression, such as `$FETCH_SOURCE`.
  case keyPathOf(ModelExpression, String)

  /// By selector: `count:`, `now`.
  case function(String, [ModelExpression])

  case method(ModelExpression, String, [ModelExpression])
  case aggregate([ModelExpression])

  /// `TERNARY(…)`.
  case conditional(ModelPredicate, ModelExpression, ModelExpression)

  /// `FETCH(…)`.
  case fetch(request: ModelExpression, context: ModelExpression, isCountOnly: Bool)

  case opaque(className: String)
}

extension ModelExpression {
  /// The expression as Core Data prints it into version hashes.
  ///
  /// Key paths print as typed, built-in functions as `selector(arguments)`; both were checked against stored hashes.
  /// Other forms are unverified.
  package var format: String {
    switch self {
    case .constant(let constant): constant.format
    case .selfObject: "SELF"
    case .variable(let name): "$\(name)"
    case .keyPath(let path): path
    case .keyPathOf(let base, let path): "\(base.format).\(path)"
    case .function(let selector, let arguments):
      if arguments.count == 2, let sign = Self.arithmetic[selector] {
        "\(arguments[0].operandFormat) \(sign) \(arguments[1].operandFormat)"
      } else {
        "\(selector)(\(arguments.map(\.format).joined(separator: ", ")))"
      }
    case .method(let target, let selector, let arguments):
      "FUNCTION(\(([target.format, quotedFormat(selector)] + arguments.map(\.format)).joined(separator: ", ")))"
    case .aggregate(let elements): "{\(elements.map(\.format).joined(separator: ", "))}"
    case .conditional(let predicate, let first, let second):
      "TERNARY(\(predicate.format), \(first.format), \(second.format))"
    case .fetch(let request, let context, let isCountOnly):
      "FETCH(\(request.format), \(context.format), \(isCountOnly ? "YES" : "NO"))"
    case .opaque(let className): "<\(className)>"
    }
  }

  /// Nested arithmetic gets parentheses.
  private var operandFormat: String {
    if case .function(let selector, let arguments) = self, arguments.count == 2, Self.arithmetic[selector] != nil {
      return "(\(format))"
    }
    return format
  }

  /// Infix signs of functions.
  static let arithmetic = [
    "add:to:": "+", "from:subtract:": "-", "multiply:by:": "*", "divide:by:": "/", "raise:toPower:": "**",
  ]

  /// Returns a method call, or a key path for properties.
  static func message(_ target: ModelExpression, _ selector: String, _ arguments: [ModelExpression]) -> ModelExpression
  {
    guard selector == "valueForKey:" || selector == "valueForKeyPath:", arguments.count == 1 else {
      return .method(target, selector, arguments)
    }
    switch arguments[0] {
    case .keyPath(let path), .constant(.string(let path)):
      return target == .selfObject ? .keyPath(path) : .keyPathOf(target, path)
    case .constant, .selfObject, .variable, .keyPathOf, .function, .method, .aggregate, .conditional, .fetch, .opaque:
      return .method(target, selector, arguments)
    }
  }

  /// Whether it is fully supported.
  var isComplete: Bool {
    switch self {
    case .constant(.opaque), .opaque: false
    case .constant, .selfObject, .variable, .keyPath: true
    case .keyPathOf(let base, _): base.isComplete
    case .function(_, let arguments), .aggregate(let arguments): arguments.allSatisfy(\.isComplete)
    case .method(let target, _, let arguments): target.isComplete && arguments.allSatisfy(\.isComplete)
    case .conditional(let predicate, let first, let second):
      predicate.isComplete && first.isComplete && second.isComplete
    case .fetch(let request, let context, _): request.isComplete && context.isComplete
    }
  }
}

extension ModelExpression.Constant {
  var format: String {
    switch self {
    case .null: "nil"
    case .boolean(let value): value ? "1" : "0"
    case .integer(let value): String(value)
    case .real(let value): numberFormat(value)
    case .decimal(let digits): digits
    case .string(let text): quotedFormat(text)
    case .date(let seconds): "CAST(\(numberFormat(seconds)), \"NSDate\")"
    case .opaque(let className): "<\(className)>"
    }
  }
}

/// Escapes quotes and backslashes.
func quotedFormat(_ text: String) -> String {
  var result = "\""
  for scalar in text.unicodeScalars {
    if scalar == "\"" || scalar == "\\" { result.unicodeScalars.append("\\") }
    result.unicodeScalars.append(scalar)
  }
  return result + "\""
}

/// Formats whole numbers without fraction.
func numberFormat(_ value: Double) -> String {
  if let whole = Int64(exactly: value), abs(whole) < 1 << 53 { return String(whole) }
  return value.description
}
