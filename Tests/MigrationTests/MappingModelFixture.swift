import Foundation
import ManagedObjectModel
import Migration
import Platform
import SystemPackage
import TestSupport

/// A mapping model of Core Data's that a test writes, as a source and compiled.
struct MappingModelFixture {
  struct Property {
    var name: String
    /// In expression format; nil where nothing is said.
    var expression: String?
    var mapping: String?
    var keyPath: String?
    var userInfo: [String: String] = [:]
    /// Whether Xcode's compiler would be told not to make an expression.
    var isEmpty = false
  }

  struct Mapping {
    var name: String?
    var source: String?
    var destination: String?
    var filter: String?
    var policy: String?
    var attributes: [Property] = []
    var relationships: [Property] = []
    var userInfo: [String: String] = [:]
  }

  struct NoExpression: Error { var text: String }

  var source: ManagedObjectModel
  var destination: ManagedObjectModel
  var mappings: [Mapping]
  var sourcePath = "App.xcdatamodeld/V1.xcdatamodel"
  var destinationPath = "App.xcdatamodeld/V2.xcdatamodel"
  var embedsModels = true

  init(_ source: ManagedObjectModel, _ destination: ManagedObjectModel, _ mappings: Mapping...) {
    self.source = source
    self.destination = destination
    self.mappings = mappings
  }

  static func expression(_ text: String) throws -> ModelExpression {
    guard let expression = FormatParser.expression(text) else { throw NoExpression(text: text) }
    return expression
  }

  // MARK: Compiled

  /// The bytes of a `.cdm`.
  func compiled() throws -> [UInt8] {
    var archive = KeyedArchiveWriter()
    let (before, after) = (source.versionHashes(), destination.versionHashes())
    var list: [KeyedArchiveWriter.Reference] = []
    for mapping in mappings {
      let name = mapping.name ?? [mapping.source, mapping.destination].compactMap { $0 }.joined(separator: "To")
      var fields: [String: PropertyList] = ["NSMappingType": .integer(mapping.source == nil ? 2 : 4)]
      fields["NSMappingName"] = archive.string(name).value
      fields["NSSourceEntityName"] = archive.string(mapping.source).value
      fields["NSDestinationEntityName"] = archive.string(mapping.destination).value
      fields["NSEntityMigrationPolicyClassName"] = archive.string(mapping.policy).value
      if let hash = mapping.source.flatMap({ before[$0] }) {
        fields["NSSourceEntityVersionHash"] = archive.value(.data(hash.bytes)).value
      }
      if let hash = mapping.destination.flatMap({ after[$0] }) {
        fields["NSDestinationEntityVersionHash"] = archive.value(.data(hash.bytes)).value
      }
      if let source = mapping.source {
        let fetch = ModelExpression.fetch(
          request: .method(
            .variable("manager"), "fetchRequestForSourceEntityNamed:predicateString:",
            [.constant(.string(source)), .constant(.string(mapping.filter ?? "TRUEPREDICATE"))]),
          context: .keyPathOf(.variable("manager"), "sourceContext"), isCountOnly: false)
        fields["NSSourceExpression"] = ArchivedPredicateWriter.add(fetch, to: &archive).value
      }
      let attributes = try properties(mapping.attributes, &archive)
      let relationships = try properties(mapping.relationships, &archive)
      fields["NSAttributeMappings"] = archive.array(attributes).value
      fields["NSRelationshipMappings"] = archive.array(relationships).value
      fields["NSUserInfo"] = userInfo(mapping.userInfo, &archive).value
      list.append(archive.add(classes: ["NSEntityMapping", "NSObject"], fields))
    }
    let mappings = archive.array(list)
    let root = archive.add(classes: ["NSMappingModel", "NSObject"], ["NSEntityMappings": mappings.value])
    return try archive.bytes(root: root)
  }

  private func userInfo(_ entries: [String: String], _ archive: inout KeyedArchiveWriter)
    -> KeyedArchiveWriter.Reference
  {
    guard !entries.isEmpty else { return .null }
    let pairs = entries.sorted { $0.key < $1.key }.map { ($0.key, archive.string($0.value)) }
    return archive.dictionary(pairs)
  }

  private func properties(
    _ list: [Property], _ archive: inout KeyedArchiveWriter
  ) throws -> [KeyedArchiveWriter.Reference] {
    var result: [KeyedArchiveWriter.Reference] = []
    for property in list {
      let expression = try property.expression.map { try Self.expression($0) }
      let value = expression.map { ArchivedPredicateWriter.add($0, to: &archive) } ?? .null
      result.append(
        archive.add(
          classes: ["NSPropertyMapping", "NSObject"],
          [
            "NSDestinationPropertyName": archive.string(property.name).value, "NSValueExpression": value.value,
            "NSUserInfo": userInfo(property.userInfo, &archive).value,
          ]))
    }
    return result
  }

  // MARK: Source

  /// The text of an `xcmapping.xml`.
  func xml() throws -> String {
    var objects = ""
    var next = 100
    func id() -> String {
      next += 1
      return "z\(next)"
    }
    let model = id()
    var entities: [String] = []
    for (number, mapping) in mappings.enumerated() {
      let entity = id()
      entities.append(entity)
      var references: [[String]] = [[], []]
      for (kind, list) in [mapping.attributes, mapping.relationships].enumerated() {
        for property in list {
          let identifier = id()
          references[kind].append(identifier)
          var text = Self.attribute("name", property.name)
          if let expression = property.expression {
            var archive = KeyedArchiveWriter()
            let root = ArchivedPredicateWriter.add(try Self.expression(expression), to: &archive)
            text += Self.data("valueexpressiondata", try archive.bytes(root: root))
          }
          if let name = property.mapping { text += Self.attribute("sourcemappingname", name) }
          if let path = property.keyPath { text += Self.attribute("sourcekeypath", path) }
          if property.isEmpty || kind == 1 {
            text += Self.attribute("autogenerateexpression", property.isEmpty ? "0" : "1", "bool")
          }
          text += try Self.data(userInfo: property.userInfo)
          text += Self.relationship("entitymapping", [entity])
          objects += Self.object(kind == 0 ? "XDDEVATTRIBUTEMAPPING" : "XDDEVRELATIONSHIPMAPPING", identifier, text)
        }
      }
      var text = ""
      if let name = mapping.name { text += Self.attribute("name", name) }
      if let name = mapping.source { text += Self.attribute("sourcename", name) }
      if let name = mapping.destination { text += Self.attribute("destinationname", name) }
      if let filter = mapping.filter { text += Self.attribute("sourcefilterpredicatestring", filter) }
      if let policy = mapping.policy { text += Self.attribute("migrationpolicyclassname", policy) }
      text += Self.attribute("mappingtypename", "Undefined") + Self.attribute("mappingnumber", "\(number + 1)", "int16")
      text += try Self.data(userInfo: mapping.userInfo)
      text += Self.relationship("attributemappings", references[0])
      text += Self.relationship("relationshipmappings", references[1])
      objects += Self.object("XDDEVENTITYMAPPING", entity, text)
    }
    var text = Self.attribute("sourcemodelpath", sourcePath) + Self.attribute("destinationmodelpath", destinationPath)
    if embedsModels {
      text += Self.data("sourcemodeldata", try EditorModelFixture.bytes(of: source))
      text += Self.data("destinationmodeldata", try EditorModelFixture.bytes(of: destination))
    }
    objects += Self.object("XDDEVMAPPINGMODEL", model, text + Self.relationship("entitymappings", entities))
    return """
      <?xml version="1.0" standalone="yes"?>
      <!DOCTYPE database SYSTEM "file:///System/Library/DTDs/CoreData.dtd">

      <database>
      <databaseInfo><version>134481920</version><nextObjectID>\(next + 1)</nextObjectID></databaseInfo>
      \(objects)</database>
      """
  }

  private static func object(_ type: String, _ id: String, _ text: String) -> String {
    "<object type=\"\(type)\" id=\"\(id)\">\n\(text)</object>\n"
  }

  private static func attribute(_ name: String, _ value: String, _ type: String = "string") -> String {
    let escaped = value.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
    return "<attribute name=\"\(name)\" type=\"\(type)\">\(escaped)</attribute>\n"
  }

  private static func data(_ name: String, _ bytes: [UInt8]) -> String {
    let text = Data(bytes).base64EncodedString(options: [.lineLength76Characters, .endLineWithLineFeed])
    return "<attribute name=\"\(name)\" type=\"binary\">\(text)\n</attribute>\n"
  }

  private static func data(userInfo: [String: String]) throws -> String {
    guard !userInfo.isEmpty else { return "" }
    var archive = KeyedArchiveWriter()
    let pairs = userInfo.sorted { $0.key < $1.key }.map { ($0.key, archive.string($0.value)) }
    let root = archive.dictionary(pairs)
    return data("userinfodata", try archive.bytes(root: root))
  }

  private static func relationship(_ name: String, _ references: [String]) -> String {
    "<relationship name=\"\(name)\" type=\"0/0\" destination=\"X\" idrefs=\"\(references.joined(separator: " "))\"></relationship>\n"
  }

  // MARK: Loading

  /// Writes the compiled form and loads it.
  func loadCompiled(for bundle: ModelBundle) throws -> MappingModel {
    let folder = try TemporaryFolder()
    let path = try folder.write(try compiled(), to: "Mapping.cdm")
    return try one(MappingModel.load(path: path, for: bundle))
  }

  /// Writes the source and loads it.
  func loadSource(for bundle: ModelBundle) throws -> MappingModel { try one(loading(for: bundle)) }

  /// The same with notes.
  func loading(for bundle: ModelBundle) throws -> LoadedMappingModels {
    let folder = try TemporaryFolder()
    try folder.write(try xml(), to: "Mapping.xcmappingmodel/xcmapping.xml")
    return try MappingModel.load(path: folder.appending("Mapping.xcmappingmodel"), for: bundle)
  }

  private func one(_ loaded: LoadedMappingModels) throws -> MappingModel {
    struct NotOne: Error {}
    guard loaded.mappings.count == 1, loaded.notes.isEmpty, let mapping = loaded.mappings.first else { throw NotOne() }
    return mapping
  }
}

/// A model in the form of Xcode's editor, as mapping models embed it.
enum EditorModelFixture {
  static func bytes(of model: ManagedObjectModel, extraSetting: (String, PropertyList)? = nil) throws -> [UInt8] {
    var archive = KeyedArchiveWriter()
    var entities: [String: KeyedArchiveWriter.Reference] = [:]
    var properties: [[String]: KeyedArchiveWriter.Reference] = [:]
    let names = model.entities.keys.sorted()
    for name in names {
      entities[name] = archive.reserve()
      for property in model.entities[name]?.properties.keys.sorted() ?? [] {
        properties[[name, property]] = archive.reserve()
      }
    }
    for name in names {
      guard let entity = model.entities[name], let place = entities[name] else { continue }
      var own: [(String, KeyedArchiveWriter.Reference)] = []
      for property in entity.properties.values.sorted(by: { $0.name < $1.name }) {
        guard let reference = properties[[name, property.name]] else { continue }
        own.append((property.name, reference))
        define(property, reference, model, place, entities, properties, &archive, extraSetting)
      }
      let constraints = entity.uniquenessConstraints.map { list in
        archive.array(list.map { archive.string($0) }, isMutable: true)
      }
      let settings = stereotype(
        "XD_PStereotype",
        [
          ("XD_PSK_isAbstract", archive.value(.boolean(entity.isAbstract))),
          ("XD_PSK_elementID", archive.string(entity.explicitRenamingIdentifier)),
          ("XD_PSK_versionHashModifier", archive.string(entity.versionHashModifier)),
          ("XDPMUniquenessConstraints", archive.array(constraints, isMutable: true)),
        ], &archive)
      let stereotypes = archive.dictionary([settings], isMutable: true)
      let storage = archive.dictionary(own, isMutable: true)
      var parents: [KeyedArchiveWriter.Reference] = []
      if let parent = entity.parentName.flatMap({ entities[$0] }) {
        parents.append(
          archive.add(
            classes: ["XDUMLGeneralizationImp", "NSObject"], ["_general": parent.value, "_specific": place.value]))
      }
      let generalizations = archive.array(parents, isMutable: true)
      archive.define(
        place, classes: ["XDPMEntity", "NSObject"],
        [
          "_name": archive.string(name).value, "XDBucketForOwnedAttributesstorage": storage.value,
          "XDBucketForStereotypesstorage": stereotypes.value,
          "XDBucketForGeneralizationsstorage": generalizations.value,
        ])
    }
    let classes = archive.dictionary(names.compactMap { name in entities[name].map { (name, $0) } }, isMutable: true)
    let package = archive.add(
      classes: ["XDModelPackage", "NSObject"], ["XDBucketForClassesstorage": classes.value])
    let root = archive.add(classes: ["XDPMModel", "XDModel", "NSObject"], ["_xd_rootPackage": package.value])
    return try archive.bytes(root: root)
  }

  private static func define(
    _ property: Property, _ place: KeyedArchiveWriter.Reference, _ model: ManagedObjectModel,
    _ owner: KeyedArchiveWriter.Reference, _ entities: [String: KeyedArchiveWriter.Reference],
    _ properties: [[String]: KeyedArchiveWriter.Reference], _ archive: inout KeyedArchiveWriter,
    _ extraSetting: (String, PropertyList)?
  ) {
    let traits = property.traits
    var common: [(String, KeyedArchiveWriter.Reference)] = [
      ("XD_PPSK_isOptional", archive.value(.boolean(traits.isOptional))),
      ("XD_PPSK_isTransient", archive.value(.boolean(traits.isTransient))),
      ("XD_PPSK_elementID", archive.string(traits.explicitRenamingIdentifier)),
      ("XD_PPSK_versionHashModifier", archive.string(traits.versionHashModifier)),
    ]
    if let extraSetting { common.append((extraSetting.0, archive.value(extraSetting.1))) }
    var stereotypes = [stereotype("XD_PPropStereotype", common, &archive)]
    var className = "XDPMAttribute"
    switch property {
    case .attribute(let attribute):
      stereotypes.append(
        stereotype(
          "XD_PAtt_Stereotype",
          [
            ("XD_PAttK_attributeType", archive.value(.integer(Int64(attribute.type.rawValue)))),
            (
              "XD_PAttK_allowsExternalBinaryDataStorage",
              archive.value(.boolean(attribute.allowsExternalBinaryDataStorage))
            ),
          ], &archive))
    case .relationship(let relationship):
      className = "XDPMRelationship"
      let holder = relationship.inverseEntityName ?? relationship.destinationEntityName
      let inverse = relationship.inverseName.flatMap { properties[[holder, $0]] }
      stereotypes.append(
        stereotype(
          "XD_PR_Stereotype",
          [
            ("XD_PRK_destination", entities[relationship.destinationEntityName] ?? .null),
            ("XD_PRK_inverseRelationship", inverse ?? .null),
            ("XD_PRK_isToMany", archive.value(.boolean(relationship.isToMany))),
            ("XD_PRK_maxCount", archive.value(.integer(Int64(relationship.maximumCount)))),
            ("XD_PRK_minCount", archive.value(.integer(Int64(relationship.minimumCount)))),
            ("XD_PRK_ordered", archive.value(.boolean(relationship.isOrdered))),
          ], &archive))
    case .fetchedProperty: className = "XDPMFetchedProperty"
    }
    let bucket = archive.dictionary(stereotypes, isMutable: true)
    archive.define(
      place, classes: [className, "NSObject"],
      [
        "_name": archive.string(property.name).value, "_owner": owner.value,
        "XDBucketForStereotypesstorage": bucket.value,
      ])
  }

  private static func stereotype(
    _ name: String, _ settings: [(String, KeyedArchiveWriter.Reference)], _ archive: inout KeyedArchiveWriter
  ) -> (String, KeyedArchiveWriter.Reference) {
    var entries: [(String, KeyedArchiveWriter.Reference)] = []
    for (key, value) in settings {
      let setting = archive.add(
        classes: ["XDUMLPropertyImp", "NSObject"], ["_name": archive.string(key).value, "_default": value.value])
      entries.append((key, setting))
    }
    let storage = archive.dictionary(entries, isMutable: true)
    let object = archive.add(
      classes: ["XDUMLStereotypeImp", "NSObject"],
      ["_name": archive.string(name).value, "XDBucketForOwnedAttributesstorage": storage.value])
    return (name, object)
  }
}
