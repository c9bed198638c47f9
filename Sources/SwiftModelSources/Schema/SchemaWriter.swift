public import ManagedObjectModel
public import Platform

struct SchemaWriter {
  let model: ManagedObjectModel
  private var lines: [String] = []

  init(model: ManagedObjectModel) { self.model = model }

  mutating func write(_ name: String) throws(ModelError) -> String {
    let names = model.entities.keys.inCodeUnitOrder()
    lines = ["import Foundation", "import SwiftData", "", "enum \(try Self.identifier(name)): VersionedSchema {"]
    let numbers = Self.numbers(model.versionIdentifiers)
    lines += [
      "  static var versionIdentifier: Schema.Version { Schema.Version(\(numbers.joined(separator: ", "))) }", "",
      "  static var models: [any PersistentModel.Type] {",
    ]
    lines.append("    [" + names.map { "\($0).self" }.joined(separator: ", ") + "]")
    lines.append("  }")
    for name in names {
      guard let entity = model.entities[name] else { continue }
      try write(entity)
    }
    lines.append("}")
    return lines.map { $0 + "\n" }.joined()
  }

  /// Defaults to 1.0.0.
  private static func numbers(_ identifiers: [String]) -> [String] {
    let parts = (identifiers.first ?? "").split(separator: ".").map(String.init)
    return parts.count == 3 && parts.allSatisfy { Int($0) != nil } ? parts : ["1", "0", "0"]
  }

  private mutating func write(_ entity: Entity) throws(ModelError) {
    let name = try Self.identifier(entity.name, entity: entity.name)
    guard entity.parentName == nil, !entity.isAbstract, entity.versionHashModifier == nil else {
      throw FrozenSchema.unwritable(
        "entity \"\(printable(entity.name))\" inherits, is abstract or has a hash modifier", entity: entity.name)
    }
    lines += ["", "  @Model", "  final class \(name) {"]
    let single = Set(entity.uniquenessConstraints.filter { $0.count == 1 }.map { $0[0] })
    let groups = entity.uniquenessConstraints.filter { $0.count > 1 }
    if !groups.isEmpty { lines.append("    #Unique<\(name)>(\(try Self.keyPaths(groups)))") }
    let indexes = entity.fetchIndexes.map { $0.elements.compactMap(\.propertyName) }.filter { !$0.isEmpty }
    if !indexes.isEmpty { lines.append("    #Index<\(name)>(\(try Self.keyPaths(indexes)))") }
    var parameters: [(name: String, type: String)] = []
    var structures: [String] = []
    for key in entity.properties.keys.inCodeUnitOrder() {
      guard let property = entity.properties[key] else { continue }
      let type: String
      switch property {
      case .attribute(let attribute):
        type = try self.type(of: attribute, in: entity.name, &structures)
        try write(attribute, type, isUnique: single.contains(key), in: entity.name)
      case .relationship(let relationship): type = try write(relationship, in: entity.name)
      case .fetchedProperty:
        throw FrozenSchema.unwritable(
          "\(printable(entity.name)).\(printable(key)) is a fetched property", entity: entity.name, property: key)
      }
      parameters.append((try Self.identifier(key, entity: entity.name), type))
    }
    lines.append("")
    writeInitializer(parameters)
    lines += structures
    lines.append("  }")
  }

  private mutating func writeInitializer(_ parameters: [(name: String, type: String)]) {
    guard !parameters.isEmpty else {
      lines.append("    init() {}")
      return
    }
    lines.append("    init(")
    for (number, parameter) in parameters.enumerated() {
      let end = number == parameters.count - 1 ? "" : ","
      lines.append("      \(parameter.name): \(parameter.type)\(parameter.type.hasSuffix("?") ? " = nil" : "")\(end)")
    }
    lines.append("    ) {")
    for parameter in parameters { lines.append("      self.\(parameter.name) = \(parameter.name)") }
    lines.append("    }")
  }

  private static func keyPaths(_ groups: [[String]]) throws(ModelError) -> String {
    var texts: [String] = []
    for group in groups {
      var paths: [String] = []
      for path in group {
        for part in path.split(separator: ".") { _ = try identifier(String(part)) }
        paths.append("\\.\(path)")
      }
      texts.append("[\(paths.joined(separator: ", "))]")
    }
    return texts.joined(separator: ", ")
  }

  // MARK: Attributes

  private mutating func write(
    _ attribute: Attribute, _ type: String, isUnique: Bool, in entity: String
  ) throws(ModelError) {
    var options: [String] = []
    if isUnique { options.append(".unique") }
    if attribute.allowsExternalBinaryDataStorage { options.append(".externalStorage") }
    if attribute.preservesValueInHistoryOnDeletion { options.append(".preserveValueOnDeletion") }
    if attribute.traits.isTransient { options.append(".ephemeral") }
    if attribute.traits.isIndexedBySpotlight { options.append(".spotlight") }
    if attribute.traits.allowsCloudEncryption { options.append(".allowsCloudEncryption") }
    if attribute.type == .transformable, Self.element(of: attribute) == nil {
      options.append(
        ".transformable(by: \(Self.literal(attribute.valueTransformerName ?? "NSSecureUnarchiveFromData")))")
    }
    options += Self.names(attribute.traits)
    let macro = options.isEmpty ? "" : "@Attribute(\(options.joined(separator: ", "))) "
    lines.append("    \(macro)var \(try Self.identifier(attribute.name, entity: entity)): \(type)")
  }

  /// Returns `originalName:` and `hashModifier:`.
  private static func names(_ traits: PropertyTraits) -> [String] {
    var names: [String] = []
    if let original = traits.explicitRenamingIdentifier, original != traits.name {
      names.append("originalName: \(literal(original))")
    }
    if let modifier = traits.versionHashModifier, !modifier.isEmpty {
      names.append("hashModifier: \(literal(modifier))")
    }
    return names
  }

  private static let types: [AttributeType: String] = [
    .integer16: "Int16", .integer32: "Int32", .integer64: "Int", .decimal: "Decimal", .double: "Double",
    .float: "Float", .string: "String", .boolean: "Bool", .date: "Date", .binary: "Data", .uuid: "UUID", .uri: "URL",
  ]

  /// Adds a module if a class has the type's name.
  private func qualified(_ type: String) -> String {
    guard model.entities[type] != nil else { return type }
    return (["Decimal", "Date", "Data", "UUID", "URL"].contains(type) ? "Foundation." : "Swift.") + type
  }

  /// The element of a transformable array.
  private static func element(of attribute: Attribute) -> String? {
    guard let name = attribute.valueClassName, name.hasPrefix("Array<"), name.hasSuffix(">") else { return nil }
    let element = String(name.dropFirst("Array<".count).dropLast())
    return PrimitiveTypes.all[element] == nil ? nil : element
  }

  private func type(
    of attribute: Attribute, in entity: String, _ structures: inout [String]
  ) throws(ModelError) -> String {
    let mark = attribute.traits.isOptional ? "?" : ""
    guard !attribute.isDerived, !attribute.traits.isReadOnly else {
      throw FrozenSchema.unwritable(
        "\(printable(entity)).\(printable(attribute.name)) is derived", entity: entity, property: attribute.name)
    }
    if let plain = Self.types[attribute.type] { return qualified(plain) + mark }
    if attribute.type == .transformable {
      if let element = Self.element(of: attribute) { return "[\(qualified(element))]\(mark)" }
      let name = attribute.valueClassName ?? ""
      return ((try? Self.identifier(name)) ?? "NSObject") + mark
    }
    guard attribute.type == .composite, !attribute.compositeElements.isEmpty else {
      throw FrozenSchema.unwritable(
        "\(printable(entity)).\(printable(attribute.name)) is of a type that SwiftData does not have", entity: entity,
        property: attribute.name)
    }
    let name = "\(attribute.name.prefix(1).uppercased())\(attribute.name.dropFirst())Value"
    structures += ["", "    struct \(try Self.identifier(name, entity: entity)): Codable {"]
    for element in attribute.compositeElements {
      // Nested elements are flattened, as they are hashed.
      for leaf in ManagedObjectModel.leaves(of: element) {
        guard let type = Self.types[leaf.type] else {
          throw FrozenSchema.unwritable(
            "\(printable(entity)).\(printable(attribute.name)) has an element that SwiftData does not have",
            entity: entity, property: attribute.name)
        }
        structures.append(
          "      var \(try Self.identifier(leaf.name, entity: entity)): \(qualified(type))\(leaf.traits.isOptional ? "?" : "")"
        )
      }
    }
    structures.append("    }")
    return name + mark
  }

  // MARK: Relationships

  private mutating func write(_ relationship: Relationship, in entity: String) throws(ModelError) -> String {
    guard !relationship.isOrdered, !relationship.traits.isTransient else {
      throw FrozenSchema.unwritable(
        "\(printable(entity)).\(printable(relationship.name)) is ordered or transient", entity: entity,
        property: relationship.name)
    }
    let destination = try Self.identifier(relationship.destinationEntityName, entity: entity)
    let type = (relationship.isToMany ? "[\(destination)]" : destination) + (relationship.traits.isOptional ? "?" : "")
    var options: [String] = []
    switch relationship.deleteRule {
    case .nullify: break
    case .noAction: options.append("deleteRule: .noAction")
    case .cascade: options.append("deleteRule: .cascade")
    case .deny: options.append("deleteRule: .deny")
    }
    if relationship.minimumCount != 0 { options.append("minimumModelCount: \(relationship.minimumCount)") }
    if relationship.isToMany, relationship.maximumCount != 0 {
      options.append("maximumModelCount: \(relationship.maximumCount)")
    }
    options += Self.names(relationship.traits)
    if let inverse = relationship.inverseName {
      // Only one side may name the inverse.
      let other = [relationship.destinationEntityName, inverse]
      if [entity, relationship.name].lexicographicallyPrecedes(other) || other == [entity, relationship.name] {
        options.append("inverse: \\\(destination).\(try Self.identifier(inverse, entity: entity))")
      }
    }
    // A macro keeps SwiftData from choosing an inverse.
    let isBare = options.isEmpty && relationship.inverseName != nil
    let macro = isBare ? "" : "@Relationship\(options.isEmpty ? "" : "(\(options.joined(separator: ", ")))") "
    lines.append("    \(macro)var \(try Self.identifier(relationship.name, entity: entity)): \(type)")
    return type
  }

  // MARK: Text

  private static let reserved: Set<String> = [
    "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "deinit", "do", "else",
    "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if", "import", "in", "init",
    "inout", "internal", "is", "let", "nil", "operator", "precedencegroup", "private", "protocol", "public", "repeat",
    "rethrows", "return", "self", "Self", "static", "struct", "subscript", "super", "switch", "throw", "throws", "true",
    "try", "typealias", "var", "where", "while", "Any",
  ]

  private static func identifier(_ name: String, entity: String? = nil) throws(ModelError) -> String {
    let isName = name.unicodeScalars.enumerated().allSatisfy { number, scalar in
      let properties = scalar.properties
      return scalar == "_" || (number == 0 ? properties.isXIDStart : properties.isXIDContinue)
    }
    guard !name.isEmpty, isName else {
      throw FrozenSchema.unwritable("\"\(printable(name))\" is no name in Swift", entity: entity)
    }
    return reserved.contains(name) ? "`\(name)`" : name
  }

  private static func literal(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case _ where scalar.value < 0x20 || scalar.value == 0x7F: result += "\\u{\(String(scalar.value, radix: 16))}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}

/// A model version as a `VersionedSchema`, isolated from later changes.
///
/// Reading the text back verifies equal hashes. Enumerations become structures with the same elements: same columns,
/// same hashes, and every stored value stays readable.
public struct FrozenSchema: Sendable {
  /// The schema's name.
  public let name: String

  /// The declarations.
  public let text: String

  /// Declares a model's version.
  ///
  /// - Parameters:
  ///   - model: any model that SwiftData could have made.
  ///   - name: the schema's name.
  /// - Throws: `model-unwritable` if SwiftData cannot declare a part, or hashes differ.
  public init(_ model: ManagedObjectModel, name: String) throws(ModelError) {
    self.name = name
    var writer = SchemaWriter(model: model)
    text = try writer.write(name)
    let found = try Self.hashes(in: Array(text.utf8), schema: name)
    let wanted = model.versionHashes()
    let names = Set(wanted.keys).union(found.keys).inCodeUnitOrder()
    guard let other = names.first(where: { wanted[$0] != found[$0] }) else { return }
    throw Self.unwritable("entity \"\(printable(other))\" would get another hash", entity: other)
  }

  /// Returns a schema's hashes from source text.
  ///
  /// - Throws: `model-unknown-type` if missing, `model-unresolved-source` if incomplete.
  public static func hashes(in text: [UInt8], schema: String) throws(ModelError) -> [String: VersionHash] {
    try version(in: text, schema: schema).versionHashes
  }

  /// Returns a schema's version from source text.
  ///
  /// - Throws: `model-unknown-type` if missing, `model-unresolved-source` if incomplete.
  public static func version(in text: [UInt8], schema: String) throws(ModelError) -> ModelVersion {
    guard SwiftSources.isAvailable else {
      throw ModelError(.sourcesNotBuiltIn, detail: "this build of Lazaret does not read Swift sources")
    }
    let models = try SwiftSources.read(
      [(file: "\(schema).swift", text: text)], options: SwiftSources.Options(types: [schema]))
    return try models.bundle().current
  }

  static func unwritable(_ detail: String, entity: String? = nil, property: String? = nil) -> ModelError {
    var error = ModelError(
      .unwritable, operation: "declare the model in Swift", detail: detail,
      hint: "Write this part of the schema by hand.")
    error.entityName = entity
    error.propertyName = property
    return error
  }
}
