extension AttributeType {
  /// The type's name in model sources (`Integer 16`).
  public var sourceName: String {
    switch self {
    case .undefined: "Undefined"
    case .integer16: "Integer 16"
    case .integer32: "Integer 32"
    case .integer64: "Integer 64"
    case .decimal: "Decimal"
    case .double: "Double"
    case .float: "Float"
    case .string: "String"
    case .boolean: "Boolean"
    case .date: "Date"
    case .binary: "Binary"
    case .uuid: "UUID"
    case .uri: "URI"
    case .transformable: "Transformable"
    case .objectID: "ObjectID"
    case .composite: "Composite"
    }
  }

  init?(sourceName: String) {
    if sourceName == "Binary Data" {
      self = .binary
      return
    }
    guard let type = Self.allCases.first(where: { $0.sourceName == sourceName }) else { return nil }
    self = type
  }

  /// The class in compiled models; nil if the attribute must name it.
  package var valueClassName: String? {
    switch self {
    case .integer16, .integer32, .integer64, .double, .float, .boolean: "NSNumber"
    case .decimal: "NSDecimalNumber"
    case .string: "NSString"
    case .date: "NSDate"
    case .binary: "NSData"
    case .uuid: "NSUUID"
    case .uri: "NSURL"
    case .undefined, .transformable, .objectID, .composite: nil
    }
  }
}
