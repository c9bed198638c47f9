internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// Runs a custom step: records by whole-table SQL, policies in batches, then relationships by SQL.
///
/// Primary keys give the associations between source and destination. Those of policies are in a temporary table, so
/// that memory does not grow with the records.
final class CustomRun {
  let step: CustomStep
  let database: Database
  let contents: SourceContents

  private(set) var offsets: [Int64] = []

  /// The highest primary key of each destination hierarchy, by root entity.
  private(set) var highestKeys: [String: Int64] = [:]

  private(set) var policies: PolicyRun?

  var droppedPairs: [PropertyKey: Int] = [:]

  /// The answers of `isCopied`, once asked for.
  var copiedRelationships: [PropertyKey: Bool] = [:]

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

  func fill() throws {
    // Sorting needs as much memory again as the cache.
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

  /// Runs the policies' validation, then checks the records; all indexes exist by now.
  func validate() throws {
    try policies?.validate()
    try CustomRunCheck(work: self).run()
  }

  func close() {
    policies?.close()
    policies = nil
  }

  // MARK: Primary keys

  private func findOffsets() throws {
    offsets = []
    for range in step.ranges {
      guard let source = layout.source.entity(named: range.sourceRoot) else { continue }
      let table = "old.\(source.tableName.sqlName)"
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

  func offset(of route: CustomRoute) -> Int64 { route.range.map { offsets[$0] } ?? 0 }

  /// A key above all those derived from the source.
  func nextKey(root: String) -> Int64 {
    let key = (highestKeys[root] ?? 0) + 1
    highestKeys[root] = key
    return key
  }

  func notePrimaryKeys() throws {
    for (root, highest) in highestKeys {
      guard let entity = layout.destination.entity(named: root) else { continue }
      try database.execute(
        sql: "UPDATE main.Z_PRIMARYKEY SET Z_MAX = max(Z_MAX, \(highest)) WHERE Z_ENT = \(entity.number)")
    }
  }

  /// Gives history changes their records' new keys; called while they have the old entity numbers.
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
    let columns = route.columns + copiedColumns(route.mapping, source, destination)
    let names = ["Z_PK", "Z_ENT", "Z_OPT"] + columns.map(\.column.sqlName)
    let values =
      [offset == 0 ? "o.Z_PK" : "o.Z_PK + \(offset)", String(destination.number), "o.Z_OPT"] + columns.map(\.sql)
    do {
      try database.execute(
        sql: "INSERT INTO main.\(destination.tableName.sqlName) (\(names.joined(separator: ", "))) SELECT "
          + "\(values.joined(separator: ", ")) FROM old.\(source.tableName.sqlName) AS o WHERE \(route.condition)")
    } catch let error as DatabaseError where CustomFailure.isOfExpression(error) {
      throw try CustomFailure(route: route, database: database).told(error)
    }
  }

  // MARK: Counting

  func count(_ account: inout StepAccount) throws {
    for route in step.routes where route.isSetBased {
      guard let source = route.source, let destination = route.destination else { continue }
      let rows = try database.count(
        from: "old.\(source.tableName.sqlName) AS o WHERE \(route.condition)")
      account.entities.append(.init(entity: destination.name, source: source.name, rows: rows))
    }
    policies?.count(&account)
    for (key, rows) in droppedPairs.ordered(by: { $0.key.description < $1.key.description }) {
      account.losses.append(
        MigrationPlan.Finding(
          kind: "dropped-destinations", entity: key.entityName, property: key.name, rows: rows,
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

// MARK: Failures

/// Finds the expression and the records on which a whole-table statement failed.
struct CustomFailure {
  let route: CustomRoute
  let database: Database

  static func isOfExpression(_ error: DatabaseError) -> Bool {
    [.SQLITE_ERROR, .SQLITE_TOOBIG, .SQLITE_MISMATCH].contains(error.resultCode)
  }

  /// Builds the error with property, count and up to ten primary keys; never a value.
  func told(_ error: DatabaseError) throws -> MigrationError {
    var place = CustomStepCheck.place(route.mapping, nil)
    var what = "an expression fails for a record"
    var name: String?
    if let found = try first() {
      name = found.property
      place = CustomStepCheck.place(route.mapping, found.property)
      let count = "\(found.keys.count) record\(found.keys.count == 1 ? "" : "s")"
      what =
        "the \(found.property == nil ? "filter" : "expression") fails for "
        + "\(found.isComplete ? count : "at least \(count)"); primary keys: \(found.keys.sqlList)"
    }
    return MigrationError(
      .dataViolation, detail: "\(place): \(what) (SQLite reported \(error.resultCode))",
      hint: "Correct the expressions of the mapping, so that they work for all records; the store is as it was.",
      entityName: route.destination?.name, propertyName: name)
  }

  private func first() throws -> (property: String?, keys: [Int64], isComplete: Bool)? {
    guard let source = route.source else { return nil }
    if let filter = route.filter, let found = try keys(filter, "o.Z_ENT = \(source.number)", source) {
      return (nil, found.keys, found.isComplete)
    }
    for property in route.mapping.propertyMappings {
      guard case .expression = property.value,
        let column = route.columns.first(where: { $0.column.path == property.destination }),
        let found = try keys(column.sql, route.condition, source)
      else { continue }
      return (property.destination.description, found.keys, found.isComplete)
    }
    return nil
  }

  /// The first ten failing records.
  ///
  /// Each failure ends a pass; the next one starts after that record.
  private func keys(
    _ sql: String, _ condition: String, _ source: EntityLayout
  ) throws -> (keys: [Int64], isComplete: Bool)? {
    let table = "old.\(source.tableName.sqlName) AS o"
    var keys: [Int64] = []
    var last = Int64.min
    while keys.count < 10 {
      do {
        let rows = try Row.fetchCursor(
          database,
          sql: "SELECT o.Z_PK, typeof(\(sql)) FROM \(table) WHERE o.Z_PK > \(last) AND \(condition) ORDER BY o.Z_PK")
        while let row = try rows.next() { last = row[0] }
        return keys.isEmpty ? nil : (keys, true)
      } catch let error as DatabaseError where Self.isOfExpression(error) {
        guard
          let next = try Int64.fetchOne(
            database,
            sql: "SELECT o.Z_PK FROM \(table) WHERE o.Z_PK > \(last) AND \(condition) ORDER BY o.Z_PK LIMIT 1")
        else { return nil }
        keys.append(next)
        last = next
      }
    }
    return (keys, false)
  }
}

// MARK: Filters

/// The records a custom mapping leaves out; they are deleted with everything only they hold.
///
/// An entity continues where a mapping makes records of the same name or renaming identifier; then only the filters of
/// such mappings count. Otherwise a record is left out if no mapping takes it, or if a filter drops it from the
/// mappings that alone use some of its values.
struct CustomFilters {
  struct Reader {
    let mapping: EntityMapping

    /// The condition on `o`; `0` if it takes all.
    let leavesOut: String

    /// Whether it uses a source property; assumed where an expression or a policy might.
    func uses(_ property: StoredProperty) -> Bool {
      if mapping.needsPolicy { return true }
      return mapping.propertyMappings.contains { mapped in
        if mapped.source == property.path { return true }
        guard case .expression(.sql(let text)) = mapped.value else { return false }
        return text.contains(property.path.name)
      }
    }
  }

  let layout: StepLayout

  /// The condition on left-out rows `o`; nil without readers or left-out rows.
  func condition(of entity: EntityLayout, _ readers: [Reader]) -> String? {
    let own = readers.filter { $0.mapping.sourceEntityName == entity.name }
    let onward = own.filter { goesOn($0.mapping) }
    var deciding = onward.isEmpty ? own : onward
    if onward.isEmpty, deciding.contains(where: { $0.leavesOut == "0" }) {
      // An unfiltered mapping may use only some values; a filter on the mapping of the others still loses those.
      let known = (layout.sourceSide.properties[entity.name] ?? []).filter { property in
        !own.contains { $0.leavesOut == "0" && $0.uses(property) }
      }
      deciding = own.filter { reader in reader.leavesOut != "0" && known.contains(where: reader.uses) }
    }
    guard !deciding.isEmpty, !deciding.contains(where: { $0.leavesOut == "0" }) else { return nil }
    return deciding.map { "(\($0.leavesOut))" }.joined(separator: " AND ")
  }

  static func leavesOut(_ filter: String?) -> String { filter.map { "(\($0)) IS NOT TRUE" } ?? "0" }

  /// Counts the records of an entity that meet a condition; nil for zero.
  ///
  /// - Parameter schema: The prefix of source tables, `old.` or empty.
  static func finding(
    _ entity: EntityLayout, where condition: String, schema: String, _ database: Database
  ) throws -> MigrationPlan.Finding? {
    let place = "\(schema)\(entity.tableName.sqlName) AS o WHERE o.Z_ENT = \(entity.number) AND \(condition)"
    let rows = try database.count(from: place)
    return rows > 0 ? finding(entity.name, rows: rows, examples: try database.examples(from: place)) : nil
  }

  private static func finding(_ entityName: String, rows: Int?, examples: [Int64]) -> MigrationPlan.Finding {
    MigrationPlan.Finding(
      kind: MigrationLoss.Kind.filteredRecords.rawValue, entity: entityName, rows: rows,
      examples: examples, text: MigrationLoss(.filteredRecords, source: entityName).text)
  }

  private func goesOn(_ mapping: EntityMapping) -> Bool {
    guard let from = mapping.sourceEntityName, let to = mapping.destinationEntityName else { return false }
    if from == to { return true }
    guard let old = layout.mapping.source.entities[from], let new = layout.mapping.destination.entities[to] else {
      return false
    }
    return old.renamingIdentifier == new.renamingIdentifier
  }

  // MARK: Forecast

  /// Finds the records a step would leave out, assuming that policies use all.
  ///
  /// - Parameters:
  ///   - database: The step's source store; nil for nil counts, if only earlier steps would make it.
  ///   - referenceDate: In seconds since 2001-01-01T00:00:00Z.
  /// - Throws: `mapping-invalid`, `expression-unsupported`, or `migration-data-violation` if a filter fails for a
  ///   record.
  static func leftOut(
    _ database: Database?, _ layout: StepLayout, referenceDate: Double = 0
  ) throws -> [MigrationPlan.Finding] {
    guard layout.isCustom else { return [] }
    let filters = CustomFilters(layout: layout)
    let paths = MappingPathResolver(layout: layout.source, schema: "")
    var readers: [Reader] = []
    for mapping in layout.mapping.entityMappings {
      guard let name = mapping.sourceEntityName, layout.source.entity(named: name) != nil,
        mapping.destinationEntityName != nil || mapping.needsPolicy
      else { continue }
      let builder = CustomRouteBuilder(layout: layout, mapping: mapping, bind: paths.bind)
      readers.append(Reader(mapping: mapping, leavesOut: leavesOut(try builder.filter()?.sql)))
    }
    if let database { try StepConnection.addFunctions(to: database, referenceDate: referenceDate) }
    var result: [MigrationPlan.Finding] = []
    for entity in layout.source.entities {
      guard let condition = filters.condition(of: entity, readers) else { continue }
      guard let database else {
        result.append(finding(entity.name, rows: nil, examples: []))
        continue
      }
      do {
        if let found = try finding(entity, where: condition, schema: "", database) { result.append(found) }
      } catch let error as DatabaseError where CustomFailure.isOfExpression(error) {
        throw MigrationError(
          .dataViolation, operation: "plan the migration",
          detail: "a filter of the mapping fails for a record of \(printable(entity.name)) "
            + "(SQLite reported \(error.resultCode))",
          hint: "Correct the filters of the mapping, so that they work for all records.", entityName: entity.name)
      }
    }
    return result
  }
}
