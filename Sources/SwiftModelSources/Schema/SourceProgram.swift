/// The declarations of all source files together, and what their names stand for.
struct SourceProgram: Sendable {
  /// The result of looking a name up.
  enum Lookup {
    case found(SourceDeclaration)

    /// Several declarations of that name are in question.
    case ambiguous([SourceDeclaration])
    case missing
  }

  private var declared: [[String]: [SourceDeclaration]] = [:]

  private var extensions: [[String]: [SourceDeclaration]] = [:]

  /// The paths that end with a name, for names that are only known by their last part.
  private var byLastName: [String: [[String]]] = [:]

  /// The types given to containers and schemas.
  private(set) var roots: [SourceRoots] = []

  /// Lists of types that variables have as their initial value, by file and name.
  private var lists: [String: [String: SourceExpression]] = [:]

  /// What could not be read of the files.
  private(set) var findings: [SourceFinding] = []

  init() {}

  /// Takes in what a file declares.
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

  /// All types and aliases, in the order of their paths.
  var declarations: [SourceDeclaration] {
    declared.values.joined().sorted {
      ($0.path.joined(separator: "."), $0.place) < ($1.path.joined(separator: "."), $1.place)
    }
  }

  /// The type of a path that is declared at a place.
  func declaration(_ path: [String], at place: SourcePlace) -> SourceDeclaration? {
    declared[path]?.first { $0.place == place }
  }

  /// The list of types that a variable of a file has.
  func list(_ name: String, file: String) -> SourceExpression? { lists[file]?[name] }

  /// What a path of names stands for where it is used.
  ///
  /// Names are looked up as Swift does: in the types around, the nearest first, then at the top level. A name that begins
  /// with a module's is looked up without it.
  func find(_ names: [String], scopes: [[String]], file: String) -> Lookup {
    guard let first = names.first else { return .missing }
    for scope in scopes + [[]] {
      // The first name decides, as in Swift: what it stands for has the others as members, or nothing has.
      let path = scope + [first]
      if declared[path] != nil {
        let found = members(names.dropFirst(), of: choice(path, file: file), file: file, depth: 0)
        if case .missing = found, names.count > 1 { continue }
        return found
      }
      // A type of another module that is only extended here.
      if names.count > 1, declared[scope + names] != nil { return choice(scope + names, file: file) }
    }
    // Extensions of nested types see the types around only in Swift's older rules; and a module may come first.
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

  /// Whether the sources declare a type of that name outside of all others.
  func isDeclared(_ name: String) -> Bool { declared[[name]] != nil }

  private func members(_ names: ArraySlice<String>, of found: Lookup, file: String, depth: Int) -> Lookup {
    guard !names.isEmpty else { return found }
    if case .ambiguous(let all) = found, let path = all.first?.path, let next = names.first {
      // Namespaces that are declared in several modules: what is named in them may be there only once.
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

  /// The one of several declarations of a path that a file means.
  private func choice(_ path: [String], file: String) -> Lookup {
    let all = declared[path] ?? []
    let own = all.filter { $0.place.file == file }
    let visible = own.isEmpty ? all.filter { !$0.isFilePrivate } : own
    if visible.count > 1 {
      let certain = visible.filter { $0.undecidedCondition == nil }
      if certain.count == 1 { return .found(certain[0]) }
    }
    guard let first = visible.first else { return .missing }
    // The same declaration in the sources of several targets.
    return visible.allSatisfy { $0.shape == first.shape } ? .found(first) : .ambiguous(visible)
  }

  /// What a name given from outside the sources stands for: a whole path, or the end of just one.
  func find(named name: String) -> Lookup {
    let names = name.split(separator: ".").map(String.init)
    if declared[names] != nil { return choice(names, file: "") }
    let paths = (byLastName[names.last ?? ""] ?? []).filter { $0.suffix(names.count) == names[...] }
    guard paths.count != 1 else { return choice(paths[0], file: "") }
    let all = paths.flatMap { declared[$0] ?? [] }
    return all.isEmpty ? .missing : .ambiguous(all)
  }

  /// The same, aliases followed to what they stand for in the end.
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

  /// The extensions of a type.
  func extensions(of declaration: SourceDeclaration) -> [SourceDeclaration] {
    var all = extensions[declaration.path] ?? []
    if declaration.path.count > 1 {
      // An extension may name a type by an alias or within another extension's scope; only whole paths are told.
      all = all.filter { !$0.isFilePrivate }
    }
    return all
  }

  /// What a type inherits from and conforms to, its extensions' conformances included.
  func inherited(_ declaration: SourceDeclaration) -> [TypeReference] {
    declaration.inherited + extensions(of: declaration).flatMap(\.inherited)
  }

  /// A static property of a type, declared in it or in an extension.
  func staticProperty(_ name: String, of declaration: SourceDeclaration) -> SourceProperty? {
    let all = declaration.properties + extensions(of: declaration).flatMap(\.properties)
    return all.first { $0.name == name && $0.isStatic }
  }

  /// The same static property where the type is none of the sources', such as `String`.
  func staticProperty(_ name: String, ofForeign type: [String]) -> SourceProperty? {
    (extensions[type] ?? []).flatMap(\.properties).first { $0.name == name && $0.isStatic }
  }
}
