internal import ManagedObjectModel
internal import Platform
internal import SystemPackage

/// Reads a compiled mapping model, a keyed `.cdm` archive (format section 2.3).
struct CompiledMappingModelReader {
  private let path: FilePath
  private var propertyBudget = 0

  /// The user information entries left to read; mappings may share them.
  private var entryBudget = 0
  private var expressions = ArchivedPredicateReader(budget: 0)

  init(path: FilePath) { self.path = path }

  mutating func read(_ bytes: [UInt8]) throws -> MappingModelFile {
    let archive = try KeyedArchive(bytes)
    let root = archive.root
    guard root.classNames.contains("NSMappingModel") else {
      let found = root.className.map { "of class \(printable(String($0.prefix(80))))" } ?? "of no class"
      throw MappingModelFile.invalid(path, "the archive is \(found), not of a mapping model")
    }
    // Honest archives never share mappings.
    propertyBudget = min(2 * archive.objects.count, MappingModelFile.maximumPropertyMappings)
    entryBudget = 8 * archive.objects.count + 64
    expressions = ArchivedPredicateReader(budget: min(16 * archive.objects.count + 10_000, 2_000_000))
    let mappings =
      root.object("NSEntityMappings")?.elements ?? root.object("NSEntityMappingsByName")?.entries?.map(\.value) ?? []
    guard mappings.count <= min(archive.objects.count, MappingModelFile.maximumEntityMappings) else {
      throw MappingModelFile.invalid(path, "it has more than \(MappingModelFile.maximumEntityMappings) mappings")
    }
    var file = MappingModelFile(path: path, format: .compiled)
    for mapping in mappings { file.entityMappings.append(try entityMapping(mapping)) }
    try file.completeNames()
    return file
  }

  private mutating func entityMapping(_ object: ArchivedObject) throws -> MappingModelFile.EntityRecord {
    guard object.classNames.contains("NSEntityMapping") else {
      throw MappingModelFile.invalid(path, "one of its mappings is of another class")
    }
    var record = MappingModelFile.EntityRecord(name: object.string("NSMappingName") ?? "")
    record.sourceName = name(object, "NSSourceEntityName")
    record.destinationName = name(object, "NSDestinationEntityName")
    let entity = record.destinationName ?? record.sourceName
    record.sourceHash = try hash(object, "NSSourceEntityVersionHash", entity)
    record.destinationHash = try hash(object, "NSDestinationEntityVersionHash", entity)
    record.policyClassName = name(object, "NSEntityMigrationPolicyClassName")
    record.userInfo = Self.userInfo(object.object("NSUserInfo")?.entries ?? [], &entryBudget)
    let number = object.integer("NSMappingType") ?? 0
    guard let type = EntityMapping.Kind(rawValue: Int(clamping: number)) else {
      throw MappingModelFile.invalid(path, "a mapping is of the unknown type \(number)", entity: entity)
    }
    record.type = type
    if let source = object.object("NSSourceExpression") {
      record.filter = filter(expressions.expression(source).bounded)
    }
    record.attributes = try properties(object.object("NSAttributeMappings"), entity)
    record.relationships = try properties(object.object("NSRelationshipMappings"), entity)
    return record
  }

  private func name(_ object: ArchivedObject, _ key: String) -> String? {
    object.string(key).flatMap { $0.isEmpty ? nil : $0 }
  }

  private func hash(_ object: ArchivedObject, _ key: String, _ entity: String?) throws -> VersionHash? {
    let value = object[key]?.data ?? object.object(key).flatMap { $0.content.data ?? $0["NS.data"]?.data }
    guard let value else { return nil }
    guard let hash = VersionHash(bytes: value) else {
      throw MappingModelFile.invalid(path, "a version hash has not 32 bytes", entity: entity)
    }
    return hash
  }

  /// The predicate of Xcode's usual fetch, else the expression.
  private func filter(_ expression: ModelExpression) -> MappingModelFile.Filter {
    guard case .fetch(let request, _, false) = expression,
      case .method(.variable("manager"), "fetchRequestForSourceEntityNamed:predicateString:", let arguments) = request,
      arguments.count == 2
    else { return .expression(expression) }
    if arguments[1] == .constant(.null) { return .all }
    guard case .constant(.string(let predicate)) = arguments[1] else { return .expression(expression) }
    return predicate == "TRUEPREDICATE" ? .all : .predicate(predicate)
  }

  private mutating func properties(
    _ list: ArchivedObject?, _ entity: String?
  ) throws -> [MappingModelFile.PropertyRecord] {
    var result: [MappingModelFile.PropertyRecord] = []
    for object in list?.elements ?? [] {
      propertyBudget -= 1
      guard propertyBudget >= 0 else { throw MappingModelFile.invalid(path, "its mappings share their properties") }
      guard object.classNames.contains("NSPropertyMapping"), let name = object.string("NSDestinationPropertyName")
      else { throw MappingModelFile.invalid(path, "the mapping of a property is damaged", entity: entity) }
      let value: MappingModelFile.Value =
        object.object("NSValueExpression").map { .expression(expressions.expression($0).bounded) } ?? .nothing
      let transforms = object.object("NSPropertyTransforms")?.elements ?? []
      result.append(
        MappingModelFile.PropertyRecord(
          name: name, value: transforms.isEmpty ? value : .unreadable("a list of property transforms"),
          userInfo: Self.userInfo(object.object("NSUserInfo")?.entries ?? [], &entryBudget)))
    }
    return result
  }

  /// The entries with text or numbers; only the app can read others.
  static func userInfo(_ entries: [(key: String, value: ArchivedObject)], _ budget: inout Int) -> [String: String] {
    var result: [String: String] = [:]
    for (key, value) in entries {
      budget -= 1
      guard budget >= 0 else { break }
      if let text = value.string {
        result[key] = text
      } else if case .boolean(let flag) = value.content {
        result[key] = flag ? "1" : "0"
      } else if let number = value.content.integer {
        result[key] = String(number)
      } else if let number = value.content.real {
        result[key] = "\(number)"
      }
    }
    return result
  }
}

// MARK: Sources of mapping models

/// Reads `xcmapping.xml`, an XML store of Xcode's editor (format section 2.3).
///
/// Mappings deleted in the editor stay in the file without a mapping model; the compiler skips them too.
struct MappingModelSourceReader {
  private struct Object {
    let type: String
    var attributes: [String: XMLTree.Element] = [:]
    var relationships: [String: [String]] = [:]

    func text(_ name: String) -> String? { attributes[name].flatMap { $0.text.isEmpty ? nil : $0.text } }

    func flag(_ name: String) -> Bool? { attributes[name].map { ["1", "YES", "TRUE"].contains($0.text.uppercased()) } }
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
    try file.completeNames()
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
    for (key, type, list) in [
      ("attributemappings", "XDDEVATTRIBUTEMAPPING", \MappingModelFile.EntityRecord.attributes),
      ("relationshipmappings", "XDDEVRELATIONSHIPMAPPING", \.relationships),
    ] {
      for reference in object.relationships[key] ?? [] {
        guard let property = objects[reference], property.type == type, taken.insert(reference).inserted else {
          throw MappingModelFile.invalid(
            path, "it refers to the mapping of a property that it does not hold, or twice", entity: entity)
        }
        if let mapping = try propertyMapping(property, isRelationship: list == \.relationships) {
          record[keyPath: list].append(mapping)
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

// MARK: Bounds

extension ModelExpression {
  /// In parts and bytes of text.
  static let maximumSize = 65_536

  /// The expression, or a placeholder if too large.
  ///
  /// Archives can reuse parts and expand without limit.
  var bounded: ModelExpression {
    var budget = Self.maximumSize
    spend(&budget)
    return budget >= 0 ? self : .opaque(className: "expression that is too large")
  }

  fileprivate func spend(_ budget: inout Int) {
    budget -= 1
    guard budget >= 0 else { return }
    switch self {
    case .selfObject: break
    case .constant(.string(let text)), .constant(.decimal(let text)), .constant(.opaque(className: let text)),
      .variable(let text), .keyPath(let text), .opaque(className: let text):
      budget -= text.utf8.count
    case .constant: break
    case .keyPathOf(let base, let path):
      budget -= path.utf8.count
      base.spend(&budget)
    case .function(let selector, let arguments):
      budget -= selector.utf8.count
      for argument in arguments where budget >= 0 { argument.spend(&budget) }
    case .method(let target, let selector, let arguments):
      budget -= selector.utf8.count
      target.spend(&budget)
      for argument in arguments where budget >= 0 { argument.spend(&budget) }
    case .aggregate(let elements):
      for element in elements where budget >= 0 { element.spend(&budget) }
    case .conditional(let predicate, let first, let second):
      predicate.spend(&budget)
      first.spend(&budget)
      second.spend(&budget)
    case .fetch(let request, let context, _):
      request.spend(&budget)
      context.spend(&budget)
    }
  }
}

extension ModelPredicate {
  fileprivate func spend(_ budget: inout Int) {
    budget -= 1
    guard budget >= 0 else { return }
    switch self {
    case .always: break
    case .opaque(let className): budget -= className.utf8.count
    case .not(let part): part.spend(&budget)
    case .and(let parts), .or(let parts):
      for part in parts where budget >= 0 { part.spend(&budget) }
    case .comparison(let left, _, let right, _, _):
      left.spend(&budget)
      right.spend(&budget)
    }
  }
}
