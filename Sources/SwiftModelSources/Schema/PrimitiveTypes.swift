internal import ManagedObjectModel

/// Types of Swift and of Apple's frameworks.
enum PrimitiveTypes {
  /// The types, and whether SwiftData's handling is known.
  static let all: [String: (type: AttributeType, isCertain: Bool)] = [
    "String": (.string, true), "Int": (.integer64, true), "Int64": (.integer64, true), "Int32": (.integer32, true),
    "Int16": (.integer16, true), "Int8": (.integer16, false), "UInt": (.integer64, false),
    "UInt64": (.integer64, false), "UInt32": (.integer64, false), "UInt16": (.integer32, false),
    "UInt8": (.integer16, false), "Double": (.double, true), "TimeInterval": (.double, true),
    "CGFloat": (.double, false), "Float": (.float, true), "Decimal": (.decimal, true),
    "NSDecimalNumber": (.decimal, false), "Bool": (.boolean, true), "Date": (.date, true), "UUID": (.uuid, true),
    "URL": (.uri, true), "Data": (.binary, true),
    // Aliases in Apple's frameworks.
    "CLLocationDegrees": (.double, true), "CLLocationDistance": (.double, true), "CLLocationSpeed": (.double, true),
    "CLLocationAccuracy": (.double, true), "CLLocationDirection": (.double, true), "CMTimeValue": (.integer64, true),
    "CMTimeScale": (.integer32, true),
    "AttributedString": (.binary, false), "Float32": (.float, true), "Float64": (.double, true),
  ]

  static func rawType(_ name: String) -> AttributeType? {
    let name = ["Swift.", "Foundation."].first(where: name.hasPrefix).map { String(name.dropFirst($0.count)) } ?? name
    return name == "Character" ? .string : all[name]?.type
  }

  /// The system structures that become composites.
  static let systems: [String: (elements: [(name: String, type: AttributeType)], isCertain: Bool)] = [
    "Color.Resolved": (
      [("linearRed", .float), ("linearGreen", .float), ("linearBlue", .float), ("opacity", .float)], true
    ),
    "CLLocationCoordinate2D": ([("latitude", .double), ("longitude", .double)], false),
  ]
}
