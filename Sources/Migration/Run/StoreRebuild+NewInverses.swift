internal import GRDB
import ManagedObjectModel
internal import PersistentStore

extension StoreRebuild {
  /// Joins the pairs of newly inverse one-to-one relationships.
  ///
  /// In conflicts the side whose name sorts first wins, then the lowest primary key. The columns must be indexed.
  func joinNewInverses(_ database: Database) throws {
    var done: Set<PropertyKey> = []
    for key in newOneToOneKeys() where !done.contains(key) {
      guard let relationship = layout.relationship(key), let inverse = layout.destinationSide.inverse(of: relationship),
        !inverse.relationship.isToMany, layout.destinationSide.inverse(of: inverse.relationship)?.key == key,
        let own = side(key), let other = side(inverse.key)
      else { continue }
      done.insert(key)
      done.insert(inverse.key)
      guard key != inverse.key else {
        try pairUp(own, database)
        continue
      }
      let statements =
        key.description <= inverse.key.description
        ? Self.statements(joining: own, other) : Self.statements(joining: other, own)
      for statement in statements { try database.execute(sql: statement) }
    }
  }

  /// The to-one relationships that may have to drop pairs, by declaring entity.
  private func newOneToOneKeys() -> [PropertyKey] {
    var result: [PropertyKey] = []
    for condition in layout.mapping.conditions where condition.kind == .newInverse || condition.kind == .severalOwners {
      guard let name = condition.destinationProperty?.name,
        let found = layout.destinationSide.property(PropertyPath(name), of: condition.destinationEntityName),
        found.relationship?.isToMany == false, !result.contains(found.key)
      else { continue }
      result.append(found.key)
    }
    return result
  }

  private struct Side {
    let table: String
    let column: String
    let entityColumn: String?

    var cut: String { ([column] + [entityColumn].compactMap { $0 }).map { "\($0) = NULL" }.joined(separator: ", ") }

    func follow(_ other: Side) -> String {
      let place = "FROM main.\(other.table) AS p WHERE p.\(other.column) = o.Z_PK ORDER BY p.Z_PK LIMIT 1"
      let key = "\(column) = (SELECT p.Z_PK \(place))"
      return entityColumn.map { "\(key), \($0) = (SELECT p.Z_ENT \(place))" } ?? key
    }
  }

  private func side(_ key: PropertyKey) -> Side? {
    guard let entity = layout.destination.entity(named: key.entityName),
      case .toOne(let column, let entityColumn, _) = layout.destination.storage(of: key)
    else { return nil }
    return Side(
      table: entity.tableName.sqlName, column: column.sqlName, entityColumn: entityColumn.map(\.sqlName))
  }

  private static func keepFirst(_ side: Side) -> String {
    "UPDATE main.\(side.table) AS o SET \(side.cut) WHERE o.\(side.column) IS NOT NULL AND "
      + "o.Z_PK <> (SELECT min(p.Z_PK) FROM main.\(side.table) AS p WHERE p.\(side.column) = o.\(side.column))"
  }

  /// No statement may depend on its own changes.
  private static func statements(joining first: Side, _ second: Side) -> [String] {
    [
      keepFirst(first),
      // The first side's records and partners are taken.
      "UPDATE main.\(second.table) AS o SET \(second.cut) WHERE o.\(second.column) IS NOT NULL AND (EXISTS (SELECT 1 "
        + "FROM main.\(first.table) AS p WHERE p.\(first.column) = o.Z_PK) OR EXISTS (SELECT 1 FROM "
        + "main.\(first.table) AS p WHERE p.Z_PK = o.\(second.column) AND p.\(first.column) IS NOT NULL))",
      keepFirst(second),
      "UPDATE main.\(first.table) AS o SET \(first.follow(second)) WHERE o.\(first.column) IS NULL AND "
        + "EXISTS (SELECT 1 FROM main.\(second.table) AS p WHERE p.\(second.column) = o.Z_PK)",
      "UPDATE main.\(second.table) AS o SET \(second.follow(first)) WHERE o.\(second.column) IS NULL AND "
        + "EXISTS (SELECT 1 FROM main.\(first.table) AS p WHERE p.\(first.column) = o.Z_PK)",
    ]
  }

  /// Pairs the records of a self-inverse relationship.
  ///
  /// Mutual pairs come first, then primary key order; both records must be free. One pair is in memory at a time.
  private func pairUp(_ side: Side, _ database: Database) throws {
    let table = "main.\(side.table)"
    let back = "(SELECT p.\(side.column) FROM \(table) AS p WHERE p.Z_PK = o.\(side.column))"
    try database.execute(
      sql: """
        CREATE TEMP TABLE IF NOT EXISTS lazaret_pairs (own INTEGER, other INTEGER, isMutual INTEGER);
        DELETE FROM temp.lazaret_pairs;
        INSERT INTO temp.lazaret_pairs SELECT o.Z_PK, o.\(side.column), \(back) IS o.Z_PK
        FROM \(table) AS o WHERE o.\(side.column) IS NOT NULL;
        UPDATE \(table) SET \(side.cut) WHERE \(side.column) IS NOT NULL
        """)
    let entity = side.entityColumn.map { ", \($0) = (SELECT p.Z_ENT FROM \(table) AS p WHERE p.Z_PK = :other)" } ?? ""
    let update = try database.makeStatement(
      sql: "UPDATE \(table) AS o SET \(side.column) = :other\(entity) WHERE o.Z_PK = :own AND o.\(side.column) IS NULL "
        + "AND EXISTS (SELECT 1 FROM \(table) AS p WHERE p.Z_PK = :other AND ifnull(p.\(side.column), :own) = :own)")
    let pairs = try Row.fetchCursor(
      database, sql: "SELECT own, other FROM temp.lazaret_pairs ORDER BY isMutual DESC, own")
    while let row = try pairs.next() {
      let (own, other): (DatabaseValue, DatabaseValue) = (row[0], row[1])
      try update.execute(arguments: ["own": own, "other": other])
      guard database.changesCount > 0, own != other else { continue }
      try update.execute(arguments: ["own": other, "other": own])
    }
  }
}
