internal import Platform

/// Reads model source (section 1.2 of the format).
struct ModelSourceReader {
  private let root: XMLTree.Element

  private let composites: [String: XMLTree.Element]

  /// The remaining leaves, since nested composites multiply.
  private var leafBudget = 20_000

  static func read(_ bytes: [UInt8]) throws(ModelError) -> ManagedObjectModel {
    var reader = try ModelSourceReader(try ModelError.reading { () throws(FileError) in try XMLTree(bytes) })
    let model = try reader.model()
    try model.requireSoundStructure()
    return model
  }

  private init(_ tree: XMLTree) throws(ModelError) {
    root = tree.root
    guard root.name == "model" else {
      throw ModelError(
        .notAModel, detail: "its outermost element is <\(printable(String(root.name.prefix(60))))>, not <model>")
    }
    composites = Dictionary(
      root.children(named: "composite").compactMap { element in element["name"].map { ($0, element) } },
      uniquingKeysWith: { first, _ in first })
  }

  private mutating func model() throws(ModelError) -> ManagedObjectModel {
    var entities: [Entity] = []
    var names: Set<String> = []
    for element in root.children(named: "entity") {
      let entity = try entity(element)
      guard names.insert(entity.name).inserted else { throw ModelError.doubled(.invalid, entity.name) }
      entities.append(entity)
    }
    var configurations: [String: [String]] = [:]
    for element in root.children(named: "configuration") {
      guard let name = element["name"] else { continue }
      configurations[name, default: []] += element.children(named: "memberEntity").compactMap { $0["name"] }
    }
    var requests: [String: FetchRequestTemplate] = [:]
    for element in root.children(named: "fetchRequest") {
      if let name = element["name"], let request = Self.fetchRequest(element) { requests[name] = request }
    }
    return ManagedObjectModel(
      entities: entities, versionIdentifiers: [root["userDefinedModelVersionIdentifier"] ?? ""],
      configurations: configurations.mapValues { $0.inCodeUnitOrder() }, fetchRequests: requests)
  }

  private mutating func entity(_ element: XMLTree.Element) throws(ModelError) -> Entity {
    let name = element["name"] ?? ""
    var properties: [Property] = []
    var names: Set<String> = []
    for child in element.children {
      let property: Property
      switch child.name {
      case "attribute": property = .attribute(try attribute(child, of: name, path: []))
      case "relationship": property = .relationship(try relationship(child, of: name))
      case "fetchedProperty": property = .fetchedProperty(Self.fetchedProperty(child))
      default: continue
      }
      guard names.insert(property.name).inserted else {
        throw ModelError.doubled(.invalid, name, property: property.name)
      }
      properties.append(property)
    }
    let indexes = element.children(named: "fetchIndex").map(Self.fetchIndex)
    properties = properties.map { Self.flagged($0, by: indexes) }
    return Entity(
      name: name, className: element["representedClassName"], isAbstract: element.isYes("isAbstract"),
      parentName: element["parentEntity"]?.nonEmpty,
      explicitRenamingIdentifier: element["elementID"]?.identifier(besides: name),
      versionHashModifier: element["versionHashModifier"]?.nonEmpty, properties: properties,
      uniquenessConstraints: Self.lists(element, "uniquenessConstraints", "uniquenessConstraint", "constraint"),
      fetchIndexes: indexes, compoundIndexes: Self.lists(element, "compoundIndexes", "compoundIndex", "index"),
      userInfo: Self.userInfo(element))
  }

  // MARK: Attributes

  private mutating func attribute(
    _ element: XMLTree.Element, of entity: String, path: [String]
  ) throws(ModelError) -> Attribute {
    let name = element["name"] ?? ""
    let typeName = element["attributeType"] ?? "Undefined"
    guard let type = AttributeType(sourceName: typeName) else {
      throw ModelError(
        .invalid,
        detail:
          "attribute \(printable(entity)).\(printable(name)) is of the unknown type \"\(printable(String(typeName.prefix(60))))\"",
        hint: "Check that the model was not made by a newer Xcode than this software knows.", entityName: entity,
        propertyName: name)
    }
    var traits = Self.traits(element, name: name)
    let isDerived = element.isYes("derived")
    traits.isReadOnly = traits.isReadOnly || isDerived
    let isComposite = type == .composite
    return Attribute(
      traits: traits, type: type, defaultValue: Self.defaultValue(element, type),
      valueTransformerName: element["valueTransformerName"]?.nonEmpty,
      valueClassName: type.valueClassName ?? element["customClassName"]?.nonEmpty,
      allowsExternalBinaryDataStorage: element.isYes("allowsExternalBinaryDataStorage"),
      preservesValueInHistoryOnDeletion: element.isYes("preserveAfterDeletion"),
      derivationExpression: isDerived ? Self.expressionFormat(element["derivationExpression"] ?? "") : nil,
      filteringPredicate: isDerived ? element["filteringPredicate"].map(Self.predicateFormat) : nil,
      compositeElements: isComposite ? try leaves(of: element["composite"], entity: entity, path: path) : [],
      compositeTypeName: isComposite ? element["composite"] : nil,
      minimumValue: element["minValueString"] ?? element["minDateTimeInterval"].map(Self.seconds),
      maximumValue: element["maxValueString"] ?? element["maxDateTimeInterval"].map(Self.seconds),
      regularExpression: element["regularExpressionString"]?.nonEmpty)
  }

  /// Returns composite leaves; `path` holds the enclosing types.
  private mutating func leaves(
    of composite: String?, entity: String, path: [String]
  ) throws(ModelError) -> [Attribute] {
    guard let composite, let element = composites[composite] else {
      throw ModelError(
        .invalid,
        detail: "an attribute of entity \"\(printable(entity))\" is of a composite type that is not in the model",
        entityName: entity)
    }
    guard !path.contains(composite), path.count < 16 else {
      throw ModelError(
        .invalid, detail: "the composite type \"\(printable(composite))\" contains itself or is nested too deeply",
        entityName: entity)
    }
    var leaves: [Attribute] = []
    for child in element.children(named: "attribute") {
      leafBudget -= 1
      guard leafBudget > 0 else {
        throw ModelError(.tooLarge, detail: "its composite types unfold to too many attributes", entityName: entity)
      }
      leaves.append(try attribute(child, of: entity, path: path + [composite]))
    }
    return leaves
  }

  /// Dates are seconds since 2001 (unverified).
  private static func defaultValue(_ element: XMLTree.Element, _ type: AttributeType) -> AttributeValue? {
    if type == .date { return element["defaultDateTimeInterval"].flatMap(Double.init).map { .date($0) } }
    guard let text = element["defaultValueString"] else { return nil }
    switch type {
    case .integer16, .integer32, .integer64: return (Int64(text) ?? truth(text).map { $0 ? 1 : 0 }).map { .integer($0) }
    case .double, .float: return (Double(text) ?? truth(text).map { $0 ? 1 : 0 }).map { .real($0) }
    case .decimal:
      return (DecimalNumber(text) ?? truth(text).flatMap { DecimalNumber($0 ? "1" : "0") }).map { .decimal($0.digits) }
    case .boolean: return .boolean(truth(text) ?? (Double(text) ?? 0 != 0))
    case .string: return .string(text)
    case .uri: return .uri(text)
    case .uuid: return uuid(text).map { .uuid($0) }
    case .undefined, .date, .binary, .transformable, .objectID, .composite: return nil
    }
  }

  /// The compiler accepts YES, NO, true and false for numbers.
  private static func truth(_ text: String) -> Bool? {
    switch text.uppercased() {
    case "YES", "TRUE": true
    case "NO", "FALSE": false
    default: nil
    }
  }

  private static func uuid(_ text: String) -> [UInt8]? {
    let digits = Array(text.utf8.filter { $0 != UInt8(ascii: "-") })
    return digits.count == 32 ? [UInt8](hexadecimal: digits) : nil
  }

  private static func seconds(_ text: String) -> String { Double(text).map(numberFormat) ?? text }

  // MARK: Relationships and fetched properties

  /// Reads a relationship with the compiler's counts.
  ///
  /// To-one has at most 1 destination, to-many the given maximum or 0 (unlimited); the minimum is 0 unless given, even
  /// when mandatory.
  private func relationship(_ element: XMLTree.Element, of entity: String) throws(ModelError) -> Relationship {
    let name = element["name"] ?? ""
    func count(_ key: String, _ fallback: Int) throws(ModelError) -> Int {
      guard let text = element[key] else { return fallback }
      guard let number = Int32(text) else {
        throw ModelError(
          .invalid, detail: "\(printable(entity)).\(printable(name)) has a \(key) that is no whole number",
          entityName: entity, propertyName: name)
      }
      return Int(number)
    }
    let rule: DeleteRule =
      switch element["deletionRule"] {
      case "Cascade": .cascade
      case "Deny": .deny
      case "No Action": .noAction
      default: .nullify
      }
    let inverse = element["inverseName"]?.nonEmpty
    return Relationship(
      traits: Self.traits(element, name: name), destinationEntityName: element["destinationEntity"] ?? "",
      inverseName: inverse, inverseEntityName: inverse == nil ? nil : element["inverseEntity"]?.nonEmpty,
      maximumCount: try count("maxCount", element.isYes("toMany") ? 0 : 1), minimumCount: try count("minCount", 0),
      isOrdered: element.isYes("ordered"), deleteRule: rule)
  }

  private static func fetchedProperty(_ element: XMLTree.Element) -> FetchedProperty {
    var traits = traits(element, name: element["name"] ?? "")
    traits.isTransient = true
    traits.isReadOnly = true
    return FetchedProperty(traits: traits, fetchRequest: element.child(named: "fetchRequest").flatMap(fetchRequest))
  }

  private static func fetchRequest(_ element: XMLTree.Element) -> FetchRequestTemplate? {
    guard let entity = element["entity"] else { return nil }
    return FetchRequestTemplate(
      entityName: entity, predicateFormat: element["predicateString"]?.nonEmpty.map(predicateFormat))
  }

  /// Marks an attribute with its own ascending index, as the compiler does (real caches of fw 977 to 1338).
  private static func flagged(_ property: Property, by indexes: [FetchIndex]) -> Property {
    guard case .attribute(var attribute) = property else { return property }
    let isIndexed = indexes.contains { index in
      index.elements.count == 1 && index.partialIndexPredicate == nil
        && index.elements.allSatisfy { $0.propertyName == property.name && $0.kind == .binary && $0.isAscending }
    }
    guard isIndexed else { return property }
    attribute.traits.isIndexed = true
    return .attribute(attribute)
  }

  private static func fetchIndex(_ element: XMLTree.Element) -> FetchIndex {
    let elements = element.children(named: "fetchIndexElement").map { child in
      FetchIndexElement(
        propertyName: child["property"],
        expression: child["property"] == nil ? child["expression"].map(expressionFormat) : nil,
        kind: child["type"] == "RTree" ? .rTree : .binary, isAscending: child["order"] != "descending")
    }
    return FetchIndex(
      name: element["name"] ?? "", elements: elements,
      partialIndexPredicate: element["partialIndexPredicate"]?.nonEmpty.map(predicateFormat))
  }

  // MARK: What all have in common

  private static func traits(_ element: XMLTree.Element, name: String) -> PropertyTraits {
    PropertyTraits(
      name: name, isOptional: element.isYes("optional"), isTransient: element.isYes("transient"),
      isReadOnly: element.isYes("readOnly"), isIndexed: element.isYes("indexed"),
      // Like the compiler, ignores `renamingIdentifier`.
      explicitRenamingIdentifier: element["elementID"]?.identifier(besides: name),
      versionHashModifier: element["versionHashModifier"]?.nonEmpty, userInfo: userInfo(element),
      isIndexedBySpotlight: element.isYes("spotlightIndexingEnabled"),
      isStoredInExternalRecord: element.isYes("storedInTruthFile"),
      allowsCloudEncryption: element.isYes("allowsCloudEncryption"))
  }

  private static func userInfo(_ element: XMLTree.Element) -> [String: String] {
    var entries: [String: String] = [:]
    for entry in element.child(named: "userInfo")?.children(named: "entry") ?? [] {
      if let key = entry["key"] { entries[key] = entry["value"] ?? "" }
    }
    return entries
  }

  private static func lists(
    _ element: XMLTree.Element, _ outer: String, _ middle: String, _ inner: String
  ) -> [[String]] {
    (element.child(named: outer)?.children(named: middle) ?? []).map { list in
      list.children(named: inner).compactMap { $0["value"] }
    }
  }

  /// Returns Core Data's form, or unreadable text unchanged.
  private static func expressionFormat(_ text: String) -> String { FormatParser.expression(text)?.format ?? text }

  private static func predicateFormat(_ text: String) -> String { FormatParser.predicate(text)?.format ?? text }
}

extension XMLTree.Element {
  /// Model sources have only `YES` for true.
  fileprivate func isYes(_ name: String) -> Bool { self[name] == "YES" }
}
