internal import GRDB
internal import PersistentStore

extension BrowsedStore {
  /// The most destinations of a relationship that are listed with a record.
  private static let listedDestinations = 20

  /// One page of the records that a to-many relationship of a record leads to.
  ///
  /// Pages follow the order of the relationship and then the keys, so that a later one costs no more than the first.
  ///
  /// - Parameters:
  ///   - index: the place of the relationship among the collection's.
  ///   - key: the record.
  ///   - next: the token of the page, as the page before gave it; nil for the first.
  ///   - size: how many records, 1 to 1000.
  /// - Throws: `unknown-property`, `bad-query`, `time-limit`, `store-unreadable`.
  package func related(
    at index: Int, of key: RecordKey, in collection: RecordCollection, after next: String? = nil, size: Int = 100
  ) throws(RecordBrowsingError) -> RelatedPage {
    guard collection.toMany.indices.contains(index), let own = key.values.first, key.values.count == 1 else {
      throw .unknownColumn("relationship \(index + 1)", in: collection)
    }
    let relationship = collection.toMany[index]
    let token = try next.map { text throws(RecordBrowsingError) in try PageToken(text, count: 2) }
    let size = max(1, min(size, 1000))
    let places = try places(relationship, own, after: token, limit: size + 1)
    var references: [RecordDetail.Reference] = []
    for place in places.prefix(size) {
      references.append(try reference(RecordKey(place.key), named: relationship.destination))
    }
    let last = places.count > size ? places[size - 1] : nil
    return RelatedPage(
      relationship: relationship, count: try count(relationship, own), references: references,
      next: last.map { PageToken([$0.order, $0.key.databaseValue]).text })
  }

  /// The first records of a relationship.
  func related(
    _ relationship: RecordCollection.ToMany, _ key: DatabaseValue
  ) throws(RecordBrowsingError) -> RecordDetail.Related {
    let count = try count(relationship, key)
    var first: [RecordDetail.Reference] = []
    for place in try places(relationship, key, after: nil, limit: Self.listedDestinations) {
      first.append(try reference(RecordKey(place.key), named: relationship.destination))
    }
    return RecordDetail.Related(
      name: relationship.name, isIncoming: relationship.isIncoming, collection: relationship.destination, count: count,
      inverse: inverse(of: relationship), first: first)
  }

  /// A record that something leads to.
  func reference(_ key: RecordKey, named name: String) throws(RecordBrowsingError) -> RecordDetail.Reference {
    guard let collection = collections.first(where: { $0.name == name && $0.isEntity }) else {
      return RecordDetail.Reference(collection: name, key: key, label: nil, exists: false)
    }
    let own = try read(limits.page) { database in
      try Int.fetchAll(
        database.wholeStatement("SELECT coalesce(Z_ENT, 0) FROM \(collection.tableSQL) WHERE Z_PK = ?", key.values)
      ).first
    }
    guard let own else { return RecordDetail.Reference(collection: name, key: key, label: nil, exists: false) }
    return RecordDetail.Reference(
      collection: entityNames[own] ?? name, key: key, label: try label(of: key, in: collection), exists: true)
  }

  private struct Place {
    var order: DatabaseValue
    var key: Int64
  }

  /// How many records a relationship leads to; nil where counting takes too long.
  private func count(
    _ relationship: RecordCollection.ToMany, _ key: DatabaseValue
  ) throws(RecordBrowsingError) -> Int64? {
    try timed(limits.count) { database in
      try Int64.fetchOne(
        database.wholeStatement(
          "SELECT count(*) FROM \(relationship.table) WHERE \(relationship.ownSQL) = ?", [key])) ?? 0
    }
  }

  /// The destinations of a relationship, in its order; none where it takes too long.
  private func places(
    _ relationship: RecordCollection.ToMany, _ key: DatabaseValue, after token: PageToken?, limit: Int
  ) throws(RecordBrowsingError) -> [Place] {
    let order = relationship.orderSQL ?? "NULL"
    let destination = relationship.destinationSQL
    var conditions = ["\(relationship.ownSQL) = ?", "typeof(\(destination)) = 'integer'"]
    var arguments = [key]
    if let token {
      // NULL comes before everything in SQLite's order, and is greater than nothing.
      let isLater = token.values[0].isNull ? "\(order) IS NOT NULL" : "\(order) > ?"
      conditions.append("(\(isLater) OR \(order) IS ? AND \(destination) > ?)")
      if !token.values[0].isNull { arguments.append(token.values[0]) }
      arguments += token.values
    }
    let sorting = [relationship.orderSQL, destination].compactMap(\.self).joined(separator: ", ")
    return try timed(limits.count) { database in
      try database.wholeRows(
        """
        SELECT \(order), \(destination) FROM \(relationship.table) WHERE \(conditions.joined(separator: " AND "))
        ORDER BY \(sorting) LIMIT \(limit)
        """, arguments
      ).map { Place(order: $0[0], key: Int64.fromDatabaseValue($0[1]) ?? 0) }
    } ?? []
  }

  /// The to-one property of the destination whose column the relationship is followed by.
  private func inverse(of relationship: RecordCollection.ToMany) -> String? {
    guard let destination = collections.first(where: { $0.name == relationship.destination && $0.isEntity }),
      destination.tableSQL == relationship.table
    else { return nil }
    return destination.columns.first { column in
      guard case .toOne = column.kind else { return false }
      return column.sql == relationship.ownSQL
    }?.name
  }
}
