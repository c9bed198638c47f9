internal import ManagedObjectModel

/// The type of an expression's value, as far as it limits its use.
enum ValueType: Hashable {
  case null
  case boolean
  case integer
  case real
  case text
  case date
  case bytes
  case uuid
  case uri

  case unknown

  /// The type of an attribute's values; nil if SQL can't make them.
  init?(_ type: AttributeType) {
    switch type {
    case .integer16, .integer32, .integer64: self = .integer
    case .decimal, .double, .float: self = .real
    case .boolean: self = .boolean
    case .string: self = .text
    case .date: self = .date
    case .binary, .transformable: self = .bytes
    case .uuid: self = .uuid
    case .uri: self = .uri
    case .undefined, .objectID, .composite: return nil
    }
  }

  var isNumber: Bool { self == .boolean || self == .integer || self == .real }

  /// Whether values can be compared or be branches of a condition.
  func agrees(with other: ValueType) -> Bool {
    self == other || self == .null || other == .null || (isNumber && other.isNumber)
  }

  /// The common type: the wider of two numbers.
  func joined(with other: ValueType) -> ValueType {
    if self == .null { return other }
    if other == .null || self == other { return self }
    return self == .real || other == .real ? .real : .integer
  }

  var word: String {
    switch self {
    case .null: "nil"
    case .boolean: "a truth value"
    case .integer, .real: "a number"
    case .text: "text"
    case .date: "a date"
    case .bytes: "data"
    case .uuid: "a UUID"
    case .uri: "a URI"
    case .unknown: "a value"
    }
  }
}
