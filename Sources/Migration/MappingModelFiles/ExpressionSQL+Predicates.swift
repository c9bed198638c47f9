internal import ManagedObjectModel
internal import StoreFiles

extension ExpressionSQL {
  /// A predicate as an SQL condition.
  mutating func condition(_ predicate: ModelPredicate) throws(ExpressionObstacle) -> String {
    switch predicate {
    case .always(let value): return value ? "1" : "0"
    case .not(let part): return "NOT ifnull(\(try condition(part)), 0)"
    case .and(let parts): return try joined(parts, " AND ", empty: "1")
    case .or(let parts): return try joined(parts, " OR ", empty: "0")
    case .comparison(let left, let comparison, let right, let modifier, let options):
      guard modifier == .direct else {
        throw ExpressionObstacle(
          function: modifier == .any ? "ANY" : "ALL", reason: "it compares the records of a relationship")
      }
      return try self.comparison(left, comparison, right, options)
    case .opaque(let className):
      throw ExpressionObstacle(
        function: className, reason: "it holds a predicate of the class \(printable(className))")
    }
  }

  private mutating func joined(
    _ parts: [ModelPredicate], _ word: String, empty: String
  ) throws(ExpressionObstacle) -> String {
    var texts: [String] = []
    for part in parts { texts.append(try condition(part)) }
    return texts.isEmpty ? empty : "(\(texts.joined(separator: word)))"
  }

  private mutating func comparison(
    _ left: ModelExpression, _ comparison: ModelPredicate.Comparison, _ right: ModelExpression, _ options: Int
  ) throws(ExpressionObstacle) -> String {
    guard options & ~12 == 0 else {
      throw ExpressionObstacle(
        function: "\(comparison.format)[cd]", reason: "it compares without regard to case or diacritics")
    }
    switch comparison {
    case .equal: return try pair(left, "IS", right, comparison)
    // A value that is nil is another one than every value that is not.
    case .notEqual: return try pair(left, "IS NOT", right, comparison)
    case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
      return try pair(left, comparison.format, right, comparison)
    case .beginsWith:
      let (value, part) = (try text(left, comparison.format), try text(right, comparison.format))
      return "substr(\(value.text), 1, length(\(part.text))) = \(part.text)"
    case .endsWith:
      let (value, part) = (try text(left, comparison.format), try text(right, comparison.format))
      return
        "(length(\(value.text)) >= length(\(part.text)) AND "
        + "substr(\(value.text), length(\(value.text)) - length(\(part.text)) + 1) = \(part.text))"
    case .contains:
      let (value, part) = (try text(left, comparison.format), try text(right, comparison.format))
      return "instr(\(value.text), \(part.text)) > 0"
    case .like:
      guard case .constant(.string(let pattern)) = right else {
        throw ExpressionObstacle(function: "LIKE", reason: "its pattern is not written into it")
      }
      let value = try text(left, comparison.format)
      let glob = try Self.constant(.string(pattern.replacing("[", with: "[[]")))
      return "\(value.text) GLOB \(glob.text)"
    case .isIn:
      guard case .aggregate(let elements) = right else {
        throw ExpressionObstacle(function: "IN", reason: "what it looks in is not a list")
      }
      let value = try value(left)
      var texts: [String] = []
      for element in elements { texts.append(try agreeing(value, element, comparison).text) }
      return texts.isEmpty ? "0" : "\(value.text) IN (\(texts.joined(separator: ", ")))"
    case .between:
      guard case .aggregate(let ends) = right, ends.count == 2 else {
        throw ExpressionObstacle(function: "BETWEEN", reason: "it has not two ends")
      }
      let value = try value(left)
      let (low, high) = (try agreeing(value, ends[0], comparison), try agreeing(value, ends[1], comparison))
      return "\(value.text) BETWEEN \(low.text) AND \(high.text)"
    case .matches: throw ExpressionObstacle(function: "MATCHES", reason: "it compares with a regular expression")
    }
  }

  private mutating func pair(
    _ left: ModelExpression, _ sign: String, _ right: ModelExpression, _ comparison: ModelPredicate.Comparison
  ) throws(ExpressionObstacle) -> String {
    if let known = try isNil(left, sign, right) { return known }
    if let known = try isNil(right, sign, left) { return known }
    let first = try value(left)
    let second = try agreeing(first, right, comparison)
    return "\(first.text) \(sign) \(second.text)"
  }

  /// Whether an attribute is nil or a relationship leads nowhere; nil where it is not asked for.
  private mutating func isNil(
    _ side: ModelExpression, _ sign: String, _ other: ModelExpression
  ) throws(ExpressionObstacle) -> String? {
    guard other == .constant(.null), sign.hasPrefix("IS") else { return nil }
    let path: String
    switch side {
    case .keyPathOf(.variable("source"), let found): path = found
    case .keyPath(let found) where selfIsRecord: path = found
    case .constant, .selfObject, .variable, .keyPath, .keyPathOf, .function, .method, .aggregate, .conditional, .fetch,
      .opaque:
      return nil
    }
    guard !path.contains("@") else { return nil }
    let place = try place(path)
    if place.property.attribute != nil { return "\(place.text) \(sign) NULL" }
    guard place.property.relationship?.isToMany == true else { return "\(place.text) \(sign) NULL" }
    return "count(\(place.text)) \(sign == "IS" ? "=" : ">") 0"
  }

  private mutating func agreeing(
    _ first: Typed, _ expression: ModelExpression, _ comparison: ModelPredicate.Comparison
  ) throws(ExpressionObstacle) -> Typed {
    let second = try value(expression)
    guard first.type.agrees(with: second.type) else {
      throw ExpressionObstacle(
        function: comparison.format, reason: "it compares \(first.type.word) with \(second.type.word)")
    }
    return second
  }
}
