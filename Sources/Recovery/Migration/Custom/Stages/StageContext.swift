public import GRDB
public import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

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
