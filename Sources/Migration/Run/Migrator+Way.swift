internal import GRDB
internal import ManagedObjectModel
import PersistentStore
internal import Platform
internal import SystemPackage

extension Migrator {
  /// The remaining steps; nil if model or options have changed.
  func rest(of journal: MigrationJournal, _ file: FilePath, _ options: Options) throws -> MigrationPath? {
    let expected = journal.steps.dropFirst(journal.finished)
    // The file may be of a draft on the path, which is already decided.
    var options = options
    options.version = expected.last?.destination ?? options.version ?? bundle.current.name
    options.via = expected.dropLast().map(\.destination)
    let rest = try way(from: try StepConnection.read(file) { try StoreFacts($0) }, options)
    let found = rest.steps.map { ManagedObjectModel.versionChecksum(of: $0.mapping.destinationHashes) }
    return found == expected.map(\.destinationChecksum) ? rest : nil
  }

  /// The steps from a store to the wanted version.
  ///
  /// Metadata hashes identify the version; without one in the bundle, the store's own model is used.
  func way(from facts: StoreFacts, _ options: Options) throws -> MigrationPath {
    let source = try source(facts)
    if options.onlyRepairs {
      // A newer store is repaired by its own app.
      if case .model(let model) = source { try refuseForeign(model, Options()) }
      return MigrationPath(stayingAt: version(of: facts)?.name ?? "")
    }
    return try way(from: source, options)
  }

  /// Finds the steps from a model to the wanted version.
  ///
  /// - Throws: `MigrationError` without a path, including `newerModel`, `backwards` and `otherModel`.
  package func way(from source: MigrationPath.Source, _ options: Options) throws -> MigrationPath {
    if case .model(let model) = source { try refuseForeign(model, options) }
    var choice = MigrationPath.Options(
      isDirect: options.isDirect, via: options.via, mappings: options.mappings, stages: options.stages,
      acceptsLosses: options.whenMigrationLoses == .migrate)
    choice.matchesNames = options.matchesNames
    let path = try MigrationPath(in: bundle, from: source, to: options.version, options: choice)
    try checkCustomSteps(path, options)
    return path
  }

  func wayAndRepair(
    _ file: FilePath, _ options: Options
  ) throws -> (path: MigrationPath, repair: RepairStep?, nothing: RepairAccount) {
    try StepConnection.read(file) { database in
      let facts = try StoreFacts(database)
      let repair = try repairStep(facts, database, options)
      return (path: try way(from: facts, options), repair: repair.step, nothing: repair.nothing)
    }
  }

  /// The store's model: a version of the bundle, or its own.
  func source(_ facts: StoreFacts) throws -> MigrationPath.Source {
    let hashes = facts.metadata.versionHashes
    let carried = facts.model.flatMap { $0.versionHashes() == hashes ? $0 : nil }
    if let known = version(of: facts) {
      return carried.map { .stored(version: known.name, model: $0) } ?? .version(known.name)
    }
    if let carried { return .model(carried) }
    throw MigrationError(
      .sourceModelMissing, operation: "plan the migration", path: bundle.path,
      detail: "no version of the model has the store's version hashes, and the store carries no model of its own"
        + (bundle.unreadableVersions.first.map { "; version \"\(printable($0.name))\" cannot be read" } ?? ""))
  }

  /// Throws if records would go although the target has their entity's name or identifier.
  func refuseLosses(_ path: MigrationPath, _ file: FilePath, _ options: Options) throws {
    guard options.whenMigrationLoses == .refuse else { return }
    let contested = ContestedEntity.all(on: path)
    guard !contested.isEmpty else { return }
    let refusals = try StepConnection.read(file) { try path.refusals(for: contested, $0) }
    guard !refusals.isEmpty else { return }
    var error = MigrationError.refused(refusals)
    error.operation = "plan the migration"
    throw error
  }

  func version(of facts: StoreFacts) -> ModelVersion? {
    bundle.version(
      matching: facts.metadata.versionHashes, identifiers: facts.metadata.versionIdentifiers, cached: facts.model)
  }

  /// Rejects models newer than the app's, or other apps'.
  ///
  /// Migrating would delete their data, unless a target was named.
  private func refuseForeign(_ model: ManagedObjectModel, _ options: Options) throws {
    let target = options.version.flatMap { bundle.version(named: $0) } ?? bundle.current
    let known = bundle.versions(upTo: target)
    let names = Set(known.flatMap(\.model.entities.keys))
    guard !names.isDisjoint(with: model.entities.keys) else {
      throw MigrationError(
        .otherModel, operation: "plan the migration", path: bundle.path,
        detail: "the store has no entity in common with the model")
    }
    let surplus = options.version == nil ? model.surplus(over: known.map(\.model)) : []
    guard surplus.isEmpty else {
      let list = surplus.prefix(10).map(printable).joined(separator: ", ")
      throw MigrationError(
        .newerModel, operation: "plan the migration", path: bundle.path,
        detail:
          "the store's model has something that \"\(printable(target.name))\" and the versions before it lack: \(list)"
          + (surplus.count > 10 ? " and \(surplus.count - 10) more" : ""))
    }
  }
}

/// A removed entity the final version has by name or identifier.
struct ContestedEntity {
  let step: String

  let name: String

  let namesake: String

  /// The contested entities of a path; those the final version simply lacks are excluded.
  static func all(on path: MigrationPath) -> [ContestedEntity] {
    guard let last = path.steps.last?.mapping.destination, let first = path.steps.first?.mapping.source else {
      return []
    }
    var result: [ContestedEntity] = []
    for (number, step) in path.steps.enumerated() {
      // A custom mapping states its removals.
      guard case .inferred = step.mapping.origin else { continue }
      let trace = PropertyTrace(earlier: path.steps[..<number].map(\.mapping))
      for loss in step.mapping.losses where loss.kind == .removedEntity {
        guard case .entity(let name) = trace.records(of: loss.sourceEntityName), let entity = first.entities[name]
        else { continue }
        let names = [name, loss.sourceEntityName, entity.renamingIdentifier]
        let namesake = last.entities.values.map(\.name).inCodeUnitOrder().first { other in
          names.contains(other) || last.entities[other].map { names.contains($0.renamingIdentifier) } == true
        }
        if let namesake { result.append(ContestedEntity(step: step.name, name: name, namesake: namesake)) }
      }
    }
    return result
  }

  func refusal(_ database: Database, _ layout: StoreLayout) throws -> MigrationRefusal? {
    guard let entity = layout.entity(named: name) else { return nil }
    let rows = try database.count(from: "\(entity.tableName.sqlName) WHERE Z_ENT = \(entity.number)")
    guard rows > 0 else { return nil }
    return MigrationRefusal(
      .losesEntity, entity: name, reason: "The entity is removed although the destination has one of its name",
      detail: "\(rows) record\(rows == 1 ? "" : "s") of entity \"\(printable(name))\" would be deleted, although the "
        + "version has an entity \"\(printable(namesake))\" that has its name or names it",
      wayRound: "Give a mapping for the step that says what becomes of them. If they are meant to go, "
        + "\(MigrationRefusal.acceptLoss)"
    ).ofStep(step)
  }
}

extension MigrationPath {
  func refusals(for contested: [ContestedEntity], _ database: Database) throws -> [MigrationRefusal] {
    guard !contested.isEmpty, let model = steps.first?.mapping.source else { return [] }
    let layout = try StoreLayout(model)
    return try contested.compactMap { try $0.refusal(database, layout) }
  }
}
