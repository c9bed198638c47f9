public import ManagedObjectModel
public import Platform
public import SystemPackage

/// The versions of an app's model that its Swift sources declare.
public struct SourceModels: Sendable {
  /// The name: that of the file or folder, without extension.
  public var name: String

  /// The file or folder.
  public var path: FilePath?

  /// The versions, oldest first; the current one last where the app lists types of its own.
  public var versions: [SourceVersion]

  /// The name of the current version.
  public var currentName: String

  /// Whether a migration plan, or version identifiers that differ, tell the order of the versions.
  public var isOrdered: Bool

  /// The stages of the migration plan, in order.
  public var stages: [SourceStage]

  /// What could not be resolved, and what is not certain, in the order of the places.
  public var findings: [SourceFinding]

  /// Where the migration plan lists its schemas; nil without a plan.
  public var planPlace: SourcePlace?

  var program = SourceProgram()

  /// The versions as a bundle, as every other kind of model gives one.
  ///
  /// - Parameters:
  ///   - policy: what becomes of a version that is not complete; the current one must be complete in any case.
  ///   - includingIncomplete: whether incomplete versions are in the bundle as far as they are known, for showing them.
  /// - Throws: `model-unresolved-source`, with the file and line of what could not be resolved.
  public func bundle(includingIncomplete: Bool = false) throws(ModelError) -> ModelBundle {
    var unreadable: [ModelBundle.UnreadableVersion] = []
    var readable: [SourceVersion] = []
    for version in versions {
      if version.isComplete || includingIncomplete {
        var known = version
        if !version.isComplete { known.version = version.version.incomplete(version.incompleteEntities) }
        readable.append(known)
        continue
      }
      let error = error(of: version)
      guard version.name != currentName else { throw error }
      unreadable.append(ModelBundle.UnreadableVersion(name: version.name, error: error))
    }
    // What a plan leaves out is recognized, and nothing leads through it.
    let isPlanned = readable.contains(where: \.isPlanned)
    let ordered = isPlanned ? readable.filter { $0.isPlanned || $0.name == currentName } : readable
    let others = isPlanned ? readable.filter { !$0.isPlanned && $0.name != currentName } : []
    guard
      let bundle = ModelBundle(
        name: name, path: path, versions: ordered.map(\.version), isOrdered: isOrdered,
        unordered: others.map(\.version), unreadableVersions: unreadable)
    else { throw ModelError(.noVersions, path: path, detail: "no version of the sources can be read") }
    return bundle
  }

  private func error(of version: SourceVersion) -> ModelError {
    let own = findings.filter { $0.severity == .error && ($0.versionName ?? version.name) == version.name }
    guard let first = own.first else {
      return ModelError(.unresolvedSource, path: path, detail: "version \"\(printable(version.name))\" is not complete")
    }
    var error = ModelError(
      .unresolvedSource, path: first.place.map { FilePath($0.file) } ?? path,
      detail: """
        version "\(printable(version.name))": \(first.place.map { "line \($0.line): " } ?? "")\(printable(first.detail))\
        \(own.count > 1 ? " (and \(own.count - 1) more)" : "")
        """, hint: first.hint)
    error.versionName = version.name
    error.entityName = first.entityName
    error.propertyName = first.propertyName
    return error
  }
}

extension SourceModels: Encodable {
  /// Writes what the sources leave open, and the stages of their migration plan.
  public func encode(to encoder: any Encoder) throws {
    let stages = stages.map { stage -> JSON.Object in
      [
        "from": stage.source, "to": stage.destination, "custom": stage.isCustom,
        "file": PathText(FilePath(stage.place.file)), "line": stage.place.line,
      ]
    }
    try encoder.encode(["findings": findings, "stages": stages])
  }
}

extension SourceModels {
  /// Where something of a version is declared: the property, else the class, else the schema.
  ///
  /// - Parameters:
  ///   - version: the name of the version.
  ///   - entity: the entity; nil for the version itself.
  ///   - property: the property, or the path of an element of a composite, such as `address.street`.
  public func place(version: String, entity: String? = nil, property: String? = nil) -> SourcePlace? {
    guard let version = versions.first(where: { $0.name == version }) else { return nil }
    guard let entity, let declaration = declaration(of: entity, in: version) else { return version.place }
    let name = property?.split(separator: ".").first.map(String.init)
    return declaration.properties.first { $0.name == name && !$0.isStatic }?.place ?? declaration.place
  }

  /// Where a uniqueness constraint is declared: the property with `.unique` that the words name, else `#Unique`.
  ///
  /// - Parameter words: what is said of the constraint, with the names of its properties.
  public func constraintPlace(version: String, entity: String, named words: String) -> SourcePlace? {
    guard let version = versions.first(where: { $0.name == version }),
      let declaration = declaration(of: entity, in: version)
    else { return nil }
    let names = Set(words.split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init))
    let property = declaration.properties.first { property in
      names.contains(property.name)
        && AttributeOptions(property.attribute("Attribute")?.arguments ?? []).isUnique
    }
    return property?.place ?? declaration.macros.first { $0.name == "Unique" }?.place
  }

  /// The class of an entity.
  func declaration(of entity: String, in version: SourceVersion) -> SourceDeclaration? {
    guard let path = version.classNames[entity]?.split(separator: ".").map(String.init),
      let place = version.classes[entity]
    else { return nil }
    return program.declaration(path, at: place)
  }

  /// The schema that a version is.
  func schema(of version: SourceVersion) -> SourceDeclaration? {
    guard let path = version.schemaName?.split(separator: ".").map(String.init), let place = version.place else {
      return nil
    }
    return program.declaration(path, at: place)
  }

  /// The classes that a schema lists itself, and where.
  func listed(by schema: SourceDeclaration) -> (classes: [SourceDeclaration], place: SourcePlace)? {
    guard let models = program.staticProperty("models", of: schema) else { return nil }
    let lists = ListedTypes(program: program)
    let value = models.returned ?? models.initialValue
    let items = value.flatMap { lists.items($0, scopes: schema.scopes, file: models.place.file) } ?? []
    return (items.compactMap { lists.declaration($0) }, models.place)
  }
}

extension SourceProgram {
  /// The class that a property leads to; nil for an attribute.
  func destination(of property: SourceProperty, in declaration: SourceDeclaration) -> SourceDeclaration? {
    guard let type = property.type else { return nil }
    var resolved = resolve(type.unwrapped.type, scopes: declaration.scopes, file: declaration.place.file)
    for _ in 0..<32 {
      switch resolved {
      case .optional(let inner), .array(let inner, _), .set(let inner, _): resolved = inner
      case .model(let destination): return destination
      case .primitive, .system, .structure, .enumeration, .dictionary, .unknown: return nil
      }
    }
    return nil
  }

  /// The structures, and the enumerations without raw values, that are part of a property's hash.
  func hashedTypes(of property: SourceProperty, in declaration: SourceDeclaration) -> [SourceDeclaration] {
    var found: [SourceDeclaration] = []
    gather(property, in: declaration, depth: 0, into: &found)
    return found
  }

  private func gather(
    _ property: SourceProperty, in declaration: SourceDeclaration, depth: Int,
    into found: inout [SourceDeclaration]
  ) {
    guard depth < 16, found.count < 200 else { return }
    let inference = TypeInference(program: self, scopes: declaration.scopes, file: declaration.place.file)
    guard let type = property.type ?? property.initialValue.flatMap({ inference.type(of: $0) }) else { return }
    var resolved = resolve(type.unwrapped.type, scopes: declaration.scopes, file: declaration.place.file)
    while case .optional(let inner) = resolved { resolved = inner }
    switch resolved {
    case .enumeration(let inner) where !AttributeReader(program: self).hasRawValues(inner):
      if !found.contains(where: { $0.path == inner.path }) { found.append(inner) }
    case .structure(let inner):
      guard !found.contains(where: { $0.path == inner.path }) else { return }
      found.append(inner)
      for element in inner.properties where !element.isComputed && !element.isStatic {
        gather(element, in: inner, depth: depth + 1, into: &found)
      }
    // Collections are one Binary attribute, whatever is in them.
    case .primitive, .system, .model, .enumeration, .array, .set, .dictionary, .optional, .unknown: break
    }
  }
}

/// One version of a model that sources declare.
public struct SourceVersion: Sendable {
  /// The version; entities that are not complete lack what could not be resolved.
  public var version: ModelVersion

  /// Where the schema, or the list of types, stands.
  public var place: SourcePlace?

  /// The whole name of its `VersionedSchema`; nil for the types that the app itself lists.
  public var schemaName: String?

  /// Whether a migration plan lists it.
  public var isPlanned: Bool

  /// The names of entities whose hash cannot be told.
  public var incompleteEntities: Set<String>

  /// Where the class of each entity is declared.
  public var classes: [String: SourcePlace]

  /// The whole name of the class of each entity.
  public var classNames: [String: String]

  /// Whether every entity is complete, and the list of types could be followed.
  public var isComplete: Bool

  /// The name.
  public var name: String { version.name }
}

/// A stage of a migration plan.
public struct SourceStage: Sendable, Hashable {
  /// The version it leads from.
  public var source: String

  /// The version it leads to.
  public var destination: String

  /// Whether it runs code of the app.
  public var isCustom: Bool

  /// Where it is declared.
  public var place: SourcePlace
}

/// The options that `@Attribute` gives a property.
struct AttributeOptions {
  private(set) var isUnique = false
  private(set) var isExternal = false
  private(set) var isPreserved = false
  private(set) var isEphemeral = false
  private(set) var isIndexedBySpotlight = false
  private(set) var allowsCloudEncryption = false

  /// The transformer of a transformable attribute, by the name of its type.
  private(set) var transformer: String?

  /// Options that are not known.
  private(set) var unknown: [String] = []

  /// The options among the arguments of `@Attribute`.
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
    case .string, .integer, .real, .boolean, .null, .dictionary, .metatype, .keyPath, .call, .member, .type, .cast,
      .operators, .other:
      unknown.append("that is no plain name")
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
    case nil, .string?, .integer?, .real?, .boolean?, .null?, .array?, .dictionary?, .path?, .implicitMember?,
      .keyPath?, .call?, .member?, .type?, .cast?, .operators?, .other?:
      transformer = "NSSecureUnarchiveFromData"
    }
  }
}

/// Follows the lists of types that schemas, containers and plans are given.
struct ListedTypes {
  /// A type of a list, and where it is named.
  struct Item {
    var type: TypeReference
    var scopes: [[String]]
    var file: String
  }

  let program: SourceProgram

  /// The types of a list; nil where only a compiler could follow it.
  func items(_ value: SourceExpression, scopes: [[String]], file: String, depth: Int = 0) -> [Item]? {
    guard depth < 16 else { return nil }
    switch value {
    case .metatype(let type): return [Item(type: type, scopes: scopes, file: file)]
    case .array(let elements):
      let all = elements.map { items($0, scopes: scopes, file: file, depth: depth + 1) }
      return all.contains { $0 == nil } ? nil : all.flatMap { $0 ?? [] }
    case .operators(let operands, let operators) where operators.allSatisfy({ $0 == "+" }):
      let all = operands.map { items($0, scopes: scopes, file: file, depth: depth + 1) }
      return all.contains { $0 == nil } ? nil : all.flatMap { $0 ?? [] }
    case .cast: return nil
    case .path(let names): return variable(names, scopes: scopes, file: file, depth: depth)
    case .string, .integer, .real, .boolean, .null, .dictionary, .implicitMember, .keyPath, .call, .member, .type,
      .operators, .other:
      return nil
    }
  }

  private func variable(_ names: [String], scopes: [[String]], file: String, depth: Int) -> [Item]? {
    guard let last = names.last else { return nil }
    var owner = Array(names.dropLast())
    if owner == ["Self"] || owner == ["self"] { owner = [] }
    if owner.isEmpty {
      for scope in scopes {
        guard case .found(let type) = program.find(scope, scopes: [], file: file) else { continue }
        if let property = program.staticProperty(last, of: type) {
          return items(of: property, in: type, depth)
        }
      }
      return program.list(last, file: file).flatMap { items($0, scopes: scopes, file: file, depth: depth + 1) }
    }
    guard let type = program.follow(program.find(owner, scopes: scopes, file: file)).declaration,
      let property = program.staticProperty(last, of: type)
    else { return nil }
    return items(of: property, in: type, depth)
  }

  private func items(of property: SourceProperty, in type: SourceDeclaration, _ depth: Int) -> [Item]? {
    (property.returned ?? property.initialValue).flatMap {
      items($0, scopes: type.scopes, file: property.place.file, depth: depth + 1)
    }
  }

  /// The declaration that an item names, aliases followed.
  func declaration(_ item: Item) -> SourceDeclaration? {
    item.type.names.flatMap { program.follow(program.find($0, scopes: item.scopes, file: item.file)).declaration }
  }
}
