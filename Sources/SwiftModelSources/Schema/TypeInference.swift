internal import ManagedObjectModel

/// Infers a property's type from its initial value.
struct TypeInference {
  let program: SourceProgram
  let scopes: [[String]]
  let file: String

  /// Returns nil if only a compiler knows the type.
  func type(of value: SourceExpression, depth: Int = 0) -> TypeReference? {
    guard depth < 32 else { return nil }
    switch value {
    case .string: return .path(["String"])
    case .integer: return .path(["Int"])
    case .real: return .path(["Double"])
    case .boolean: return .path(["Bool"])
    case .cast(let type): return type
    case .array(let elements): return common(elements, depth).map { .array($0) }
    case .dictionary(let keys, let values):
      guard let key = common(keys, depth), let value = common(values, depth) else { return nil }
      return .dictionary(key, value)
    case .call(let called, let arguments): return result(of: called, arguments, depth)
    case .path(let names):
      if let type = member(names, depth) { return type }
      if names.count > 2, names.last == "rawValue" { return rawType(Array(names.dropLast(2))) }
      return names.count > 2 ? Self.knownMembers[names.last ?? ""] : nil
    case .member(let inner, "!"): return type(of: inner, depth: depth + 1)?.unwrapped.type
    case .member(_, let name): return Self.knownMembers[name]
    case .operators(let operands, let operators): return combined(operands, operators, depth)
    default: return nil
    }
  }

  private func common(_ values: [SourceExpression], _ depth: Int) -> TypeReference? {
    let types = values.map { type(of: $0, depth: depth + 1) }
    guard let first = types.first, let first else { return nil }
    if types.allSatisfy({ $0 == first }) { return first }
    // Whole numbers among fractions count as fractions.
    let numbers: Set<TypeReference> = [.path(["Int"]), .path(["Double"])]
    return types.allSatisfy { $0.map { numbers.contains($0) } ?? false } ? .path(["Double"]) : nil
  }

  private func result(
    of called: SourceExpression, _ arguments: [SourceExpression.Argument], _ depth: Int
  ) -> TypeReference? {
    switch called {
    case .path(var names):
      if names.last == "init", names.count > 1 { names.removeLast() }
      if isType(names) {
        // A URL from text is optional.
        let isFailable = names.last == "URL" && arguments.first?.label == "string"
        return isFailable ? .optional(.path(names)) : .normalized(names.map { TypeReference.Component(name: $0) })
      }
      // A case with associated values has its enumeration's type: `Kind.custom(1)`.
      if names.count > 1, let type = enumeration(Array(names.dropLast())),
        type.cases.contains(where: { $0.name == names.last })
      {
        return .path(Array(names.dropLast()))
      }
      return Self.function(names)
    case .type(let type): return type
    case .array, .dictionary: return called.typeReference
    case .member(_, "addingTimeInterval"): return .path(["Date"])
    case .member(_, "uppercased"), .member(_, "lowercased"): return .path(["String"])
    default: return nil
    }
  }

  /// Knows Foundation functions common in initial values.
  private static func function(_ names: [String]) -> TypeReference? {
    switch names.last {
    case "addingTimeInterval"?: .path(["Date"])
    case "NSLocalizedString"? where names.count == 1: .path(["String"])
    case "startOfDay"? where names.first == "Calendar": .path(["Date"])
    case "date"? where names.first == "Calendar": .optional(.path(["Date"]))
    case "random"? where names.count == 2 && PrimitiveTypes.all[names[0]] != nil: .path([names[0]])
    default: nil
    }
  }

  private func rawType(_ names: [String]) -> TypeReference? {
    enumeration(names)?.inherited.first { type in
      type.names.map { PrimitiveTypes.rawType($0.joined(separator: ".")) != nil } ?? false
    }
  }

  private func enumeration(_ names: [String]) -> SourceDeclaration? {
    let found = program.follow(program.find(names, scopes: scopes, file: file)).declaration
    return found?.kind == .enumeration ? found : nil
  }

  private func isType(_ names: [String]) -> Bool {
    switch program.find(names, scopes: scopes, file: file) {
    case .found, .ambiguous: true
    case .missing:
      TypeReference.normalized(names.map { TypeReference.Component(name: $0) }).names.map {
        let name = $0.joined(separator: ".")
        return PrimitiveTypes.all[name] != nil || PrimitiveTypes.systems[name] != nil
      } ?? false
    }
  }

  private func member(_ names: [String], _ depth: Int) -> TypeReference? {
    guard names.count > 1, let last = names.last else { return nil }
    let owner = Array(names.dropLast())
    let found = program.follow(program.find(owner, scopes: scopes, file: file)).declaration
    if let found {
      if found.kind == .enumeration, found.cases.contains(where: { $0.name == last }) { return .path(owner) }
      return program.staticProperty(last, of: found).flatMap { declared($0, in: found, depth) }
    }
    guard let name = TypeReference.normalized(owner.map { TypeReference.Component(name: $0) }).names, name.count == 1,
      let type = name.first, PrimitiveTypes.all[type] != nil
    else { return nil }
    if let property = program.staticProperty(last, ofForeign: [type]) {
      return property.type ?? property.initialValue.flatMap { self.type(of: $0, depth: depth + 1) }
    }
    return Self.ownMembers[type]?.contains(last) == true ? .path([type]) : nil
  }

  private func declared(_ property: SourceProperty, in owner: SourceDeclaration, _ depth: Int) -> TypeReference? {
    if let type = property.type { return type.names == ["Self"] ? .path(owner.path) : type }
    let inference = TypeInference(program: program, scopes: owner.scopes, file: owner.place.file)
    return property.initialValue.flatMap { inference.type(of: $0, depth: depth + 1) }
  }

  /// The members that have their own type.
  private static let ownMembers: [String: Set<String>] = [
    "Date": ["now", "distantPast", "distantFuture"], "Int": ["max", "min", "zero"], "Int64": ["max", "min", "zero"],
    "Int32": ["max", "min", "zero"], "Int16": ["max", "min", "zero"], "Decimal": ["zero", "pi", "nan"],
    "Double": ["pi", "zero", "infinity", "nan", "greatestFiniteMagnitude", "leastNormalMagnitude"],
    "Float": ["pi", "zero", "infinity", "nan", "greatestFiniteMagnitude", "leastNormalMagnitude"],
  ]

  /// The members with one type everywhere.
  private static let knownMembers: [String: TypeReference] = [
    "uuidString": .path(["String"]), "timeIntervalSince1970": .path(["Double"]),
    "timeIntervalSinceReferenceDate": .path(["Double"]),
  ]

  private func combined(_ operands: [SourceExpression], _ operators: [String], _ depth: Int) -> TypeReference? {
    let comparisons: Set<String> = ["==", "!=", "<", ">", "<=", ">=", "&&", "||", "===", "!=="]
    if operators.contains(where: { comparisons.contains($0) }) { return .path(["Bool"]) }
    if operators == ["??"], operands.count == 2 { return type(of: operands[1], depth: depth + 1) }
    let arithmetic: Set<String> = ["+", "-", "*", "/", "%", "?:", "<<", ">>", "&", "|"]
    guard operators.allSatisfy({ arithmetic.contains($0) }) else { return nil }
    return common(operands, depth)
  }
}

// MARK: Resolved types

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

extension SourceProgram {
  /// Ignores the type's own optionality.
  func resolve(_ type: TypeReference, scopes: [[String]], file: String, depth: Int = 0) -> ResolvedType {
    guard depth < 32 else { return .unknown(.unresolvedType, "stands for itself") }
    switch type {
    case .optional(let wrapped): return .optional(resolve(wrapped, scopes: scopes, file: file, depth: depth + 1))
    case .array(let element): return .array(resolve(element, scopes: scopes, file: file, depth: depth + 1), element)
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
        guard declaration.genericParameters.isEmpty else { return .unknown(.unresolvedType, "is a generic alias") }
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
