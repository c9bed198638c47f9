internal import ManagedObjectModel
internal import Platform
internal import SystemPackage

/// Builds models of the declared versions.
struct VersionReader {
  let program: SourceProgram
  let options: SwiftSources.Options
  var findings: [SourceFinding] = []

  init(program: SourceProgram, options: SwiftSources.Options) {
    self.program = program
    self.options = options
    findings = program.findings
  }

  private static let maximumVersions = 1000

  private struct AppTypes {
    var classes: [SourceDeclaration]
    var schema: SourceDeclaration?
    var place: SourcePlace
  }

  mutating func read(name: String, path: FilePath?) throws(ModelError) -> SourceModels {
    if !options.types.isEmpty { return try named(name, path) }
    let schemas = program.declarations.filter { Self.conforms($0, to: "VersionedSchema", program) }
    guard schemas.count <= Self.maximumVersions else {
      throw ModelError(.tooLarge, path: path, detail: "it has more than \(Self.maximumVersions) versions")
    }
    let plan = plan()
    let order = planned(plan)
    var names = VersionNames(schemas)
    var versions: [SourceVersion] = []
    for schema in schemas {
      if let version = version(of: schema, isPlanned: order.contains { $0.path == schema.path }, &names) {
        versions.append(version)
      }
    }
    let isOrdered = sort(&versions, order, names)
    let current = try current(&versions, order, names, path)
    guard !versions.isEmpty else {
      throw ModelError(
        .noVersions, path: path, detail: "its Swift files declare no class with @Model", hint: "Check the path.")
    }
    let stages = stages(plan, names)
    for stage in stages where stage.isCustom {
      findings.add(
        .customStage, .warning, version: stage.destination, at: stage.place,
        "the stage from \(stage.source) to \(stage.destination) runs code of the app, which is not run here",
        "Say in a mapping file what it does to the records.")
    }
    var models = sourceModels(name, path, versions, current, isOrdered, stages)
    models.planPlace = plan.flatMap { program.staticProperty("schemas", of: $0)?.place }
    return models
  }

  private func sourceModels(
    _ name: String, _ path: FilePath?, _ versions: [SourceVersion], _ current: String, _ isOrdered: Bool,
    _ stages: [SourceStage]
  ) -> SourceModels {
    var versions = versions
    for index in versions.indices {
      let old = versions[index].version
      versions[index].version = ModelVersion(name: old.name, model: old.model, isCurrent: old.name == current)
    }
    var seen: Set<SourceFinding> = []
    let findings = findings.filter { seen.insert($0).inserted }.sorted(by: Self.precedes)
    return SourceModels(
      name: name, path: path, versions: versions, currentName: current, isOrdered: isOrdered, stages: stages,
      findings: findings, program: program)
  }

  private static func precedes(_ first: SourceFinding, _ second: SourceFinding) -> Bool {
    first.severity == second.severity ? first.precedes(second) : first.severity == .error
  }

  /// Directly or by extension.
  static func conforms(_ declaration: SourceDeclaration, to name: String, _ program: SourceProgram) -> Bool {
    switch declaration.kind {
    case .class, .structure, .enumeration, .actor: program.inherited(declaration).contains { $0.names?.last == name }
    case .alias, .extension, .protocol: false
    }
  }

  // MARK: Named types

  private mutating func named(_ name: String, _ path: FilePath?) throws(ModelError) -> SourceModels {
    var classes: [SourceDeclaration] = []
    var schema: SourceDeclaration?
    for type in options.types {
      let declaration = try declaration(named: type, path)
      if Self.conforms(declaration, to: "VersionedSchema", program) {
        guard options.types.count == 1 else {
          throw ModelError(
            .unknownType, path: path, detail: "\"\(printable(type))\" is a schema, and is given together with others")
        }
        schema = declaration
      } else if declaration.isModel {
        classes.append(declaration)
      } else {
        throw ModelError(
          .unknownType, path: path,
          detail: "\"\(printable(type))\" is neither a class with @Model nor a VersionedSchema")
      }
    }
    if let schema {
      var names = VersionNames([schema])
      if let version = version(of: schema, isPlanned: false, &names) {
        return sourceModels(name, path, [version], version.name, true, [])
      }
    }
    let version = version("current", of: classes, identifier: "1.0.0", place: nil, schema: nil, isFollowed: true)
    return sourceModels(name, path, [version], version.name, true, [])
  }

  private func declaration(named name: String, _ path: FilePath?) throws(ModelError) -> SourceDeclaration {
    let found = program.find(named: name)
    switch found {
    case .missing: throw ModelError(.unknownType, path: path, detail: "no source declares \"\(printable(name))\"")
    case .ambiguous(let all):
      let places = all.prefix(8).map { "\($0.path.joined(separator: ".")) (\($0.place.file):\($0.place.line))" }
      throw ModelError(
        .unknownType, path: path,
        detail: "\"\(printable(name))\" stands for several: \(printable(places.joined(separator: ", ")))",
        hint: "Give its whole name, such as \(printable(all[0].path.joined(separator: "."))).")
    case .found:
      guard let declaration = program.follow(found).declaration else {
        throw ModelError(.unknownType, path: path, detail: "\"\(printable(name))\" is an alias that leads nowhere")
      }
      return declaration
    }
  }

  // MARK: Versions

  /// Returns nil if the schema's list is empty.
  private mutating func version(
    of schema: SourceDeclaration, isPlanned: Bool, _ names: inout VersionNames
  ) -> SourceVersion? {
    let name = names.name(of: schema)
    guard let models = program.staticProperty("models", of: schema) else { return nil }
    let items = ListedTypes(program: program).items(of: models, in: schema)
    if items == nil {
      findings.add(
        .unresolvedRoots, .error, version: name, at: models.place,
        "the models of \(name) are no list of types that can be followed", "Write it as [A.self, B.self].")
    }
    let identifier = identifier(of: schema)
    if identifier == nil {
      findings.add(
        .unknownRule, .warning, version: name, at: schema.place,
        "the version identifier of \(name) cannot be read; taken as 1.0.0", "Write it as Schema.Version(1, 0, 0).")
    }
    let (classes, isFollowed) = classes(items ?? [], name, models.place)
    var version = version(
      name, of: classes, identifier: identifier ?? "1.0.0", place: schema.place,
      schema: schema.path.joined(separator: "."), isFollowed: isFollowed && items != nil)
    version.isPlanned = isPlanned
    return version
  }

  /// Returns the classes, and whether all could be followed.
  private mutating func classes(
    _ items: [ListedTypes.Item], _ version: String?, _ place: SourcePlace
  ) -> (classes: [SourceDeclaration], isFollowed: Bool) {
    var result: [SourceDeclaration] = []
    var isFollowed = true
    for item in items {
      let resolved = program.resolve(item.type, scopes: item.scopes, file: item.file)
      if case .model(let declaration) = resolved {
        if !result.contains(where: { $0.path == declaration.path && $0.place == declaration.place }) {
          result.append(declaration)
        }
        continue
      }
      isFollowed = false
      var words = "is no class with @Model"
      var kind = SourceFinding.Kind.unresolvedType
      if case .unknown(let unknown, let reason) = resolved { (kind, words) = (unknown, reason) }
      findings.add(
        kind, .error, version: version, at: place, "the list of models names \(item.type.text), which \(words)",
        "Name the files that declare it too.")
    }
    return (result, isFollowed)
  }

  private mutating func version(
    _ name: String, of classes: [SourceDeclaration], identifier: String, place: SourcePlace?, schema: String?,
    isFollowed: Bool
  ) -> SourceVersion {
    var builder = SchemaBuilder(program: program, options: options)
    let result = builder.build(classes, identifier: identifier)
    findings += result.findings.map { finding in
      var finding = finding
      finding.versionName = name
      return finding
    }
    return SourceVersion(
      version: ModelVersion(name: name, model: result.model, isCurrent: false), place: place, schemaName: schema,
      isPlanned: false, incompleteEntities: result.incompleteEntities, classes: result.classes.mapValues(\.place),
      classNames: result.classes.mapValues { $0.path.joined(separator: ".") },
      isComplete: isFollowed && !result.findings.contains { $0.severity == .error })
  }

  /// Returns `1.2.3` for `Schema.Version(1, 2, 3)`.
  private func identifier(of schema: SourceDeclaration) -> String? {
    guard let property = program.staticProperty("versionIdentifier", of: schema),
      case .call(_, let arguments)? = property.value
    else { return nil }
    let numbers = arguments.map { argument -> Int64? in
      if case .integer(let number?) = argument.value { number } else { nil }
    }
    guard numbers.count == 3, !numbers.contains(nil) else { return nil }
    return numbers.compactMap { $0.map(String.init) }.joined(separator: ".")
  }

  // MARK: Plans

  /// A container's plan, or the only one.
  private mutating func plan() -> SourceDeclaration? {
    let plans = program.declarations.filter { Self.conforms($0, to: "SchemaMigrationPlan", program) }
    let used = program.roots.filter { !$0.isAside }.compactMap { root in
      root.migrationPlan?.names.flatMap {
        program.follow(program.find($0, scopes: root.scopes, file: root.place.file)).declaration
      }
    }
    if let first = used.first, used.allSatisfy({ $0.path == first.path }) { return first }
    guard plans.count > 1 else { return plans.first }
    findings.add(
      .ambiguousRoots, .warning, at: plans[1].place,
      "there are several migration plans (\(plans.map { $0.path.joined(separator: ".") }.joined(separator: ", "))); none is taken",
      "Name the files of one of them.")
    return nil
  }

  private mutating func planned(_ plan: SourceDeclaration?) -> [SourceDeclaration] {
    guard let plan, let schemas = program.staticProperty("schemas", of: plan) else { return [] }
    let lists = ListedTypes(program: program)
    let declarations = lists.items(of: schemas, in: plan)?.map { lists.declaration($0) } ?? [nil]
    if declarations.contains(where: { $0 == nil }) {
      findings.add(
        .unresolvedRoots, .warning, at: schemas.place,
        "the schemas of plan \(plan.name) are no list that can be followed",
        "Write it as [SchemaV1.self, SchemaV2.self], and name the files that declare them.")
    }
    return declarations.compactMap { $0 }
  }

  private func stages(_ plan: SourceDeclaration?, _ names: VersionNames) -> [SourceStage] {
    guard let plan, let stages = program.staticProperty("stages", of: plan), case .array(let elements)? = stages.value
    else { return [] }
    return elements.compactMap { element in
      var value = element
      var place = stages.place
      if case .path(let path) = element, let name = path.last, let property = program.staticProperty(name, of: plan),
        let own = property.value
      {
        value = own
        place = property.place
      }
      return stage(value, plan, place, names)
    }
  }

  private func stage(
    _ value: SourceExpression, _ plan: SourceDeclaration, _ place: SourcePlace, _ names: VersionNames
  ) -> SourceStage? {
    guard case .call(let called, let arguments) = value else { return nil }
    let kind: String? =
      switch called {
      case .implicitMember(let name): name
      case .path(let path): path.last
      default: nil
      }
    func version(_ label: String) -> String? {
      guard case .metatype(let type)? = arguments.first(where: { $0.label == label })?.value, let path = type.names
      else { return nil }
      let found = program.follow(program.find(path, scopes: plan.scopes, file: place.file)).declaration
      return found.map { names.name(of: $0) }
    }
    guard let kind, ["custom", "lightweight"].contains(kind), let source = version("fromVersion"),
      let destination = version("toVersion")
    else { return nil }
    return SourceStage(source: source, destination: destination, isCustom: kind == "custom", place: place)
  }

  /// Sorts by plan, else by identifiers; returns whether the order is known.
  private func sort(_ versions: inout [SourceVersion], _ order: [SourceDeclaration], _ names: VersionNames) -> Bool {
    let places = Dictionary(
      order.enumerated().map { (names.name(of: $1), $0) }, uniquingKeysWith: { first, _ in first })
    let keys = versions.map { Self.numbers($0.version.model.versionIdentifiers.first ?? "") }
    versions = zip(versions, keys).sorted { first, second in
      let (one, other) = (places[first.0.name] ?? .max, places[second.0.name] ?? .max)
      if one != other { return one < other }
      if first.1 != second.1 { return first.1.lexicographicallyPrecedes(second.1) }
      return precedesNaturally(first.0.name, second.0.name)
    }.map(\.0)
    return !order.isEmpty || Set(keys).count == keys.count
  }

  private static func numbers(_ identifier: String) -> [Int] { identifier.split(separator: ".").map { Int($0) ?? 0 } }

  // MARK: The current version

  /// Adds the app's own list if no schema has its checksum.
  private mutating func current(
    _ versions: inout [SourceVersion], _ order: [SourceDeclaration], _ names: VersionNames, _ path: FilePath?
  ) throws(ModelError) -> String {
    let candidates = appTypes()
    if let schema = candidates.compactMap(\.schema).first {
      let name = names.name(of: schema)
      if versions.contains(where: { $0.name == name }) { return name }
    }
    let lists = candidates.filter { $0.schema == nil && !$0.classes.isEmpty }
    if lists.isEmpty, let last = versions.last(where: \.isPlanned) ?? versions.last { return last.name }
    let chosen = lists.isEmpty ? everyClass() : choose(lists)
    guard let chosen else {
      throw ModelError(.noVersions, path: path, detail: "its Swift files declare no class with @Model")
    }
    let before = findings
    let version = version(
      "current", of: chosen.classes, identifier: "1.0.0", place: chosen.place, schema: nil, isFollowed: true)
    let same = versions.last {
      $0.isComplete && version.isComplete && $0.version.versionHashes == version.version.versionHashes
    }
    if let same {
      findings = before
      return same.name
    }
    versions.append(version)
    return version.name
  }

  /// Previews and tests count only without others.
  private mutating func appTypes() -> [AppTypes] {
    let own = program.roots.filter { !$0.isAside }
    var result: [AppTypes] = []
    for root in own.isEmpty ? program.roots : own {
      let file = root.place.file
      var schema = root.versionedSchema
      if case .path(let names) = root.models, names.last == "models" { schema = .path(Array(names.dropLast())) }
      if let names = schema?.names {
        let found = program.follow(program.find(names, scopes: root.scopes, file: file)).declaration
        if let found, Self.conforms(found, to: "VersionedSchema", program) {
          result.append(AppTypes(classes: [], schema: found, place: root.place))
          continue
        }
      }
      guard let items = ListedTypes(program: program).items(root.models, scopes: root.scopes, file: file) else {
        tellUnfollowed(root)
        continue
      }
      let (classes, isFollowed) = classes(items, nil, root.place)
      if isFollowed { result.append(AppTypes(classes: classes, schema: nil, place: root.place)) }
    }
    return result
  }

  private mutating func tellUnfollowed(_ root: SourceRoots) {
    // The schema is found where it is made.
    if case .path(let names) = root.models, names.last?.lowercased().hasSuffix("schema") == true { return }
    findings.add(
      .unresolvedRoots, .warning, at: root.place,
      "what is given to the container here is no list of types that can be followed; it is left out",
      SourceFinding.nameTypes)
  }

  /// The list that contains all others.
  private mutating func choose(_ lists: [AppTypes]) -> AppTypes? {
    let closures = lists.map { list -> Set<String> in
      var builder = SchemaBuilder(program: program, options: options)
      return Set(builder.build(list.classes, identifier: "").classes.values.map { $0.path.joined(separator: ".") })
    }
    let all = closures.reduce(into: Set<String>()) { $0.formUnion($1) }
    if let place = closures.firstIndex(of: all) {
      let smaller = zip(lists, closures).filter { $0.1 != all }.map(\.0.place)
      if let first = smaller.first {
        findings.add(
          .ambiguousRoots, .warning, at: first,
          """
          the types listed here make up a part of those listed at \(lists[place].place.file):\
          \(lists[place].place.line), which are taken
          """, SourceFinding.nameTypes)
      }
      return lists[place]
    }
    findings.add(
      .ambiguousRoots, .warning, at: lists[0].place,
      """
      several lists of types lead to different models; the one here is taken, and not those at \
      \(lists.dropFirst().prefix(4).map { "\($0.place.file):\($0.place.line)" }.joined(separator: ", "))
      """, SourceFinding.nameTypes)
    let largest = closures.indices.max { closures[$0].count < closures[$1].count }
    return largest.map { lists[$0] }
  }

  /// All classes outside schemas, if no list exists.
  private mutating func everyClass() -> AppTypes? {
    let classes = program.declarations.filter(\.isModel)
    guard let first = classes.first else { return nil }
    findings.add(
      .everyClassTaken, .warning, at: nil,
      "no Schema, ModelContainer or modelContainer lists the types: \(counted(classes.count, "class", "classes")) with @Model taken",
      SourceFinding.nameTypes)
    return AppTypes(classes: classes, schema: nil, place: first.place)
  }
}

/// A schema's last name, or its whole path if ambiguous.
struct VersionNames {
  private let shared: Set<String>

  init(_ schemas: [SourceDeclaration]) {
    let counts = Dictionary(grouping: Set(schemas.map(\.path)), by: { $0.last ?? "" })
    shared = Set(counts.filter { $0.value.count > 1 }.keys)
  }

  func name(of schema: SourceDeclaration) -> String {
    shared.contains(schema.name) ? schema.path.joined(separator: ".") : schema.name
  }
}
