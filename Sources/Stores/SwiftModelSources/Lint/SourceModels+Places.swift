internal import ManagedObjectModel

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
