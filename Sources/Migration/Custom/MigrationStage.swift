public import GRDB
public import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SystemPackage

extension Migrator {
  enum StageMoment: String, CaseIterable {
    case willMigrate, didMigrate
  }

  /// Rejects invalid steps and stages of unknown versions.
  func checkCustomSteps(_ path: MigrationPath, _ options: Options) throws {
    for step in path.steps {
      do {
        try step.mapping.check(policies: options.policies)
      } catch { throw MigrationError(any: error).told(step: step.name).told(at: step.mapping.origin.path) }
    }
    var known = Set(bundle.versions.flatMap { [$0.name, $0.checksum] })
    if let first = path.steps.first { known.insert(ManagedObjectModel.versionChecksum(of: first.mapping.sourceHashes)) }
    for name in options.stages.flatMap({ [$0.source, $0.destination] }).compactMap(\.self) where !known.contains(name) {
      throw MigrationError(
        .unknownVersion, operation: "prepare the stages of the migration", path: bundle.path,
        detail: "a stage names the version \"\(printable(name))\", which the model does not have",
        hint: NameSuggestion.hint(for: name, among: bundle.versions.map(\.name), "versions"))
    }
  }

  func handlers(_ moment: StageMoment, _ step: MigrationStep, _ options: Options) -> [MigrationStage.Handler] {
    if options.stages.isEmpty { return [] }
    let sources = [step.sourceName, ManagedObjectModel.versionChecksum(of: step.mapping.sourceHashes)]
    let destinations = [step.destinationName, ManagedObjectModel.versionChecksum(of: step.mapping.destinationHashes)]
    return options.stages.filter { stage in
      (stage.source.map(sources.contains) ?? true) && (stage.destination.map(destinations.contains) ?? true)
    }.compactMap { moment == .willMigrate ? $0.willMigrate : $0.didMigrate }
  }

  func hasCode(_ step: MigrationStep, _ options: Options) -> Bool {
    StageMoment.allCases.contains { !handlers($0, step, options).isEmpty }
      || step.mapping.entityMappings.contains { $0.needsPolicy || options.policies.isNamed($0) }
  }

  /// Records a new attempt at a step with app code.
  ///
  /// - Returns: The attempt, from 1.
  func noteAttempt(
    _ number: Int, _ step: MigrationStep, _ journal: inout MigrationJournal, _ folder: WorkingFolder, _ options: Options
  ) throws -> Int {
    guard hasCode(step, options) else { return 1 }
    let attempt = (journal.steps[number - 1].attempts ?? 0) + 1
    journal.steps[number - 1].attempts = attempt
    try folder.write(journal)
    return attempt
  }

  /// The step's source, copied if handlers change it.
  func sourceFile(
    from source: FilePath, _ number: Int, _ step: MigrationStep, _ folder: WorkingFolder, _ options: Options,
    attempt: Int, referenceDate: Double
  ) throws -> FilePath {
    let handlers = handlers(.willMigrate, step, options)
    guard !handlers.isEmpty else { return source }
    let copy = folder.stageCopy(number)
    do { try fileSystem.duplicate(source, to: copy) } catch { throw MigrationError(any: error, path: copy) }
    let stage = PolicyRun.Stage(stepName: step.name, attempt: attempt, userInfo: options.userInfo)
    let layout = try LayoutCache().entry(for: step.mapping.source).layout
    try call(handlers, .willMigrate, on: copy, layout, stage, referenceDate: referenceDate)
    return copy
  }

  /// Runs handlers on a step's result, before it is checked.
  func runDidMigrate(
    _ step: MigrationStep, _ rebuild: StoreRebuild, _ target: FilePath, _ options: Options, _ account: inout StepAccount
  ) throws {
    let handlers = handlers(.didMigrate, step, options)
    guard !handlers.isEmpty else { return }
    let layout = rebuild.layout.destination
    try call(handlers, .didMigrate, on: target, layout, rebuild.stage, referenceDate: rebuild.referenceDate)
    account.entities = try StepConnection.read(target) { database in
      try layout.entities.compactMap { entity in
        let rows = try database.count(from: "\(entity.tableName.sqlName) WHERE Z_ENT = \(entity.number)")
        let source = rebuild.layout.routes.first { $0.destination.name == entity.name }?.source.name
        return rows == 0 && source == nil ? nil : .init(entity: entity.name, source: source, rows: rows)
      }
    }
  }

  private func call(
    _ handlers: [MigrationStage.Handler], _ moment: StageMoment, on file: FilePath, _ layout: StoreLayout,
    _ stage: PolicyRun.Stage, referenceDate: Double
  ) throws {
    let connection = try StepConnection(file, .write, referenceDate: referenceDate)
    do {
      try connection.run { database in
        try database.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; BEGIN IMMEDIATE")
        let records = RecordAccess(database, layout, InferenceSide(layout.model), schema: "main.", isReadOnly: false)
        defer { records.close() }
        let context = StageContext(records, stage)
        do {
          for handler in handlers {
            try handler(context)
            try records.flush()
          }
        } catch { throw Self.told(error, moment) }
        try database.execute(sql: "COMMIT")
        guard moment == .didMigrate else { return }
        try database.execute(sql: "PRAGMA fullfsync = 1; PRAGMA journal_mode = WAL")
        try database.bringLogIntoMainFile()
      }
    } catch {
      // Report the first error only; the file is discarded.
      try? connection.close()
      throw error
    }
    try connection.close()
  }

  /// Wraps a handler's error without record values.
  private static func told(_ error: any Error, _ moment: StageMoment) -> MigrationError {
    if var error = error as? MigrationError {
      if error.isEnvironmental { return error }
      error.details.code = error.fileError?.code
      error.kind = .stageHandlerFailed
      error.detail = "\(moment.rawValue): \(error.detail)"
      return error
    }
    if MigrationError(environmental: error) != nil { return MigrationError(any: error) }
    let detail = MigrationError.words(for: error, of: "the handler")
    return MigrationError(
      .stageHandlerFailed, operation: "carry out a stage of the migration", detail: "\(moment.rawValue): \(detail)")
  }
}

/// App code before or after a step, for work a mapping can't do (Core Data's custom stages, format section 5.4).
///
/// It names the step by one or both versions; stages of the same step run in order. A skipped step runs no stages.
public struct MigrationStage: Sendable {
  /// A stage handler.
  public typealias Handler = @Sendable (StageContext) throws -> Void

  /// The step's source version, by name or checksum; nil for any.
  public var source: String?

  /// The step's destination version, by name or checksum; nil for any.
  public var destination: String?

  /// Runs before the step; its changes are migrated.
  public var willMigrate: Handler?

  /// Runs after the step, on checked records, which are then checked again.
  public var didMigrate: Handler?

  /// Makes a stage for steps between the given versions.
  public init(
    from source: String? = nil, to destination: String? = nil, willMigrate: Handler? = nil, didMigrate: Handler? = nil
  ) {
    self.source = source
    self.destination = destination
    self.willMigrate = willMigrate
    self.didMigrate = didMigrate
  }
}

/// The records of one version, in one transaction, for stage handlers.
///
/// Valid during the call.
public final class StageContext {
  /// The step, such as `V1 → V2`.
  public let stepName: String

  /// The records' model.
  public let model: ManagedObjectModel

  /// The attempt at this step, from 1.
  public let attempt: Int

  /// The migration's free text.
  public let userInfo: [String: String]

  let records: RecordAccess

  init(_ records: RecordAccess, _ stage: PolicyRun.Stage) {
    self.records = records
    stepName = stage.stepName
    attempt = stage.attempt
    userInfo = stage.userInfo
    model = records.layout.model
  }

  /// Whether an earlier attempt was interrupted; its record changes are gone, but not the handler's other effects.
  public var isRepeated: Bool { attempt > 1 }

  /// Returns a batch of an entity's records by primary key, without sub-entities.
  public func records(of entityName: String, after key: Int64 = .min, limit: Int = 1000) throws -> [MigrationRecord] {
    try records.records(of: entityName, where: "o.Z_PK > ?", [key.databaseValue], limit: max(1, limit))
  }

  /// Calls a closure with each record of an entity, without sub-entities, in batches.
  ///
  /// Changes to the records are written.
  public func forEachRecord(of entityName: String, _ body: (MigrationRecord) throws -> Void) throws {
    var key = Int64.min
    while true {
      let batch = try records(of: entityName, after: key)
      for record in batch {
        try body(record)
        try records.flushIfFull()
      }
      guard let last = batch.last else { return }
      key = last.primaryKey
    }
  }

  /// Makes a record with its entity's defaults.
  public func createRecord(of entityName: String) throws -> MigrationRecord {
    let root = try records.root(ofEntity: entityName)
    let database = try records.openDatabase()
    try database.cachedStatement(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1 WHERE Z_ENT = ?")
      .execute(arguments: [root.number])
    guard
      let key = try Int64.fetchOne(
        database.cachedStatement(sql: "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?"), arguments: [root.number])
    else { throw RecordAccess.failure("the store has no primary keys for \(printable(root.name))", entity: entityName) }
    return try records.create(entityName, primaryKey: key)
  }

  /// Deletes a record and clears references to it.
  public func delete(_ record: MigrationRecord) throws { try records.delete(record) }

  /// Returns the related records.
  public func records(of relationship: String, from record: MigrationRecord) throws -> [MigrationRecord] {
    try records.destinations(of: relationship, from: record)
  }

  /// Replaces the records of a relationship; the inverse follows.
  public func setRecords(of relationship: String, from record: MigrationRecord, to others: [MigrationRecord]) throws {
    try records.setDestinations(of: relationship, from: record, to: others)
  }

  /// Adds records to a relationship; the inverse follows.
  public func addRecords(of relationship: String, from record: MigrationRecord, to others: [MigrationRecord]) throws {
    try records.connect(relationship, from: record, to: others)
  }

  /// Runs SQL on Core Data's tables within the transaction.
  public func withDatabase<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try records.flush()
    return try body(records.openDatabase())
  }
}
