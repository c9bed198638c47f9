public import GRDB
public import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SystemPackage

extension Migrator {
  /// When a handler of a stage is called.
  enum StageMoment: String {
    case willMigrate, didMigrate
  }

  /// Refuses, before the start, steps that cannot be carried out, and stages of versions that are not there.
  func checkCustomSteps(_ path: MigrationPath, _ options: Options) throws(MigrationError) {
    for step in path.steps {
      do throws(MigrationError) {
        try step.mapping.check(policies: options.policies)
      } catch {
        var told = error.told(step: step.name)
        if told.path == nil { told.path = step.mapping.origin.path }
        throw told
      }
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

  /// The handlers for a moment of a step.
  func handlers(_ moment: StageMoment, _ step: MigrationStep, _ options: Options) -> [MigrationStage.Handler] {
    options.stages.filter { stage in
      stage.isAt(
        source: [step.sourceName, ManagedObjectModel.versionChecksum(of: step.mapping.sourceHashes)],
        destination: [step.destinationName, ManagedObjectModel.versionChecksum(of: step.mapping.destinationHashes)])
    }.compactMap { moment == .willMigrate ? $0.willMigrate : $0.didMigrate }
  }

  /// Whether code of the app takes part in a step.
  func hasCode(_ step: MigrationStep, _ options: Options) -> Bool {
    StageMoment.allMoments.contains { !handlers($0, step, options).isEmpty }
      || step.mapping.entityMappings.contains { $0.needsPolicy || options.policies.isNamed($0) }
  }

  /// Notes that a step with code of the app is begun once more; other steps need no note.
  ///
  /// - Returns: which attempt it is, from 1.
  func noteAttempt(
    _ number: Int, _ step: MigrationStep, _ journal: inout MigrationJournal, _ folder: WorkingFolder, _ options: Options
  ) throws(MigrationError) -> Int {
    guard hasCode(step, options) else { return 1 }
    let attempt = (journal.steps[number - 1].attempts ?? 0) + 1
    journal.steps[number - 1].attempts = attempt
    try folder.write(journal)
    return attempt
  }

  /// The file that a step starts from: the finished one, or where handlers change it first, a copy of it.
  func sourceFile(
    from source: FilePath, _ number: Int, _ step: MigrationStep, _ folder: WorkingFolder, _ options: Options,
    attempt: Int, referenceDate: Double
  ) throws(MigrationError) -> FilePath {
    let handlers = handlers(.willMigrate, step, options)
    guard !handlers.isEmpty else { return source }
    let copy = folder.prepared(number)
    do {
      try fileSystem.duplicate(source, to: copy)
    } catch {
      throw MigrationError(database: error, path: copy)
    }
    let stage = PolicyRun.Stage(stepName: step.name, attempt: attempt, userInfo: options.userInfo)
    try call(
      handlers, .willMigrate, on: copy, try layout(step.mapping.source), stage, referenceDate: referenceDate)
    return copy
  }

  /// Lets handlers change what a step has made, before it is checked.
  func finishStage(
    _ step: MigrationStep, _ rebuild: StoreRebuild, _ target: FilePath, _ options: Options,
    _ account: inout StepAccount
  ) throws(MigrationError) {
    let handlers = handlers(.didMigrate, step, options)
    guard !handlers.isEmpty else { return }
    let layout = rebuild.layout.destination
    try call(
      handlers, .didMigrate, on: target, layout, rebuild.stage, referenceDate: rebuild.referenceDate)
    let connection = try StepConnection(target, .immutable)
    account.entities = try connection.read { database in
      try layout.entities.compactMap { entity in
        let rows =
          try Int.fetchOne(
            database,
            sql: "SELECT count(*) FROM \(SQLText.identifier(entity.tableName)) WHERE Z_ENT = \(entity.number)") ?? 0
        let source = rebuild.layout.routes.first { $0.destination.name == entity.name }?.source.name
        return rows == 0 && source == nil ? nil : .init(entity: entity.name, source: source, rows: rows)
      }
    }
    try connection.close()
  }

  private func layout(_ model: ManagedObjectModel) throws(MigrationError) -> StoreLayout {
    do {
      return try StoreLayout(model)
    } catch {
      throw MigrationError(database: error, path: nil)
    }
  }

  private func call(
    _ handlers: [MigrationStage.Handler], _ moment: StageMoment, on file: FilePath, _ layout: StoreLayout,
    _ stage: PolicyRun.Stage, referenceDate: Double
  ) throws(MigrationError) {
    let connection = try StepConnection(file, .write, referenceDate: referenceDate)
    do {
      try connection.run { database in
        try database.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; BEGIN IMMEDIATE")
        let records = RecordAccess(database, layout, InferenceSide(layout.model), schema: "main.", isReadOnly: false)
        defer { records.close() }
        let context = StageContext(
          records, stepName: stage.stepName, attempt: stage.attempt, userInfo: stage.userInfo)
        do {
          for handler in handlers {
            try handler(context)
            try records.flush()
          }
        } catch {
          throw Self.told(error, moment)
        }
        try database.execute(sql: "COMMIT")
        guard moment == .didMigrate else { return }
        try database.execute(sql: "PRAGMA fullfsync = 1; PRAGMA journal_mode = WAL")
        try database.bringLogIntoMainFile()
      }
    } catch {
      // The first error is the one to report; the file is thrown away.
      try? connection.close()
      throw error
    }
    try connection.close()
  }

  /// The error of a handler, without anything that a record holds.
  private static func told(_ error: any Error, _ moment: StageMoment) -> MigrationError {
    let detail: String
    switch error {
    case var error as MigrationError:
      if error.isEnvironmental { return error }
      error.details.code = error.fileError?.code
      error.kind = .stageHandlerFailed
      error.detail = "\(moment.rawValue): \(error.detail)"
      return error
    case _ where MigrationError(environmental: error) != nil:
      return MigrationError(database: error, path: nil)
    case let error as DatabaseError:
      detail = "SQLite reported \(error.resultCode)"
    default: detail = "the handler threw an error of type \(printable(typeName(of: error)))"
    }
    return MigrationError(
      .stageHandlerFailed, operation: "carry out a stage of the migration", detail: "\(moment.rawValue): \(detail)")
  }
}

extension Migrator.StageMoment {
  static let allMoments: [Migrator.StageMoment] = [.willMigrate, .didMigrate]
}

/// Code of an app that runs before or after a step, on the records of the copy: what app logic has to do between two
/// versions that a mapping alone cannot (Core Data's custom stages, format section 5.4).
///
/// The step is named by one of its versions or by both; where several stages name a step, they run in the order given.
/// A step that is not taken, because the versions between are skipped, runs no stages.
public struct MigrationStage: Sendable {
  /// What a handler looks like.
  public typealias Handler = @Sendable (StageContext) throws -> Void

  /// The version that the step starts from, by name or by checksum; nil for any.
  public var source: String?

  /// The version that the step leads to, by name or by checksum; nil for any.
  public var destination: String?

  /// Called with the records as they were before the step; what it changes, the step migrates.
  public var willMigrate: Handler?

  /// Called with the records as they are after the step, which have passed every check and will be checked again.
  public var didMigrate: Handler?

  /// A stage at the steps from a version, to a version, or from the one to the other.
  public init(
    from source: String? = nil, to destination: String? = nil, willMigrate: Handler? = nil, didMigrate: Handler? = nil
  ) {
    self.source = source
    self.destination = destination
    self.willMigrate = willMigrate
    self.didMigrate = didMigrate
  }

  /// Whether it belongs to a step, whose versions are named by name and checksum.
  func isAt(source names: [String?], destination otherNames: [String?]) -> Bool {
    (source.map(names.contains) ?? true) && (destination.map(otherNames.contains) ?? true)
  }
}

/// What the handlers of stages are given to work with: the records of one side of a step, in one transaction.
///
/// It lasts as long as the call.
public final class StageContext {
  /// The step, such as `V1 → V2`.
  public let stepName: String

  /// The model that the records are of.
  public let model: ManagedObjectModel

  /// Which attempt at this step it is, from 1.
  public let attempt: Int

  /// Free text that was given to the migration as a whole.
  public let userInfo: [String: String]

  let records: RecordAccess

  init(_ records: RecordAccess, stepName: String, attempt: Int, userInfo: [String: String]) {
    self.records = records
    self.stepName = stepName
    self.attempt = attempt
    self.userInfo = userInfo
    model = records.layout.model
  }

  /// Whether an earlier attempt at this step was interrupted; nothing of what it changed is left in the records, but what
  /// the handler did outside may be.
  public var isRepeated: Bool { attempt > 1 }

  /// The records of an entity, without those of its sub-entities, in batches by primary key.
  public func records(of entityName: String, after key: Int64 = .min, limit: Int = 1000) throws -> [MigrationRecord] {
    try records.records(of: entityName, where: "o.Z_PK > ?", [key.databaseValue], limit: max(1, limit))
  }

  /// Calls a closure with every record of an entity, without those of its sub-entities, in batches.
  ///
  /// What it changes in the record is written.
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

  /// Makes a record with the defaults of its entity.
  public func createRecord(of entityName: String) throws -> MigrationRecord {
    guard let entity = records.layout.entity(named: entityName),
      let root = records.layout.entity(named: entity.rootName)
    else { throw RecordAccess.failure("there is no entity \"\(printable(entityName))\"", entity: entityName) }
    let database = try records.openDatabase()
    try database.cachedStatement(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1 WHERE Z_ENT = ?")
      .execute(arguments: [root.number])
    guard
      let key = try Int64.fetchOne(
        database.cachedStatement(sql: "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?"), arguments: [root.number])
    else { throw RecordAccess.failure("the store has no primary keys for \(printable(root.name))", entity: entityName) }
    return try records.create(entityName, primaryKey: key)
  }

  /// Deletes a record; whatever led to it leads nowhere.
  public func delete(_ record: MigrationRecord) throws { try records.delete(record) }

  /// The records that a relationship of a record leads to.
  public func records(of relationship: String, from record: MigrationRecord) throws -> [MigrationRecord] {
    try records.destinations(of: relationship, from: record)
  }

  /// Lets a relationship lead to these records and to no others; the inverse follows.
  public func setRecords(of relationship: String, from record: MigrationRecord, to others: [MigrationRecord]) throws {
    try records.setDestinations(of: relationship, from: record, to: others)
  }

  /// Lets a relationship lead to these records as well; the inverse follows.
  public func addRecords(of relationship: String, from record: MigrationRecord, to others: [MigrationRecord]) throws {
    try records.connect(relationship, from: record, to: others)
  }

  /// Gives the connection to code that writes SQL, inside the transaction; tables and columns are Core Data's.
  public func withDatabase<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try records.flush()
    return try body(records.openDatabase())
  }
}
