internal import GRDB
package import PersistentStore
import Platform

extension BrowsedStore {
  private static let listedDestinations = 20

  /// Returns a page of a record's to-many destinations.
  ///
  /// Keyset pagination by order and key keeps every page as fast as the first.
  ///
  /// - Parameters:
  ///   - index: the relationship's index in the collection.
  ///   - next: the page token; nil for the first page.
  ///   - size: 1 to 1000 records.
  /// - Throws: `unknown-property`, `bad-query`, `time-limit`, `store-unreadable`.
  package func related(
    at index: Int, of key: RecordKey, in collection: RecordCollection, after next: String? = nil, size: Int = 100
  ) throws(PersistentStoreError) -> RelatedPage {
    guard collection.toMany.indices.contains(index), let own = key.values.first, key.values.count == 1 else {
      throw .unknownColumn("relationship \(index + 1)", in: collection)
    }
    let relationship = collection.toMany[index]
    let token = try next.map { text throws(PersistentStoreError) in try PageToken(text, count: 2) }
    let size = max(1, min(size, 1000))
    let places = try places(relationship, own, after: token, limit: size + 1)
    let references = try places.prefix(size).map { place throws(PersistentStoreError) in
      try reference(RecordKey(place.key), named: relationship.destination)
    }
    let last = places.count > size ? places[size - 1] : nil
    return RelatedPage(
      relationship: relationship, count: try count(relationship, own), references: references,
      next: last.map { PageToken([$0.order, $0.key.databaseValue]).text })
  }

  func related(
    _ relationship: RecordCollection.ToMany, _ key: DatabaseValue
  ) throws(PersistentStoreError) -> RecordDetail.Related {
    let count = try count(relationship, key)
    let places = try places(relationship, key, after: nil, limit: Self.listedDestinations)
    let first = try places.map { place throws(PersistentStoreError) in
      try reference(RecordKey(place.key), named: relationship.destination)
    }
    return RecordDetail.Related(
      name: relationship.name, isIncoming: relationship.isIncoming, collection: relationship.destination, count: count,
      inverse: inverse(of: relationship), first: first)
  }

  func reference(_ key: RecordKey, named name: String) throws(PersistentStoreError) -> RecordDetail.Reference {
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

  /// Counts destinations; nil on timeout.
  private func count(
    _ relationship: RecordCollection.ToMany, _ key: DatabaseValue
  ) throws(PersistentStoreError) -> Int64? {
    try timed(limits.count) { database in
      try Int64.fetchOne(
        database.wholeStatement(
          "SELECT count(*) FROM \(relationship.table) WHERE \(relationship.ownSQL) = ?", [key])) ?? 0
    }
  }

  /// The ordered destinations; empty on timeout.
  private func places(
    _ relationship: RecordCollection.ToMany, _ key: DatabaseValue, after token: PageToken?, limit: Int
  ) throws(PersistentStoreError) -> [Place] {
    let order = relationship.orderSQL ?? "NULL"
    let destination = relationship.destinationSQL
    var conditions = ["\(relationship.ownSQL) = ?", "typeof(\(destination)) = 'integer'"]
    var arguments = [key]
    if let token {
      // NULL sorts first in SQLite, but compares greater than no value.
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

  /// The destination's to-one property that stores the relationship.
  private func inverse(of relationship: RecordCollection.ToMany) -> String? {
    guard let destination = collections.first(where: { $0.name == relationship.destination && $0.isEntity }),
      destination.tableSQL == relationship.table
    else { return nil }
    return destination.columns.first { column in
      guard case .toOne = column.kind else { return false }
      return column.sql == relationship.ownSQL
    }?.name
  }

  /// Searches every text property of every record.
  ///
  /// Root entities are searched, so each record is found once. Each collection has its own time limit and returns its
  /// finds so far.
  ///
  /// - Parameters:
  ///   - text: the needle; ASCII letters match in either case.
  ///   - perCollection: the most finds per collection.
  package func search(_ text: String, perCollection: Int = 20) throws(PersistentStoreError) -> StoreSearch {
    guard !text.isEmpty else { throw .badQuery("there is nothing to look for", hint: "Type a word.") }
    let sought = SoughtText(text)
    var result = StoreSearch(finds: [])
    for collection in collections where collection.entityNumbers == nil {
      let texts = collection.columns.filter(\.isText)
      guard !texts.isEmpty else { continue }
      let found = try finds(of: text, sought, in: collection, texts, limit: perCollection)
      if !found.records.isEmpty || found.isCut { result.finds.append(found) }
    }
    return result
  }

  private func finds(
    of text: String, _ sought: SoughtText, in collection: RecordCollection, _ texts: [RecordColumn], limit: Int
  ) throws(PersistentStoreError) -> StoreSearch.Finds {
    let entity = collection.isEntity ? "Z_ENT" : "NULL"
    let which = texts.enumerated().map { "WHEN \(sought.condition(on: $1.sql, isNumbered: true)) THEN \($0)" }
      .joined(separator: " ")
    let own = collection.condition.map { "\($0) AND " } ?? ""
    let any = texts.map { sought.condition(on: $0.sql, isNumbered: true) }.joined(separator: " OR ")
    let sql = """
      SELECT \(collection.keySQL.joined(separator: ", ")), \(entity), CASE \(which) END, \
      \(texts.map(\.sql).joined(separator: ", ")) FROM \(collection.tableSQL) WHERE \(own)(\(any))
      ORDER BY \(collection.keySQL.joined(separator: ", ")) LIMIT \(limit + 1)
      """
    var result = StoreSearch.Finds(collection: collection.name, records: [], hasMore: false, isCut: false)
    let keys = collection.keySQL.count
    do throws(PersistentStoreError) {
      result.hasMore = try read(limits.search) { database in
        let cursor = try database.wholeCursor(sql, sought.arguments)
        while let row = try cursor.next() {
          guard result.records.count < limit else { return true }
          let index: Int = row[keys + 1] ?? 0
          let value = row.whole(keys + 2 + index)
          // A timeout keeps the finds.
          result.records.append(
            StoreSearch.Find(
              key: RecordKey((0..<keys).map { row.whole($0) }),
              entity: Int.fromDatabaseValue(row[keys]).flatMap { self.entityNames[$0] } ?? collection.name,
              column: texts[index].name, excerpt: Self.excerpt(of: text, in: String.fromDatabaseValue(value) ?? "")))
        }
        return false
      }
    } catch {
      guard error.kind == .timeLimit else { throw error }
      result.isCut = true
    }
    return result
  }

  static func excerpt(of needle: String, in text: String) -> String {
    let around = 60
    let folded = Array(text.unicodeScalars)
    let wanted = Array(needle.unicodeScalars).map(Self.lowered)
    guard folded.count > 2 * around, !wanted.isEmpty, wanted.count <= folded.count else {
      return String(text.prefix(2 * around))
    }
    let place = (0...(folded.count - wanted.count)).first { start in
      wanted.indices.allSatisfy { Self.lowered(folded[start + $0]) == wanted[$0] }
    }
    let first = max(0, (place ?? 0) - around / 2)
    let last = min(folded.count, first + 2 * around)
    let result = String(String.UnicodeScalarView(folded[first..<last]))
    return (first > 0 ? "…" : "") + result + (last < folded.count ? "…" : "")
  }

  private static func lowered(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    ("A"..."Z").contains(scalar) ? Unicode.Scalar(UInt8(scalar.value) + 32) : scalar
  }

  /// Returns a row's provenance; nil outside stores of found rows.
  package func provenance(
    of key: RecordKey, in collection: RecordCollection
  ) throws(PersistentStoreError) -> RowProvenance? {
    guard let table = collection.provenance, case .int64(let number)? = key.values.first?.storage,
      key.values.count == 1
    else { return nil }
    return try read(limits.page) { database in
      let own = try Row.fetchOne(
        database,
        sql: "SELECT state, key, page, cell, source, reason FROM \(TableProvenance.rows) "
          + "WHERE tbl IN (\(table.ids)) AND k = ?", arguments: [number])
      // Among pages with overlapping key ranges, the last-starting one is likeliest.
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

  /// The keys of all versions of a record, live ones first.
  package func versions(
    of storedKey: Int64, in collection: RecordCollection
  ) throws(PersistentStoreError) -> [RecordKey] {
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

  /// Counts rows by state; nil on timeout or without states.
  package func states(of collection: RecordCollection) throws(PersistentStoreError) -> [RowState: Int64]? {
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

  /// The counts of annotated rows by state.
  private static func stateCounts(_ collection: RecordCollection, _ table: TableProvenance, key: String) -> [String] {
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

  /// Adds each row's state and original key.
  func annotate(
    _ rows: inout [RecordPage.Row], _ columns: [RecordColumn], _ collection: RecordCollection
  ) throws(PersistentStoreError) {
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

package struct RelatedPage: Sendable {
  var relationship: RecordCollection.ToMany

  /// The number of all destinations; nil on timeout.
  package var count: Int64?

  package var references: [RecordDetail.Reference]

  package var next: String?
}

/// The location and reliability of a row's bytes.
package struct RowProvenance: Sendable, Hashable {
  package var state: RowState

  /// The key in the store; nil if lost.
  package var storedKey: Int64?

  /// The cell's page; nil if unknown.
  package var page: UInt32?

  /// The cell's number from 0; nil if it must be searched for or isn't a cell any more.
  var cell: Int?

  /// The source of the bytes: `main`, `wal`, `journal`, `freespace`, `index`, `backup`.
  var source: String

  /// How the page was found: `tree`, `content`, `carving`; nil if the row was found by itself.
  var foundBy: String?

  /// Why the row is doubtful, as half a sentence.
  package var reason: String?
}
