/// The declarations of all files, with name lookup.
struct SourceProgram: Sendable {
  enum Lookup {
    case found(SourceDeclaration)

    case ambiguous([SourceDeclaration])
    case missing
  }

  private var declared: [[String]: [SourceDeclaration]] = [:]

  private var extensions: [[String]: [SourceDeclaration]] = [:]

  /// Paths by last name.
  private var byLastName: [String: [[String]]] = [:]

  private(set) var roots: [SourceRoots] = []

  private var lists: [String: [String: SourceExpression]] = [:]

  private(set) var findings: [SourceFinding] = []

  init() {}

  mutating func add(_ source: ParsedSource, file: String) {
    for declaration in source.declarations {
      if declaration.kind == .extension {
        extensions[declaration.path, default: []].append(declaration)
      } else {
        if declared[declaration.path] == nil { byLastName[declaration.name, default: []].append(declaration.path) }
        declared[declaration.path, default: []].append(declaration)
      }
    }
    roots += source.roots
    lists[file] = source.lists
    findings += source.findings
  }

  /// In path order.
  var declarations: [SourceDeclaration] {
    declared.values.joined().sorted {
      ($0.path.joined(separator: "."), $0.place) < ($1.path.joined(separator: "."), $1.place)
    }
  }

  func declaration(_ path: [String], at place: SourcePlace) -> SourceDeclaration? {
    declared[path]?.first { $0.place == place }
  }

  func list(_ name: String, file: String) -> SourceExpression? { lists[file]?[name] }

  /// Looks up names in context.
  ///
  /// Like Swift, searches enclosing types, nearest first, then the top level; drops a leading module name.
  func find(_ names: [String], scopes: [[String]], file: String) -> Lookup {
    guard let first = names.first else { return .missing }
    for scope in scopes + [[]] {
      // The first name decides, as in Swift.
      let path = scope + [first]
      if declared[path] != nil {
        let found = members(names.dropFirst(), of: choice(path, file: file), file: file, depth: 0)
        if case .missing = found, names.count > 1 { continue }
        return found
      }
      // Another module's type, only extended here.
      if names.count > 1, declared[scope + names] != nil { return choice(scope + names, file: file) }
    }
    // Extensions of nested types see enclosing types only by Swift's older rules; a module may come first.
    for scope in scopes {
      for length in stride(from: scope.count - 1, to: 0, by: -1) {
        let path = Array(scope.prefix(length)) + names
        if declared[path] != nil { return choice(path, file: file) }
      }
    }
    if names.count > 1, declared[[first]] == nil, PrimitiveTypes.systems[names.joined(separator: ".")] == nil {
      return find(Array(names.dropFirst()), scopes: [], file: file)
    }
    return .missing
  }

  func isDeclared(_ name: String) -> Bool { declared[[name]] != nil }

  private func members(_ names: ArraySlice<String>, of found: Lookup, file: String, depth: Int) -> Lookup {
    guard !names.isEmpty else { return found }
    if case .ambiguous(let all) = found, let path = all.first?.path, let next = names.first {
      // Perhaps only one of several namespaces has the member.
      guard declared[path + [next]] != nil else { return found }
      return members(names.dropFirst(), of: choice(path + [next], file: file), file: file, depth: depth + 1)
    }
    guard case .found(let declaration) = found, depth < 32 else { return found }
    if case .alias(let target) = declaration.kind {
      guard let inner = target.unwrapped.type.names else { return .missing }
      let resolved = find(inner, scopes: declaration.scopes, file: declaration.place.file)
      return members(names, of: resolved, file: file, depth: depth + 1)
    }
    let path = declaration.path + [names[names.startIndex]]
    guard declared[path] != nil else { return .missing }
    return members(names.dropFirst(), of: choice(path, file: file), file: file, depth: depth + 1)
  }

  private func choice(_ path: [String], file: String) -> Lookup {
    let all = declared[path] ?? []
    let own = all.filter { $0.place.file == file }
    let visible = own.isEmpty ? all.filter { !$0.isFilePrivate } : own
    if visible.count > 1 {
      let certain = visible.filter { $0.undecidedCondition == nil }
      if certain.count == 1 { return .found(certain[0]) }
    }
    guard let first = visible.first else { return .missing }
    // The same source in several targets.
    return visible.allSatisfy { $0.shape == first.shape } ? .found(first) : .ambiguous(visible)
  }

  /// Accepts a whole path, or the end of exactly one.
  func find(named name: String) -> Lookup {
    let names = name.split(separator: ".").map(String.init)
    if declared[names] != nil { return choice(names, file: "") }
    let paths = (byLastName[names.last ?? ""] ?? []).filter { $0.suffix(names.count) == names[...] }
    guard paths.count != 1 else { return choice(paths[0], file: "") }
    let all = paths.flatMap { declared[$0] ?? [] }
    return all.isEmpty ? .missing : .ambiguous(all)
  }

  /// Follows aliases.
  func follow(_ found: Lookup) -> (declaration: SourceDeclaration?, target: TypeReference?) {
    var found = found
    for _ in 0..<32 {
      guard case .found(let declaration) = found else { return (nil, nil) }
      guard case .alias(let target) = declaration.kind else { return (declaration, nil) }
      guard declaration.genericParameters.isEmpty else { return (nil, target) }
      guard let names = target.names else { return (nil, target) }
      let next = find(names, scopes: declaration.scopes, file: declaration.place.file)
      if case .missing = next { return (nil, target) }
      found = next
    }
    return (nil, nil)
  }

  func extensions(of declaration: SourceDeclaration) -> [SourceDeclaration] {
    var all = extensions[declaration.path] ?? []
    if declaration.path.count > 1 {
      // Only whole paths are certain, since extensions may use aliases.
      all = all.filter { !$0.isFilePrivate }
    }
    return all
  }

  func inherited(_ declaration: SourceDeclaration) -> [TypeReference] {
    declaration.inherited + extensions(of: declaration).flatMap(\.inherited)
  }

  /// Includes extensions.
  func staticProperty(_ name: String, of declaration: SourceDeclaration) -> SourceProperty? {
    let all = declaration.properties + extensions(of: declaration).flatMap(\.properties)
    return all.first { $0.name == name && $0.isStatic }
  }

  /// For types outside the sources, such as `String`.
  func staticProperty(_ name: String, ofForeign type: [String]) -> SourceProperty? {
    (extensions[type] ?? []).flatMap(\.properties).first { $0.name == name && $0.isStatic }
  }
}

extension SourceProgram {
  func destination(of property: SourceProperty, in declaration: SourceDeclaration) -> SourceDeclaration? {
    guard let type = property.type else { return nil }
    var resolved = resolve(type.unwrapped.type, scopes: declaration.scopes, file: declaration.place.file)
    for _ in 0..<32 {
      switch resolved {
      case .optional(let inner), .array(let inner, _), .set(let inner, _): resolved = inner
      case .model(let destination): return destination
      default: return nil
      }
    }
    return nil
  }

  /// Returns structures, and enumerations without raw values, which alone are hashed.
  func hashedTypes(of property: SourceProperty, in declaration: SourceDeclaration) -> [SourceDeclaration] {
    var found: [SourceDeclaration] = []
    gather(property, in: declaration, depth: 0, into: &found)
    return found
  }

  private func gather(
    _ property: SourceProperty, in declaration: SourceDeclaration, depth: Int, into found: inout [SourceDeclaration]
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
      for element in inner.properties where element.isOfInstance {
        gather(element, in: inner, depth: depth + 1, into: &found)
      }
    // A collection is one Binary attribute.
    default: break
    }
  }
}

/// Follows lists of types.
struct ListedTypes {
  struct Item {
    var type: TypeReference
    var scopes: [[String]]
    var file: String
  }

  let program: SourceProgram

  /// Returns nil if only a compiler could follow the list.
  func items(_ value: SourceExpression, scopes: [[String]], file: String, depth: Int = 0) -> [Item]? {
    guard depth < 16 else { return nil }
    switch value {
    case .metatype(let type): return [Item(type: type, scopes: scopes, file: file)]
    case .array(let elements): return joined(elements, scopes: scopes, file: file, depth: depth)
    case .operators(let operands, let operators) where operators.allSatisfy({ $0 == "+" }):
      return joined(operands, scopes: scopes, file: file, depth: depth)
    case .path(let names): return variable(names, scopes: scopes, file: file, depth: depth)
    default: return nil
    }
  }

  private func joined(_ values: [SourceExpression], scopes: [[String]], file: String, depth: Int) -> [Item]? {
    let all = values.map { items($0, scopes: scopes, file: file, depth: depth + 1) }
    return all.contains { $0 == nil } ? nil : all.flatMap { $0 ?? [] }
  }

  private func variable(_ names: [String], scopes: [[String]], file: String, depth: Int) -> [Item]? {
    guard let last = names.last else { return nil }
    var owner = Array(names.dropLast())
    if owner == ["Self"] || owner == ["self"] { owner = [] }
    if owner.isEmpty {
      for scope in scopes {
        guard case .found(let type) = program.find(scope, scopes: [], file: file) else { continue }
        if let property = program.staticProperty(last, of: type) {
          return items(of: property, in: type, depth: depth + 1)
        }
      }
      return program.list(last, file: file).flatMap { items($0, scopes: scopes, file: file, depth: depth + 1) }
    }
    guard let type = program.follow(program.find(owner, scopes: scopes, file: file)).declaration,
      let property = program.staticProperty(last, of: type)
    else { return nil }
    return items(of: property, in: type, depth: depth + 1)
  }

  func items(of property: SourceProperty, in type: SourceDeclaration, depth: Int = 0) -> [Item]? {
    property.value.flatMap { items($0, scopes: type.scopes, file: property.place.file, depth: depth) }
  }

  func declaration(_ item: Item) -> SourceDeclaration? {
    item.type.names.flatMap { program.follow(program.find($0, scopes: item.scopes, file: item.file)).declaration }
  }
}
