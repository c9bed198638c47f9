internal import GRDB
public import PersistentStore
internal import Platform

/// What policies are given to work with: the records of both sides, and which became which.
///
/// It stands for Core Data's migration manager and lasts as long as the step.
public final class MigrationContext {
  /// The step, such as `V1 → V2`.
  public let stepName: String

  /// The mapping that is carried out.
  public let mappingModel: MappingModel

  /// Which attempt at this step it is, from 1; more than 1 after a migration was interrupted.
  public let attempt: Int

  /// Free text that was given to the migration as a whole.
  public let userInfo: [String: String]

  let source: RecordAccess
  let destination: RecordAccess
  let run: CustomRun

  /// The route whose policy is at work.
  var current: CustomRoute?

  /// The record of the source that is being handed over, with the values that the mapping gives.
  var pending: (source: MigrationRecord, values: [String: RecordValue], isKeyTaken: Bool)?

  init(_ run: CustomRun, _ stage: PolicyRun.Stage) {
    stepName = stage.stepName
    mappingModel = run.layout.mapping
    attempt = stage.attempt
    userInfo = stage.userInfo
    self.run = run
    source = RecordAccess(
      run.database, run.layout.source, run.layout.sourceSide, schema: "old.", isReadOnly: true)
    destination = RecordAccess(
      run.database, run.layout.destination, run.layout.destinationSide, schema: "main.", isReadOnly: false)
  }

  /// Whether an earlier attempt at this step was interrupted; nothing of what it made is left.
  public var isRepeated: Bool { attempt > 1 }

  /// Free text of the entity mapping that is at work.
  public var mappingUserInfo: [String: String] { current?.mapping.userInfo ?? [:] }

  // MARK: Making records

  /// Makes the record that the mapping makes of one of the source, and notes that it became this.
  @discardableResult
  public func createMappedRecord(for source: MigrationRecord, mapping: EntityMapping) throws -> MigrationRecord {
    let route = try route(mapping.name)
    guard let name = mapping.destinationEntityName else {
      throw RecordAccess.failure("entity mapping \"\(printable(mapping.name))\" makes no records")
    }
    let values: [String: RecordValue]
    if let pending, pending.source === source, current?.number == route.number {
      values = pending.values
    } else {
      values = try mappedValues(of: source, route)
    }
    let record = try create(name, for: source, route, values)
    try associate(source: source, destination: record, mapping: mapping)
    return record
  }

  /// The values that the mapping gives a record of the source.
  public func mappedValues(for source: MigrationRecord, mapping: EntityMapping) throws -> [String: RecordValue] {
    let route = try route(mapping.name)
    if let pending, pending.source === source, current?.number == route.number { return pending.values }
    return try mappedValues(of: source, route)
  }

  /// Makes a record with the defaults of its entity; it has become of nothing until `associate` says so.
  public func createRecord(of entityName: String) throws -> MigrationRecord {
    guard let route = current else { throw RecordAccess.failure("records are made by policies only") }
    return try create(entityName, for: pending?.source, route, nil)
  }

  private func create(
    _ entityName: String, for source: MigrationRecord?, _ route: CustomRoute, _ values: [String: RecordValue]?
  ) throws -> MigrationRecord {
    guard let entity = run.layout.destination.entity(named: entityName) else {
      throw RecordAccess.failure("there is no entity \"\(printable(entityName))\"", entity: entityName)
    }
    let key: Int64
    if let pending, let source, pending.source === source, !pending.isKeyTaken, current?.number == route.number,
      route.destination?.rootName == entity.rootName, route.range != nil
    {
      // The first record keeps the key that the mapping alone would give it.
      key = source.primaryKey + run.offset(of: route)
      self.pending?.isKeyTaken = true
    } else {
      key = run.nextKey(root: entity.rootName)
    }
    return try destination.create(entityName, primaryKey: key, values: values)
  }

  /// Notes that a record of the source became one of the destination by an entity mapping.
  public func associate(
    source: MigrationRecord, destination: MigrationRecord, mapping: EntityMapping
  ) throws {
    let route = try route(mapping.name)
    guard !route.isSetBased, source.records === self.source, destination.records === self.destination else {
      throw RecordAccess.failure(
        "entity mapping \"\(printable(mapping.name))\" has no policy, or the records are exchanged")
    }
    try self.destination.openDatabase().cachedStatement(
      sql: "INSERT OR IGNORE INTO temp.LazaretAssociation (route, source, root, destination) VALUES (?, ?, ?, ?)"
    ).execute(
      arguments: [route.number, source.primaryKey, try rootNumber(destination.entityName), destination.primaryKey])
  }

  /// Gives a record the relationships that the mapping gives; they are there when `endRelationshipCreation` is called.
  public func createMappedRelationships(for destination: MigrationRecord) throws {
    try self.destination.openDatabase().cachedStatement(
      sql: "INSERT OR IGNORE INTO temp.LazaretMapped (root, destination) VALUES (?, ?)"
    ).execute(arguments: [try rootNumber(destination.entityName), destination.primaryKey])
  }

  /// Deletes a record of the destination.
  public func delete(_ record: MigrationRecord) throws {
    guard record.records === destination else {
      throw RecordAccess.failure("a record of the source cannot be deleted", entity: record.entityName)
    }
    try destination.delete(record)
    try run.policies?.noteDeletion(of: record.id)
    try destination.openDatabase().execute(
      sql: "DELETE FROM temp.LazaretAssociation WHERE root = ? AND destination = ?",
      arguments: [try rootNumber(record.entityName), record.primaryKey])
  }

  // MARK: Finding records

  /// What an entity mapping made of a record of the source, in the order of primary keys.
  public func destinationRecords(for mappingName: String, source: MigrationRecord) throws -> [MigrationRecord] {
    let route = try route(mappingName)
    guard let entity = route.source, run.layout.source.entity(named: source.entityName)?.rootName == entity.rootName
    else { return [] }
    if route.isSetBased {
      guard source.entityName == entity.name, let name = route.destination?.name else { return [] }
      return try [destination.record(in: name, primaryKey: source.primaryKey + run.offset(of: route))].compactMap(
        \.self)
    }
    try destination.flush()
    let rows = try Row.fetchAll(
      destination.openDatabase().cachedStatement(
        sql: "SELECT root, destination FROM temp.LazaretAssociation WHERE route = ? AND source = ? ORDER BY 1, 2"),
      arguments: [route.number, source.primaryKey])
    return try rows.compactMap { row in
      guard let root = run.layout.destination.entity(numbered: row[0]) else { return nil }
      return try destination.record(in: root.name, primaryKey: row[1])
    }
  }

  /// The records of the source that became this record of the destination by an entity mapping.
  public func sourceRecords(for mappingName: String, destination record: MigrationRecord) throws -> [MigrationRecord] {
    let route = try route(mappingName)
    guard let entity = route.source else { return [] }
    if route.isSetBased {
      guard record.entityName == route.destination?.name else { return [] }
      let key = record.primaryKey - run.offset(of: route)
      return try [source.record(in: entity.name, primaryKey: key)].compactMap(\.self)
        .filter { $0.entityName == entity.name }
    }
    let keys = try Int64.fetchAll(
      destination.openDatabase().cachedStatement(
        sql: "SELECT source FROM temp.LazaretAssociation WHERE route = ? AND root = ? AND destination = ? ORDER BY 1"),
      arguments: [route.number, try rootNumber(record.entityName), record.primaryKey])
    return try keys.compactMap { try source.record(in: entity.name, primaryKey: $0) }
  }

  /// The records of an entity of the source, without those of its sub-entities, in batches by primary key.
  public func sourceRecords(
    of entityName: String, after key: Int64 = .min, limit: Int = 1000
  ) throws -> [MigrationRecord] {
    try source.records(of: entityName, where: "o.Z_PK > ?", [key.databaseValue], limit: max(1, limit))
  }

  /// The records of an entity of the destination, without those of its sub-entities, in batches by primary key.
  public func destinationRecords(
    of entityName: String, after key: Int64 = .min, limit: Int = 1000
  ) throws -> [MigrationRecord] {
    try destination.records(of: entityName, where: "o.Z_PK > ?", [key.databaseValue], limit: max(1, limit))
  }

  // MARK: Relationships

  /// The records that a relationship of a record leads to, on whichever side it is.
  public func records(of relationship: String, from record: MigrationRecord) throws -> [MigrationRecord] {
    try record.records.destinations(of: relationship, from: record)
  }

  /// Lets a relationship of a record of the destination lead to these records and to no others; the inverse follows.
  public func setRecords(of relationship: String, from record: MigrationRecord, to others: [MigrationRecord]) throws {
    try record.records.setDestinations(of: relationship, from: record, to: others)
  }

  /// Lets a relationship of a record of the destination lead to these records as well; the inverse follows.
  public func addRecords(of relationship: String, from record: MigrationRecord, to others: [MigrationRecord]) throws {
    try record.records.connect(relationship, from: record, to: others)
  }

  // MARK: Inside

  private func route(_ name: String) throws -> CustomRoute {
    if let route = run.step.route(named: name) { return route }
    throw MigrationError(
      .policyFailed, operation: "carry out a custom step",
      detail: "there is no entity mapping \"\(printable(name))\" that makes records",
      hint: NameSuggestion.hint(for: name, among: run.step.routes.map(\.mapping.name), "entity mappings"))
  }

  private func rootNumber(_ entityName: String) throws -> Int {
    guard let entity = run.layout.destination.entity(named: entityName),
      let root = run.layout.destination.entity(named: entity.rootName)
    else { throw RecordAccess.failure("there is no entity \"\(printable(entityName))\"", entity: entityName) }
    return root.number
  }

  private func mappedValues(of source: MigrationRecord, _ route: CustomRoute) throws -> [String: RecordValue] {
    guard let entity = route.source, !route.columns.isEmpty, let shape = try mappedShape(route) else { return [:] }
    let database = try destination.openDatabase()
    let rows = try Row.fetchCursor(
      database.cachedStatement(
        sql: "SELECT \(PolicyRun.expressions(route, shape).joined(separator: ", ")) "
          + "FROM old.\(SQLText.identifier(entity.tableName)) AS o WHERE o.Z_PK = ?"), arguments: [source.primaryKey])
    return try rows.next().map { shape.values($0, from: 0) } ?? [:]
  }

  /// The attributes of the records that a route makes.
  func mappedShape(_ route: CustomRoute) throws -> RecordShape? {
    try route.destination.map { try destination.shape(of: $0.name) }
  }
}
