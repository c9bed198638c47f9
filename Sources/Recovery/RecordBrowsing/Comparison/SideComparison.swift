internal import Compatibility
internal import GRDB
internal import PersistentStore
internal import StoreFiles

/// The comparison of two stores: entity by entity, record by record, by primary key or by a property with UUIDs, and
/// relationship by relationship the pairs of many-to-many ones.
///
/// Both are read through a connection of its own that can change nothing; what takes too long is left out, and said so.
package final class SideComparison: Sendable {
  /// The one store.
  package let first: BrowsedStore

  /// The other.
  package let second: BrowsedStore

  /// How long the comparison of an entity may take.
  private let limit: Duration
  private let pool: ReaderPool
  private let known = Mutex<[String: EntityComparison]>([:])
  let knownPairs = Mutex<[String: PairComparison]>([:])

  /// The most characters of a value.
  static let textLimit = 200

  /// Compares two stores.
  ///
  /// - Parameter limit: how long the comparison of an entity, or a page of records, may take.
  /// - Throws: `store-unreadable`.
  package init(
    _ first: BrowsedStore, _ second: BrowsedStore, limit: Duration = .seconds(5)
  ) throws(RecordBrowsingError) {
    self.first = first
    self.second = second
    self.limit = limit
    do {
      let queue = try BrowsedStore.connect(first.path, attaching: [second.path])
      try queue.inDatabase { database in
        try database.execute(
          sql: "ATTACH DATABASE ? AS other",
          arguments: [EvidenceConnection.address(second.path, .unchanging)])
      }
      pool = ReaderPool([queue])
    } catch {
      throw BrowsedStore.error(error, second.path)
    }
  }

  /// The names of the entities and tables of both stores.
  package var names: [String] {
    var names = first.collections.map(\.name)
    names += second.collections.map(\.name).filter { name in !names.contains(name) }
    return names.filter { !$0.hasPrefix("lazaret_") }
  }

  /// How the records of an entity differ.
  ///
  /// - Parameter property: a property by whose values records are told apart; nil for the primary key.
  package func entity(_ name: String, by property: String? = nil) throws(RecordBrowsingError) -> EntityComparison {
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
      var counts: [RecordDifference: Int64]? = [:]
      for difference in RecordDifference.allCases {
        let statement = pair.countSQL(difference)
        let count = try timed { database in try Int64.fetchOne(database, sql: statement) ?? 0 }
        guard let count else {
          counts = nil
          break
        }
        counts?[difference] = count
      }
      result.counts = counts
    }
    let finished = result
    if finished.counts != nil || one == nil || other == nil { known.withLock { $0[memory] = finished } }
    return finished
  }

  /// The records of an entity that differ in one way.
  ///
  /// - Parameters:
  ///   - next: the key behind which the page begins; nil for the first page.
  ///   - size: how many records come at most.
  package func records(
    _ name: String, _ difference: RecordDifference, by property: String? = nil, next: RecordKey? = nil, size: Int = 50
  ) throws(RecordBrowsingError) -> ComparisonPage {
    let one = try first.collection(name)
    let other = try second.collection(name)
    let pair = try CollectionPair(one, other, by: property)
    let (sql, arguments) = pair.pageSQL(difference, behind: next, size: size)
    let rows = try read { database in
      try database.wholeRows(sql, arguments)
    }
    var page = ComparisonPage(records: [], next: nil)
    for row in rows.prefix(size) { page.records.append(try record(row, pair, difference)) }
    if rows.count > size, let last = page.records.last {
      page.next = difference == .added ? last.secondKey : last.firstKey
    }
    return page
  }

  private func record(
    _ row: [DatabaseValue], _ pair: CollectionPair, _ difference: RecordDifference
  ) throws(RecordBrowsingError) -> ComparedRecord {
    let keys = pair.first.keySQL.count
    func key(_ start: Int) -> RecordKey { RecordKey((start..<(start + keys)).map { row[$0] }) }
    switch difference {
    case .missing:
      let own = key(0)
      return ComparedRecord(firstKey: own, label: try first.label(of: own, in: pair.first), properties: [])
    case .added:
      let own = key(0)
      return ComparedRecord(secondKey: own, label: try second.label(of: own, in: pair.second), properties: [])
    case .changed:
      var properties: [ComparedRecord.Property] = []
      for (index, property) in pair.shown.enumerated() {
        let values: (DatabaseValue, DatabaseValue) = (row[2 * keys + 2 * index], row[2 * keys + 2 * index + 1])
        guard values.0 != values.1 else { continue }
        properties.append(
          .init(
            name: property.name,
            first: property.first.map {
              PresentedValue(values.0, of: $0, entityNames: first.entityNames, limit: Self.textLimit)
            },
            second: property.second.map {
              PresentedValue(values.1, of: $0, entityNames: second.entityNames, limit: Self.textLimit)
            }))
      }
      let own = key(0)
      return ComparedRecord(
        firstKey: own, secondKey: key(keys), label: try first.label(of: own, in: pair.first), properties: properties)
    }
  }

  func read<Value>(_ body: (Database) throws -> Value) throws(RecordBrowsingError) -> Value {
    do {
      return try pool.read(limit: limit, body)
    } catch {
      throw BrowsedStore.error(error, first.path)
    }
  }

  func timed<Value>(_ body: (Database) throws -> Value) throws(RecordBrowsingError) -> Value? {
    do {
      return try read(body)
    } catch {
      guard error.kind == .timeLimit else { throw error }
      return nil
    }
  }
}
