internal import ManagedObjectModel
internal import StoreFiles

extension ExpressionSQL {
  /// A built-in function.
  mutating func function(
    _ selector: String, _ arguments: [ModelExpression]
  ) throws(ExpressionObstacle) -> Typed {
    let name = selector.hasSuffix(":") && arguments.count == 1 ? String(selector.dropLast()) : selector
    switch (name, arguments.count) {
    case ("add:to:", 2): return try arithmetic("+", selector, arguments)
    case ("from:subtract:", 2): return try arithmetic("-", selector, arguments)
    case ("multiply:by:", 2): return try arithmetic("*", selector, arguments)
    case ("divide:by:", 2): return try arithmetic("/", selector, arguments)
    case ("modulus:by:", 2): return try arithmetic("%", selector, arguments)
    case ("abs", 1):
      let value = try number(arguments[0], selector)
      return Typed(text: "abs(\(value.text))", type: value.type)
    case ("trunc", 1):
      let value = try number(arguments[0], selector)
      return Typed(text: "CAST(\(value.text) AS INTEGER)", type: .integer)
    case ("floor", 1): return try rounded(arguments[0], selector, isUp: false)
    case ("ceiling", 1): return try rounded(arguments[0], selector, isUp: true)
    case ("now", 0): return Typed(text: "NSCoreDataNow()", type: .date)
    case ("sqrt", 1), ("ln", 1), ("log", 1), ("exp", 1):
      return Typed(text: "\(name)(\(try number(arguments[0], selector).text))", type: .real)
    case ("raise:toPower:", 2):
      let (base, power) = (try number(arguments[0], selector), try number(arguments[1], selector))
      return Typed(text: "pow(\(base.text), \(power.text))", type: .real)
    case ("count", 1): return try count(try path(arguments[0], "count:"))
    case ("sum", 1), ("min", 1), ("max", 1): return try collected(name, try path(arguments[0], selector))
    case ("average", 1): return try collected("avg", try path(arguments[0], selector))
    case ("castObject:toType:", 2): return try cast(arguments[0], arguments[1])
    default:
      throw ExpressionObstacle(function: selector, reason: "the function \(printable(selector)) is not known")
    }
  }

  /// The key path that an expression is; other collections are not of the store.
  private func path(_ expression: ModelExpression, _ function: String) throws(ExpressionObstacle) -> String {
    switch expression {
    case .keyPathOf(.variable("source"), let path): return path
    case .keyPath(let path) where selfIsRecord: return path
    case .constant, .selfObject, .variable, .keyPath, .keyPathOf, .function, .method, .aggregate, .conditional, .fetch,
      .opaque:
      throw ExpressionObstacle(function: function, reason: "it works on something else than a relationship")
    }
  }

  private mutating func number(
    _ expression: ModelExpression, _ function: String
  ) throws(ExpressionObstacle) -> Typed {
    let value = try value(expression)
    guard value.type.isNumber || value.type == .null else {
      throw ExpressionObstacle(function: function, reason: "it is given \(value.type.word), and a number is needed")
    }
    return value
  }

  private mutating func arithmetic(
    _ sign: String, _ function: String, _ arguments: [ModelExpression]
  ) throws(ExpressionObstacle) -> Typed {
    let (left, right) = (try number(arguments[0], function), try number(arguments[1], function))
    let type = left.type.joined(with: right.type)
    return Typed(text: "(\(left.text) \(sign) \(right.text))", type: type == .boolean ? .integer : type)
  }

  /// The next whole number below or above: one is taken away or added where a fraction was cut off the wrong way.
  private mutating func rounded(
    _ expression: ModelExpression, _ function: String, isUp: Bool
  ) throws(ExpressionObstacle) -> Typed {
    let value = try number(expression, function).text
    let whole = "CAST(\(value) AS INTEGER)"
    return Typed(text: "(\(whole) \(isUp ? "+" : "-") (\(value) \(isUp ? ">" : "<") \(whole)))", type: .integer)
  }

  private mutating func cast(
    _ expression: ModelExpression, _ type: ModelExpression
  ) throws(ExpressionObstacle) -> Typed {
    guard case .constant(.string(let className)) = type else {
      throw ExpressionObstacle(function: "CAST", reason: "its type is not written into it")
    }
    let value = try value(expression)
    switch (className, value.type) {
    case ("NSDate", .date), ("NSString", .text), ("NSNumber", .boolean), ("NSNumber", .integer), ("NSNumber", .real),
      ("NSDecimalNumber", .real), (_, .null):
      return value
    case ("NSDate", .integer), ("NSDate", .real): return Typed(text: value.text, type: .date)
    case ("NSNumber", .date): return Typed(text: value.text, type: .real)
    case ("NSDecimalNumber", .integer): return Typed(text: value.text, type: .real)
    case ("NSString", .integer), ("NSString", .boolean): return Typed(text: "CAST(\(value.text) AS TEXT)", type: .text)
    case ("NSNumber", .text), ("NSDecimalNumber", .text):
      return Typed(text: "CAST(\(value.text) AS NUMERIC)", type: .real)
    default:
      throw ExpressionObstacle(
        function: "CAST", reason: "\(value.type.word) is not made \(printable(className)) here")
    }
  }

  // MARK: Methods

  /// The few methods of Foundation's own classes that are plain SQL.
  mutating func method(
    _ target: ModelExpression, _ selector: String, _ arguments: [ModelExpression]
  ) throws(ExpressionObstacle) -> Typed {
    if case .variable(let name) = target, name != "source" {
      throw ExpressionObstacle(
        function: selector, reason: "it calls \(printable(selector)) of $\(printable(name))")
    }
    switch (selector, arguments.count) {
    case ("stringByAppendingString:", 1):
      let (left, right) = (try text(target, selector), try text(arguments[0], selector))
      return Typed(text: "(\(left.text) || \(right.text))", type: .text)
    case ("stringByReplacingOccurrencesOfString:withString:", 2):
      let texts = [
        try text(target, selector), try text(arguments[0], selector), try text(arguments[1], selector),
      ]
      return Typed(text: "replace(\(texts.map(\.text).joined(separator: ", ")))", type: .text)
    case ("stringValue", 0):
      let value = try number(target, selector)
      guard value.type != .real else {
        throw ExpressionObstacle(function: selector, reason: "fractions are written otherwise in SQL")
      }
      return Typed(text: "CAST(\(value.text) AS TEXT)", type: .text)
    default:
      throw ExpressionObstacle(function: selector, reason: "the method \(printable(selector)) is not known")
    }
  }

  mutating func text(_ expression: ModelExpression, _ function: String) throws(ExpressionObstacle) -> Typed {
    let value = try value(expression)
    guard value.type == .text || value.type == .null else {
      throw ExpressionObstacle(function: function, reason: "it is given \(value.type.word), and text is needed")
    }
    return value
  }
}
