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
    try file.finish()
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
    switch arguments[1] {
    case .constant(.string(let predicate)): return predicate == "TRUEPREDICATE" ? .all : .predicate(predicate)
    case .constant(.null): return .all
    case .constant, .selfObject, .variable, .keyPath, .keyPathOf, .function, .method, .aggregate, .conditional, .fetch,
      .opaque:
      return .expression(expression)
    }
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
