internal import GRDB
package import PersistentStore
internal import Platform

/// Compares two stores: records by primary key or a UUID property, and many-to-many pairs.
///
/// Both are attached to one read-only connection; comparisons that time out are omitted and reported.
package final class SideComparison: Sendable {
  let first: BrowsedStore

  let second: BrowsedStore

  private let limit: Duration
  private let pool: ReaderPool
  private let known = Mutex<[String: EntityComparison]>([:])
  let knownPairs = Mutex<[String: PairComparison]>([:])

  static let textLimit = 200

  /// - Parameter limit: the time for an entity or page.
  /// - Throws: `store-unreadable`.
  package init(
    _ first: BrowsedStore, _ second: BrowsedStore, limit: Duration = .seconds(5)
  ) throws(PersistentStoreError) {
    self.first = first
    self.second = second
    self.limit = limit
    do {
      let queue = try BrowsedStore.connect(first.path, attaching: [second.path])
      try queue.inDatabase { database in
        try database.execute(
          sql: "ATTACH DATABASE ? AS other", arguments: [EvidenceConnection.address(second.path, .unchanging)])
      }
      pool = ReaderPool([queue])
    } catch { throw BrowsedStore.error(error, second.path) }
  }

  package var names: [String] {
    Self.united(first.collections.map(\.name), second.collections.map(\.name)).filter { !$0.hasPrefix("lazaret_") }
  }

  private static func united(_ names: [String], _ others: [String]) -> [String] {
    names + others.filter { !names.contains($0) }
  }

  /// Counts an entity's differences.
  ///
  /// - Parameter property: the identifying property; nil for the primary key.
  package func entity(_ name: String, by property: String? = nil) throws(PersistentStoreError) -> EntityComparison {
    let memory = "\(property ?? "")\u{0}\(name)"
    if let found = known.withLock({ $0[memory] }) { return found }
    let one = first.collections.first { $0.name == name }
    let other = second.collections.first { $0.name == name }
    var result = EntityComparison(name: name)
    if let one { result.first = try first.count(of: one) }
    if let other { result.second = try second.count(of: other) }
    if let one, let other {
      let pair = try CollectionPair(one, other, by: property)
      result.firstOnly = pair.properties.filter { $0.second == nil }.map(\.name)
      result.secondOnly = pair.properties.filter { $0.first == nil }.map(\.name)
      result.counts = try counts { pair.countSQL($0) }
    }
    let finished = result
    if finished.counts != nil || one == nil || other == nil { known.withLock { $0[memory] = finished } }
    return finished
  }

  /// Returns an entity's records with one kind of difference.
  ///
  /// - Parameter next: the last key of the page before.
  package func records(
    _ name: String, _ difference: RecordDifference, by property: String? = nil, next: RecordKey? = nil, size: Int = 50
  ) throws(PersistentStoreError) -> ComparisonPage {
    let pair = try CollectionPair(first.collection(name), second.collection(name), by: property)
    let (sql, arguments) = pair.pageSQL(difference, behind: next, size: size)
    let rows = try read { database in try database.wholeRows(sql, arguments) }
    var page = ComparisonPage(records: [], next: nil)
    for row in rows.prefix(size) { page.records.append(try record(row, pair, difference)) }
    if rows.count > size, let last = page.records.last {
      page.next = difference == .added ? last.secondKey : last.firstKey
    }
    return page
  }

  private func record(
    _ row: [DatabaseValue], _ pair: CollectionPair, _ difference: RecordDifference
  ) throws(PersistentStoreError) -> ComparedRecord {
    let keys = pair.first.keySQL.count
    func key(_ start: Int) -> RecordKey { RecordKey((start..<(start + keys)).map { row[$0] }) }
    let own = key(0)
    let label = try difference == .added ? second.label(of: own, in: pair.second) : first.label(of: own, in: pair.first)
    switch difference {
    case .missing: return ComparedRecord(firstKey: own, label: label, properties: [])
    case .added: return ComparedRecord(secondKey: own, label: label, properties: [])
    case .changed:
      return ComparedRecord(
        firstKey: own, secondKey: key(keys), label: label, properties: differing(pair.shown, row, from: 2 * keys))
    }
  }

  /// The columns with other values, of which a row has both from an index on.
  private func differing(
    _ columns: some Sequence<ComparedColumn>, _ row: [DatabaseValue], from start: Int
  ) -> [ComparedRecord.Property] {
    columns.enumerated().compactMap { index, column in
      let (one, other) = (row[start + 2 * index], row[start + 2 * index + 1])
      guard one != other else { return nil }
      func value(_ stored: DatabaseValue, _ column: RecordColumn?, _ store: BrowsedStore) -> PresentedValue? {
        column.map { PresentedValue(stored, of: $0, entityNames: store.entityNames, limit: Self.textLimit) }
      }
      return ComparedRecord.Property(
        name: column.name, first: value(one, column.first, first), second: value(other, column.second, second))
    }
  }

  func read<Value>(_ body: (Database) throws -> Value) throws(PersistentStoreError) -> Value {
    do { return try pool.read(limit: limit, body) } catch { throw BrowsedStore.error(error, first.path) }
  }

  package var relationshipNames: [String] { Self.united(first.manyToMany.map(\.name), second.manyToMany.map(\.name)) }

  /// Counts a relationship's differing pairs.
  ///
  /// - Throws: `unknown-entity` if neither store has it.
  package func pairs(_ name: String) throws(PersistentStoreError) -> PairComparison {
    let (one, other) = try relationships(name)
    if let found = knownPairs.withLock({ $0[name] }) { return found }
    var result = PairComparison(name, one, other)
    if let one { result.first = try count(JoinTablePair.countSQL(one, in: "main")) }
    if let other { result.second = try count(JoinTablePair.countSQL(other, in: "other")) }
    if let one, let other {
      let pair = JoinTablePair(one, other)
      result.counts = try counts { pair.countSQL($0) }
    }
    let finished = result
    if RecordDifference.allCases.allSatisfy({ finished.count($0) != nil }) {
      knownPairs.withLock { $0[name] = finished }
    }
    return finished
  }

  /// Returns a relationship's pairs with one kind of difference; empty if one store lacks it.
  package func pairs(
    _ name: String, _ difference: RecordDifference, next: String? = nil, size: Int = 50
  ) throws(PersistentStoreError) -> PairPage {
    let token = try next.map { text throws(PersistentStoreError) in try PageToken(text, count: 2) }
    guard case (let one?, let other?) = try relationships(name) else { return PairPage(pairs: [], next: nil) }
    let tables = JoinTablePair(one, other)
    let (sql, arguments) = tables.pageSQL(difference, behind: token, size: size)
    let rows = try read { database in try database.wholeRows(sql, arguments) }
    var page = PairPage(pairs: [], next: nil)
    for row in rows.prefix(size) { page.pairs.append(try pair(row, tables, difference)) }
    if rows.count > size { page.next = page.pairs.last?.token.text }
    return page
  }

  private func pair(
    _ row: [DatabaseValue], _ tables: JoinTablePair, _ difference: RecordDifference
  ) throws(PersistentStoreError) -> ComparedPair {
    let store = difference == .added ? second : first
    let sides = difference == .added ? tables.second : tables.first
    let places = difference == .changed ? differing(tables.places, row, from: 2) : []
    return ComparedPair(
      first: try record(row[0], sides.first, store), second: try record(row[1], sides.second, store), places: places)
  }

  private func record(
    _ value: DatabaseValue, _ side: ManyToMany.Side, _ store: BrowsedStore
  ) throws(PersistentStoreError) -> ComparedPair.Record {
    let key = RecordKey([value])
    let collection = store.collections.first { $0.name == side.entity }
    let label = try collection.flatMap { collection throws(PersistentStoreError) in
      try store.label(of: key, in: collection)
    }
    var exists = try first.reference(key, named: side.entity).exists
    if !exists { exists = try second.reference(key, named: side.entity).exists }
    return ComparedPair.Record(entity: side.entity, key: key, label: label, exists: exists)
  }

  private func relationships(_ name: String) throws(PersistentStoreError) -> (first: ManyToMany?, second: ManyToMany?) {
    let one = first.manyToMany.first { $0.name == name }
    let other = second.manyToMany.first { $0.name == name }
    guard one != nil || other != nil else {
      throw PersistentStoreError(
        .unknownCollection, path: first.path, detail: "neither store has the relationship \"\(printable(name))\"")
    }
    return (one, other)
  }

  /// Counts by difference; nil on timeout.
  private func counts(_ sql: (RecordDifference) -> String) throws(PersistentStoreError) -> [RecordDifference: Int64]? {
    var counts: [RecordDifference: Int64] = [:]
    for difference in RecordDifference.allCases {
      guard let count = try count(sql(difference)) else { return nil }
      counts[difference] = count
    }
    return counts
  }

  private func count(_ sql: String) throws(PersistentStoreError) -> Int64? {
    do {
      return try read { database in try Int64.fetchOne(database, sql: sql) ?? 0 }
    } catch {
      guard error.kind == .timeLimit else { throw error }
      return nil
    }
  }
}

/// The difference between records of the same key in two stores.
package enum RecordDifference: String, Sendable, Hashable, CaseIterable {
  /// Only the first store has it.
  case missing

  /// Only the second store has it.
  case added

  /// Both have it, with different values.
  case changed
}

package struct ComparisonPage: Sendable {
  package var records: [ComparedRecord]

  /// The last key, if another page follows.
  package var next: RecordKey?
}

package struct PairPage: Sendable {
  package var pairs: [ComparedPair]

  package var next: String?
}

/// A record that differs between two stores.
package struct ComparedRecord: Sendable, Hashable {
  package struct Property: Sendable, Hashable {
    package var name: String

    /// The first store's value; nil if it lacks the property.
    package var first: PresentedValue?

    /// The second store's value; nil if it lacks the property.
    package var second: PresentedValue?
  }

  /// The key in the first store, or nil.
  package var firstKey: RecordKey?

  /// The key in the second store, or nil.
  package var secondKey: RecordKey?

  /// The record's name or title, or nil.
  var label: String?

  /// The differing properties; empty for a record in one store only.
  package var properties: [Property]
}

/// An entity's differences between two stores.
package struct EntityComparison: Sendable, Hashable {
  var name: String

  /// The first store's count; nil if it lacks the entity.
  package var first: Int64?

  /// The second store's count; nil if it lacks the entity.
  package var second: Int64?

  /// The counts by difference; nil on timeout or if a store lacks the entity.
  package var counts: [RecordDifference: Int64]?

  package var firstOnly: [String] = []

  package var secondOnly: [String] = []

  /// Whether all that was compared is equal.
  package var isSame: Bool {
    firstOnly.isEmpty && secondOnly.isEmpty && counts.map { $0.values.allSatisfy { $0 == 0 } } ?? false
  }
}

/// The differences of a many-to-many relationship's pairs.
package struct PairComparison: Sendable, Hashable {
  var name: String

  /// Both names, such as `Port.ships` and `Ship.ports`; one if self-inverse.
  package var sides: [String]

  /// The first store's pairs; nil if absent or on timeout.
  package var first: Int64?

  /// The second store's pairs; nil if absent or on timeout.
  package var second: Int64?

  /// The pairs by difference, other positions as changed; nil on timeout or if a store lacks the relationship.
  package var counts: [RecordDifference: Int64]?

  package var isInFirst: Bool

  package var isInSecond: Bool

  init(_ name: String, _ first: ManyToMany?, _ second: ManyToMany?) {
    self.name = name
    let shown = first ?? second
    let names = shown.map { [$0.first.name, $0.second.name] } ?? []
    sides = names.first == names.last ? Array(names.prefix(1)) : names
    isInFirst = first != nil
    isInSecond = second != nil
  }

  /// - Returns: all pairs if only one store has the relationship; nil if not compared.
  package func count(_ difference: RecordDifference) -> Int64? {
    if let counts { return counts[difference] ?? 0 }
    switch (isInFirst, isInSecond) {
    case (true, false): return difference == .missing ? first : 0
    case (false, true): return difference == .added ? second : 0
    case (true, true): return nil
    case (false, false): return 0
    }
  }
}

/// A many-to-many pair that differs between two stores.
package struct ComparedPair: Sendable, Hashable {
  package struct Record: Sendable, Hashable {
    package var entity: String

    package var key: RecordKey

    /// The record's name or title, or nil.
    package var label: String?

    /// Whether either store has the record.
    var exists: Bool
  }

  /// The alphabetically first side's record.
  package var first: Record

  package var second: Record

  /// The differing positions by relationship; empty for a pair in one store only.
  package var places: [ComparedRecord.Property]

  var token: PageToken { PageToken(first.key.values + second.key.values) }
}
