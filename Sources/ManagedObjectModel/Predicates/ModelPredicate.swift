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
  case comparison(
    ModelExpression, Comparison, ModelExpression, modifier: Modifier = .direct, options: Int = 0)
  case and([ModelPredicate])
  case or([ModelPredicate])
  case not(ModelPredicate)
  case always(Bool)

  case opaque(className: String)
}

extension ModelPredicate {
  package var format: String {
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
