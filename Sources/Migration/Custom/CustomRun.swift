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

/// Checks a custom step's records: values fit their types, mandatory ones exist.
///
/// Indexes check uniqueness; the verification of every step checks dangling references.
struct CustomRunCheck {
  let work: CustomRun

  private var layout: StepLayout { work.layout }

  private func check(_ route: CustomRoute, _ entity: EntityLayout) throws {
    let known = layout.destinationSide.properties[entity.name] ?? []
    for property in known {
      let mapping = route.mapping.propertyMapping(of: property.path)
      if let attribute = property.attribute, let column = column(property, entity) {
        if attribute.isDerived { continue }
        let isMade =
          if case .expression = mapping?.value { true } else { route.makePolicy != nil }
        if isMade { try checkType(column, attribute.type, property, entity, route) }
        if !property.isOptional, isStricter(property, mapping, route) {
          try refuse("o.\(column.sqlName) IS NULL", ("has no value in", "have no value in"), property, entity, .missing)
        }
      } else if let relationship = property.relationship, isStricter(property, mapping, route) {
        try checkCount(relationship, property, entity)
      }
    }
  }

  func run() throws {
    var done: Set<[String]> = []
    for route in work.step.routes {
      if let destination = route.destination, done.insert([route.mapping.name, destination.name]).inserted {
        try check(route, destination)
      }
      guard route.makePolicy != nil else { continue }
      for name in work.policies?.entityNames(madeBy: route) ?? [] {
        guard let entity = layout.destination.entity(named: name), done.insert([route.mapping.name, name]).inserted
        else {
          continue
        }
        try check(route, entity)
      }
    }
  }

  /// Whether a value may newly be missing; copied ones are unchanged.
  private func isStricter(_ property: StoredProperty, _ mapping: PropertyMapping?, _ route: CustomRoute) -> Bool {
    guard property.relationship == nil, route.makePolicy == nil, case .copy(let old)? = mapping?.value else {
      return true
    }
    return layout.sourceSide.properties[route.source?.name ?? ""]?.first { $0.path == old }?.isOptional ?? true
  }

  private func column(_ property: StoredProperty, _ entity: EntityLayout) -> ColumnLayout? {
    guard case .attribute(let columns) = layout.destination.storage(of: property.path.name, in: entity.name) else {
      return nil
    }
    return columns.first { $0.path == property.path }
  }

  // MARK: Types

  private func checkType(
    _ column: ColumnLayout, _ type: AttributeType, _ property: StoredProperty, _ entity: EntityLayout,
    _ route: CustomRoute
  ) throws {
    let name = "o.\(column.sqlName)"
    let isFit: String
    switch type {
    case .integer16: isFit = "typeof(\(name)) = 'integer' AND \(name) BETWEEN -32768 AND 32767"
    case .integer32: isFit = "typeof(\(name)) = 'integer' AND \(name) BETWEEN -2147483648 AND 2147483647"
    case .integer64: isFit = "typeof(\(name)) = 'integer'"
    case .boolean: isFit = "typeof(\(name)) = 'integer' AND \(name) IN (0, 1)"
    case .decimal, .double, .float, .date: isFit = "typeof(\(name)) IN ('integer', 'real')"
    case .string, .uri:
      isFit = "typeof(\(name)) = 'text' AND \(MappingFunctions.textCheckFunction)(CAST(\(name) AS BLOB))"
    case .uuid: isFit = "typeof(\(name)) = 'blob' AND length(\(name)) = 16"
    case .binary, .transformable:
      isFit = "typeof(\(name)) = 'blob'" + (property.isMarked ? " AND substr(\(name), 1, 1) IN (x'01', x'02')" : "")
    case .undefined, .objectID, .composite: return
    }
    let condition = "\(name) IS NOT NULL AND NOT (\(isFit))"
    let place =
      "FROM main.\(SQLText.identifier(entity.tableName)) AS o WHERE o.Z_ENT = \(entity.number) AND \(condition)"
    let rows = try Int.fetchOne(work.database, sql: "SELECT count(*) \(place)") ?? 0
    guard rows > 0 else { return }
    let found = try String.fetchAll(work.database, sql: "SELECT DISTINCT typeof(\(name)) \(place) ORDER BY 1")
    let keys = try Int64.fetchAll(work.database, sql: "SELECT o.Z_PK \(place) ORDER BY o.Z_PK LIMIT 10")
    let words =
      (type == .string || type == .uri) && found == ["text"]
      ? "bytes that are no text in UTF-8" : "SQLite's \(found.joined(separator: ", "))"
    throw MigrationError(
      .dataViolation,
      detail: "\(CustomStepCheck.place(route.mapping, property.path.description)): the values of \(rows) "
        + "record\(rows == 1 ? "" : "s") do not fit the type \(type.sourceName) "
        + "(\(words)); primary keys: \(keys.sqlList)",
      hint: Self.hint(type), entityName: entity.name, propertyName: property.path.description)
  }

  private static func hint(_ type: AttributeType) -> String {
    switch type {
    case .integer16, .integer32, .integer64: "Write CAST(… AS INTEGER), and nil or a limit for what is too large."
    case .boolean: "Let the expression give 0 or 1."
    case .decimal, .double, .float: "Write CAST(… AS REAL)."
    case .date: "Give seconds since 2001-01-01T00:00:00Z, for instance unixepoch(text) - 978307200."
    case .string, .uri: "Write uuid_text(…) for a UUID, or hex(…) for other bytes."
    case .uuid: "Give the 16 bytes: uuid() for a new one, uuid_blob(text) for one in text."
    case .binary, .transformable: "Write CAST(… AS BLOB)."
    case .undefined, .objectID, .composite: "Correct the mapping."
    }
  }

  // MARK: Mandatory values

  private func checkCount(_ relationship: Relationship, _ property: StoredProperty, _ entity: EntityLayout) throws {
    let count: String
    switch layout.destination.storage(of: property.path.name, in: entity.name) {
    case .toOne(let column, _, _):
      guard !property.isOptional else { return }
      return try refuse(
        "o.\(SQLText.identifier(column)) IS NULL", Self.leadNowhere, property, entity, .missing)
    case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
      count =
        "(SELECT count(*) FROM main.\(SQLText.identifier(table)) AS p WHERE p.\(SQLText.identifier(column)) = o.Z_PK)"
    case .attribute, nil: return
    }
    if relationship.needsDestination { try refuse("\(count) = 0", Self.leadNowhere, property, entity, .missing) }
    if relationship.minimumCount > 1 {
      try refuse(
        "\(count) BETWEEN 1 AND \(relationship.minimumCount - 1)",
        (
          "leads to fewer than \(relationship.minimumCount) records through",
          "lead to fewer than \(relationship.minimumCount) records through"
        ),
        property, entity, .number)
    }
    if relationship.maximumCount > 1 {
      try refuse(
        "\(count) > \(relationship.maximumCount)",
        (
          "leads to more than \(relationship.maximumCount) records through",
          "lead to more than \(relationship.maximumCount) records through"
        ),
        property, entity, .number)
    }
  }

  private enum Reason {
    case missing, number
  }

  private static let leadNowhere = (one: "refers to no record by", many: "refer to no record by")

  private func refuse(
    _ condition: String, _ words: (one: String, many: String), _ property: StoredProperty, _ entity: EntityLayout,
    _ reason: Reason
  ) throws {
    let place =
      "FROM main.\(SQLText.identifier(entity.tableName)) AS o WHERE o.Z_ENT = \(entity.number) AND \(condition)"
    let rows = try Int.fetchOne(work.database, sql: "SELECT count(*) \(place)") ?? 0
    guard rows > 0 else { return }
    let keys = try Int64.fetchAll(work.database, sql: "SELECT o.Z_PK \(place) ORDER BY o.Z_PK LIMIT 10")
    throw MigrationError(
      .dataViolation,
      detail:
        "\(rows) record\(rows == 1 ? "" : "s") of \(printable(entity.name)) \(rows == 1 ? words.one : words.many) "
        + "\(printable(entity.name)).\(printable(property.path.description)), which is mandatory; "
        + "primary keys: \(keys.sqlList)",
      hint:
        "Let the mapping give a value to every record, or leave the records out by its filter; the store is as it was.",
      entityName: entity.name, propertyName: property.path.description,
      reason: reason == .missing ? "Validation error missing attribute values on mandatory destination attribute" : nil)
  }
}
