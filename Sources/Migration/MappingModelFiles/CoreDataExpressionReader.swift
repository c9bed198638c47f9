internal import ManagedObjectModel
internal import Platform

/// Reads Core Data's expressions.
///
/// It rejects all that differs in SQL: `lowercase:` beyond ASCII, diacritics, regular expressions, methods of app
/// classes.
struct CoreDataExpressionReader {
  let side: InferenceSide

  let entityName: String

  /// Whether plain key paths start at the record, as in filters.
  let selfIsRecord: Bool

  private(set) var used: Set<PropertyPath> = []

  init(_ side: InferenceSide, entity: String, selfIsRecord: Bool = false) {
    self.side = side
    entityName = entity
    self.selfIsRecord = selfIsRecord
  }

  // MARK: Expressions

  mutating func value(_ expression: ModelExpression) throws(ExpressionObstacle) -> TypedExpression {
    let result = try unbounded(expression)
    // Functions that repeat their argument multiply when nested.
    guard result.sql.utf8.count <= Self.maximumLength else {
      throw ExpressionObstacle("it becomes longer than \(Self.maximumLength) bytes")
    }
    return result
  }

  private static let maximumLength = 65_536

  private mutating func unbounded(_ expression: ModelExpression) throws(ExpressionObstacle) -> TypedExpression {
    if let path = path(of: expression) { return try attribute(path) }
    switch expression {
    case .constant(let constant): return try Self.constant(constant)
    case .keyPath(let path): throw ExpressionObstacle("the key path \(printable(path)) does not begin with $source")
    case .keyPathOf(let base, _):
      throw ExpressionObstacle("it reads a property of \(printable(base.format))", in: base.format)
    case .function(let selector, let arguments): return try function(selector, arguments)
    case .method(let target, let selector, let arguments): return try method(target, selector, arguments)
    case .conditional(let predicate, let first, let second):
      let condition = try condition(predicate)
      let (yes, no) = (try value(first), try value(second))
      guard yes.type.agrees(with: no.type) else {
        throw ExpressionObstacle("it gives now \(yes.type.word), now \(no.type.word)", in: "TERNARY")
      }
      return .series("CASE", "WHEN", condition, "THEN", yes, "ELSE", no, "END", type: yes.type.joined(with: no.type))
    case .selfObject, .variable:
      throw ExpressionObstacle("it stands for a whole record, not for a value", in: expression.format)
    case .aggregate: throw ExpressionObstacle("a list stands where a value is needed", in: "{…}")
    case .fetch: throw ExpressionObstacle("it fetches records", in: "FETCH")
    case .opaque(let className): throw ExpressionObstacle("it is of the class \(printable(className))", in: className)
    }
  }

  /// The expression's key path from the record, if it is one.
  func path(of expression: ModelExpression) -> String? {
    switch expression {
    case .keyPathOf(.variable("source"), let path): path
    case .keyPath(let path) where selfIsRecord: path
    case .keyPathOf(.selfObject, let path) where selfIsRecord: path
    case .constant, .selfObject, .variable, .keyPath, .keyPathOf, .function, .method, .aggregate, .conditional, .fetch,
      .opaque:
      nil
    }
  }

  static func constant(_ constant: ModelExpression.Constant) throws(ExpressionObstacle) -> TypedExpression {
    let (value, type): (AttributeValue?, ValueType)
    switch constant {
    case .null: (value, type) = (nil, .null)
    case .boolean(let flag): (value, type) = (.boolean(flag), .boolean)
    case .integer(let number): (value, type) = (.integer(number), .integer)
    case .real(let number):
      guard number.isFinite else { throw ExpressionObstacle("it holds a number that is not finite") }
      (value, type) = (.real(number), .real)
    case .decimal(let digits): (value, type) = (.decimal(digits), .real)
    case .string(let text): (value, type) = (.string(text), .text)
    case .date(let seconds): (value, type) = (.date(seconds), .date)
    case .opaque(let className):
      throw ExpressionObstacle("it holds a constant of the class \(printable(className))", in: className)
    }
    return TypedExpression(.sign(value?.literal(isMarked: false) ?? "NULL"), type)
  }

  // MARK: Paths

  struct Place {
    var property: StoredProperty

    var names: [String]

    var toMany: String?

    func reading(_ type: ValueType, by function: String? = nil) -> TypedExpression {
      TypedExpression(.reading(.init(function: function, path: names)), type)
    }
  }

  /// Follows a path of relationships or composite attributes.
  ///
  /// - Parameter isMany: Whether a relationship before the last name may be to-many.
  mutating func place(_ path: String, isMany: Bool = false) throws(ExpressionObstacle) -> Place {
    let names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard names.count <= 8, !names.contains("") else {
      throw ExpressionObstacle("the key path \(printable(path)) is damaged or has more than eight names")
    }
    var entity = entityName
    var toMany: String?
    for (index, name) in names.enumerated() {
      guard !name.hasPrefix("@") else {
        throw ExpressionObstacle("it uses the collection operator \(printable(name))", in: name)
      }
      let rest = Array(names[(index + 1)...])
      let stored = side.properties[entity] ?? []
      if let leaf = stored.first(where: { $0.path == PropertyPath(name, leaf: rest) }) {
        if index == 0 { used.insert(leaf.path) }
        return Place(property: leaf, names: names, toMany: toMany)
      }
      guard let next = stored.first(where: { $0.path == PropertyPath(name) })?.relationship else {
        throw missing(name, of: entity)
      }
      if next.isToMany {
        guard isMany, toMany == nil else {
          throw ExpressionObstacle(
            "the key path \(printable(path)) leads through the to-many relationship \(printable(name))")
        }
        toMany = name
      }
      if index == 0 { used.insert(PropertyPath(name)) }
      entity = next.destinationEntityName
    }
    throw missing(names.last ?? "", of: entity)
  }

  private func missing(_ name: String, of entity: String) -> ExpressionObstacle {
    let property = side.model.properties(of: entity)[name]?.property
    let place = "\(printable(entity)).\(printable(name))"
    if property == nil { return ExpressionObstacle("the source has no property \(place)") }
    return ExpressionObstacle("the source does not store \(place)")
  }

  /// The value at the end of a path, or its collection operator's result.
  private mutating func attribute(_ path: String) throws(ExpressionObstacle) -> TypedExpression {
    let names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    if let index = names.firstIndex(where: { $0.hasPrefix("@") }) {
      let before = names[..<index].joined(separator: ".")
      let after = names[(index + 1)...].joined(separator: ".")
      return try collected(names[index], before, after)
    }
    let place = try place(path)
    guard let attribute = place.property.attribute else {
      throw ExpressionObstacle("\(printable(path)) is a relationship, and a value is needed")
    }
    guard let type = ValueType(attribute.type), !place.property.isMarked else {
      throw ExpressionObstacle("the values of \(printable(path)) can only be copied as they are")
    }
    return place.reading(type)
  }

  /// `cars.@count`, `cars.@sum.price`; sum and average of an empty collection are zero, as in Core Data.
  private mutating func collected(
    _ name: String, _ before: String, _ after: String
  ) throws(ExpressionObstacle) -> TypedExpression {
    if name == "@count", after.isEmpty { return try count(before) }
    guard ["@sum", "@avg", "@min", "@max"].contains(name), !before.isEmpty, !after.isEmpty else {
      throw ExpressionObstacle("it uses the collection operator \(printable(name))", in: name)
    }
    return try collected(String(name.dropFirst()), "\(before).\(after)")
  }

  mutating func collected(_ function: String, _ path: String) throws(ExpressionObstacle) -> TypedExpression {
    let place = try place(path, isMany: true)
    guard place.toMany != nil, let type = place.property.attribute.flatMap({ ValueType($0.type) }),
      type.isNumber || type == .date
    else { throw ExpressionObstacle("\(printable(path)) does not lead to the numbers of many records", in: function) }
    let value = place.reading(type, by: function)
    switch function {
    case "sum": return .call("ifnull", value, "0", type: type == .boolean ? .integer : type)
    case "avg": return .call("ifnull", value, "0.0", type: .real)
    default: return value
    }
  }

  mutating func count(_ path: String) throws(ExpressionObstacle) -> TypedExpression {
    let place = try place(path)
    guard place.property.relationship?.isToMany == true else {
      throw ExpressionObstacle("it counts something else than a to-many relationship", in: "count:")
    }
    return place.reading(.integer, by: "count")
  }
}

extension CoreDataExpressionReader {
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
    // Nil differs from every other value.
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
      return .series(.call("instr", try text(left, comparison.format), try text(right, comparison.format)), ">", "0")
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

  /// Whether an attribute is nil or a relationship empty; nil if not a test for nil.
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

struct ExpressionObstacle: Error {
  /// Nil for types or names.
  let function: String?

  /// The reason, without a full stop.
  let reason: String

  init(_ reason: String, in function: String? = nil) { (self.function, self.reason) = (function, reason) }
}
