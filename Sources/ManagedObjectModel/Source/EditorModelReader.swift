internal import Platform

/// Reads a model archived by Xcode's editor: `XDPMModel`, with Core Data's settings in stereotypes.
///
/// Classes and keys come from forty real mapping models; all hash like their sources.
struct EditorModelReader {
  private let archive: KeyedArchive

  /// The remaining objects; valid archives have one for each property and setting.
  private var budget: Int

  private(set) var unknownSettings: Set<String> = []

  init(_ bytes: [UInt8]) throws(ModelError) {
    archive = try ModelError.reading { () throws(FileError) in try KeyedArchive(bytes) }
    budget = 4 * archive.objects.count + 1000
  }

  mutating func model() throws(ModelError) -> ManagedObjectModel {
    guard archive.root.className == "XDPMModel" else {
      throw ModelError(.notAModel, detail: "the archive is not of a model of Xcode's editor")
    }
    guard let classes = archive.root.object("_xd_rootPackage")?.object("XDBucketForClassesstorage") else {
      throw ModelError(.damaged, detail: "the archived model has no entities")
    }
    var entities: [Entity] = []
    var names: Set<String> = []
    for object in members(classes) where object.className == "XDPMEntity" {
      let entity = try entity(object)
      guard names.insert(entity.name).inserted else { throw ModelError.doubled(.damaged, entity.name) }
      entities.append(entity)
    }
    let model = ManagedObjectModel(
      entities: entities, versionIdentifiers: [archive.root.string("_modelVersionIdentifier") ?? ""])
    try model.requireSoundStructure()
    return model
  }

  private func members(_ bucket: ArchivedObject?) -> [ArchivedObject] {
    bucket?.entries?.map(\.value) ?? bucket?.elements ?? []
  }

  private mutating func spend() throws(ModelError) {
    budget -= 1
    guard budget >= 0 else { throw ModelError(.damaged, detail: "its entities share their properties") }
  }

  // MARK: Entities

  private mutating func entity(_ object: ArchivedObject) throws(ModelError) -> Entity {
    guard let name = object.string("_name") else {
      throw ModelError(.damaged, detail: "an archived entity has no name")
    }
    try spend()
    let settings = try settings(object, known: Self.entitySettings, ["XD_PStereotype"])
    var properties: [Property] = []
    var names: Set<String> = []
    for member in members(object.object("XDBucketForOwnedAttributesstorage")) {
      guard let property = try property(member) else { continue }
      guard names.insert(property.name).inserted else {
        throw ModelError.doubled(.damaged, name, property: property.name)
      }
      properties.append(property)
    }
    var constraints: [[String]] = []
    for list in settings["XDPMUniquenessConstraints"]?.elements ?? [] {
      try spend()
      var names: [String] = []
      for element in list.elements ?? [] {
        try spend()
        if let name = element.string ?? element.string("_name") { names.append(name) }
      }
      constraints.append(names)
    }
    let parent = members(object.object("XDBucketForGeneralizationsstorage")).first?.object("_general")
    return Entity(
      name: name, className: settings["XD_PSK_entityClassName"]?.string,
      isAbstract: Self.isTrue(settings["XD_PSK_isAbstract"]), parentName: parent?.string("_name"),
      explicitRenamingIdentifier: settings["XD_PSK_elementID"]?.string?.identifier(besides: name),
      versionHashModifier: settings["XD_PSK_versionHashModifier"]?.string?.nonEmpty, properties: properties,
      uniquenessConstraints: constraints)
  }

  // MARK: Properties

  private mutating func property(_ object: ArchivedObject) throws(ModelError) -> Property? {
    guard let name = object.string("_name") else {
      throw ModelError(.damaged, detail: "an archived property has no name")
    }
    try spend()
    let className = object.className ?? ""
    let known = Self.propertySettings.union(Self.attributeSettings).union(Self.relationshipSettings)
    let settings = try settings(object, known: known, ["XD_PPropStereotype", "XD_PAtt_Stereotype", "XD_PR_Stereotype"])
    let traits = PropertyTraits(
      name: name, isOptional: Self.isTrue(settings["XD_PPSK_isOptional"]),
      isTransient: Self.isTrue(settings["XD_PPSK_isTransient"]),
      explicitRenamingIdentifier: settings["XD_PPSK_elementID"]?.string?.identifier(besides: name),
      versionHashModifier: settings["XD_PPSK_versionHashModifier"]?.string?.nonEmpty)
    switch className {
    case "XDPMAttribute":
      let number = settings["XD_PAttK_attributeType"]?.content.integer ?? 0
      guard let type = AttributeType(rawValue: Int(clamping: number)) else {
        throw ModelError(
          .invalid, detail: "attribute \"\(printable(name))\" is of the unknown type \(number)", entityName: nil,
          propertyName: name)
      }
      // How composite leaves, which are hashed, are stored is unknown.
      if type == .composite { unknownSettings.insert("composite") }
      return .attribute(
        Attribute(
          traits: traits, type: type,
          allowsExternalBinaryDataStorage: Self.isTrue(settings["XD_PAttK_allowsExternalBinaryDataStorage"])))
    case "XDPMRelationship":
      let inverse = settings["XD_PRK_inverseRelationship"]
      let isToMany = Self.isTrue(settings["XD_PRK_isToMany"])
      return .relationship(
        Relationship(
          traits: traits, destinationEntityName: settings["XD_PRK_destination"]?.string("_name") ?? "",
          inverseName: inverse?.string("_name"), inverseEntityName: inverse?.object("_owner")?.string("_name"),
          maximumCount: Self.count(settings["XD_PRK_maxCount"]) ?? (isToMany ? 0 : 1),
          minimumCount: Self.count(settings["XD_PRK_minCount"]) ?? 0, isOrdered: Self.isTrue(settings["XD_PRK_ordered"])
        ))
    case "XDPMFetchedProperty": return nil
    default:
      unknownSettings.insert(className)
      return nil
    }
  }

  // MARK: Settings

  /// Returns settings by name, without empty ones.
  private mutating func settings(
    _ object: ArchivedObject, known: Set<String>, _ stereotypes: Set<String>
  ) throws(ModelError) -> [String: ArchivedObject] {
    var result: [String: ArchivedObject] = [:]
    for stereotype in members(object.object("XDBucketForStereotypesstorage")) {
      try spend()
      let isKnown = stereotype.string("_name").map { stereotypes.contains($0) } ?? false
      for setting in members(stereotype.object("XDBucketForOwnedAttributesstorage")) {
        try spend()
        guard let name = setting.string("_name"), let value = setting.object("_default") else { continue }
        if isKnown, known.contains(name) {
          result[name] = value
        } else if !Self.isUsual(value) {
          unknownSettings.insert(name)
        }
      }
    }
    return result
  }

  /// Whether a setting is off or empty.
  private static func isUsual(_ value: ArchivedObject) -> Bool {
    switch value.content {
    case .null, .boolean(false), .integer(0), .string(""): true
    case .dictionary: (value.entries?.count ?? value.elements?.count) == 0
    case .boolean, .integer, .unsigned, .real, .date, .string, .data, .uid, .array: false
    }
  }

  private static func isTrue(_ value: ArchivedObject?) -> Bool { value?.content.boolean ?? false }

  private static func count(_ value: ArchivedObject?) -> Int? {
    value?.content.integer.flatMap { Int32(exactly: $0) }.map { Int($0) }
  }

  private static let entitySettings: Set<String> = [
    "XD_PSK_elementID", "XD_PSK_isAbstract", "XD_PSK_versionHashModifier", "XD_PSK_entityClassName",
    "XDPMUniquenessConstraints",
    // Not hashed.
    "XD_PSK_fetchRequestsArray", "XD_PSK_userInfo", "XD_PSK_classMapping", "XDPMCompoundIndexes",
    "XDPMFetchIndexes", "XD_PSK_codeGenerationType", "XD_PSK_moduleName", "XDPMCoreSpotlightDisplayNameExpression",
  ]

  private static let propertySettings: Set<String> = [
    "XD_PPSK_isOptional", "XD_PPSK_isTransient", "XD_PPSK_elementID", "XD_PPSK_versionHashModifier",
    "XD_PPSK_isStoredInTruthFile", "XD_PPSK_userInfo", "XD_PPSK_isIndexed", "XD_PPSK_isSpotlightIndexed",
    "XD_PPSK_allowsCloudEncryption",
  ]

  private static let attributeSettings: Set<String> = [
    "XD_PAttK_attributeType", "XD_PAttK_allowsExternalBinaryDataStorage", "XD_PAttK_defaultValueAsString",
    "XD_PAttK_minValueString", "XD_PAttK_maxValueString", "XD_PAttK_valueTransformerName",
    "XD_PAttK_regularExpressionString", "XD_PAttK_usesScalarAccessor", "XD_PAttK_customClassName",
  ]

  private static let relationshipSettings: Set<String> = [
    "XD_PRK_destination", "XD_PRK_inverseRelationship", "XD_PRK_isToMany", "XD_PRK_maxCount", "XD_PRK_minCount",
    "XD_PRK_ordered", "XD_PRK_deleteRule",
  ]
}

/// A model archived by Xcode's editor, as in mapping models.
package struct EditorModel: Sendable {
  /// The model without unhashed parts.
  package let model: ManagedObjectModel

  /// Whether all settings were understood, so that hashes are reliable.
  package let isComplete: Bool

  /// Reads an archive of `XDPMModel`.
  ///
  /// - Throws: `ModelError` for other or damaged data, or contradictions.
  package init(_ bytes: [UInt8]) throws(ModelError) {
    var reader = try EditorModelReader(bytes)
    model = try reader.model()
    isComplete = reader.unknownSettings.isEmpty
  }
}
