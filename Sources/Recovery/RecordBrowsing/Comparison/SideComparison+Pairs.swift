internal import Compatibility
internal import GRDB
internal import PersistentStore
internal import StoreFiles

extension SideComparison {
  /// The names of the many-to-many relationships of both stores.
  package var relationshipNames: [String] {
    var names = first.manyToMany.map(\.name)
    names += second.manyToMany.map(\.name).filter { name in !names.contains(name) }
    return names
  }

  /// How the pairs of a relationship differ.
  ///
  /// - Throws: `unknown-entity` where neither store has it.
  package func pairs(_ name: String) throws(RecordBrowsingError) -> PairComparison {
    let (one, other) = try relationships(name)
    if let found = knownPairs.withLock({ $0[name] }) { return found }
    var result = PairComparison(name, one, other)
    result.first = try one.flatMap { one throws(RecordBrowsingError) in
      try count(JoinTablePair.countSQL(one, in: "main"))
    }
    result.second = try other.flatMap { other throws(RecordBrowsingError) in
      try count(JoinTablePair.countSQL(other, in: "other"))
    }
    if let one, let other {
      let pair = JoinTablePair(one, other)
      var counts: [RecordDifference: Int64]? = [:]
      for difference in RecordDifference.allCases {
        guard let count = try count(pair.countSQL(difference)) else {
          counts = nil
          break
        }
        counts?[difference] = count
      }
      result.counts = counts
    }
    let finished = result
    if RecordDifference.allCases.allSatisfy({ finished.count($0) != nil }) {
      knownPairs.withLock { $0[name] = finished }
    }
    return finished
  }

  /// The pairs of a relationship that differ in one way; none where one store alone has the relationship.
  ///
  /// - Parameters:
  ///   - next: where the page begins, as the page before gave it; nil for the first page.
  ///   - size: how many pairs come at most.
  package func pairs(
    _ name: String, _ difference: RecordDifference, next: String? = nil, size: Int = 50
  ) throws(RecordBrowsingError) -> PairPage {
    let token = try next.map { text throws(RecordBrowsingError) in try PageToken(text, count: 2) }
    guard case (let one?, let other?) = try relationships(name) else { return PairPage(pairs: [], next: nil) }
    let tables = JoinTablePair(one, other)
    let (sql, arguments) = tables.pageSQL(difference, behind: token, size: size)
    let rows = try read { database in
      try database.wholeRows(sql, arguments)
    }
    var page = PairPage(pairs: [], next: nil)
    for row in rows.prefix(size) { page.pairs.append(try pair(row, tables, difference)) }
    if rows.count > size { page.next = page.pairs.last?.token.text }
    return page
  }

  private func pair(
    _ row: [DatabaseValue], _ tables: JoinTablePair, _ difference: RecordDifference
  ) throws(RecordBrowsingError) -> ComparedPair {
    let store = difference == .added ? second : first
    let sides = difference == .added ? tables.second : tables.first
    var places: [ComparedRecord.Property] = []
    for (index, place) in tables.places.enumerated() where difference == .changed {
      let values: (DatabaseValue, DatabaseValue) = (row[2 + 2 * index], row[3 + 2 * index])
      guard values.0 != values.1 else { continue }
      func shown(_ value: DatabaseValue, _ column: String?) -> PresentedValue? {
        column.map { column in
          PresentedValue(
            value, of: RecordColumn(name: place.name, kind: .stored(declaredType: "INTEGER"), sql: column),
            entityNames: [:], limit: Self.textLimit)
        }
      }
      places.append(
        .init(name: place.name, first: shown(values.0, place.first), second: shown(values.1, place.second)))
    }
    return ComparedPair(
      first: try record(row[0], sides.first, store), second: try record(row[1], sides.second, store), places: places)
  }

  private func record(
    _ value: DatabaseValue, _ side: ManyToMany.Side, _ store: BrowsedStore
  ) throws(RecordBrowsingError) -> ComparedPair.Record {
    let key = RecordKey([value])
    let collection = store.collections.first { $0.name == side.entity }
    let label = try collection.flatMap { collection throws(RecordBrowsingError) in
      try store.label(of: key, in: collection)
    }
    var exists = try first.reference(key, named: side.entity).exists
    if !exists { exists = try second.reference(key, named: side.entity).exists }
    return ComparedPair.Record(entity: side.entity, key: key, label: label, exists: exists)
  }

  private func relationships(_ name: String) throws(RecordBrowsingError) -> (first: ManyToMany?, second: ManyToMany?) {
    let one = first.manyToMany.first { $0.name == name }
    let other = second.manyToMany.first { $0.name == name }
    guard one != nil || other != nil else {
      throw RecordBrowsingError(
        .unknownCollection, path: first.path, detail: "neither store has the relationship \"\(printable(name))\"")
    }
    return (one, other)
  }

  private func count(_ sql: String) throws(RecordBrowsingError) -> Int64? {
    try timed { database in try Int64.fetchOne(database, sql: sql) ?? 0 }
  }
}
