internal import ManagedObjectModel
internal import Platform

extension CoreDataExpressionReader {
  mutating func function(
    _ selector: String, _ arguments: [ModelExpression]
  ) throws(ExpressionObstacle) -> TypedExpression {
    let name = selector.hasSuffix(":") && arguments.count == 1 ? String(selector.dropLast()) : selector
    switch (name, arguments.count) {
    case ("add:to:", 2): return try arithmetic("+", selector, arguments)
    case ("from:subtract:", 2): return try arithmetic("-", selector, arguments)
    case ("multiply:by:", 2): return try arithmetic("*", selector, arguments)
    case ("divide:by:", 2): return try arithmetic("/", selector, arguments)
    case ("modulus:by:", 2): return try arithmetic("%", selector, arguments)
    case ("abs", 1):
      let value = try number(arguments[0], selector)
      return .call("abs", value, type: value.type)
    case ("trunc", 1): return try number(arguments[0], selector).cast(to: "INTEGER", .integer)
    case ("floor", 1): return try rounded(arguments[0], selector, "-", "<")
    case ("ceiling", 1): return try rounded(arguments[0], selector, "+", ">")
    case ("now", 0): return .call("NSCoreDataNow", type: .date)
    case ("sqrt", 1), ("ln", 1), ("log", 1), ("exp", 1):
      return .call(name, try number(arguments[0], selector), type: .real)
    case ("raise:toPower:", 2):
      return .call("pow", try number(arguments[0], selector), try number(arguments[1], selector), type: .real)
    case ("count", 1): return try count(try path(arguments[0], "count:"))
    case ("sum", 1), ("min", 1), ("max", 1): return try collected(name, try path(arguments[0], selector))
    case ("average", 1): return try collected("avg", try path(arguments[0], selector))
    case ("castObject:toType:", 2): return try cast(arguments[0], arguments[1])
    default: throw ExpressionObstacle("the function \(printable(selector)) is not known", in: selector)
    }
  }

  /// The key path of an expression; other collections are not in the store.
  private func path(_ expression: ModelExpression, _ function: String) throws(ExpressionObstacle) -> String {
    guard let path = path(of: expression) else {
      throw ExpressionObstacle("it works on something else than a relationship", in: function)
    }
    return path
  }

  private mutating func number(
    _ expression: ModelExpression, _ function: String
  ) throws(ExpressionObstacle) -> TypedExpression {
    let value = try value(expression)
    guard value.type.isNumber || value.type == .null else {
      throw ExpressionObstacle("it is given \(value.type.word), and a number is needed", in: function)
    }
    return value
  }

  private mutating func arithmetic(
    _ sign: TypedExpression, _ function: String, _ arguments: [ModelExpression]
  ) throws(ExpressionObstacle) -> TypedExpression {
    let (left, right) = (try number(arguments[0], function), try number(arguments[1], function))
    let type = left.type.joined(with: right.type)
    return .call("", .series(left, sign, right), type: type == .boolean ? .integer : type)
  }

  /// Rounds by correcting a truncation.
  private mutating func rounded(
    _ expression: ModelExpression, _ function: String, _ sign: TypedExpression, _ comparison: TypedExpression
  ) throws(ExpressionObstacle) -> TypedExpression {
    let value = try number(expression, function)
    let whole = value.cast(to: "INTEGER", .integer)
    return .call("", .series(whole, sign, .call("", .series(value, comparison, whole))), type: .integer)
  }

  private mutating func cast(
    _ expression: ModelExpression, _ type: ModelExpression
  ) throws(ExpressionObstacle) -> TypedExpression {
    guard case .constant(.string(let className)) = type else {
      throw ExpressionObstacle("its type is not written into it", in: "CAST")
    }
    let value = try value(expression)
    switch (className, value.type) {
    case ("NSDate", .date), ("NSString", .text), ("NSNumber", .boolean), ("NSNumber", .integer), ("NSNumber", .real),
      ("NSDecimalNumber", .real), (_, .null):
      return value
    case ("NSDate", .integer), ("NSDate", .real): return value.typed(.date)
    case ("NSNumber", .date), ("NSDecimalNumber", .integer): return value.typed(.real)
    case ("NSString", .integer), ("NSString", .boolean): return value.cast(to: "TEXT", .text)
    case ("NSNumber", .text), ("NSDecimalNumber", .text): return value.cast(to: "NUMERIC", .real)
    default: throw ExpressionObstacle("\(value.type.word) is not made \(printable(className)) here", in: "CAST")
    }
  }

  // MARK: Methods

  /// The few Foundation methods that are plain SQL.
  mutating func method(
    _ target: ModelExpression, _ selector: String, _ arguments: [ModelExpression]
  ) throws(ExpressionObstacle) -> TypedExpression {
    if case .variable(let name) = target, name != "source" {
      throw ExpressionObstacle("it calls \(printable(selector)) of $\(printable(name))", in: selector)
    }
    switch (selector, arguments.count) {
    case ("stringByAppendingString:", 1):
      return .call("", .series(try text(target, selector), "||", try text(arguments[0], selector)), type: .text)
    case ("stringByReplacingOccurrencesOfString:withString:", 2):
      return .call(
        "replace", try text(target, selector), try text(arguments[0], selector), try text(arguments[1], selector),
        type: .text)
    case ("stringValue", 0):
      let value = try number(target, selector)
      guard value.type != .real else {
        throw ExpressionObstacle("fractions are written otherwise in SQL", in: selector)
      }
      return value.cast(to: "TEXT", .text)
    default: throw ExpressionObstacle("the method \(printable(selector)) is not known", in: selector)
    }
  }

  mutating func text(_ expression: ModelExpression, _ function: String) throws(ExpressionObstacle) -> TypedExpression {
    let value = try value(expression)
    guard value.type == .text || value.type == .null else {
      throw ExpressionObstacle("it is given \(value.type.word), and text is needed", in: function)
    }
    return value
  }
}
