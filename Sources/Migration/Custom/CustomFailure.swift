internal import GRDB
internal import PersistentStore

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

  private struct Found {
    var property: String?
    var keys: [Int64]
    var isComplete: Bool
  }

  private func first() throws -> Found? {
    guard let source = route.source else { return nil }
    if let filter = route.filter, let found = try keys(filter, "o.Z_ENT = \(source.number)", source) {
      return Found(property: nil, keys: found.keys, isComplete: found.isComplete)
    }
    for property in route.mapping.propertyMappings {
      guard case .expression = property.value,
        let column = route.columns.first(where: { $0.column.path == property.destination }),
        let found = try keys(column.sql, route.condition, source)
      else { continue }
      return Found(property: property.destination.description, keys: found.keys, isComplete: found.isComplete)
    }
    return nil
  }

  /// The first ten failing records.
  ///
  /// Each failure ends a pass; the next one starts after that record.
  private func keys(
    _ sql: String, _ condition: String, _ source: EntityLayout
  ) throws -> (keys: [Int64], isComplete: Bool)? {
    let table = "old.\(SQLText.identifier(source.tableName)) AS o"
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
