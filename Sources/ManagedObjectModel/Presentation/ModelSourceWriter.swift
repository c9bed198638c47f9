public import Platform

/// Writes model source (section 1.2 of the format).
struct ModelSourceWriter {
  private let model: ManagedObjectModel
  private var lines: [String] = []

  private var composites: [(name: String, elements: [Attribute])] = []

  private var compositeLines: [String] = []

  /// Parts that source cannot express.
  private(set) var omissions: [String] = []

  private static let maximumDepth = 16

  static func write(_ model: ManagedObjectModel) throws(ModelError) -> (bytes: [UInt8], omissions: [String]) {
    try model.requireSoundStructure()
    var writer = ModelSourceWriter(model: model)
    try writer.writeModel()
    let bytes = Array(writer.lines.map { $0 + "\n" }.joined().utf8)
    // Verifies hashes, so that an inexpressible model is not written as another one.
    let back = try ManagedObjectModel(source: bytes).versionHashes()
    let wanted = model.versionHashes()
    let names = Set(wanted.keys).union(back.keys).inCodeUnitOrder()
    if let other = names.first(where: { wanted[$0] != back[$0] }) {
      throw unwritable("entity \"\(printable(other))\" would get another hash", entity: other)
    }
    return (bytes, writer.omissions)
  }

  private static func unwritable(_ detail: String, entity: String? = nil) -> ModelError {
    ModelError(
      .unwritable, operation: "write the model's source", detail: detail,
      hint: "Export it compiled (.mom), which holds everything.", entityName: entity)
  }

  private mutating func writeModel() throws(ModelError) {
    lines = [#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#]
    try open(
      "model", "",
      [
        ("type", "com.apple.IDECoreDataModeler.DataModel"), ("documentVersion", "1.0"),
        ("lastSavedToolsVersion", "22522"), ("systemVersion", "23A344"), ("minimumToolsVersion", "Automatic"),
        ("sourceLanguage", "Swift"), ("userDefinedModelVersionIdentifier", model.versionIdentifiers.first ?? ""),
      ])
    if model.versionIdentifiers.count > 1 {
      omissions.append("\(model.versionIdentifiers.count - 1) more version identifiers")
    }
    for (_, entity) in model.entities.inCodeUnitOrder() { try write(entity) }
    for (name, request) in model.fetchRequests.inCodeUnitOrder() {
      try element("fetchRequest", "    ", Self.attributes(of: request, name: name))
    }
    for (name, members) in model.configurations.inCodeUnitOrder() {
      try open("configuration", "    ", [("name", name)])
      for member in members { try element("memberEntity", "        ", [("name", member)]) }
      lines.append("    </configuration>")
    }
    lines += compositeLines
    lines.append("</model>")
  }

  // MARK: Entities

  private mutating func write(_ entity: Entity) throws(ModelError) {
    try open(
      "entity", "    ",
      [
        ("name", entity.name), ("representedClassName", entity.className),
        ("isAbstract", Self.yes(entity.isAbstract)), ("parentEntity", entity.parentName),
        ("elementID", Self.identifier(entity.explicitRenamingIdentifier, entity.name)),
        ("versionHashModifier", entity.versionHashModifier), ("syncable", "YES"),
      ])
    for (_, property) in entity.properties.inCodeUnitOrder() {
      switch property {
      case .attribute(let attribute): try write(attribute, "        ", entity, depth: 0)
      case .relationship(let relationship): try write(relationship)
      case .fetchedProperty(let property): try write(property)
      }
    }
    for index in entity.fetchIndexes { try write(index) }
    try write(entity.uniquenessConstraints, "uniquenessConstraints", "uniquenessConstraint", "constraint")
    try write(entity.compoundIndexes, "compoundIndexes", "compoundIndex", "index")
    try writeUserInfo(entity.userInfo, "        ")
    lines.append("    </entity>")
  }

  private mutating func write(_ index: FetchIndex) throws(ModelError) {
    try open("fetchIndex", "        ", [("name", index.name), ("partialIndexPredicate", index.partialIndexPredicate)])
    for part in index.elements {
      try element(
        "fetchIndexElement", "            ",
        [
          ("property", part.propertyName), ("expression", part.propertyName == nil ? part.expression : nil),
          ("type", part.kind == .rTree ? "RTree" : "Binary"), ("order", part.isAscending ? "ascending" : "descending"),
        ])
    }
    lines.append("        </fetchIndex>")
  }

  private mutating func write(
    _ lists: [[String]], _ outer: String, _ middle: String, _ inner: String
  ) throws(ModelError) {
    guard !lists.isEmpty else { return }
    lines.append("        <\(outer)>")
    for list in lists {
      lines.append("            <\(middle)>")
      for value in list { try element(inner, "                ", [("value", value)]) }
      lines.append("            </\(middle)>")
    }
    lines.append("        </\(outer)>")
  }

  private mutating func writeUserInfo(_ entries: [String: String], _ indent: String) throws(ModelError) {
    guard !entries.isEmpty else { return }
    lines.append("\(indent)<userInfo>")
    for (key, value) in entries.inCodeUnitOrder() {
      try element("entry", "\(indent)    ", [("key", key), ("value", value)])
    }
    lines.append("\(indent)</userInfo>")
  }

  // MARK: Properties

  private static func identifier(_ identifier: String?, _ name: String) -> String? {
    identifier == name ? nil : identifier
  }

  private static func yes(_ flag: Bool) -> String? { flag ? "YES" : nil }

  private static func attributes(of traits: PropertyTraits, isIndexed: Bool = false) -> [(String, String?)] {
    [
      ("name", traits.name), ("optional", yes(traits.isOptional)), ("transient", yes(traits.isTransient)),
      ("readOnly", yes(traits.isReadOnly)), ("indexed", yes(isIndexed)),
      ("elementID", identifier(traits.explicitRenamingIdentifier, traits.name)),
      ("versionHashModifier", traits.versionHashModifier),
      ("spotlightIndexingEnabled", yes(traits.isIndexedBySpotlight)),
      ("storedInTruthFile", yes(traits.isStoredInExternalRecord)),
      ("allowsCloudEncryption", yes(traits.allowsCloudEncryption)),
    ]
  }

  private mutating func write(
    _ attribute: Attribute, _ indent: String, _ entity: Entity, depth: Int
  ) throws(ModelError) {
    guard depth < Self.maximumDepth else {
      throw Self.unwritable("it has composites nested too deeply", entity: entity.name)
    }
    var traits = attribute.traits
    if attribute.isDerived { traits.isReadOnly = false }
    let isIndexed =
      traits.isIndexed
      && !entity.fetchIndexes.contains { $0.elements.count == 1 && $0.elements[0].propertyName == traits.name }
    var fields = Self.attributes(of: traits, isIndexed: isIndexed)
    let isDate = attribute.type == .date
    fields += [
      ("attributeType", attribute.type.sourceName), ("derived", Self.yes(attribute.isDerived)),
      ("derivationExpression", attribute.derivationExpression), ("filteringPredicate", attribute.filteringPredicate),
      ("allowsExternalBinaryDataStorage", Self.yes(attribute.allowsExternalBinaryDataStorage)),
      ("preserveAfterDeletion", Self.yes(attribute.preservesValueInHistoryOnDeletion)),
      ("valueTransformerName", attribute.valueTransformerName),
      ("customClassName", attribute.type.valueClassName == nil ? attribute.valueClassName : nil),
      (isDate ? "minDateTimeInterval" : "minValueString", attribute.minimumValue),
      (isDate ? "maxDateTimeInterval" : "maxValueString", attribute.maximumValue),
      ("regularExpressionString", attribute.regularExpression),
      (isDate ? "defaultDateTimeInterval" : "defaultValueString", defaultText(attribute, entity)),
    ]
    if attribute.type == .composite {
      fields.append(("composite", try compositeName(of: attribute, entity, depth: depth)))
    }
    if !attribute.validationPredicates.isEmpty {
      omissions.append("rules of \(printable(entity.name)).\(printable(attribute.name))")
    }
    try element("attribute", indent, fields, userInfo: attribute.traits.userInfo)
  }

  /// Returns nil if absent or inexpressible.
  private mutating func defaultText(_ attribute: Attribute, _ entity: Entity) -> String? {
    switch (attribute.defaultValue, attribute.type) {
    case (nil, _): return nil
    case (.integer(let value)?, .boolean): return value == 0 ? "NO" : "YES"
    case (.integer(let value)?, _): return String(value)
    case (.real(let value)?, _) where value.isFinite: return String(value)
    case (.decimal(let digits)?, _): return digits
    case (.boolean(let value)?, .boolean): return value ? "YES" : "NO"
    case (.boolean(let value)?, _): return value ? "1" : "0"
    case (.string(let text)?, _), (.uri(let text)?, _): return text
    case (.date(let seconds)?, .date) where seconds.isFinite: return String(seconds)
    case (.uuid(let bytes)?, .uuid) where bytes.count == 16: return bytes.uuidText
    default:
      omissions.append("the default of \(printable(entity.name)).\(printable(attribute.name))")
      return nil
    }
  }

  /// Returns a composite type, reused for the same elements.
  private mutating func compositeName(
    of attribute: Attribute, _ entity: Entity, depth: Int
  ) throws(ModelError) -> String {
    let elements = attribute.compositeElements
    let wanted = attribute.compositeTypeName ?? Self.capitalized(attribute.name)
    let alike = composites.filter { $0.elements == elements }
    if let known = alike.first(where: { $0.name == wanted }) ?? alike.first { return known.name }
    var name = wanted
    var number = 2
    while composites.contains(where: { $0.name == name }) {
      name = "\(wanted)\(number)"
      number += 1
    }
    composites.append((name, elements))
    let outer = lines
    lines = []
    try open("composite", "    ", [("name", name)])
    for leaf in elements { try write(leaf, "        ", entity, depth: depth + 1) }
    lines.append("    </composite>")
    compositeLines += lines
    lines = outer
    return name
  }

  private static func capitalized(_ name: String) -> String { name.prefix(1).uppercased() + name.dropFirst() }

  private mutating func write(_ relationship: Relationship) throws(ModelError) {
    let rule =
      switch relationship.deleteRule {
      case .noAction: "No Action"
      case .nullify: "Nullify"
      case .cascade: "Cascade"
      case .deny: "Deny"
      }
    var fields = Self.attributes(of: relationship.traits)
    let maximum = relationship.maximumCount
    fields += [
      ("toMany", Self.yes(relationship.isToMany)),
      ("minCount", relationship.minimumCount == 0 ? nil : String(relationship.minimumCount)),
      ("maxCount", maximum == 0 ? nil : String(maximum)), ("ordered", Self.yes(relationship.isOrdered)),
      ("deletionRule", rule), ("destinationEntity", relationship.destinationEntityName),
      ("inverseName", relationship.inverseName), ("inverseEntity", inverseEntity(of: relationship)),
    ]
    try element("relationship", "        ", fields, userInfo: relationship.traits.userInfo)
  }

  /// Xcode always writes the declaring entity.
  private func inverseEntity(of relationship: Relationship) -> String? {
    guard let name = relationship.inverseName else { return nil }
    if let entity = relationship.inverseEntityName { return entity }
    return model.lineage(of: relationship.destinationEntityName).first { $0.properties[name] != nil }?.name
  }

  private mutating func write(_ property: FetchedProperty) throws(ModelError) {
    var traits = property.traits
    // They are implicitly transient and read-only.
    traits.isTransient = false
    traits.isReadOnly = false
    try open("fetchedProperty", "        ", Self.attributes(of: traits))
    if let request = property.fetchRequest {
      try element("fetchRequest", "            ", Self.attributes(of: request, name: "fetchedPropertyFetchRequest"))
    }
    try writeUserInfo(traits.userInfo, "            ")
    lines.append("        </fetchedProperty>")
  }

  private static func attributes(of request: FetchRequestTemplate, name: String) -> [(String, String?)] {
    [("name", name), ("entity", request.entityName), ("predicateString", request.predicateFormat)]
  }

  // MARK: Text

  private mutating func open(_ name: String, _ indent: String, _ attributes: [(String, String?)]) throws(ModelError) {
    lines.append("\(indent)<\(name)\(try Self.text(attributes))>")
  }

  private mutating func element(
    _ name: String, _ indent: String, _ attributes: [(String, String?)], userInfo: [String: String] = [:]
  ) throws(ModelError) {
    guard !userInfo.isEmpty else {
      lines.append("\(indent)<\(name)\(try Self.text(attributes))/>")
      return
    }
    try open(name, indent, attributes)
    try writeUserInfo(userInfo, "\(indent)    ")
    lines.append("\(indent)</\(name)>")
  }

  private static func text(_ attributes: [(String, String?)]) throws(ModelError) -> String {
    var text = ""
    for (name, value) in attributes {
      guard let value else { continue }
      text += " \(name)=\"\(try escaped(value))\""
    }
    return text
  }

  private static func escaped(_ text: String) throws(ModelError) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "\t", "\n", "\r": result += "&#\(scalar.value);"
      case _ where scalar.value < 0x20 || scalar.value == 0xFFFE || scalar.value == 0xFFFF:
        throw unwritable("a name or a text in it has a character that XML cannot hold")
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

extension ManagedObjectModel {
  /// Returns the XML of a `.xcdatamodel`'s `contents`, and the omissions.
  ///
  /// The hashes equal the model's; omissions are not hashed.
  ///
  /// - Throws: `model-unwritable` if source cannot express them.
  public func source() throws(ModelError) -> (contents: [UInt8], omissions: [String]) {
    let written = try ModelSourceWriter.write(self)
    return (written.bytes, written.omissions)
  }

  /// Returns the compiled model, as in a `.mom`, with equal hashes.
  ///
  /// - Throws: `model-unwritable` for contradictions or a changed hash.
  public func compiled() throws(ModelError) -> [UInt8] {
    let bytes = try compiledBytes()
    let back = try ManagedObjectModel(compiled: bytes).versionHashes()
    let wanted = versionHashes()
    guard let other = wanted.keys.inCodeUnitOrder().first(where: { wanted[$0] != back[$0] }) else { return bytes }
    throw ModelError(
      .unwritable, operation: "compile the model", detail: "entity \"\(printable(other))\" would get another hash",
      hint: "Name the model that this one was made from.", entityName: other)
  }
}
