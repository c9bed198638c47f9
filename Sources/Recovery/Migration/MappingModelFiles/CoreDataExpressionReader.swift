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

  /// A property at the end of a path.
  struct Place {
    var property: StoredProperty

    /// The names, quoted and joined.
    var text: String

    /// The name of the to-many relationship that it leads through; nil for none.
    var toMany: String?
  }

  /// Follows a path; each but the last name must be that of a relationship or of a composite attribute.
  ///
  /// - Parameter isMany: whether one of the relationships before the last name may lead to many records.
  mutating func place(_ path: String, isMany: Bool = false) throws(ExpressionObstacle) -> Place {
    let names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard names.count <= 8, !names.contains("") else {
      throw ExpressionObstacle(reason: "the key path \(printable(path)) is damaged or has more than eight names")
    }
    var entity = entityName
    var toMany: String?
    for (index, name) in names.enumerated() {
      guard !name.hasPrefix("@") else {
        throw ExpressionObstacle(function: name, reason: "it uses the collection operator \(printable(name))")
      }
      let rest = Array(names[(index + 1)...])
      let stored = side.properties[entity] ?? []
      if let leaf = stored.first(where: { $0.path == PropertyPath(name, leaf: rest) }) {
        if index == 0 { used.insert(leaf.path) }
        let text = names.map(SQLText.quotedIdentifier).joined(separator: ".")
        return Place(property: leaf, text: text, toMany: toMany)
      }
      guard let next = stored.first(where: { $0.path == PropertyPath(name) })?.relationship else {
        throw missing(name, of: entity)
      }
      if next.isToMany {
        guard isMany, toMany == nil else {
          throw ExpressionObstacle(
            reason: "the key path \(printable(path)) leads through the to-many relationship \(printable(name))")
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
    if property == nil { return ExpressionObstacle(reason: "the source has no property \(place)") }
    return ExpressionObstacle(reason: "the source does not store \(place)")
  }

  /// The value at the end of a path, or what a collection operator in it makes of many.
  private mutating func attribute(_ path: String) throws(ExpressionObstacle) -> Typed {
    let names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    if let index = names.firstIndex(where: { $0.hasPrefix("@") }) {
      let before = names[..<index].joined(separator: ".")
      let after = names[(index + 1)...].joined(separator: ".")
      return try collected(names[index], before, after)
    }
    let place = try place(path)
    guard let attribute = place.property.attribute else {
      throw ExpressionObstacle(reason: "\(printable(path)) is a relationship, and a value is needed")
    }
    guard let type = ValueType(attribute.type), !place.property.isMarked else {
      throw ExpressionObstacle(reason: "the values of \(printable(path)) can only be copied as they are")
    }
    return Typed(text: place.text, type: type)
  }

  /// `cars.@count`, `cars.@sum.price`; the sum and the average of nothing are zero, as with Core Data.
  private mutating func collected(
    _ name: String, _ before: String, _ after: String
  ) throws(ExpressionObstacle) -> Typed {
    if name == "@count", after.isEmpty { return try count(before) }
    guard ["@sum", "@avg", "@min", "@max"].contains(name), !before.isEmpty, !after.isEmpty else {
      throw ExpressionObstacle(function: name, reason: "it uses the collection operator \(printable(name))")
    }
    return try collected(String(name.dropFirst()), "\(before).\(after)")
  }

  /// What an SQL function makes of the values at the end of a path through a to-many relationship.
  mutating func collected(_ function: String, _ path: String) throws(ExpressionObstacle) -> Typed {
    let place = try place(path, isMany: true)
    guard place.toMany != nil, let type = place.property.attribute.flatMap({ ValueType($0.type) }),
      type.isNumber || type == .date
    else {
      throw ExpressionObstacle(
        function: function, reason: "\(printable(path)) does not lead to the numbers of many records")
    }
    let text = "\(function)(\(place.text))"
    switch function {
    case "sum": return Typed(text: "ifnull(\(text), 0)", type: type == .boolean ? .integer : type)
    case "avg": return Typed(text: "ifnull(\(text), 0.0)", type: .real)
    default: return Typed(text: text, type: type)
    }
  }

  /// How many records a to-many relationship leads to.
  mutating func count(_ path: String) throws(ExpressionObstacle) -> Typed {
    let place = try place(path)
    guard place.property.relationship?.isToMany == true else {
      throw ExpressionObstacle(function: "count:", reason: "it counts something else than a to-many relationship")
    }
    return Typed(text: "count(\(place.text))", type: .integer)
  }
}
