internal import ManagedObjectModel

/// Makes a model of classes and of all that their relationships reach.
struct SchemaBuilder {
  struct Result: Sendable {
    /// The model; entities that are not complete lack what could not be resolved.
    var model: ManagedObjectModel

    /// The class of each entity.
    var classes: [String: SourceDeclaration] = [:]

    /// Entities whose hash cannot be told, because something of them could not be resolved.
    var incompleteEntities: Set<String> = []

    /// What was found on the way.
    var findings: [SourceFinding] = []
  }

  private static let maximumEntities = 5000

  let program: SourceProgram
  let options: SwiftSources.Options
  private var entities: [String: EntityDraft] = [:]
  private var order: [String] = []
  private var findings: [SourceFinding] = []

  /// A builder for one version.
  init(program: SourceProgram, options: SwiftSources.Options) {
    self.program = program
    self.options = options
  }

  /// The model of classes.
  ///
  /// - Parameters:
  ///   - roots: the classes that are listed.
  ///   - identifier: the version identifier, such as `1.0.0`.
  mutating func build(_ roots: [SourceDeclaration], identifier: String) -> Result {
    var waiting = Array(roots.reversed())
    while let next = waiting.popLast() {
      guard isNew(next), entities.count < Self.maximumEntities else { continue }
      var reader = EntityReader(program: program, options: options, declaration: next)
      let draft = reader.read()
      findings += reader.findings
      entities[draft.name] = draft
      order.append(draft.name)
      waiting += draft.reached.reversed()
    }
    var inverses = InverseResolver(entities: entities, order: order)
    inverses.resolve(program)
    findings += inverses.findings
    entities = inverses.entities
    let names = order.sorted(by: precedesByCodeUnit)
    let model = ManagedObjectModel(
      entities: names.compactMap { entities[$0]?.entity }, versionIdentifiers: [identifier],
      configurations: ["default": names])
    return Result(
      model: model, classes: entities.mapValues(\.declaration), incompleteEntities: incomplete(), findings: findings)
  }

  /// The entities with an error, and those that inherit from one.
  private func incomplete() -> Set<String> {
    var result = Set(findings.filter { $0.severity == .error }.compactMap(\.entityName))
    for name in order {
      var next = entities[name]?.entity.parentName
      for _ in 0..<64 {
        guard let parent = next else { break }
        if result.contains(parent) { result.insert(name) }
        next = entities[parent]?.entity.parentName
      }
    }
    return result
  }

  /// Whether a class is not in the model yet; another class of the same name is told of.
  private mutating func isNew(_ declaration: SourceDeclaration) -> Bool {
    guard let known = entities[declaration.name] else { return true }
    if known.declaration.path != declaration.path || known.declaration.place.file != declaration.place.file {
      let paths = [known.declaration, declaration].map { $0.path.joined(separator: ".") }
      let finding = SourceFinding(
        .duplicateEntity, .error, entity: declaration.name, place: declaration.place,
        detail: """
          \(paths[0]) and \(paths[1]) are both reached, and both would be entity "\(declaration.name)"; the first is at \
          \(known.declaration.place.file):\(known.declaration.place.line)
          """,
        hint: "Let the relationships of a version lead to classes of that version only.")
      if !findings.contains(finding) { findings.append(finding) }
    }
    return false
  }
}

/// An entity on its way, and what the inverses of its relationships are decided by.
struct EntityDraft {
  /// A relationship as it is declared.
  struct Link {
    /// The class it leads to.
    var destination: SourceDeclaration

    /// The inverse that is named, with the type where one is.
    var explicit: (root: TypeReference?, name: String)?

    /// Whether the property carries `@Relationship`.
    var hasMacro: Bool

    /// Whether it leads to any number.
    var isToMany: Bool

    var place: SourcePlace
  }

  var declaration: SourceDeclaration

  var entity: Entity

  var links: [String: Link] = [:]

  /// The classes that it leads to or inherits from, in the order of their properties.
  var reached: [SourceDeclaration] = []

  var name: String { entity.name }
}
