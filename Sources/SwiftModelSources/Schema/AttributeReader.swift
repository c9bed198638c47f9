internal import ManagedObjectModel

struct AttributeReader {
  struct Problem {
    var kind: SourceFinding.Kind
    var detail: String
    var hint: String
  }

  private static let maximumElements = 2000

  let program: SourceProgram

  /// The reasons for a missing or uncertain attribute.
  private(set) var problems: [Problem] = []
  private var elementCount = 0

  init(program: SourceProgram) { self.program = program }

  /// Sets an attribute's type and elements; returns false if unknown.
  ///
  /// - Parameter isTop: whether it is the class's own attribute, not a composite's element.
  mutating func read(
    _ type: ResolvedType, _ written: TypeReference, isTop: Bool, depth: Int = 0, into attribute: inout Attribute
  ) -> Bool {
    elementCount += 1
    guard depth < 16, elementCount < Self.maximumElements else {
      return fail(.unresolvedType, "is of a type that holds itself, or is too large")
    }
    switch type {
    case .primitive(let type, let name, let isCertain):
      attribute.type = type
      if !isCertain { doubt("is of type \(name): taken as \(type.sourceName)") }
    case .array(let element, let elementType): return collection(element, elementType, isTop, &attribute)
    case .set(_, let element):
      attribute.type = .binary
      if isTop { doubt("is a set of \(element.text): taken as Binary") }
    case .dictionary:
      attribute.type = .binary
      if isTop { doubt("is a dictionary: taken as Binary") }
    case .system(let name, let elements, let isCertain):
      attribute.type = .composite
      attribute.compositeTypeName = name
      attribute.compositeElements = elements.map { element in
        Attribute(
          traits: PropertyTraits(name: element.name, isOptional: attribute.traits.isOptional), type: element.type)
      }
      if !isCertain {
        doubt("is of type \(name): taken as a composite of \(elements.map(\.name).joined(separator: ", "))")
      }
    case .enumeration(let declaration): enumeration(declaration, isTop, &attribute)
    case .structure(let declaration): return structure(declaration, isTop, depth, &attribute)
    case .optional(let inner):
      attribute.traits.isOptional = true
      return read(inner, written, isTop: isTop, depth: depth + 1, into: &attribute)
    case .model(let declaration): return fail(.unresolvedType, "holds the model \(declaration.name) within a value")
    case .unknown(let kind, let words):
      // The type has no name.
      if case .other = written { return fail(kind, words) }
      return fail(kind, "is of type \(written.text), which \(words)")
    }
    return true
  }

  private mutating func fail(_ kind: SourceFinding.Kind, _ detail: String) -> Bool {
    problems.append(
      Problem(
        kind: kind, detail: detail,
        hint: kind == .ambiguousType
          ? "Name fewer files, so that one of them is left."
          : "Name the files that declare it too; types of other modules are known only by their sources."))
    return false
  }

  private mutating func doubt(_ detail: String) {
    problems.append(
      Problem(
        kind: .unknownRule, detail: "\(detail), which no store has shown",
        hint: "Compare with a store that the app wrote."))
  }

  /// A class's primitives become transformable, other arrays JSON in a binary attribute.
  private mutating func collection(
    _ element: ResolvedType, _ written: TypeReference, _ isTop: Bool, _ attribute: inout Attribute
  ) -> Bool {
    attribute.type = .binary
    guard isTop else { return true }
    var inner = element
    while case .optional(let wrapped) = inner { inner = wrapped }
    switch inner {
    case .primitive(_, let name, _):
      attribute.type = .transformable
      attribute.valueTransformerName = "NSSecureUnarchiveFromData"
      attribute.valueClassName = "Array<\(name)>"
      if case .optional = element { doubt("is an array of optional values: taken as Transformable") }
    case .unknown(let kind, let words):
      // It might be a model and a relationship.
      return fail(kind, "is an array of \(written.text), which \(words)")
    case .system, .model, .structure, .enumeration, .array, .set, .dictionary, .optional:
      doubt("is of type [\(written.text)]: taken as Binary")
    }
    return true
  }

  private mutating func enumeration(_ declaration: SourceDeclaration, _ isTop: Bool, _ attribute: inout Attribute) {
    attribute.type = .composite
    attribute.compositeTypeName = declaration.name
    if let raw = rawType(of: declaration) {
      attribute.compositeElements = [
        Attribute(traits: PropertyTraits(name: attribute.name, isOptional: true), type: raw)
      ]
    } else {
      attribute.compositeElements = declaration.cases.map {
        Attribute(traits: PropertyTraits(name: $0.name, isOptional: true), type: .string)
      }
      if declaration.cases.contains(where: \.hasAssociatedValues) {
        doubt("is of enum \(declaration.name), which has cases with values: each is taken as a String element")
      }
      if declaration.cases.isEmpty { doubt("is of enum \(declaration.name), which has no cases") }
    }
    if let element = declaration.cases.first(where: { $0.undecidedCondition != nil }) {
      problems.append(
        Problem(
          kind: .undecidedCondition,
          detail:
            "is of enum \(declaration.name), whose cases depend on \"#if \(element.undecidedCondition ?? "")\", taken as not set",
          hint: SourceFinding.giveFlags))
    }
    if !isTop { doubt("has an enum within a struct: taken as a composite within a composite") }
  }

  /// Whether it has raw values, which keep cases out of the model.
  func hasRawValues(_ declaration: SourceDeclaration) -> Bool { rawType(of: declaration) != nil }

  /// The first inherited type, through aliases.
  private func rawType(of declaration: SourceDeclaration) -> AttributeType? {
    for type in declaration.inherited {
      guard let names = type.names else { continue }
      let name = names.joined(separator: ".")
      switch program.find(names, scopes: declaration.scopes, file: declaration.place.file) {
      case .missing: if let raw = PrimitiveTypes.rawType(name) { return raw }
      case .found, .ambiguous:
        let resolved = program.resolve(type, scopes: declaration.scopes, file: declaration.place.file)
        if case .primitive(let raw, _, _) = resolved { return raw }
      }
    }
    return nil
  }

  private mutating func structure(
    _ declaration: SourceDeclaration, _ isTop: Bool, _ depth: Int, _ attribute: inout Attribute
  ) -> Bool {
    attribute.type = .composite
    attribute.compositeTypeName = declaration.name
    let isInOptional = attribute.traits.isOptional
    for property in declaration.properties where property.isOfInstance {
      let inference = TypeInference(program: program, scopes: declaration.scopes, file: declaration.place.file)
      guard let type = property.type ?? property.initialValue.flatMap({ inference.type(of: $0) }) else {
        return fail(
          .unresolvedInitialValue,
          "is of struct \(declaration.name), whose \(property.name) has no type written (\(Self.words(property.place)))"
        )
      }
      let unwrapped = type.unwrapped
      var element = Attribute(
        traits: PropertyTraits(name: property.name, isOptional: unwrapped.isOptional || isInOptional), type: .undefined)
      let resolved = program.resolve(unwrapped.type, scopes: declaration.scopes, file: declaration.place.file)
      let count = problems.count
      let isKnown = read(resolved, unwrapped.type, isTop: false, depth: depth + 1, into: &element)
      for index in problems.indices[count...] {
        problems[index].detail =
          "is of struct \(declaration.name), whose \(property.name) (\(Self.words(property.place))) \(problems[index].detail)"
      }
      guard isKnown else { return false }
      check(property, of: declaration)
      attribute.compositeElements.append(element)
    }
    if attribute.compositeElements.isEmpty { doubt("is of struct \(declaration.name), which stores nothing") }
    let special: Set<String> = ["RawRepresentable", "OptionSet"]
    if let name = program.inherited(declaration).compactMap(\.names?.last).first(where: { special.contains($0) }) {
      doubt("is of struct \(declaration.name), which conforms to \(name): taken as a composite of its properties")
    }
    if !isTop { doubt("has a struct within a struct: taken as a composite within a composite") }
    return true
  }

  private mutating func check(_ property: SourceProperty, of declaration: SourceDeclaration) {
    let subject = "is of struct \(declaration.name), whose \(property.name) (\(Self.words(property.place)))"
    if property.isConstant, property.initialValue != nil { doubt("\(subject) is a constant with a value") }
    if let wrapper = property.attributes.first { doubt("\(subject) carries @\(wrapper.name)") }
    if let condition = property.undecidedCondition {
      problems.append(
        Problem(
          kind: .undecidedCondition, detail: "\(subject) is there only under \"#if \(condition)\", taken as not set",
          hint: SourceFinding.giveFlags))
    }
  }

  private static func words(_ place: SourcePlace) -> String { "\(place.file):\(place.line)" }
}

struct AttributeOptions {
  private(set) var isUnique = false
  private(set) var isExternal = false
  private(set) var isPreserved = false
  private(set) var isEphemeral = false
  private(set) var isIndexedBySpotlight = false
  private(set) var allowsCloudEncryption = false

  private(set) var transformer: String?

  private(set) var unknown: [String] = []

  init(_ arguments: [SourceExpression.Argument]) {
    for argument in arguments where argument.label == nil || argument.label == "options" { read(argument.value) }
  }

  private mutating func read(_ value: SourceExpression) {
    switch value {
    case .implicitMember(let name): set(name)
    case .path(let names): set(names.last ?? "")
    case .call(.implicitMember("transformable"), let arguments): transform(arguments)
    case .call(.path(let names), let arguments) where names.last == "transformable": transform(arguments)
    case .array(let values): for value in values { read(value) }
    default: unknown.append("that is no plain name")
    }
  }

  private mutating func set(_ name: String) {
    switch name {
    case "unique": isUnique = true
    case "externalStorage": isExternal = true
    case "preserveValueOnDeletion": isPreserved = true
    case "ephemeral": isEphemeral = true
    case "spotlight": isIndexedBySpotlight = true
    case "allowsCloudEncryption": allowsCloudEncryption = true
    default: unknown.append(".\(name)")
    }
  }

  private mutating func transform(_ arguments: [SourceExpression.Argument]) {
    switch arguments.first?.value {
    case .metatype(let type)?: transformer = type.text
    case .string(let name?)?: transformer = name
    default: transformer = "NSSecureUnarchiveFromData"
    }
  }
}

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
