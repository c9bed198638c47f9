internal import GRDB
internal import PersistentStore
internal import StoreFiles

/// A custom step at work: records by SQL on whole tables, policies in batches, relationships by SQL again.
///
/// The associations between records of both sides follow from their primary keys; those that policies make are in a
/// temporary table, so that memory does not grow with the records.
final class CustomRun {
  let step: CustomStep
  let database: Database
  let contents: SourceContents

  /// What is added to the primary keys of each range.
  private(set) var offsets: [Int64] = []

  /// The highest primary key of each hierarchy of the destination, by root entity.
  private(set) var highestKeys: [String: Int64] = [:]

  /// The policies at work, with what they have made.
  private(set) var policies: PolicyRun?

  /// How many records relationships to one lead to no more, because another was chosen.
  var droppedPairs: [PropertyKey: Int] = [:]

  var layout: StepLayout { step.layout }

  /// Prepares a run; the source is attached as `old`.
  init(_ step: CustomStep, _ database: Database, _ contents: SourceContents, _ stage: PolicyRun.Stage) throws {
    self.step = step
    self.database = database
    self.contents = contents
    try findOffsets()
    guard step.routes.contains(where: { $0.makePolicy != nil }) else { return }
    policies = try PolicyRun(self, stage)
  }

  /// Makes all records and their relationships.
  func fill() throws {
    // Sorting takes as much memory again as the cache.
    try database.execute(sql: "PRAGMA main.cache_size = -8192")
    for route in step.routes where route.isSetBased { try insertRecords(route) }
    try policies?.createInstances()
    try database.execute(
      sql: "CREATE TEMP TABLE LazaretPairs (x INTEGER PRIMARY KEY, y INTEGER, e INTEGER, n INTEGER)")
    try fillRelationships(of: step.routes.filter(\.isSetBased))
    try policies?.createRelationships()
    try database.execute(sql: "DROP TABLE temp.LazaretPairs")
    try alignOneToOne()
  }

  /// Lets the policies validate, then checks what was made; all indexes are there.
  func validate() throws {
    try policies?.validate()
    try CustomRunCheck(work: self).run()
  }

  /// Ends it; a caller that has kept its context is refused from now on.
  func close() {
    policies?.close()
    policies = nil
  }

  // MARK: Primary keys

  private func findOffsets() throws {
    offsets = []
    for range in step.ranges {
      guard let source = layout.source.entity(named: range.sourceRoot) else { continue }
      let table = "old.\(SQLText.identifier(source.tableName))"
      let highest = max(
        try Int64.fetchOne(database, sql: "SELECT max(Z_PK) FROM \(table)") ?? 0,
        try Int64.fetchOne(database, sql: "SELECT max(Z_MAX) FROM old.Z_PRIMARYKEY WHERE Z_ENT = \(source.number)")
          ?? 0,
        0)
      let offset = highestKeys[range.destinationRoot] ?? 0
      let (sum, isTooLarge) = offset.addingReportingOverflow(highest)
      let isShared = step.ranges.filter { $0.destinationRoot == range.destinationRoot }.count > 1
      let lowest = isShared ? try Int64.fetchOne(database, sql: "SELECT min(Z_PK) FROM \(table)") ?? 1 : 1
      guard !isTooLarge, sum < Int64.max / 2, lowest > 0 else {
        throw MigrationError(
          .dataViolation,
          detail: "the primary keys of \(printable(range.sourceRoot)) leave no room for records of other entities",
          hint: "Salvage the store, which gives the records other keys; it is as it was.", entityName: range.sourceRoot)
      }
      offsets.append(offset)
      highestKeys[range.destinationRoot] = sum
    }
  }

  /// What is added to the primary keys of a route's records.
  func offset(of route: CustomRoute) -> Int64 { route.range.map { offsets[$0] } ?? 0 }

  /// A new primary key in a hierarchy of the destination, above all that follow from the source's.
  func nextKey(root: String) -> Int64 {
    let key = (highestKeys[root] ?? 0) + 1
    highestKeys[root] = key
    return key
  }

  /// Notes the highest keys for the records that the app will make.
  func notePrimaryKeys() throws {
    for (root, highest) in highestKeys {
      guard let entity = layout.destination.entity(named: root) else { continue }
      try database.execute(
        sql: "UPDATE main.Z_PRIMARYKEY SET Z_MAX = max(Z_MAX, \(highest)) WHERE Z_ENT = \(entity.number)")
    }
  }

  /// Gives changes in the history the new keys of their records; to be called while they have the old entity numbers.
  func moveHistory() throws {
    for entity in layout.source.entities {
      guard let first = layout.routes.first(where: { $0.source.name == entity.name }),
        let route = step.route(named: first.mapping.name), offset(of: route) != 0
      else { continue }
      try database.execute(
        sql: "UPDATE main.ACHANGE SET ZENTITYPK = ZENTITYPK + \(offset(of: route)) WHERE ZENTITY = \(entity.number)")
    }
  }

  // MARK: Records

  private func insertRecords(_ route: CustomRoute) throws {
    guard let source = route.source, let destination = route.destination else { return }
    let offset = offset(of: route)
    let names = ["Z_PK", "Z_ENT", "Z_OPT"] + route.columns.map(\.column.sqlName)
    let values =
      [offset == 0 ? "o.Z_PK" : "o.Z_PK + \(offset)", String(destination.number), "o.Z_OPT"] + route.columns.map(\.sql)
    do {
      try database.execute(
        sql: "INSERT INTO main.\(SQLText.identifier(destination.tableName)) (\(names.joined(separator: ", "))) "
          + "SELECT \(values.joined(separator: ", ")) FROM old.\(SQLText.identifier(source.tableName)) AS o "
          + "WHERE \(route.condition)")
    } catch let error as DatabaseError where CustomFailure.isOfExpression(error) {
      throw try CustomFailure(route: route, database: database).told(error)
    }
  }

  // MARK: Counting

  /// Says how many records each route has made, and how many were left out.
  func count(_ account: inout StepAccount) throws {
    for route in step.routes where route.isSetBased {
      guard let source = route.source, let destination = route.destination else { continue }
      let rows =
        try Int.fetchOne(
          database,
          sql: "SELECT count(*) FROM old.\(SQLText.identifier(source.tableName)) AS o WHERE \(route.condition)") ?? 0
      account.entities.append(.init(entity: destination.name, source: source.name, rows: rows))
    }
    policies?.count(&account)
    for (key, rows) in droppedPairs.ordered(by: { $0.key.description < $1.key.description }) {
      account.losses.append(
        MigrationPlan.Finding(
          kind: "dropped-destinations", entity: key.entityName, property: key.name, rows: rows, examples: [],
          text: "\(printable(key.description)): of several records one is kept, and the others are led to no more"))
    }
    let filters = CustomFilters(layout: layout)
    let readers = step.routes.map { route in
      CustomFilters.Reader(
        mapping: route.mapping,
        leavesOut: route.isSetBased
          ? CustomFilters.leavesOut(route.filter)
          : "NOT EXISTS (SELECT 1 FROM temp.LazaretAssociation AS a WHERE a.route = \(route.number) "
            + "AND a.source = o.Z_PK)")
    }
    for entity in layout.source.entities {
      let rows = contents.rows[entity.tableName]?[entity.number] ?? 0
      guard rows > 0 else { continue }
      guard step.routes.contains(where: { $0.source?.name == entity.name }) else {
        account.removedRows[entity.name] = rows
        continue
      }
      guard let condition = filters.condition(of: entity, readers),
        let found = try CustomFilters.finding(entity, where: condition, schema: "old.", database)
      else { continue }
      account.filteredRows[entity.name] = found.rows
      account.losses.append(found)
    }
  }
}
