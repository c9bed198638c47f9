internal import ManagedObjectModel

/// Builds a model from all reachable classes.
struct SchemaBuilder {
  struct Result: Sendable {
    var model: ManagedObjectModel

    var classes: [String: SourceDeclaration] = [:]

    var incompleteEntities: Set<String> = []

    var findings: [SourceFinding] = []
  }

  private static let maximumEntities = 5000

  let program: SourceProgram
  let options: SwiftSources.Options
  private var entities: [String: EntityDraft] = [:]
  private var order: [String] = []
  private var findings: [SourceFinding] = []

  init(program: SourceProgram, options: SwiftSources.Options) {
    self.program = program
    self.options = options
  }

  /// Builds the model.
  ///
  /// - Parameters:
  ///   - roots: the listed classes.
  ///   - identifier: such as `1.0.0`.
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

  /// Returns the entities with errors and their sub-entities.
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

  /// Whether a class is new; reports duplicate names.
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

struct EntityDraft {
  struct Link {
    var destination: SourceDeclaration

    /// The named inverse with an optional type.
    var explicit: (root: TypeReference?, name: String)?

    var hasMacro: Bool

    var isToMany: Bool

    var place: SourcePlace
  }

  var declaration: SourceDeclaration

  var entity: Entity

  var links: [String: Link] = [:]

  /// Destinations and parents in property order.
  var reached: [SourceDeclaration] = []

  var name: String { entity.name }
}

/// Resolves named inverses first, then the only possible ones.
struct InverseResolver {
  private(set) var entities: [String: EntityDraft]

  private(set) var findings: [SourceFinding] = []

  private var links: [Link] = []

  private var between: [Way: [Link]] = [:]

  init(entities: [String: EntityDraft], order: [String]) {
    self.entities = entities
    for entity in order {
      for (name, link) in (entities[entity]?.links ?? [:]).sorted(by: { precedesByCodeUnit($0.key, $1.key) }) {
        links.append(Link(entity: entity, name: name))
        between[Way(from: entity, to: link.destination.name), default: []].append(Link(entity: entity, name: name))
      }
    }
  }

  private struct Way: Hashable {
    var from: String
    var to: String
  }

  private struct Link: Hashable {
    var entity: String
    var name: String
  }

  private func draft(_ link: Link) -> EntityDraft.Link? { entities[link.entity]?.links[link.name] }

  private func inverse(of link: Link) -> String? {
    entities[link.entity]?.entity.properties[link.name]?.relationship?.inverseName
  }

  private mutating func set(_ inverse: String, of link: Link) {
    guard var relationship = entities[link.entity]?.entity.properties[link.name]?.relationship else { return }
    relationship.inverseName = inverse
    entities[link.entity]?.entity.properties[link.name] = .relationship(relationship)
  }

  mutating func resolve(_ program: SourceProgram) {
    for link in links { takeNamed(link, program) }
    for link in links { takeOnlyOne(link) }
    for link in links where inverse(of: link) == nil { tellOfDoubt(link) }
  }

  private mutating func add(
    _ kind: SourceFinding.Kind, _ severity: SourceFinding.Severity, _ link: Link, _ detail: String, _ hint: String
  ) {
    findings.append(
      SourceFinding(
        kind, severity, entity: link.entity, property: link.name, place: draft(link)?.place,
        detail: "\(link.entity).\(link.name) \(detail)", hint: hint))
  }

  private mutating func takeNamed(_ link: Link, _ program: SourceProgram) {
    guard let declared = draft(link), let explicit = declared.explicit else { return }
    let other = Link(entity: declared.destination.name, name: explicit.name)
    let hint = "Correct the key path; it must name the property of the destination that leads back."
    guard let back = draft(other) else {
      add(
        .unresolvedInverse, .error, link,
        "has the inverse \(other.entity).\(other.name), which is no relationship of the sources", hint)
      return
    }
    if let root = explicit.root, let scopes = entities[link.entity]?.declaration.scopes,
      case .model(let named) = program.resolve(root, scopes: scopes, file: declared.place.file),
      named.name != other.entity
    {
      add(.unresolvedInverse, .error, link, "has an inverse of \(named.name), and leads to \(other.entity)", hint)
    }
    if back.destination.name != link.entity, !isAncestor(back.destination.name, of: link.entity) {
      add(
        .unresolvedInverse, .error, link,
        "has the inverse \(other.entity).\(other.name), which leads to \(back.destination.name)", hint)
    }
    if let earlier = inverse(of: link), earlier != other.name {
      add(
        .unresolvedInverse, .error, link, "is the inverse of \(other.entity).\(earlier), and names \(other.name)", hint)
    }
    set(other.name, of: link)
    if back.explicit == nil { set(link.name, of: other) }
  }

  private func isAncestor(_ name: String, of entity: String) -> Bool {
    var next = entities[entity]?.entity.parentName
    for _ in 0..<64 {
      guard let parent = next else { return false }
      if parent == name { return true }
      next = entities[parent]?.entity.parentName
    }
    return false
  }

  /// Returns relationships without inverse and, by default, without macro.
  private func free(from entity: String, to destination: String, withMacro: Bool = false) -> [Link] {
    (between[Way(from: entity, to: destination)] ?? []).filter { link in
      inverse(of: link) == nil && (withMacro || draft(link)?.hasMacro == false)
    }
  }

  /// Pairs the only properties between two classes.
  private mutating func takeOnlyOne(_ link: Link) {
    guard let declared = draft(link), !declared.hasMacro, inverse(of: link) == nil else { return }
    let back = free(from: declared.destination.name, to: link.entity)
    let forth = free(from: link.entity, to: declared.destination.name)
    guard back.count == 1, forth.count == 1, back[0] != link, let other = draft(back[0]) else { return }
    set(back[0].name, of: link)
    set(link.name, of: back[0])
    if declared.isToMany, other.isToMany {
      add(
        .unknownRule, .warning, link,
        "and \(back[0].entity).\(back[0].name), both to-many, are taken as inverses, which no store has shown",
        "Name the inverse with @Relationship(inverse:).")
    }
  }

  /// Reports relationships that SwiftData might have given an inverse.
  private mutating func tellOfDoubt(_ link: Link) {
    guard let declared = draft(link) else { return }
    let destination = declared.destination.name
    let back = free(from: destination, to: link.entity, withMacro: true)
    guard !back.isEmpty else { return }
    let hint = "Name the inverse with @Relationship(inverse:), or compare with a store that the app wrote."
    if destination == link.entity {
      add(.unknownRule, .warning, link, "leads to its own class and has no inverse: taken without one", hint)
      return
    }
    guard precedesByCodeUnit(link.entity, destination) else { return }
    let forth = free(from: link.entity, to: destination, withMacro: true)
    if back.count == 1, forth.count == 1 {
      add(
        .unknownRule, .warning, link,
        """
        and \(destination).\(back[0].name) are taken without inverse, because one carries @Relationship without naming \
        it; one store has shown that
        """, hint)
    } else {
      add(.unknownRule, .warning, link, "has several possible inverses in \(destination): taken without one", hint)
    }
  }
}
