internal import ManagedObjectModel
internal import Platform
internal import SystemPackage

/// Reads `xcmapping.xml`, an XML store of Xcode's editor (format section 2.3).
///
/// Mappings deleted in the editor stay in the file without a mapping model; the compiler skips them too.
struct MappingModelSourceReader {
  private struct Object {
    let type: String
    var attributes: [String: XMLTree.Element] = [:]
    var relationships: [String: [String]] = [:]

    func text(_ name: String) -> String? { attributes[name].flatMap { $0.text.isEmpty ? nil : $0.text } }

    func flag(_ name: String) -> Bool? {
      attributes[name].map { ["1", "YES", "TRUE"].contains($0.text.uppercased()) }
    }
  }

  private let path: FilePath
  private var objects: [String: Object] = [:]

  /// The properties already claimed; each belongs to one mapping.
  private var taken: Set<String> = []
  private var expressions = ArchivedPredicateReader(budget: 1_000_000)

  init(path: FilePath) { self.path = path }

  mutating func read(_ bytes: [UInt8]) throws -> MappingModelFile {
    let root = try XMLTree(bytes, allowing: .coreDataStore).root
    guard root.name == "database" else {
      throw MappingModelFile.invalid(
        path, "its outermost element is <\(printable(String(root.name.prefix(60))))>, not <database>")
    }
    try collect(root)
    let models = objects.values.filter { $0.type == "XDDEVMAPPINGMODEL" }
    guard models.count == 1, let model = models.first else {
      throw MappingModelFile.invalid(path, "it holds \(models.count == 0 ? "no" : "more than one") mapping model")
    }
    var file = MappingModelFile(path: path, format: .source)
    file.source = side(model, "source")
    file.destination = side(model, "destination")
    let references = model.relationships["entitymappings"] ?? []
    guard references.count <= MappingModelFile.maximumEntityMappings else {
      throw MappingModelFile.invalid(path, "it has more than \(MappingModelFile.maximumEntityMappings) mappings")
    }
    var numbered: [(number: Int, record: MappingModelFile.EntityRecord)] = []
    var seen: Set<String> = []
    for reference in references {
      guard let object = objects[reference], object.type == "XDDEVENTITYMAPPING", seen.insert(reference).inserted else {
        throw MappingModelFile.invalid(path, "it refers to a mapping that it does not hold")
      }
      numbered.append((object.text("mappingnumber").flatMap { Int($0) } ?? 0, try entityMapping(object)))
    }
    file.entityMappings = numbered.ordered { $0.number < $1.number }.map(\.record)
    try file.finish()
    return file
  }

  private mutating func collect(_ root: XMLTree.Element) throws {
    for element in root.children where element.name == "object" {
      guard let identifier = element["id"], let type = element["type"] else { continue }
      var object = Object(type: type.uppercased())
      for child in element.children {
        guard let name = child["name"]?.lowercased() else { continue }
        switch child.name {
        case "attribute": object.attributes[name] = child
        case "relationship":
          object.relationships[name] = (child["idrefs"] ?? "").split(separator: " ").map(String.init)
        default: continue
        }
      }
      guard objects.updateValue(object, forKey: identifier) == nil else {
        throw MappingModelFile.invalid(path, "it holds two objects with the same identifier")
      }
    }
  }

  /// One of the two models; an unreadable embedded one is skipped in favor of its name.
  private func side(_ model: Object, _ word: String) -> MappingModelFile.Side {
    var side = MappingModelFile.Side(modelPath: model.text("\(word)modelpath"))
    if let bytes = model.attributes["\(word)modeldata"]?.base64Data {
      // The path has the same facts, so nothing is lost.
      side.model = try? EditorModel(bytes)
    }
    return side
  }

  // MARK: Mappings

  private mutating func entityMapping(_ object: Object) throws -> MappingModelFile.EntityRecord {
    var record = MappingModelFile.EntityRecord(name: object.text("name") ?? "")
    record.sourceName = object.text("sourcename")
    record.destinationName = object.text("destinationname")
    record.policyClassName = object.text("migrationpolicyclassname")
    record.userInfo = try userInfo(object)
    let entity = record.destinationName ?? record.sourceName
    if let data = object.attributes["sourceexpressiondata"], let expression = expression(data) {
      record.filter = .expression(expression)
    } else if let predicate = object.text("sourcefilterpredicatestring") {
      record.filter = .predicate(predicate)
    }
    for (key, type) in [
      ("attributemappings", "XDDEVATTRIBUTEMAPPING"), ("relationshipmappings", "XDDEVRELATIONSHIPMAPPING"),
    ] {
      for reference in object.relationships[key] ?? [] {
        guard let property = objects[reference], property.type == type, taken.insert(reference).inserted else {
          throw MappingModelFile.invalid(
            path, "it refers to the mapping of a property that it does not hold, or twice", entity: entity)
        }
        guard let mapping = try propertyMapping(property, isRelationship: type != "XDDEVATTRIBUTEMAPPING") else {
          continue
        }
        if type == "XDDEVATTRIBUTEMAPPING" {
          record.attributes.append(mapping)
        } else {
          record.relationships.append(mapping)
        }
      }
    }
    return record
  }

  /// An archived expression beats the generated flag, as in the compiler.
  private mutating func propertyMapping(
    _ object: Object, isRelationship: Bool
  ) throws -> MappingModelFile.PropertyRecord? {
    guard let name = object.text("name") else { return nil }
    var value = MappingModelFile.Value.generated
    if let data = object.attributes["valueexpressiondata"], !data.text.isEmpty {
      value = expression(data).map { .expression($0) } ?? .unreadable("an archived expression that cannot be read")
    } else if let mapping = object.text("sourcemappingname") {
      value = .through(mapping: mapping, keyPath: object.text("sourcekeypath"))
    } else if let keyPath = object.text("sourcekeypath"), isRelationship {
      value = .through(mapping: nil, keyPath: keyPath)
    } else if object.flag("autogenerateexpression") == false {
      value = .nothing
    }
    return MappingModelFile.PropertyRecord(name: name, value: value, userInfo: try userInfo(object))
  }

  private mutating func expression(_ element: XMLTree.Element) -> ModelExpression? {
    guard let bytes = element.base64Data else { return nil }
    // Report damage at the property of the expression.
    guard let archive = try? KeyedArchive(bytes) else { return nil }
    return expressions.expression(archive.root).bounded
  }

  private mutating func userInfo(_ object: Object) throws -> [String: String] {
    guard let bytes = object.attributes["userinfodata"]?.base64Data else { return [:] }
    let entries = try KeyedArchive(bytes).root.entries ?? []
    var budget = bytes.count
    return CompiledMappingModelReader.userInfo(entries, &budget)
  }
}
