public import ManagedObjectModel

/// Finds sources of SwiftData models that make stores unrecognizable or lose data.
///
/// A historical version is a `VersionedSchema` other than the current one. Its hashes must not change with the app,
/// since they alone identify its stores.
public struct SchemaLint: Sendable {
  /// The findings in source order.
  public private(set) var findings: [SourceFinding] = []

  package static let freezeSources = "lazaret model freeze, from before the change or from a store of it."
  package static let freezeStore = "Freeze what it was written with: lazaret model freeze <store>."

  let models: SourceModels
  private let released: [ReleasedVersion]

  private let schemaPaths: [[String]]

  private let current: SourceVersion?

  private let aliases: [SourceDeclaration]
  private let classes: [SourceDeclaration]

  /// Checks the versions of sources.
  ///
  /// - Parameters:
  ///   - models: the sources.
  ///   - released: the known versions of stores in the field.
  ///   - others: the same sources on other platforms.
  public init(
    _ models: SourceModels, released: [ReleasedVersion] = [],
    others: [(platform: SourcePlatform, models: SourceModels)] = []
  ) {
    self.models = models
    self.released = released
    schemaPaths = models.versions.compactMap { $0.schemaName?.split(separator: ".").map(String.init) }
    current = models.versions.first { $0.name == models.currentName }
    let declarations = models.program.declarations
    aliases = declarations.filter { if case .alias = $0.kind { true } else { false } }
    classes = declarations.filter(\.isModel)
    for version in models.versions where version.name != models.currentName {
      guard let schema = models.schema(of: version) else { continue }
      checkLiveClasses(version, schema)
      checkTypes(version, schema)
      checkAliases(version, schema)
    }
    for version in models.versions { checkRelationships(version) }
    checkChecksums()
    checkPlan()
    for store in released where store.origin == .store { checkStore(store) }
    for (before, after) in zip(models.versions, models.versions.dropFirst()) { checkListed(before, after) }
    checkPlatforms(others)
    var seen: Set<SourceFinding> = []
    findings = findings.filter { seen.insert($0).inserted }.sorted { $0.precedes($1) }
  }

  mutating func add(
    _ kind: SourceFinding.Kind, _ severity: SourceFinding.Severity, _ version: String, entity: String? = nil,
    property: String? = nil, at place: SourcePlace?, _ detail: String, _ hint: String
  ) {
    findings.append(
      SourceFinding(
        kind, severity, version: version, entity: entity, property: property, place: place, detail: detail, hint: hint))
  }

  // MARK: Namespaces

  private func namespace(of declaration: SourceDeclaration) -> [String]? {
    schemaPaths.filter { Self.isWithin(declaration.path, $0) }.max { $0.count < $1.count }
  }

  private static func isWithin(_ path: [String], _ outer: [String]) -> Bool {
    path.count > outer.count && Array(path.prefix(outer.count)) == outer
  }

  /// Whether the current version uses a class, so that the app changes it.
  private func isLive(_ declaration: SourceDeclaration) -> Bool {
    guard let current, current.classNames[declaration.name] == declaration.path.joined(separator: ".") else {
      return false
    }
    // A class nested in a historical schema is frozen.
    guard let own = namespace(of: declaration) else { return true }
    return own.joined(separator: ".") == current.schemaName
  }

  static func words(_ declaration: SourceDeclaration) -> String {
    "\(declaration.name) (\(declaration.place.file):\(declaration.place.line))"
  }

  // MARK: Rules of historical schemas

  private mutating func checkLiveClasses(_ version: SourceVersion, _ schema: SourceDeclaration) {
    let live = version.classNames.keys.inCodeUnitOrder()
      .compactMap { models.declaration(of: $0, in: version) }.filter { isLive($0) }
    guard !live.isEmpty else { return }
    let hint = "Freeze the version \(version.name) as \(schema.name) with \(Self.freezeSources)"
    if let list = models.listed(by: schema) {
      let listed = live.filter { one in list.classes.contains { $0.path == one.path } }
      if !listed.isEmpty {
        add(
          .liveClass, .error, version.name, entity: listed[0].name, at: list.place,
          """
          \(schema.name) lists \(listed.count == 1 ? "a class" : "classes") of the current version: \
          \(listed.prefix(8).map { Self.words($0) }.joined(separator: ", "))\(listed.count > 8 ? " and others" : ""); a \
          change of one moves the checksum of \(schema.name), and stores of it become unknown (134504)
          """, hint)
      }
    }
    for entity in version.classNames.keys.inCodeUnitOrder() {
      guard let owner = models.declaration(of: entity, in: version), !isLive(owner) else { continue }
      for property in owner.properties where property.isOfInstance {
        guard let destination = models.program.destination(of: property, in: owner), isLive(destination),
          namespace(of: destination) == nil
        else { continue }
        add(
          .liveClass, .error, version.name, entity: entity, property: property.name, at: property.place,
          """
          \(entity).\(property.name) of \(schema.name) leads to \(Self.words(destination)), a class of the current version; \
          a change of it moves the checksum of \(schema.name), and stores of it become unknown (134504)
          """, "Declare a \(destination.name) within \(schema.name), as it was released.")
      }
    }
  }

  /// Finds the app's own types in frozen classes.
  private mutating func checkTypes(_ version: SourceVersion, _ schema: SourceDeclaration) {
    let present = Set((current.map { types(of: $0) } ?? []).map(\.path))
    var told: Set<[String]> = []
    for entity in version.classNames.keys.inCodeUnitOrder() {
      guard let owner = models.declaration(of: entity, in: version), Self.isWithin(owner.path, schema.path) else {
        continue
      }
      for property in owner.properties where Self.isStored(property) {
        for type in models.program.hashedTypes(of: property, in: owner) {
          guard present.contains(type.path), namespace(of: type) == nil, told.insert(type.path).inserted else {
            continue
          }
          let isEnumeration = type.kind == .enumeration
          add(
            .unfrozenType, .error, version.name, entity: entity, property: property.name, at: property.place,
            """
            \(entity).\(property.name) of \(schema.name) is of \(isEnumeration ? "enum" : "struct") \(Self.words(type)), \
            which the current version uses too; its \(isEnumeration ? "cases" : "properties") are part of the hash, and a \
            change of them moves the checksum of \(schema.name)
            """, "Declare a copy of \(type.name) within \(schema.name).")
        }
      }
    }
  }

  private func types(of version: SourceVersion) -> [SourceDeclaration] {
    version.classNames.keys.compactMap { models.declaration(of: $0, in: version) }.flatMap { owner in
      owner.properties.filter { Self.isStored($0) }.flatMap { models.program.hashedTypes(of: $0, in: owner) }
    }
  }

  private static func isStored(_ property: SourceProperty) -> Bool {
    property.isOfInstance && property.attribute("Transient") == nil
  }

  /// Finds classes named like an alias when the entity had the class's own name.
  private mutating func checkAliases(_ version: SourceVersion, _ schema: SourceDeclaration) {
    for alias in aliases {
      guard !Self.isWithin(alias.path, schema.path),
        let target = models.program.follow(.found(alias)).declaration, target.isModel, target.name != alias.name,
        let own = models.declaration(of: alias.name, in: version), Self.isWithin(own.path, schema.path),
        version.classNames[target.name] == nil, !isReleased(entity: alias.name, of: version)
      else { continue }
      add(
        .aliasName, .warning, version.name, entity: own.name, at: own.place,
        """
        \(schema.name) has an entity \(own.name), called as the alias at \(alias.place.file):\(alias.place.line) whose class \
        is \(target.name); an alias is invisible, and what the app wrote by it is entity \(target.name)
        """, "If it is a copy of \(target.name), call it \(target.name) too; a store of the version tells.")
    }
  }

  /// By the version's name or hashes.
  private func isReleased(entity: String, of version: SourceVersion) -> Bool {
    released.contains { one in
      one.hashes[entity] != nil && (one.name == version.name || one.hashes == version.version.versionHashes)
    }
  }

  // MARK: Rules of all versions

  private mutating func checkRelationships(_ version: SourceVersion) {
    for entity in version.classNames.keys.inCodeUnitOrder() {
      guard let owner = models.declaration(of: entity, in: version), let own = namespace(of: owner) else { continue }
      // A schema may list another's unchanged class.
      let isOwnSchema = own.joined(separator: ".") == version.schemaName
      let listed = isOwnSchema ? models.schema(of: version).flatMap { models.listed(by: $0) }?.classes ?? [] : []
      for property in owner.properties where Self.isStored(property) {
        guard let destination = models.program.destination(of: property, in: owner),
          let other = namespace(of: destination), other != own, !listed.contains(where: { $0.path == destination.path })
        else { continue }
        add(
          .foreignVersionClass, .error, own.joined(separator: "."), entity: entity, property: property.name,
          at: property.place,
          """
          \(entity).\(property.name) of \(own.joined(separator: ".")) leads to \
          \(destination.path.joined(separator: ".")), a class of another version, which becomes part of this one in its \
          shape there
          """,
          "Let it lead to a \(destination.name) that is declared within \(own.joined(separator: ".")).")
      }
    }
  }

  private mutating func checkChecksums() {
    let planned = models.versions.filter { $0.isPlanned && $0.isComplete }
    for (number, version) in planned.enumerated() {
      guard let same = planned.prefix(number).first(where: { $0.version.checksum == version.version.checksum }) else {
        continue
      }
      add(
        .duplicateChecksum, .error, version.name, at: version.place,
        """
        \(version.name) and \(same.name) have one checksum; a plan with both is refused ("Duplicate version checksums \
        across stages detected.")
        """,
        """
        Leave one out of the plan: defaults, delete rules, indexes, original names and cases of enums with raw values make no \
        version.
        """)
    }
  }

  private mutating func checkPlan() {
    guard let place = models.planPlace, models.versions.contains(where: \.isPlanned) else { return }
    for one in released {
      let matching = models.versions.filter { $0.isComplete && $0.version.versionHashes == one.hashes }
      guard let version = matching.first, !matching.contains(where: \.isPlanned) else { continue }
      let source = one.origin == .lock ? "the lock file has it as \(one.name)" : "\(one.name) is a store of it"
      add(
        .unplannedRelease, .error, version.name, at: place,
        "the plan lacks \(version.name), which was released (\(source)); its stores are refused (134504)",
        version.schemaName.map { "Add \($0).self to the plan's schemas." }
          ?? "Freeze it as a VersionedSchema, and add that to the plan's schemas.")
    }
  }

  /// Without schemas SwiftData infers the migration from the store's model.
  private mutating func checkStore(_ store: ReleasedVersion) {
    guard !schemaPaths.isEmpty else { return }
    guard !models.versions.contains(where: { $0.version.versionHashes == store.hashes }) else { return }
    func distance(_ version: SourceVersion) -> Int {
      let own = version.version.versionHashes
      return Set(own.keys).union(store.hashes.keys).count { own[$0] != store.hashes[$0] }
    }
    let hint = """
      \(Self.freezeStore) Add that to the plan. Undo the change where the version was edited after it had been released.
      """
    guard let nearest = models.versions.min(by: { distance($0) < distance($1) }),
      !Set(nearest.version.versionHashes.keys).isDisjoint(with: store.hashes.keys)
    else {
      add(
        .unknownRelease, .error, models.currentName, at: current?.place,
        "\(store.name) is of none of the versions, and has no entity in common with any", hint)
      return
    }
    let own = nearest.version.versionHashes
    let entities = Set(own.keys).union(store.hashes.keys).filter { own[$0] != store.hashes[$0] }.inCodeUnitOrder()
    let difference = store.model.map { ModelDifference(from: $0, to: nearest.version.model) }
    let words = difference.map { Self.words($0) } ?? []
    let first = difference.flatMap {
      $0.addedProperties.first ?? $0.changedProperties.first ?? $0.removedProperties.first
    }
    let entity = first?.entity ?? entities.first { own[$0] != nil }
    add(
      .unknownRelease, .error, nearest.name, entity: entity, property: first?.property,
      at: models.place(version: nearest.name, entity: entity, property: first?.property) ?? nearest.place,
      """
      \(store.name) is of none of the versions; the nearest is \(nearest.name), which differs in \
      \((words.isEmpty ? entities : words).prefix(8).joined(separator: ", "))
      """, hint)
  }

  private static func words(_ difference: ModelDifference) -> [String] {
    difference.removedEntities.map { "\($0) (only in the store)" }
      + difference.addedEntities.map { "\($0) (only in the version)" }
      + difference.removedProperties.map { "\($0.entity).\($0.property) (only in the store)" }
      + difference.addedProperties.map { "\($0.entity).\($0.property) (only in the version)" }
      + difference.changedProperties.map { "\($0.entity).\($0.property) (\($0.changes.joined(separator: ", ")))" }
  }

  private mutating func checkListed(_ before: SourceVersion, _ after: SourceVersion) {
    for entity in before.classNames.keys.inCodeUnitOrder() where after.classNames[entity] == nil {
      let own = after.schemaName.map { $0.split(separator: ".").map(String.init) + [entity] }
      let candidates = classes.filter { $0.path == own || $0.path == [entity] }
      let isLast = after.name == models.currentName
      guard let declared = candidates.first(where: { $0.path == own || isLast }) else { continue }
      add(
        .unlistedClass, .warning, after.name, entity: entity, at: declared.place,
        """
        \(entity) was in \(before.name), and \(after.name) neither lists nor reaches it though it is declared: a migration \
        deletes its records
        """, "List \(entity).self among the models of \(after.name), or remove the class where that is meant.")
    }
  }

  // MARK: Platforms

  private mutating func checkPlatforms(_ others: [(platform: SourcePlatform, models: SourceModels)]) {
    var found: [PlatformDifference: [String]] = [:]
    for other in others {
      for version in models.versions {
        guard let there = other.models.versions.first(where: { $0.name == version.name }) else { continue }
        let difference = ModelDifference(from: version.version.model, to: there.version.model)
        func note(_ entity: String, _ property: String?, _ place: SourcePlace?) {
          let key = PlatformDifference(version: version.name, entity: entity, property: property, place: place)
          found[key, default: []].append(other.platform.rawValue)
        }
        func place(_ entity: String, _ property: String? = nil, in models: SourceModels) -> SourcePlace? {
          models.place(version: version.name, entity: entity, property: property)
        }
        for one in difference.removedProperties + difference.changedProperties {
          note(one.entity, one.property, place(one.entity, one.property, in: models))
        }
        for one in difference.addedProperties {
          note(one.entity, one.property, place(one.entity, one.property, in: other.models))
        }
        for entity in difference.removedEntities + difference.addedEntities {
          note(entity, nil, place(entity, in: models) ?? place(entity, in: other.models))
        }
      }
    }
    for (key, platforms) in found {
      let subject = key.property.map { "\(key.entity).\($0)" } ?? key.entity
      add(
        .platformDependent, .warning, key.version, entity: key.entity, property: key.property, at: key.place,
        """
        \(subject) is not the same on \(platforms.inCodeUnitOrder().joined(separator: ", ")): the hashes of \
        \(key.version) differ by platform, and stores that are shared or copied are unknown there
        """, "Declare it on every platform.")
    }
  }

  private struct PlatformDifference: Hashable {
    var version: String
    var entity: String
    var property: String?
    var place: SourcePlace?
  }
}

/// A version known from stores in the field.
public struct ReleasedVersion: Sendable {
  /// The source of this knowledge.
  public enum Origin: Sendable, Hashable {
    case lock

    case store
  }

  /// The name of the version, or of the store's file.
  public var name: String

  /// The source of this knowledge.
  public var origin: Origin

  /// The version hash of each entity.
  public var hashes: [String: VersionHash]

  /// The store's model, if known.
  public var model: ManagedObjectModel?

  /// Creates a released version.
  public init(name: String, origin: Origin, hashes: [String: VersionHash], model: ManagedObjectModel? = nil) {
    self.name = name
    self.origin = origin
    self.hashes = hashes
    self.model = model
  }
}
