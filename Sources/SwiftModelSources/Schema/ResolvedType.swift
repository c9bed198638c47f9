internal import ManagedObjectModel

/// A resolved type, as it concerns the model.
indirect enum ResolvedType {
  /// `isCertain` means that the rule is known.
  case primitive(AttributeType, name: String, isCertain: Bool)

  case system(name: String, elements: [(name: String, type: AttributeType)], isCertain: Bool)
  case model(SourceDeclaration)
  case structure(SourceDeclaration)
  case enumeration(SourceDeclaration)
  case array(ResolvedType, TypeReference)
  case set(ResolvedType, TypeReference)
  case dictionary

  /// An optional alias.
  case optional(ResolvedType)

  case unknown(SourceFinding.Kind, String)
}

enum PrimitiveTypes {
  /// The types, and whether SwiftData's handling is known.
  static let all: [String: (type: AttributeType, isCertain: Bool)] = [
    "String": (.string, true), "Int": (.integer64, true), "Int64": (.integer64, true), "Int32": (.integer32, true),
    "Int16": (.integer16, true), "Int8": (.integer16, false), "UInt": (.integer64, false),
    "UInt64": (.integer64, false), "UInt32": (.integer64, false), "UInt16": (.integer32, false),
    "UInt8": (.integer16, false), "Double": (.double, true), "TimeInterval": (.double, true),
    "CGFloat": (.double, false),
    "Float": (.float, true), "Decimal": (.decimal, true), "NSDecimalNumber": (.decimal, false),
    "Bool": (.boolean, true), "Date": (.date, true), "UUID": (.uuid, true), "URL": (.uri, true),
    "Data": (.binary, true),
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

extension SourceProgram {
  /// Ignores the type's own optionality.
  func resolve(_ type: TypeReference, scopes: [[String]], file: String, depth: Int = 0) -> ResolvedType {
    guard depth < 32 else { return .unknown(.unresolvedType, "stands for itself") }
    switch type {
    case .optional(let wrapped): return .optional(resolve(wrapped, scopes: scopes, file: file, depth: depth + 1))
    case .array(let element):
      return .array(resolve(element, scopes: scopes, file: file, depth: depth + 1), element)
    case .set(let element): return .set(resolve(element, scopes: scopes, file: file, depth: depth + 1), element)
    case .dictionary: return .dictionary
    case .other(let words): return .unknown(.unresolvedType, "is \(words)")
    case .named(let components):
      guard let names = type.names else {
        return .unknown(.unresolvedType, "is generic: \(components.map(\.name).joined(separator: "."))")
      }
      return resolve(names, scopes: scopes, file: file, depth: depth)
    }
  }

  /// A module keeps app classes from hiding a type.
  private func isOfModule(_ names: [String]) -> Bool {
    names.count == 2 && ["Swift", "Foundation"].contains(names[0]) && !isDeclared(names[0])
      && PrimitiveTypes.all[names[1]] != nil
  }

  private func resolve(_ names: [String], scopes: [[String]], file: String, depth: Int) -> ResolvedType {
    switch isOfModule(names) ? .missing : find(names, scopes: scopes, file: file) {
    case .ambiguous(let all):
      let places = all.prefix(4).map { "\($0.place.file):\($0.place.line)" }.joined(separator: ", ")
      return .unknown(.ambiguousType, "is declared \(all.count) times: \(places)")
    case .missing:
      let name = (isOfModule(names) ? [names[1]] : names).joined(separator: ".")
      if let primitive = PrimitiveTypes.all[name] {
        return .primitive(primitive.type, name: name, isCertain: primitive.isCertain)
      }
      if let system = PrimitiveTypes.systems[name] {
        return .system(name: name, elements: system.elements, isCertain: system.isCertain)
      }
      return .unknown(.unresolvedType, "is declared in none of the sources")
    case .found(let declaration):
      switch declaration.kind {
      case .alias(let target):
        guard declaration.genericParameters.isEmpty else {
          return .unknown(.unresolvedType, "is a generic alias")
        }
        // `typealias Kind = Kind` in a type means the outer one.
        var scopes = declaration.scopes
        if target.names == [declaration.name], let own = scopes.first, own == Array(declaration.path.dropLast()) {
          scopes.removeFirst()
        }
        return resolve(target, scopes: scopes, file: declaration.place.file, depth: depth + 1)
      case .class where declaration.isModel: return .model(declaration)
      case .structure where declaration.genericParameters.isEmpty: return .structure(declaration)
      case .enumeration where declaration.genericParameters.isEmpty: return .enumeration(declaration)
      case .class: return .unknown(.unresolvedType, "is a class without @Model")
      case .protocol: return .unknown(.unresolvedType, "is a protocol")
      case .actor: return .unknown(.unresolvedType, "is an actor")
      case .structure, .enumeration, .extension: return .unknown(.unresolvedType, "is generic")
      }
    }
  }
}
