internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore

extension StoreRebuild {
  /// One side of a one-to-one relationship, as it is stored.
  private struct Side {
    let table: String
    let column: String
    let entityColumn: String?
    let numbers: ClosedRange<Int>

    var condition: String { "Z_ENT BETWEEN \(numbers.lowerBound) AND \(numbers.upperBound)" }
  }

  /// Makes both sides of one-to-one relationships agree that were not each other's inverse before, or that had more than
  /// one owner.
  ///
  /// Every record is in one pair at most. Those of the side whose key comes first count first, the lower primary key
  /// before the higher; then those of the other side where both records are still free.
  func joinPairs(_ database: Database) throws {
    var done: Set<Set<PropertyKey>> = []
    for condition in layout.mapping.conditions where condition.kind == .newInverse || condition.kind == .severalOwners {
      guard let path = condition.destinationProperty,
        let property = layout.destinationSide.properties[condition.destinationEntityName]?.first(where: {
          $0.path == path
        }), let relationship = property.relationship, let inverse = layout.destinationSide.inverse(of: relationship),
        inverse.key != property.key, done.insert([property.key, inverse.key]).inserted
      else { continue }
      let keys = [property.key, inverse.key].sorted { $0.description < $1.description }
      guard let first = side(keys[0]), let second = side(keys[1]) else { continue }
      try join(first, second, "temp.lazaret_pairs_\(done.count)", database)
    }
  }

  private func side(_ key: PropertyKey) -> Side? {
    guard case .toOne(let column, let entityColumn, _) = layout.destination.storage(of: key),
      let entity = layout.destination.entity(named: key.entityName)
    else { return nil }
    return Side(table: entity.tableName, column: column, entityColumn: entityColumn, numbers: entity.numbers)
  }

  /// - Parameter pairs: the name of a table that is not there yet; it goes with the connection.
  private func join(_ first: Side, _ second: Side, _ pairs: String, _ database: Database) throws {
    try database.execute(
      sql: "CREATE TABLE \(pairs) (first INTEGER PRIMARY KEY, second INTEGER NOT NULL UNIQUE)")
    for (side, columns) in [(first, "first, second"), (second, "second, first")] {
      let column = SQLText.identifier(side.column)
      try database.execute(
        sql: "INSERT OR IGNORE INTO \(pairs) (\(columns)) SELECT Z_PK, \(column) "
          + "FROM main.\(SQLText.identifier(side.table)) WHERE \(column) IS NOT NULL AND \(side.condition) ORDER BY Z_PK"
      )
    }
    for (side, other, own, far) in [(first, second, "first", "second"), (second, first, "second", "first")] {
      let table = SQLText.identifier(side.table)
      let partner = "(SELECT p.\(far) FROM \(pairs) AS p WHERE p.\(own) = o.Z_PK)"
      var assignments = ["\(SQLText.identifier(side.column)) = \(partner)"]
      if let column = side.entityColumn {
        assignments.append(
          "\(SQLText.identifier(column)) = (SELECT q.Z_ENT FROM main.\(SQLText.identifier(other.table)) AS q "
            + "WHERE q.Z_PK = \(partner))")
      }
      try database.execute(
        sql: "UPDATE main.\(table) AS o SET \(assignments.joined(separator: ", ")) WHERE \(side.condition) "
          + "AND \(SQLText.identifier(side.column)) IS NOT \(partner)")
    }
  }
}
