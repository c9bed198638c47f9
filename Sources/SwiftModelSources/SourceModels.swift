public import ManagedObjectModel
public import Platform
public import SystemPackage

/// The model versions declared in an app's Swift sources.
public struct SourceModels: Sendable {
  /// The file's or folder's name without extension.
  public var name: String

  /// The file or folder.
  public var path: FilePath?

  /// The versions, oldest first; the app's own list last.
  public var versions: [SourceVersion]

  /// The current version's name.
  public var currentName: String

  /// Whether a plan or distinct version identifiers establish the order.
  public var isOrdered: Bool

  /// The migration plan's stages in order.
  public var stages: [SourceStage]

  /// The unresolved and uncertain parts, in source order.
  public var findings: [SourceFinding]

  /// The place of the plan's list of schemas.
  public var planPlace: SourcePlace?

  var program = SourceProgram()

  /// Returns the versions as a bundle.
  ///
  /// - Parameter includingIncomplete: whether to include incomplete versions.
  /// - Throws: `model-unresolved-source`, with file and line, if the current version is incomplete.
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
    // Others are recognized, but never migrated through.
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
  /// Encodes the open questions and the plan's stages.
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
  /// Returns the place of a property, else its class, else the schema.
  ///
  /// - Parameters:
  ///   - version: the version's name.
  ///   - entity: nil for the version itself.
  ///   - property: may be a composite element's path, such as `address.street`.
  public func place(version: String, entity: String? = nil, property: String? = nil) -> SourcePlace? {
    guard let version = versions.first(where: { $0.name == version }) else { return nil }
    guard let entity, let declaration = declaration(of: entity, in: version) else { return version.place }
    let name = property?.split(separator: ".").first.map(String.init)
    return declaration.properties.first { $0.name == name && !$0.isStatic }?.place ?? declaration.place
  }

  /// Returns a uniqueness constraint's place: a property with `.unique`, else `#Unique`.
  ///
  /// - Parameter words: text with the properties' names.
  public func constraintPlace(version: String, entity: String, named words: String) -> SourcePlace? {
    guard let version = versions.first(where: { $0.name == version }),
      let declaration = declaration(of: entity, in: version)
    else { return nil }
    let names = Set(words.split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init))
    let property = declaration.properties.first { property in
      names.contains(property.name) && AttributeOptions(property.attribute("Attribute")?.arguments ?? []).isUnique
    }
    return property?.place ?? declaration.macros.first { $0.name == "Unique" }?.place
  }

  func declaration(of entity: String, in version: SourceVersion) -> SourceDeclaration? {
    guard let path = version.classNames[entity]?.split(separator: ".").map(String.init),
      let place = version.classes[entity]
    else { return nil }
    return program.declaration(path, at: place)
  }

  func schema(of version: SourceVersion) -> SourceDeclaration? {
    guard let path = version.schemaName?.split(separator: ".").map(String.init), let place = version.place else {
      return nil
    }
    return program.declaration(path, at: place)
  }

  func listed(by schema: SourceDeclaration) -> (classes: [SourceDeclaration], place: SourcePlace)? {
    guard let models = program.staticProperty("models", of: schema) else { return nil }
    let lists = ListedTypes(program: program)
    return ((lists.items(of: models, in: schema) ?? []).compactMap { lists.declaration($0) }, models.place)
  }
}

/// A version declared in sources.
public struct SourceVersion: Sendable {
  /// The version; incomplete entities lack their unresolved parts.
  public var version: ModelVersion

  /// The place of the schema or list of types.
  public var place: SourcePlace?

  /// The `VersionedSchema`'s full name; nil for the app's own list.
  public var schemaName: String?

  /// Whether a migration plan lists it.
  public var isPlanned: Bool

  /// The entities without a hash.
  public var incompleteEntities: Set<String>

  /// The place of each entity's class.
  public var classes: [String: SourcePlace]

  /// The full class name of each entity.
  public var classNames: [String: String]

  /// Whether all entities and the list of types are resolved.
  public var isComplete: Bool

  /// The name.
  public var name: String { version.name }
}

/// A stage of a migration plan.
public struct SourceStage: Sendable, Hashable {
  /// The source version.
  public var source: String

  /// The destination version.
  public var destination: String

  /// Whether it runs app code.
  public var isCustom: Bool

  /// The place of its declaration.
  public var place: SourcePlace
}
