internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

/// Which steps lead from a store to the wanted version.
extension Migrator {
  /// The steps that are left; nil where the model or the options have changed since.
  func rest(
    of journal: MigrationJournal, _ file: FilePath, _ options: Options
  ) throws(MigrationError) -> MigrationPath? {
    let expected = journal.steps.dropFirst(journal.finished)
    // The file may be of a draft that the way goes through; where it goes from there has been decided.
    var options = options
    options.version = expected.last?.destination ?? options.version ?? bundle.current.name
    options.via = expected.dropLast().map(\.destination)
    let rest = try way(from: try storeFacts(file), options)
    let found = rest.steps.map { ManagedObjectModel.versionChecksum(of: $0.mapping.destinationHashes) }
    return found == expected.map(\.destinationChecksum) ? rest : nil
  }

  /// The steps that lead from a store to the wanted version.
  ///
  /// The version is found by the hashes in the metadata; where the bundle lacks it, the store's own model is taken.
  func way(from facts: StoreFacts, _ options: Options) throws(MigrationError) -> MigrationPath {
    let source = try source(facts)
    if options.onlyRepairs {
      // A newer store is repaired by the app that made it.
      if case .model(let model) = source { try refuseForeign(model, Options()) }
      return MigrationPath(stayingAt: version(of: facts)?.name ?? "")
    }
    return try way(from: source, options)
  }

  /// The steps that lead from a model to the wanted version, as the options have them.
  ///
  /// - Throws: `MigrationError` where no way leads there: also `newerModel`, `backwards` and `otherModel`.
  package func way(from source: MigrationPath.Source, _ options: Options) throws(MigrationError) -> MigrationPath {
    if case .model(let model) = source { try refuseForeign(model, options) }
    var choice = MigrationPath.Options(
      isDirect: options.isDirect, via: options.via, mappings: options.mappings, stages: options.stages,
      acceptsLosses: options.whenMigrationLoses == .migrate)
    choice.matchesNames = options.matchesNames
    let path = try MigrationPath(in: bundle, from: source, to: options.version, options: choice)
    try checkCustomSteps(path, options)
    return path
  }

  /// The steps that lead from a file to the wanted version, and the repair that it needs first.
  func wayAndRepair(
    _ file: FilePath, _ options: Options
  ) throws(MigrationError) -> (path: MigrationPath, repair: RepairStep?, nothing: RepairAccount) {
    let connection = try StepConnection(file, .immutable)
    let found = try connection.read { database in
      let facts = try StoreFacts(database)
      let repair = try repairStep(facts, database, options)
      return (path: try way(from: facts, options), repair: repair.step, nothing: repair.nothing)
    }
    try connection.close()
    return found
  }

  /// The model that a store was written with: a version of the bundle, or the one that it carries.
  func source(_ facts: StoreFacts) throws(MigrationError) -> MigrationPath.Source {
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

  /// Stops where records would go although the version still has something of their entity's name or identifier.
  func refuseLosses(
    _ path: MigrationPath, _ file: FilePath, _ options: Options
  ) throws(MigrationError) {
    guard options.whenMigrationLoses == .refuse else { return }
    let contested = ContestedEntity.all(on: path)
    guard !contested.isEmpty else { return }
    let connection = try StepConnection(file, .immutable)
    let refusals = try connection.read { try path.refusals(for: contested, $0) }
    try connection.close()
    guard let first = refusals.first else { return }
    var error = MigrationError(refusals: refusals)
    error.operation = "plan the migration"
    throw first.step.map { error.told(step: $0) } ?? error
  }

  /// The version of the bundle that a store was written with; nil for none.
  func version(of facts: StoreFacts) -> ModelVersion? {
    bundle.version(
      matching: facts.metadata.versionHashes, identifiers: facts.metadata.versionIdentifiers, cached: facts.model)
  }

  /// Stops where the store is of a model that is newer than the app's, or of another app's.
  ///
  /// Migrating would delete what only that model knows. Who names the version to go to has decided.
  private func refuseForeign(_ model: ManagedObjectModel, _ options: Options) throws(MigrationError) {
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
