internal import GRDB
public import PersistentStore
internal import StoreFiles

extension PersistentStore {
  /// Reads a batch of an entity's records in the order of their primary keys, those of its sub-entities included.
  ///
  /// - Parameters:
  ///   - entityName: the entity.
  ///   - key: only records with a higher primary key are read.
  ///   - limit: the most records read.
  /// - Throws: `PersistentStoreError` where the store has no model, the model no such entity, or SQLite reports an error.
  public func records(
    of entityName: String, after key: Int64 = .min, limit: Int = 500
  ) throws -> [Record] {
    let reader = try recordReader(for: entityName)
    return try read { try reader.records($0, after: key, limit: limit) }
  }

  /// Calls a closure with every record of an entity, in batches, so that memory stays flat.
  ///
  /// Each batch is a read of its own: changes made meanwhile may or may not be seen.
  ///
  /// - Parameters:
  ///   - entityName: the entity; records of its sub-entities are included.
  ///   - batchSize: how many records are read at once.
  ///   - body: called with each record; reading ends where it throws.
  public func forEachRecord(
    of entityName: String, batchSize: Int = 500, _ body: (Record) throws -> Void
  ) throws {
    let reader = try recordReader(for: entityName)
    let batchSize = max(1, batchSize)
    var key = Int64.min
    while true {
      let batch = try read { try reader.records($0, after: key, limit: batchSize) }
      for record in batch { try body(record) }
      guard let last = batch.last, batch.count == batchSize, last.primaryKey > key else { return }
      key = last.primaryKey
    }
  }

  /// The number of records of an entity, those of its sub-entities included.
  public func recordCount(of entityName: String) throws -> Int {
    guard let layout = try layout() else { throw withoutModel() }
    guard let entity = layout.entity(named: entityName) else { throw unknown("entity", entityName) }
    let table = SQLText.identifier(entity.tableName)
    return try read { database in
      let sql =
        entity.isRoot
        ? "SELECT count(*) FROM \(table)"
        : "SELECT count(*) FROM \(table) WHERE Z_ENT BETWEEN \(entity.number) AND \(entity.lastDescendantNumber)"
      return try Int.fetchOne(database, sql: sql) ?? 0
    }
  }

  /// The primary keys of the records that a to-many relationship of one record leads to.
  ///
  /// They come in the relationship's order where it has one, else by primary key.
  ///
  /// - Throws: `PersistentStoreError.unknownName` where the entity has no stored to-many relationship of that name.
  public func destinationKeys(
    of relationship: String, entity entityName: String, primaryKey: Int64
  ) throws -> [Int64] {
    guard let layout = try layout() else { throw withoutModel() }
    let source: (table: String, key: String, owner: String, order: String?)
    switch layout.storage(of: relationship, in: entityName) {
    case .toManyByColumn(let table, let column, let order): source = (table, "Z_PK", column, order)
    case .toManyByJoinTable(let table, let own, let destination, let order): source = (table, destination, own, order)
    case .attribute, .toOne, nil: throw unknown("to-many relationship", "\(entityName).\(relationship)")
    }
    let key = SQLText.identifier(source.key)
    let order = (source.order.map { [SQLText.identifier($0)] } ?? []) + [key]
    return try read { database in
      try Int64.fetchAll(
        database,
        sql: """
          SELECT \(key) FROM \(SQLText.identifier(source.table)) WHERE \(SQLText.identifier(source.owner)) = ?
          AND typeof(\(key)) = 'integer' ORDER BY \(order.joined(separator: ", "))
          """, arguments: [primaryKey])
    }
  }

  private func recordReader(for entityName: String) throws(PersistentStoreError) -> RecordReader {
    guard let layout = try layout() else { throw withoutModel() }
    guard let reader = RecordReader(layout: layout, entityName: entityName) else { throw unknown("entity", entityName) }
    return reader
  }

  private func withoutModel() -> PersistentStoreError {
    PersistentStoreError(
      .noModel, operation: "read records", path: path, detail: "the store was opened without a model")
  }

  private func unknown(_ what: String, _ name: String) -> PersistentStoreError {
    PersistentStoreError(
      .unknownName, operation: "read records", path: path, detail: "there is no \(what) \"\(printable(name))\"")
  }
}
