internal import ManagedObjectModel
internal import StoreFiles

/// Reads Core Data's expressions over the properties of the source.
///
/// What SQL would do otherwise than `NSExpression` is refused: `lowercase:` beyond ASCII, diacritics, regular
/// expressions, methods of the app's own classes.
struct CoreDataExpressionReader {
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

  /// What an expression is in SQL's terms.
  mutating func value(_ expression: ModelExpression) throws(ExpressionObstacle) -> TypedExpression {
    let result = try unbounded(expression)
    // Some functions write their argument several times; one inside of the other, they multiply.
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

  /// The key path from the record that an expression is; nil for every other expression.
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

  /// A property at the end of a path.
  struct Place {
    var property: StoredProperty

    /// The names on the way to it.
    var names: [String]

    /// The name of the to-many relationship that it leads through; nil for none.
    var toMany: String?

    /// What is read there, or what a function makes of it.
    func reading(_ type: ValueType, by function: String? = nil) -> TypedExpression {
      TypedExpression(.reading(.init(function: function, path: names)), type)
    }
  }

  /// Follows a path; each but the last name must be that of a relationship or of a composite attribute.
  ///
  /// - Parameter isMany: whether one of the relationships before the last name may lead to many records.
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

  /// The value at the end of a path, or what a collection operator in it makes of many.
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

  /// `cars.@count`, `cars.@sum.price`; the sum and the average of nothing are zero, as with Core Data.
  private mutating func collected(
    _ name: String, _ before: String, _ after: String
  ) throws(ExpressionObstacle) -> TypedExpression {
    if name == "@count", after.isEmpty { return try count(before) }
    guard ["@sum", "@avg", "@min", "@max"].contains(name), !before.isEmpty, !after.isEmpty else {
      throw ExpressionObstacle("it uses the collection operator \(printable(name))", in: name)
    }
    return try collected(String(name.dropFirst()), "\(before).\(after)")
  }

  /// What a function makes of the values at the end of a path through a to-many relationship.
  mutating func collected(_ function: String, _ path: String) throws(ExpressionObstacle) -> TypedExpression {
    let place = try place(path, isMany: true)
    guard place.toMany != nil, let type = place.property.attribute.flatMap({ ValueType($0.type) }),
      type.isNumber || type == .date
    else {
      throw ExpressionObstacle("\(printable(path)) does not lead to the numbers of many records", in: function)
    }
    let value = place.reading(type, by: function)
    switch function {
    case "sum": return .call("ifnull", value, "0", type: type == .boolean ? .integer : type)
    case "avg": return .call("ifnull", value, "0.0", type: .real)
    default: return value
    }
  }

  /// How many records a to-many relationship leads to.
  mutating func count(_ path: String) throws(ExpressionObstacle) -> TypedExpression {
    let place = try place(path)
    guard place.property.relationship?.isToMany == true else {
      throw ExpressionObstacle("it counts something else than a to-many relationship", in: "count:")
    }
    return place.reading(.integer, by: "count")
  }
}
