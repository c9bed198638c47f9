internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

/// The checks of what a custom step has made: values that fit their types, and everything mandatory there.
///
/// Uniqueness is checked by the indexes, dangling references by the verification of every step.
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

  /// Checks the records of every route.
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

  /// Whether a record may lack now what it could not lack before: an attribute that is only copied is as it was.
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
    // What SQLite calls a text may be any bytes.
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

  // MARK: What is mandatory

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
