internal import Compatibility
internal import GRDB

extension BrowsedStore {
  /// Where the bytes of a row are, and how far it is to be believed; nil in stores that are not of found rows.
  package func provenance(
    of key: RecordKey, in collection: RecordCollection
  ) throws(RecordBrowsingError) -> RowProvenance? {
    guard let table = collection.provenance, case .int64(let number)? = key.values.first?.storage,
      key.values.count == 1
    else { return nil }
    return try read(limits.page) { database in
      let own = try Row.fetchOne(
        database,
        sql: "SELECT state, key, page, cell, source, reason FROM \(TableProvenance.rows) "
          + "WHERE tbl IN (\(table.ids)) AND k = ?", arguments: [number])
      // Of pages whose keys overlap the one that begins last is the likeliest.
      let place = try Row.fetchOne(
        database,
        sql: """
          SELECT page, source, found_by, certainty, reason FROM \(TableProvenance.places)
          WHERE tbl = ? AND first <= ? AND last >= ? ORDER BY first DESC LIMIT 1
          """, arguments: [table.id, number, number])
      if let own {
        return RowProvenance(
          state: Self.state(own[0]), storedKey: own[1], page: Self.page(own[2]), cell: Self.cell(own[3]),
          source: own[4] ?? "main", foundBy: own[3] == nil ? place?[2] : nil, reason: own[5])
      }
      guard number >= table.lowest, let place else { return nil }
      return RowProvenance(
        state: .certain, storedKey: number, page: Self.page(place[0]), source: place[1] ?? "main", foundBy: place[2],
        reason: place[4])
    }
  }

  /// The keys of all rows that have, or had, the key of a record, that of the record itself included, live ones first.
  package func versions(
    of storedKey: Int64, in collection: RecordCollection
  ) throws(RecordBrowsingError) -> [RecordKey] {
    guard let table = collection.provenance, let key = collection.keySQL.first else { return [] }
    let condition = collection.condition.map { " AND \($0)" } ?? ""
    let keys = try read(limits.page) { database in
      try Int64.fetchAll(
        database,
        sql: """
          SELECT \(key) FROM \(collection.everyRow) WHERE \(key) IN \
          (SELECT ?1 WHERE ?1 >= \(table.lowest) UNION ALL \(table.keys(storedAs: "?1")))\(condition)
          ORDER BY \(key) DESC LIMIT 50
          """, arguments: [storedKey])
    }
    return keys.map { RecordKey($0) }
  }

  /// How many rows of a collection are in each state; nil where counting took too long, or rows have none.
  package func states(of collection: RecordCollection) throws(RecordBrowsingError) -> [RowState: Int64]? {
    guard let table = collection.provenance, let key = collection.keySQL.first else { return nil }
    if let known = stateCounts.withLock({ $0[collection.name] }) { return known }
    let statements = Self.stateCounts(collection, table, key: key)
    let noted = try timed(limits.count) { database in
      var counts: [RowState: Int64] = [:]
      for statement in statements {
        for row in try Row.fetchAll(database, sql: statement) {
          counts[Self.state(row[0]), default: 0] += row[1] as Int64
        }
      }
      return counts
    }
    guard var counts = noted, let live = try count(of: collection) else { return nil }
    let certain = live - (counts[.doubtful] ?? 0) - (counts[.probable] ?? 0)
    if certain > 0 { counts[.certain] = certain }
    let found = counts
    stateCounts.withLock { $0[collection.name] = found }
    return found
  }

  /// The statements that count the rows with notes by their states.
  private static func stateCounts(
    _ collection: RecordCollection, _ table: TableProvenance, key: String
  ) -> [String] {
    guard let condition = collection.condition else {
      return ["SELECT state, count(*) FROM \(TableProvenance.rows) WHERE tbl IN (\(table.ids)) GROUP BY 1"]
    }
    let live =
      "SELECT n.state, count(*) FROM \(TableProvenance.rows) AS n JOIN \(collection.tableSQL) ON \(key) = n.k "
      + "WHERE n.tbl = \(table.id) AND \(condition) GROUP BY 1"
    return [live]
      + table.apart.map { apart in
        "SELECT lazaret_state, count(*) FROM (\(apart.selection(with: "state AS lazaret_state"))) "
          + "WHERE \(condition) GROUP BY 1"
      }
  }

  /// Says of each row in which state it is, and gives rows the keys that they have in the store.
  func annotate(
    _ rows: inout [RecordPage.Row], _ columns: [RecordColumn], _ collection: RecordCollection
  ) throws(RecordBrowsingError) {
    guard let table = collection.provenance, table.noted > 0 || !table.apart.isEmpty, !rows.isEmpty else { return }
    var places: [Int64: Int] = [:]
    for (index, row) in rows.enumerated() {
      if case .int64(let number)? = row.key.values.first?.storage { places[number] = index }
    }
    let keyColumn = columns.firstIndex { $0.kind == .key }
    let keys = places.keys.map(String.init).joined(separator: ",")
    let notes = try read(limits.page) { database in
      try Row.fetchAll(
        database,
        sql: "SELECT k, state, key FROM \(TableProvenance.rows) WHERE tbl IN (\(table.ids)) AND k IN (\(keys))")
    }
    for note in notes {
      guard let index = places[note[0]] else { continue }
      rows[index].state = Self.state(note[1])
      guard let keyColumn, !rows[index].state.isLive else { continue }
      let stored: DatabaseValue = note[2]
      rows[index].values[keyColumn] = PresentedValue.plain(stored, limit: 20)
    }
  }

  private static func state(_ text: String?) -> RowState { text.flatMap(RowState.init) ?? .doubtful }
  private static func page(_ number: Int64?) -> UInt32? { number.flatMap { UInt32(exactly: $0) } }
  private static func cell(_ number: Int64?) -> Int? { number.flatMap { Int(exactly: $0) } }
}
