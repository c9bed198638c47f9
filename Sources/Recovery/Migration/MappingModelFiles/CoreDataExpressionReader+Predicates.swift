internal import ManagedObjectModel
internal import StoreFiles

extension CoreDataExpressionReader {
  /// A predicate as a condition.
  mutating func condition(_ predicate: ModelPredicate) throws(ExpressionObstacle) -> TypedExpression {
    switch predicate {
    case .always(let value): return value ? "1" : "0"
    case .not(let part): return .series("NOT", .call("ifnull", try condition(part), "0"))
    case .and(let parts): return try joined(parts, "AND", empty: "1")
    case .or(let parts): return try joined(parts, "OR", empty: "0")
    case .comparison(let left, let comparison, let right, let modifier, let options):
      guard modifier == .direct else {
        throw ExpressionObstacle("it compares the records of a relationship", in: modifier == .any ? "ANY" : "ALL")
      }
      return try self.comparison(left, comparison, right, options)
    case .opaque(let className):
      throw ExpressionObstacle("it holds a predicate of the class \(printable(className))", in: className)
    }
  }

  private mutating func joined(
    _ parts: [ModelPredicate], _ word: TypedExpression, empty: TypedExpression
  ) throws(ExpressionObstacle) -> TypedExpression {
    var conditions: [TypedExpression] = []
    for part in parts { conditions += [word, try condition(part)] }
    return conditions.isEmpty ? empty : .call("", TypedExpression(.series(Array(conditions.dropFirst()))))
  }

  private mutating func comparison(
    _ left: ModelExpression, _ comparison: ModelPredicate.Comparison, _ right: ModelExpression, _ options: Int
  ) throws(ExpressionObstacle) -> TypedExpression {
    guard options & ~12 == 0 else {
      throw ExpressionObstacle("it compares without regard to case or diacritics", in: "\(comparison.format)[cd]")
    }
    switch comparison {
    case .equal: return try pair(left, "IS", right, comparison)
    // A value that is nil is another one than every value that is not.
    case .notEqual: return try pair(left, "IS NOT", right, comparison)
    case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
      return try pair(left, comparison.format, right, comparison)
    case .beginsWith:
      let (value, part) = (try text(left, comparison.format), try text(right, comparison.format))
      return .series(.call("substr", value, "1", .call("length", part)), "=", part)
    case .endsWith:
      let (value, part) = (try text(left, comparison.format), try text(right, comparison.format))
      let (whole, length) = (TypedExpression.call("length", value), TypedExpression.call("length", part))
      let end = TypedExpression.call("substr", value, .series(whole, "-", length, "+", "1"))
      return .call("", .series(whole, ">=", length, "AND", end, "=", part))
    case .contains:
      return .series(
        .call("instr", try text(left, comparison.format), try text(right, comparison.format)), ">", "0")
    case .like:
      guard case .constant(.string(let pattern)) = right else {
        throw ExpressionObstacle("its pattern is not written into it", in: "LIKE")
      }
      let value = try text(left, comparison.format)
      return .series(value, "GLOB", try Self.constant(.string(pattern.replacing("[", with: "[[]"))))
    case .isIn:
      guard case .aggregate(let elements) = right else {
        throw ExpressionObstacle("what it looks in is not a list", in: "IN")
      }
      let value = try value(left)
      var list: [TypedExpression] = []
      for element in elements { list.append(try agreeing(value, element, comparison)) }
      return list.isEmpty ? "0" : .series(value, "IN", TypedExpression(.call("", list)))
    case .between:
      guard case .aggregate(let ends) = right, ends.count == 2 else {
        throw ExpressionObstacle("it has not two ends", in: "BETWEEN")
      }
      let value = try value(left)
      let (low, high) = (try agreeing(value, ends[0], comparison), try agreeing(value, ends[1], comparison))
      return .series(value, "BETWEEN", low, "AND", high)
    case .matches: throw ExpressionObstacle("it compares with a regular expression", in: "MATCHES")
    }
  }

  private mutating func pair(
    _ left: ModelExpression, _ sign: String, _ right: ModelExpression, _ comparison: ModelPredicate.Comparison
  ) throws(ExpressionObstacle) -> TypedExpression {
    if let known = try isNil(left, sign, right) { return known }
    if let known = try isNil(right, sign, left) { return known }
    let first = try value(left)
    let second = try agreeing(first, right, comparison)
    return .series(first, TypedExpression(.sign(sign)), second)
  }

  /// Whether an attribute is nil or a relationship leads nowhere; nil where it is not asked for.
  private mutating func isNil(
    _ side: ModelExpression, _ sign: String, _ other: ModelExpression
  ) throws(ExpressionObstacle) -> TypedExpression? {
    guard other == .constant(.null), sign.hasPrefix("IS"), let path = path(of: side), !path.contains("@") else {
      return nil
    }
    let place = try place(path)
    guard place.property.relationship?.isToMany == true else {
      return .series(place.reading(.unknown), TypedExpression(.sign(sign)), "NULL")
    }
    return .series(place.reading(.integer, by: "count"), sign == "IS" ? "=" : ">", "0")
  }

  private mutating func agreeing(
    _ first: TypedExpression, _ expression: ModelExpression, _ comparison: ModelPredicate.Comparison
  ) throws(ExpressionObstacle) -> TypedExpression {
    let second = try value(expression)
    guard first.type.agrees(with: second.type) else {
      throw ExpressionObstacle("it compares \(first.type.word) with \(second.type.word)", in: comparison.format)
    }
    return second
  }
}
