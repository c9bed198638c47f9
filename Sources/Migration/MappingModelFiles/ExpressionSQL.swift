internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

/// Writes Core Data's expressions as SQL over the attributes of the source, by their names in the model.
///
/// Names stand between double quotes; those of a path through to-one relationships are joined by points. What SQL would
/// do otherwise than `NSExpression` is refused: `lowercase:` beyond ASCII, diacritics, regular expressions, methods of
/// the app's own classes.
struct ExpressionSQL {
  /// An SQL expression and the type of its values.
  struct Typed {
    var text: String
    var type: ValueType
  }

  let side: InferenceSide

  /// The entity whose records the expression is about.
  let entityName: String

  /// Whether a key path without a variable is one of the record, as in filters.
  var selfIsRecord = false

  /// The properties that have been met.
  private(set) var used: Set<PropertyPath> = []

  init(_ side: InferenceSide, entity: String, selfIsRecord: Bool = false) {
    self.side = side
    entityName = entity
    self.selfIsRecord = selfIsRecord
  }

  // MARK: Expressions

  /// The expression as SQL.
  mutating func value(_ expression: ModelExpression) throws(ExpressionObstacle) -> Typed {
    let result = try unbounded(expression)
    // Some functions write their argument several times; one inside of the other, they multiply.
    guard result.text.utf8.count <= Self.maximumLength else {
      throw ExpressionObstacle(reason: "it becomes longer than \(Self.maximumLength) bytes")
    }
    return result
  }

  private static let maximumLength = 65_536

  private mutating func unbounded(_ expression: ModelExpression) throws(ExpressionObstacle) -> Typed {
    switch expression {
    case .constant(let constant): return try Self.constant(constant)
    case .keyPathOf(.variable("source"), let path): return try attribute(path)
    case .keyPath(let path) where selfIsRecord: return try attribute(path)
    case .keyPathOf(.selfObject, let path) where selfIsRecord: return try attribute(path)
    case .keyPath(let path):
      throw ExpressionObstacle(reason: "the key path \(printable(path)) does not begin with $source")
    case .keyPathOf(let base, _):
      throw ExpressionObstacle(function: base.format, reason: "it reads a property of \(printable(base.format))")
    case .function(let selector, let arguments): return try function(selector, arguments)
    case .method(let target, let selector, let arguments): return try method(target, selector, arguments)
    case .conditional(let predicate, let first, let second):
      let condition = try condition(predicate)
      let (yes, no) = (try value(first), try value(second))
      guard yes.type.agrees(with: no.type) else {
        throw ExpressionObstacle(
          function: "TERNARY", reason: "it gives now \(yes.type.word), now \(no.type.word)")
      }
      return Typed(
        text: "CASE WHEN \(condition) THEN \(yes.text) ELSE \(no.text) END", type: yes.type.joined(with: no.type))
    case .selfObject, .variable:
      throw ExpressionObstacle(function: expression.format, reason: "it stands for a whole record, not for a value")
    case .aggregate: throw ExpressionObstacle(function: "{…}", reason: "a list stands where a value is needed")
    case .fetch: throw ExpressionObstacle(function: "FETCH", reason: "it fetches records")
    case .opaque(let className):
      throw ExpressionObstacle(function: className, reason: "it is of the class \(printable(className))")
    }
  }

  static func constant(_ constant: ModelExpression.Constant) throws(ExpressionObstacle) -> Typed {
    switch constant {
    case .null: return Typed(text: "NULL", type: .null)
    case .boolean(let flag): return Typed(text: flag ? "1" : "0", type: .boolean)
    case .integer(let number):
      return Typed(text: AttributeValue.integer(number).literal(isMarked: false), type: .integer)
    case .real(let number):
      guard number.isFinite else { throw ExpressionObstacle(reason: "it holds a number that is not finite") }
      return Typed(text: AttributeValue.real(number).literal(isMarked: false), type: .real)
    case .decimal(let digits):
      return Typed(text: AttributeValue.decimal(digits).literal(isMarked: false), type: .real)
    case .string(let text): return Typed(text: AttributeValue.string(text).literal(isMarked: false), type: .text)
    case .date(let seconds): return Typed(text: AttributeValue.date(seconds).literal(isMarked: false), type: .date)
    case .opaque(let className):
      throw ExpressionObstacle(
        function: className, reason: "it holds a constant of the class \(printable(className))")
    }
  }

  // MARK: Paths

  /// A property at the end of a path through to-one relationships.
  struct Place {
    var property: StoredProperty

    /// The names, quoted and joined.
    var text: String

    /// Whether the path is one name, or the names of a leaf.
    var isOwn: Bool
  }

  /// Follows a path; each but the last name must be that of a to-one relationship or of a composite attribute.
  mutating func place(_ path: String) throws(ExpressionObstacle) -> Place {
    let names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard names.count <= 16, !names.contains("") else {
      throw ExpressionObstacle(reason: "the key path \(printable(path)) is damaged")
    }
    var entity = entityName
    for (index, name) in names.enumerated() {
      guard !name.hasPrefix("@") else {
        throw ExpressionObstacle(function: name, reason: "it uses the collection operator \(printable(name))")
      }
      let rest = Array(names[(index + 1)...])
      let stored = side.properties[entity] ?? []
      if let leaf = stored.first(where: { $0.path == PropertyPath(name, leaf: rest) }) {
        if index == 0 { used.insert(leaf.path) }
        let text = names.map(SQLText.quotedIdentifier).joined(separator: ".")
        return Place(property: leaf, text: text, isOwn: index == 0)
      }
      guard let next = stored.first(where: { $0.path == PropertyPath(name) })?.relationship else {
        throw missing(name, of: entity)
      }
      guard !next.isToMany else {
        throw ExpressionObstacle(
          reason: "the key path \(printable(path)) leads through the to-many relationship \(printable(name))")
      }
      if index == 0 { used.insert(PropertyPath(name)) }
      entity = next.destinationEntityName
    }
    throw missing(names.last ?? "", of: entity)
  }

  private func missing(_ name: String, of entity: String) -> ExpressionObstacle {
    let property = side.model.properties(of: entity)[name]?.property
    let place = "\(printable(entity)).\(printable(name))"
    if property == nil { return ExpressionObstacle(reason: "the source has no property \(place)") }
    return ExpressionObstacle(reason: "the source does not store \(place)")
  }

  private mutating func attribute(_ path: String) throws(ExpressionObstacle) -> Typed {
    if path.hasSuffix(".@count") { return try count(String(path.dropLast(7))) }
    let place = try place(path)
    guard let attribute = place.property.attribute else {
      throw ExpressionObstacle(reason: "\(printable(path)) is a relationship, and a value is needed")
    }
    guard let type = ValueType(attribute.type), !place.property.isMarked else {
      throw ExpressionObstacle(reason: "the values of \(printable(path)) can only be copied as they are")
    }
    return Typed(text: place.text, type: type)
  }

  /// How many records a relationship of the record itself leads to.
  private mutating func count(_ path: String) throws(ExpressionObstacle) -> Typed {
    let place = try place(path)
    guard place.property.relationship != nil, place.isOwn else {
      throw ExpressionObstacle(function: "count:", reason: "it counts something else than a relationship of the record")
    }
    return Typed(text: "count(\(place.text))", type: .integer)
  }

  // MARK: Functions

  private mutating func function(
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
    case ("count", 1): return try count(of: arguments[0])
    case ("castObject:toType:", 2): return try cast(arguments[0], arguments[1])
    default:
      throw ExpressionObstacle(function: selector, reason: "the function \(printable(selector)) is not known")
    }
  }

  private mutating func count(of expression: ModelExpression) throws(ExpressionObstacle) -> Typed {
    switch expression {
    case .keyPathOf(.variable("source"), let path): return try count(path)
    case .keyPath(let path) where selfIsRecord: return try count(path)
    default:
      throw ExpressionObstacle(function: "count:", reason: "it counts something else than a relationship of the record")
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
  private mutating func method(
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
