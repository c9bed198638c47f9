internal import GRDB
internal import PersistentStore
internal import Platform

/// The app's policies, by the names mapping models use.
public struct MigrationPolicies: Sendable {
  private var byClass: [String: @Sendable () -> any EntityMigrationPolicy] = [:]
  private var byMapping: [String: @Sendable () -> any EntityMigrationPolicy] = [:]

  /// Makes an empty set.
  public init() {}

  /// Registers a policy for all entity mappings that name its class.
  ///
  /// - Parameters:
  ///   - className: The class as in mapping models, with or without its module.
  ///   - make: Makes one policy for each entity mapping of each step.
  public mutating func register(className: String, _ make: @escaping @Sendable () -> any EntityMigrationPolicy) {
    byClass[className] = make
  }

  /// Registers a policy for one entity mapping, whichever class it names.
  public mutating func register(entityMapping: String, _ make: @escaping @Sendable () -> any EntityMigrationPolicy) {
    byMapping[entityMapping] = make
  }

  /// The registered class names, sorted.
  public var classNames: [String] { byClass.keys.sorted() }

  var names: [String] { classNames + byMapping.keys.sorted() }

  /// Returns the maker of an entity mapping's policy; nil if it needs no policy.
  ///
  /// - Throws: `policy-missing`.
  func policy(for mapping: EntityMapping) throws -> (@Sendable () -> any EntityMigrationPolicy)? {
    if let make = byMapping[mapping.name] { return make }
    guard mapping.needsPolicy, let name = mapping.policyClassName else { return nil }
    if let make = byClass[name] ?? byClass[Self.withoutModule(name)] { return make }
    // The app may have given the full name, and the mapping the short one.
    let full = byClass.keys.filter { Self.withoutModule($0) == Self.withoutModule(name) }.sorted()
    if full.count == 1, let only = full.first, only == name || !name.contains(".") { return byClass[only] }
    throw MigrationError(
      .policyMissing, operation: "prepare the mapping",
      detail: "\(CustomStepCheck.place(mapping, nil)) is carried out by the policy class \"\(printable(name))\", "
        + "which is not registered",
      hint: "Register it before the migration starts. "
        + NameSuggestion.hint(for: name, among: classNames, "registered classes"),
      entityName: mapping.destinationEntityName ?? mapping.sourceEntityName)
  }

  private static func withoutModule(_ name: String) -> String {
    name.split(separator: ".").last.map(String.init) ?? name
  }
}

extension MappingModel {
  /// Checks the mapping without a store: compiles its expressions and resolves its policies.
  ///
  /// - Throws: `policy-missing`, `expression-unsupported`, `mapping-invalid`.
  public func check(policies: MigrationPolicies = MigrationPolicies()) throws {
    guard isCustom || entityMappings.contains(where: { policies.isNamed($0) }) else { return }
    _ = try CustomStep(try StepLayout(self), policies: policies)
  }
}

extension MigrationPolicies {
  func isNamed(_ mapping: EntityMapping) -> Bool { byMapping[mapping.name] != nil }
}

/// App code that runs an entity mapping, in the stages of Core Data's `NSEntityMigrationPolicy` (format section 5.5).
///
/// Three passes run over all mappings with a policy: `begin`, `createDestinationInstances` per source record and
/// `endInstanceCreation`; then `createRelationships` per new record and `endRelationshipCreation`; then
/// `performCustomValidation` and `end`. Mappings without a policy run at the start of the first two passes. Stages a
/// policy lacks follow the mapping.
///
/// Each entity mapping of each step gets its own policy, which may keep state but no records: batches bound the memory.
/// An interrupted step is repeated on a fresh copy; see `MigrationContext.isRepeated`.
///
/// A thrown error ends the migration and leaves the store unchanged.
public protocol EntityMigrationPolicy: AnyObject {
  func begin(_ mapping: EntityMapping, in context: MigrationContext) throws

  /// Makes any number of records from a source record.
  ///
  /// The default makes one record with the mapped values.
  func createDestinationInstances(
    for source: MigrationRecord, mapping: EntityMapping, in context: MigrationContext) throws

  /// Runs after the last source record.
  func endInstanceCreation(_ mapping: EntityMapping, in context: MigrationContext) throws

  /// Connects a record of this mapping once all records exist.
  ///
  /// The default makes the mapped relationships.
  func createRelationships(
    for destination: MigrationRecord, mapping: EntityMapping, in context: MigrationContext) throws

  /// Runs after the last record, when the mapped relationships exist.
  func endRelationshipCreation(_ mapping: EntityMapping, in context: MigrationContext) throws

  /// Checks the results, which are now final.
  func performCustomValidation(_ mapping: EntityMapping, in context: MigrationContext) throws

  func end(_ mapping: EntityMapping, in context: MigrationContext) throws
}

extension EntityMigrationPolicy {
  /// Does nothing.
  public func begin(_ mapping: EntityMapping, in context: MigrationContext) throws {}

  /// Makes one record with the mapped values.
  public func createDestinationInstances(
    for source: MigrationRecord, mapping: EntityMapping, in context: MigrationContext
  ) throws {
    try context.createMappedRecord(for: source, mapping: mapping)
  }

  /// Does nothing.
  public func endInstanceCreation(_ mapping: EntityMapping, in context: MigrationContext) throws {}

  /// Makes the mapped relationships.
  public func createRelationships(
    for destination: MigrationRecord, mapping: EntityMapping, in context: MigrationContext
  ) throws {
    try context.createMappedRelationships(for: destination)
  }

  /// Does nothing.
  public func endRelationshipCreation(_ mapping: EntityMapping, in context: MigrationContext) throws {}

  /// Does nothing.
  public func performCustomValidation(_ mapping: EntityMapping, in context: MigrationContext) throws {}

  /// Does nothing.
  public func end(_ mapping: EntityMapping, in context: MigrationContext) throws {}
}

// MARK: Running policies

/// Runs policies in Core Data's order.
final class PolicyRun {
  struct Stage {
    let stepName: String
    let attempt: Int
    let userInfo: [String: String]
  }

  static let batchSize = 1000

  private unowned let run: CustomRun
  private let routes: [(route: CustomRoute, policy: any EntityMigrationPolicy)]
  private let context: MigrationContext

  private var made: [Int: [String: Int]] = [:]

  private var database: Database { run.database }

  init(_ run: CustomRun, _ stage: Stage) throws {
    self.run = run
    routes = run.step.routes.compactMap { route in route.makePolicy.map { (route, $0()) } }
    context = MigrationContext(run, stage)
    try run.database.execute(
      sql: """
        CREATE TEMP TABLE LazaretAssociation (route INTEGER, source INTEGER, root INTEGER, destination INTEGER,
          PRIMARY KEY (route, source, root, destination)) WITHOUT ROWID;
        CREATE INDEX temp.LazaretAssociationBack ON LazaretAssociation (route, root, destination);
        CREATE TEMP TABLE LazaretMapped (root INTEGER, destination INTEGER, PRIMARY KEY (root, destination)) WITHOUT ROWID
        """)
  }

  func entityNames(madeBy route: CustomRoute) -> [String] { made[route.number]?.keys.sorted() ?? [] }

  func noteDeletion(of id: MigrationRecord.ID) throws {
    for (number, counts) in made.ordered(by: { $0.key < $1.key }) {
      if let count = counts[id.entityName], count > 0 {
        made[number]?[id.entityName] = count - 1
        return
      }
    }
    throw RecordAccess.failure("only records that a policy has made can be deleted", entity: id.entityName)
  }

  func count(_ account: inout StepAccount) {
    for (route, _) in routes {
      for (entity, rows) in (made[route.number] ?? [:]).ordered(by: { $0.key < $1.key }) {
        account.entities.append(.init(entity: entity, source: route.source?.name, rows: rows))
      }
    }
  }

  // MARK: Stages

  func createInstances() throws {
    context.destination.whenInserted = { [unowned self] id in
      guard let route = context.current else { return }
      made[route.number, default: [:]][id.entityName, default: 0] += 1
    }
    for (route, policy) in routes {
      try call(route, "begin") { try policy.begin(route.mapping, in: context) }
      try forEachBatch(route) { source, values in
        context.pending = (source, values, false)
        try call(route, "createDestinationInstances", isGrouped: true) {
          try policy.createDestinationInstances(for: source, mapping: route.mapping, in: context)
        }
      }
      context.pending = nil
      try call(route, "endInstanceCreation") { try policy.endInstanceCreation(route.mapping, in: context) }
    }
  }

  func createRelationships() throws {
    // Following relationships back needs these indexes; they are rebuilt once afterwards.
    let indexes = run.layout.destination.indexes.filter { index in
      switch index.purpose {
      case .toOne, .joinTable: true
      case .entityNumber, .fetch, .uniqueness: false
      }
    }
    for index in indexes { try database.execute(sql: index.statement) }
    for (route, policy) in routes {
      try database.execute(sql: "DELETE FROM temp.LazaretMapped")
      try forEachDestination(route) { record in
        try call(route, "createRelationships", isGrouped: true) {
          try policy.createRelationships(for: record, mapping: route.mapping, in: context)
        }
      }
      try call(route, "createRelationships") {}
      try run.fillRelationships(of: [route])
      try call(route, "endRelationshipCreation") { try policy.endRelationshipCreation(route.mapping, in: context) }
    }
    for index in indexes { try database.execute(sql: "DROP INDEX main.\(index.name.sqlName)") }
  }

  func validate() throws {
    context.destination.isReadOnly = true
    for (route, policy) in routes {
      try call(route, "performCustomValidation") { try policy.performCustomValidation(route.mapping, in: context) }
      try call(route, "end") { try policy.end(route.mapping, in: context) }
    }
  }

  func close() {
    context.destination.close()
    context.source.close()
  }

  /// Calls a policy, writes its changes and reports its errors without record values.
  ///
  /// - Parameter isGrouped: Whether the changes may wait for later calls.
  private func call(_ route: CustomRoute, _ stage: String, isGrouped: Bool = false, _ body: () throws -> Void) throws {
    context.current = route
    do {
      try body()
      if isGrouped { try context.destination.flushIfFull() } else { try context.destination.flush() }
      try context.source.flush()
    } catch { throw Self.told(error, CustomStepCheck.place(route.mapping, nil), stage, route.mapping) }
  }

  private static func told(_ error: any Error, _ place: String, _ stage: String, _ mapping: EntityMapping)
    -> MigrationError
  {
    var told: MigrationError
    if let error = error as? MigrationError {
      told = error
      told.detail = "\(place), \(stage): \(error.detail)"
    } else if MigrationError(environmental: error) != nil {
      return MigrationError(any: error)
    } else {
      told = RecordAccess.failure("\(place), \(stage): \(MigrationError.words(for: error, of: "the policy"))")
    }
    told.entityName = told.entityName ?? mapping.destinationEntityName ?? mapping.sourceEntityName
    return told
  }

  // MARK: Batches

  /// The attribute expressions of a route's records, in the order of their shape.
  static func expressions(_ route: CustomRoute, _ shape: EntityShape) -> [String] {
    let byName = Dictionary(route.columns.map { ($0.column.name, $0.sql) }, uniquingKeysWith: { first, _ in first })
    return shape.attributes.map { byName[$0.column.name] ?? "NULL" }
  }

  private func forEachBatch(
    _ route: CustomRoute, _ body: (MigrationRecord, [String: RecordValue]) throws -> Void
  ) throws {
    guard let source = route.source else { return }
    let own = try context.source.shape(of: source.name)
    let mapped = try context.mappedShape(route)
    let columns =
      ["o.Z_PK"] + own.attributes.map { "o.\($0.column.sqlName)" }
      + (mapped.map { Self.expressions(route, $0) } ?? [])
    let sql =
      "SELECT \(columns.joined(separator: ", ")) FROM old.\(source.tableName.sqlName) AS o "
      + "WHERE \(route.condition) AND o.Z_PK > ? ORDER BY o.Z_PK LIMIT \(Self.batchSize)"
    var last = Int64.min
    while true {
      // No query may be open during a policy call.
      var batch: [(key: Int64, own: [String: RecordValue], mapped: [String: RecordValue])] = []
      let rows = try Row.fetchCursor(database.cachedStatement(sql: sql), arguments: [last])
      while let row = try rows.next() {
        batch.append(
          (row[0], own.values(row, from: 1), mapped?.values(row, from: 1 + own.attributes.count) ?? [:]))
      }
      for found in batch {
        let record = MigrationRecord(
          .init(entityName: source.name, primaryKey: found.key), values: found.own, in: context.source)
        try body(record, found.mapped)
        last = found.key
      }
      if batch.count < Self.batchSize { return }
    }
  }

  private func forEachDestination(_ route: CustomRoute, _ body: (MigrationRecord) throws -> Void) throws {
    var last: (root: Int64, key: Int64) = (.min, .min)
    while true {
      let rows = try Row.fetchAll(
        database.cachedStatement(
          sql: "SELECT DISTINCT root, destination FROM temp.LazaretAssociation WHERE route = ? "
            + "AND (root, destination) > (?, ?) ORDER BY root, destination LIMIT \(Self.batchSize)"),
        arguments: [route.number, last.root, last.key])
      for row in rows {
        last = (row[0], row[1])
        guard let root = run.layout.destination.entity(numbered: row[0]),
          let record = try context.destination.record(in: root.name, primaryKey: last.key)
        else { continue }
        try body(record)
      }
      if rows.count < Self.batchSize { return }
    }
  }
}
