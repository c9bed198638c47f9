internal import ManagedObjectModel

/// Reads one class into an entity.
struct EntityReader {
  let program: SourceProgram
  let options: SwiftSources.Options
  let declaration: SourceDeclaration

  private(set) var findings: [SourceFinding] = []

  /// Without effect on storage.
  private static let knownAttributes: Set<String> = [
    "Attribute", "Relationship", "Transient", "available", "objc", "nonobjc", "MainActor", "ObservationIgnored",
    "backDeployed", "inlinable", "usableFromInline", "preconcurrency", "_spi", "GKInspectable", "IBInspectable",
  ]

  private static let knownClassAttributes: Set<String> = [
    "Model", "available", "objc", "objcMembers", "MainActor", "Observable", "dynamicMemberLookup", "preconcurrency",
    "_spi", "frozen", "usableFromInline", "unchecked", "nonisolated",
  ]

  /// Unnamed inverses are still missing.
  mutating func read() -> EntityDraft {
    var draft = EntityDraft(declaration: declaration, entity: Entity(name: declaration.name))
    checkClass(&draft)
    for property in declaration.properties where isStored(property) { read(property, into: &draft) }
    for macro in declaration.macros { read(macro, into: &draft) }
    return draft
  }

  mutating func add(
    _ kind: SourceFinding.Kind, _ severity: SourceFinding.Severity, _ property: SourceProperty? = nil, _ detail: String,
    _ hint: String, at place: SourcePlace? = nil
  ) {
    let subject = property.map { "\(declaration.name).\($0.name)" } ?? declaration.name
    findings.append(
      SourceFinding(
        kind, severity, entity: declaration.name, property: property?.name,
        place: place ?? property?.place ?? declaration.place, detail: "\(subject) \(detail)", hint: hint))
  }

  private mutating func checkClass(_ draft: inout EntityDraft) {
    checkConditions(declaration.undecidedCondition, declaration.dependsOnPlatform, nil)
    if !declaration.genericParameters.isEmpty {
      add(.unknownRule, .error, nil, "is generic", "Declare a class of its own for each type.")
    }
    for attribute in declaration.attributes where !Self.knownClassAttributes.contains(attribute.name) {
      add(
        .foreignMacro, .warning, nil, "carries @\(attribute.name), which may add properties",
        "Check what it adds; macros are not expanded.")
    }
    for base in declaration.inherited {
      guard case .model(let parent) = program.resolve(base, scopes: scopes, file: file) else { continue }
      draft.entity.parentName = parent.name
      draft.reached.append(parent)
      add(
        .unknownRule, .warning, nil, "inherits from \(parent.name): taken for a sub-entity, which no store has shown",
        "Compare with a store that the app wrote.")
    }
    if let extra = program.extensions(of: declaration).first(where: { $0.properties.contains { isStored($0) } }) {
      add(
        .unknownRule, .warning, nil, "has a stored property in an extension, which is not taken",
        "Declare it in the class.", at: extra.place)
    }
  }

  var scopes: [[String]] { declaration.scopes }

  var file: String { declaration.place.file }

  private func isStored(_ property: SourceProperty) -> Bool {
    property.isOfInstance && property.attribute("Transient") == nil && !property.name.hasPrefix("_$")
  }

  private mutating func checkConditions(_ undecided: String?, _ dependsOnPlatform: Bool, _ property: SourceProperty?) {
    if let undecided {
      add(
        .undecidedCondition, .warning, property, "is there only under \"#if \(undecided)\", taken as not set",
        SourceFinding.giveFlags)
    }
    if dependsOnPlatform, options.platform == nil {
      add(.platformDependent, .warning, property, "depends on the platform; iOS is taken", SourceFinding.givePlatform)
    }
  }

  private mutating func read(_ property: SourceProperty, into draft: inout EntityDraft) {
    guard !property.name.isEmpty else {
      add(
        .unresolvedType, .error, nil, "declares several properties as a tuple", "Declare each property of its own.",
        at: property.place)
      return
    }
    if property.undecidedCondition != declaration.undecidedCondition
      || property.dependsOnPlatform != declaration.dependsOnPlatform
    {
      checkConditions(property.undecidedCondition, property.dependsOnPlatform, property)
    }
    for attribute in property.attributes where !Self.knownAttributes.contains(attribute.name) {
      add(
        .foreignMacro, .warning, property, "carries @\(attribute.name), which may change what is stored",
        "Check what it does; macros and property wrappers are not expanded.")
    }
    if property.isLazy {
      add(.unknownRule, .warning, property, "is lazy; taken as stored", "Declare it without lazy, or @Transient.")
    }
    guard let type = type(of: property) else { return }
    let unwrapped = type.unwrapped
    var resolved = program.resolve(unwrapped.type, scopes: scopes, file: file)
    var isOptional = unwrapped.isOptional
    while case .optional(let inner) = resolved {
      resolved = inner
      isOptional = true
    }
    if let link = link(resolved, property) {
      append(link, property, isOptional, to: &draft)
    } else {
      append(resolved, unwrapped.type, property, isOptional, to: &draft)
    }
  }

  private mutating func type(of property: SourceProperty) -> TypeReference? {
    if let type = property.type { return type }
    guard let value = property.initialValue else {
      add(.unresolvedInitialValue, .error, property, "has no type", "Write its type.")
      return nil
    }
    let inference = TypeInference(program: program, scopes: scopes, file: file)
    guard let type = inference.type(of: value) else {
      add(
        .unresolvedInitialValue, .error, property, "has no type written, and its initial value does not tell it",
        "Write its type.")
      return nil
    }
    return type
  }

  // MARK: Relationships

  private mutating func link(_ type: ResolvedType, _ property: SourceProperty) -> EntityDraft.Link? {
    var element = type
    var isToMany = false
    switch type {
    case .array(let inner, _), .set(let inner, _):
      isToMany = true
      element = inner
    default: break
    }
    while case .optional(let inner) = element { element = inner }
    guard case .model(let destination) = element else {
      if case .unknown = element {
      } else if property.attribute("Relationship") != nil {
        add(
          .unresolvedType, .error, property, "carries @Relationship and does not lead to a class with @Model",
          "Correct the type, or remove the macro.")
      }
      return nil
    }
    if case .set = type {
      add(
        .unknownRule, .warning, property, "is a set of models; taken as an array of them",
        "Compare with a store that the app wrote.")
    }
    let macro = property.attribute("Relationship")
    var explicit: (root: TypeReference?, name: String)?
    switch macro?.arguments.first(where: { $0.label == "inverse" })?.value {
    case .keyPath(let root, let names)?:
      // In `\A.B.c` the parser cannot distinguish types from properties.
      if let last = names.last {
        let types = names.dropLast().map { TypeReference.Component(name: $0) }
        switch root {
        case .named(let components)?: explicit = (.named(components + types), last)
        case nil where !types.isEmpty: explicit = (.named(types), last)
        case nil, .optional?, .array?, .set?, .dictionary?, .other?: explicit = (root, last)
        }
      }
    case nil, .null?: break
    case .some:
      add(.unresolvedInverse, .error, property, "has an inverse that is no key path", #"Write it as \Type.property."#)
    }
    return EntityDraft.Link(
      destination: destination, explicit: explicit, hasMacro: macro != nil, isToMany: isToMany, place: property.place)
  }

  private mutating func append(
    _ link: EntityDraft.Link, _ property: SourceProperty, _ isOptional: Bool, to draft: inout EntityDraft
  ) {
    let arguments = property.attribute("Relationship")?.arguments ?? []
    var relationship = Relationship(
      traits: traits(property, isOptional, arguments), destinationEntityName: link.destination.name,
      maximumCount: count("maximumModelCount", arguments, property) ?? (link.isToMany ? 0 : 1),
      minimumCount: count("minimumModelCount", arguments, property) ?? 0)
    switch arguments.first(where: { $0.label == "deleteRule" })?.value {
    case .implicitMember(let name)?: relationship.deleteRule = Self.rules[name] ?? .nullify
    case .path(let names)?: relationship.deleteRule = Self.rules[names.last ?? ""] ?? .nullify
    default: break
    }
    draft.entity.properties[property.name] = .relationship(relationship)
    draft.links[property.name] = link
    draft.reached.append(link.destination)
  }

  private static let rules: [String: DeleteRule] = [
    "noAction": .noAction, "nullify": .nullify, "cascade": .cascade, "deny": .deny,
  ]

  private mutating func count(
    _ label: String, _ arguments: [SourceExpression.Argument], _ property: SourceProperty
  ) -> Int? {
    switch arguments.first(where: { $0.label == label })?.value {
    case nil, .null?: return nil
    case .integer(let number?)?: return Int(number)
    case .some:
      add(.unknownRule, .error, property, "has a \(label) that is no number", "Write the number.")
      return nil
    }
  }

  private mutating func traits(
    _ property: SourceProperty, _ isOptional: Bool, _ arguments: [SourceExpression.Argument]
  ) -> PropertyTraits {
    func text(_ label: String) -> String? {
      guard case .string(let text?)? = arguments.first(where: { $0.label == label })?.value else { return nil }
      return text
    }
    var traits = PropertyTraits(name: property.name, isOptional: isOptional)
    traits.explicitRenamingIdentifier = text("originalName")
    traits.versionHashModifier = text("hashModifier")
    if let modifier = arguments.first(where: { $0.label == "hashModifier" }), traits.versionHashModifier == nil,
      modifier.value != .null
    {
      add(.unknownRule, .error, property, "has a hashModifier that is no plain text", "Write the text.")
    }
    return traits
  }

  // MARK: Attributes

  private mutating func append(
    _ type: ResolvedType, _ written: TypeReference, _ property: SourceProperty, _ isOptional: Bool,
    to draft: inout EntityDraft
  ) {
    let arguments = property.attribute("Attribute")?.arguments ?? []
    let options = AttributeOptions(arguments)
    var traits = traits(property, isOptional, arguments)
    traits.isTransient = options.isEphemeral
    traits.isIndexedBySpotlight = options.isIndexedBySpotlight
    traits.allowsCloudEncryption = options.allowsCloudEncryption
    var attribute = Attribute(traits: traits, type: .undefined)
    if let transformer = options.transformer {
      attribute.type = .transformable
      attribute.valueTransformerName = transformer
      attribute.valueClassName = written.text
    } else {
      var reader = AttributeReader(program: program)
      guard reader.read(type, written, isTop: true, into: &attribute) else {
        for problem in reader.problems { add(problem.kind, .error, property, problem.detail, problem.hint) }
        return
      }
      for problem in reader.problems { add(problem.kind, .warning, property, problem.detail, problem.hint) }
    }
    for word in options.unknown {
      add(
        .unknownRule, .warning, property, "has the attribute option \(word), which is not known",
        "Compare with a store that the app wrote.")
    }
    attribute.allowsExternalBinaryDataStorage = options.isExternal
    attribute.preservesValueInHistoryOnDeletion = options.isPreserved
    attribute.defaultValue = defaultValue(property.initialValue, for: attribute)
    if options.isUnique { draft.entity.uniquenessConstraints.append([property.name]) }
    draft.entity.properties[property.name] = .attribute(attribute)
  }

  // MARK: Constraints and indexes

  private mutating func read(_ macro: SourceMacro, into draft: inout EntityDraft) {
    switch macro.name {
    case "Unique":
      for argument in macro.arguments {
        guard let names = Self.names(argument.value) else {
          add(
            .unknownRule, .error, nil, "has a #Unique that is no list of key paths", #"Write it as [\.a, \.b]."#,
            at: macro.place)
          continue
        }
        if draft.entity.uniquenessConstraints.contains(names) {
          add(
            .unknownRule, .warning, nil,
            "has the same constraint twice (\(names.joined(separator: ", "))); taken as one",
            "Remove one of them.", at: macro.place)
        } else {
          draft.entity.uniquenessConstraints.append(names)
        }
      }
    case "Index": for argument in macro.arguments { index(argument.value, macro, &draft) }
    default:
      add(
        .foreignMacro, .warning, nil, "has #\(macro.name), which may add properties",
        "Check what it adds; macros are not expanded.", at: macro.place)
    }
  }

  private mutating func index(_ value: SourceExpression, _ macro: SourceMacro, _ draft: inout EntityDraft) {
    var kind = FetchIndexElement.Kind.binary
    var list = value
    if case .call(.implicitMember(let name), let arguments) = value, let first = arguments.first {
      kind = name == "rtree" ? .rTree : .binary
      list = first.value
    }
    // Indexes are not hashed.
    guard let names = Self.names(list) else {
      add(
        .unknownRule, .warning, nil, "has an #Index that is no list of key paths; it is left out",
        #"Write it as [\.a, \.b]."#, at: macro.place)
      return
    }
    draft.entity.fetchIndexes.append(
      FetchIndex(
        name: "SwiftDataIndexOn\(kind == .rTree ? "RTree" : "Binary")\(names.joined())",
        elements: names.map { FetchIndexElement(propertyName: $0, kind: kind) }))
  }

  private static func names(_ value: SourceExpression) -> [String]? {
    guard case .array(let elements) = value, !elements.isEmpty else { return nil }
    let names = elements.map { element -> String? in
      guard case .keyPath(let root, let names) = element, !names.isEmpty else { return nil }
      // Without a dot the parser takes the first name for the type.
      return root == nil || !names.isEmpty ? names.joined(separator: ".") : nil
    }
    return names.contains(nil) ? nil : names.compactMap { $0 }
  }

  // MARK: Defaults

  /// Values that only the app can compute have their own kind.
  private func defaultValue(_ initial: SourceExpression?, for attribute: Attribute) -> AttributeValue? {
    guard let initial, initial != .null else { return nil }
    switch (attribute.type, initial) {
    case (.string, .string(let text?)): return .string(text)
    case (.boolean, .boolean(let value)): return .boolean(value)
    case (.integer16, .integer(let number?)), (.integer32, .integer(let number?)), (.integer64, .integer(let number?)):
      return .integer(number)
    case (.double, .integer(let number?)), (.float, .integer(let number?)): return .real(Double(number))
    case (.double, .real(let digits)), (.float, .real(let digits)): return Double(digits).map { .real($0) }
    case (.decimal, .integer(let number?)): return .decimal(String(number))
    case (.decimal, .real(let digits)): return .decimal(digits)
    case (.date, .call(.path(["Date"]), let arguments)) where arguments.isEmpty: return .date(options.now)
    case (.date, .path(["Date", "now"])), (.date, .implicitMember("now")): return .date(options.now)
    case (.date, .call(.implicitMember("init"), let arguments)) where arguments.isEmpty: return .date(options.now)
    case (.uuid, .call(.path(["UUID"]), let arguments)) where arguments.isEmpty: return .uuid(options.identifier)
    case (.uuid, .call(.implicitMember("init"), let arguments)) where arguments.isEmpty:
      return .uuid(options.identifier)
    case (.binary, .call(.path(["Data"]), let arguments)) where arguments.isEmpty: return .data([])
    default: return .opaque(className: attribute.valueClassName ?? attribute.type.sourceName)
    }
  }
}
