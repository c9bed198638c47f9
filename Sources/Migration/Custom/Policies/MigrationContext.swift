internal import GRDB
public import PersistentStore
internal import Platform

/// The records of both versions and their associations, for policies.
///
/// Replaces Core Data's migration manager; valid during the step.
public final class MigrationContext {
  /// The step, such as `V1 → V2`.
  public let stepName: String

  /// The mapping of the step.
  public let mappingModel: MappingModel

  /// The attempt at this step, from 1; higher after an interruption.
  public let attempt: Int

  /// The migration's free text.
  public let userInfo: [String: String]

  let source: RecordAccess
  let destination: RecordAccess
  let run: CustomRun

  var current: CustomRoute?

  /// The source record in work, with its mapped values.
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

  /// Whether an earlier attempt was interrupted; its results are gone.
  public var isRepeated: Bool { attempt > 1 }

  /// The free text of the current entity mapping.
  public var mappingUserInfo: [String: String] { current?.mapping.userInfo ?? [:] }

  // MARK: Making records

  /// Makes the mapped record of a source record and associates both.
  @discardableResult
  public func createMappedRecord(for source: MigrationRecord, mapping: EntityMapping) throws -> MigrationRecord {
    let route = try route(mapping.name)
    guard let name = mapping.destinationEntityName else {
      throw RecordAccess.failure("entity mapping \"\(printable(mapping.name))\" makes no records")
    }
    let record = try create(name, for: source, route, try mappedValues(of: source, route))
    try associate(source: source, destination: record, mapping: mapping)
    return record
  }

  /// Returns the mapped values of a source record.
  public func mappedValues(for source: MigrationRecord, mapping: EntityMapping) throws -> [String: RecordValue] {
    try mappedValues(of: source, try route(mapping.name))
  }

  /// Makes a record with its entity's defaults, without an association.
  public func createRecord(of entityName: String) throws -> MigrationRecord {
    guard let route = current else { throw RecordAccess.failure("records are made by policies only") }
    return try create(entityName, for: pending?.source, route, nil)
  }

  private func create(
    _ entityName: String, for source: MigrationRecord?, _ route: CustomRoute, _ values: [String: RecordValue]?
  ) throws -> MigrationRecord {
    let entity = try destination.entity(named: entityName)
    let key: Int64
    if let pending, let source, pending.source === source, !pending.isKeyTaken, current?.number == route.number,
      route.destination?.rootName == entity.rootName, route.range != nil
    {
      // The first record keeps its mapped key.
      key = source.primaryKey + run.offset(of: route)
      self.pending?.isKeyTaken = true
    } else {
      key = run.nextKey(root: entity.rootName)
    }
    return try destination.create(entityName, primaryKey: key, values: values)
  }

  /// Associates a source record with a destination record.
  public func associate(source: MigrationRecord, destination: MigrationRecord, mapping: EntityMapping) throws {
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

  /// Gives a record its mapped relationships, which exist by `endRelationshipCreation`.
  public func createMappedRelationships(for destination: MigrationRecord) throws {
    try self.destination.openDatabase().cachedStatement(
      sql: "INSERT OR IGNORE INTO temp.LazaretMapped (root, destination) VALUES (?, ?)"
    ).execute(arguments: [try rootNumber(destination.entityName), destination.primaryKey])
  }

  /// Deletes a destination record.
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

  /// Returns the records an entity mapping made of a source record, by primary key.
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

  /// Returns the source records an entity mapping made this record from.
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

  /// Returns a batch of an entity's source records by primary key, without sub-entities.
  public func sourceRecords(
    of entityName: String, after key: Int64 = .min, limit: Int = 1000
  ) throws -> [MigrationRecord] {
    try source.records(of: entityName, where: "o.Z_PK > ?", [key.databaseValue], limit: max(1, limit))
  }

  /// Returns a batch of an entity's destination records by primary key, without sub-entities.
  public func destinationRecords(
    of entityName: String, after key: Int64 = .min, limit: Int = 1000
  ) throws -> [MigrationRecord] {
    try destination.records(of: entityName, where: "o.Z_PK > ?", [key.databaseValue], limit: max(1, limit))
  }

  // MARK: Relationships

  /// Returns the related records, on either side.
  public func records(of relationship: String, from record: MigrationRecord) throws -> [MigrationRecord] {
    try record.records.destinations(of: relationship, from: record)
  }

  /// Replaces the records of a destination relationship; the inverse follows.
  public func setRecords(of relationship: String, from record: MigrationRecord, to others: [MigrationRecord]) throws {
    try record.records.setDestinations(of: relationship, from: record, to: others)
  }

  /// Adds records to a destination relationship; the inverse follows.
  public func addRecords(of relationship: String, from record: MigrationRecord, to others: [MigrationRecord]) throws {
    try record.records.connect(relationship, from: record, to: others)
  }

  // MARK: Internals

  private func route(_ name: String) throws -> CustomRoute {
    if let route = run.step.route(named: name) { return route }
    throw RecordAccess.failure(
      "there is no entity mapping \"\(printable(name))\" that makes records",
      hint: NameSuggestion.hint(for: name, among: run.step.routes.map(\.mapping.name), "entity mappings"))
  }

  private func rootNumber(_ entityName: String) throws -> Int { try destination.root(ofEntity: entityName).number }

  private func mappedValues(of source: MigrationRecord, _ route: CustomRoute) throws -> [String: RecordValue] {
    if let pending, pending.source === source, current?.number == route.number { return pending.values }
    guard let entity = route.source, !route.columns.isEmpty, let shape = try mappedShape(route) else { return [:] }
    let database = try destination.openDatabase()
    let rows = try Row.fetchCursor(
      database.cachedStatement(
        sql: "SELECT \(PolicyRun.expressions(route, shape).joined(separator: ", ")) "
          + "FROM old.\(entity.tableName.sqlName) AS o WHERE o.Z_PK = ?"), arguments: [source.primaryKey])
    return try rows.next().map { shape.values($0, from: 0) } ?? [:]
  }

  func mappedShape(_ route: CustomRoute) throws -> EntityShape? {
    try route.destination.map { try destination.shape(of: $0.name) }
  }
}

/// A record in a custom step: values by model names, without app classes.
///
/// Source records are read-only. Changes to destination records are written when the stage's call returns, or earlier.
public final class MigrationRecord {
  /// A record's identity within its store.
  public struct ID: Sendable, Hashable {
    /// The entity's name.
    public let entityName: String

    /// The primary key, unique in its entity hierarchy.
    public let primaryKey: Int64
  }

  /// The identity.
  public let id: ID

  /// The attribute values by name; by path within composites (`place.latitude`).
  public internal(set) var values: [String: RecordValue]

  let records: RecordAccess
  var isNew: Bool
  var isDirty = false

  init(_ id: ID, values: [String: RecordValue], in records: RecordAccess, isNew: Bool = false) {
    self.id = id
    self.values = values
    self.records = records
    self.isNew = isNew
  }

  /// The entity's name.
  public var entityName: String { id.entityName }

  /// The primary key, unique in its entity hierarchy.
  public var primaryKey: Int64 { id.primaryKey }

  /// The value of an attribute; `null` for nil.
  ///
  /// An unknown name, or a change to a source record, fails the step.
  public subscript(name: String) -> RecordValue {
    get {
      if let value = values[name] { return value }
      records.noteUnknown(name, of: entityName)
      return .null
    }
    set {
      guard records.allowsChange(of: name, in: entityName) else { return }
      values[name] = newValue
      records.noteChange(of: self)
    }
  }
}
