internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore

/// The records of one entity without sub-entities, by primary key.
struct RecordStream {
  private let store: PersistentStore
  private let entityName: String
  private var batch: ArraySlice<StoreRecord> = []
  private var key = Int64.min
  private var isAtEnd = false
  private static let batchSize = 500

  init(_ store: PersistentStore, _ entityName: String) {
    self.store = store
    self.entityName = entityName
  }

  mutating func next() throws -> StoreRecord? {
    while true {
      while let record = batch.popFirst() {
        if record.entityName == entityName { return record }
      }
      guard !isAtEnd else { return nil }
      let records = try store.records(of: entityName, after: key, limit: Self.batchSize)
      isAtEnd = records.count < Self.batchSize
      if let last = records.last { key = last.primaryKey }
      batch = records[...]
    }
  }

  /// Walks two entities in step, pairing records by primary key.
  static func zip(
    _ first: (store: PersistentStore, entity: String), _ second: (store: PersistentStore, entity: String),
    _ body: (StoreRecord?, StoreRecord?) throws -> Void
  ) throws {
    var (left, right) = (RecordStream(first.store, first.entity), RecordStream(second.store, second.entity))
    var (one, other) = (try left.next(), try right.next())
    while one != nil || other != nil {
      let (key, otherKey) = (one?.primaryKey ?? .max, other?.primaryKey ?? .max)
      if one != nil, key < otherKey || other == nil {
        try body(one, nil)
        one = try left.next()
      } else if other != nil, otherKey < key || one == nil {
        try body(nil, other)
        other = try right.next()
      } else {
        try body(one, other)
        one = try left.next()
        other = try right.next()
      }
    }
  }
}

/// A record and a destination of its relationship.
struct RelationshipPair: Hashable {
  var own: Int64
  var destination: Int64

  var reversed: RelationshipPair { RelationshipPair(own: destination, destination: own) }
}

extension PersistentStore {
  /// A pair with the number of the destination's own entity.
  struct StoredPair {
    let pair: RelationshipPair
    let destinationNumber: Int
  }

  /// Returns the pairs of a relationship from one entity's records, without sub-entities.
  ///
  /// Sorted by primary key; a record's destinations in the relationship's order, if any, else by primary key. Dangling
  /// references are omitted.
  func pairs(of relationship: String, entity entityName: String) throws -> [StoredPair] {
    guard let layout = try layout(), let entity = layout.entity(named: entityName),
      let found = layout.model.properties(of: entityName)[relationship]?.property.relationship,
      let destination = layout.entity(named: found.destinationEntityName),
      let storage = layout.storage(of: relationship, in: entityName)
    else { return [] }
    let own = SQLText.identifier(entity.tableName)
    let other = SQLText.identifier(destination.tableName)
    let sql: String
    switch storage {
    case .attribute: return []
    case .toOne(let column, _, _):
      sql = """
        SELECT o.Z_PK, q.Z_PK, q.Z_ENT FROM \(own) AS o JOIN \(other) AS q ON q.Z_PK = o.\(SQLText.identifier(column))
        WHERE o.Z_ENT = ? ORDER BY o.Z_PK
        """
    case .toManyByColumn(let table, let column, let order):
      let place = order.map { "q.\(SQLText.identifier($0)), " } ?? ""
      sql = """
        SELECT o.Z_PK, q.Z_PK, q.Z_ENT FROM \(own) AS o JOIN \(SQLText.identifier(table)) AS q
        ON q.\(SQLText.identifier(column)) = o.Z_PK WHERE o.Z_ENT = ? ORDER BY o.Z_PK, \(place)q.Z_PK
        """
    case .toManyByJoinTable(let table, let ownColumn, let destinationColumn, let order):
      let place = order.map { "p.\(SQLText.identifier($0)), " } ?? ""
      sql = """
        SELECT o.Z_PK, q.Z_PK, q.Z_ENT FROM \(own) AS o
        JOIN \(SQLText.identifier(table)) AS p ON p.\(SQLText.identifier(ownColumn)) = o.Z_PK
        JOIN \(other) AS q ON q.Z_PK = p.\(SQLText.identifier(destinationColumn))
        WHERE o.Z_ENT = ? ORDER BY o.Z_PK, \(place)q.Z_PK
        """
    }
    return try read { database in
      var result: [StoredPair] = []
      let rows = try Row.fetchCursor(database, sql: sql, arguments: [entity.number])
      while let row = try rows.next() {
        let values = (0..<3).map { index -> Int64 in
          let value: DatabaseValue = row[index]
          return Int64.fromDatabaseValue(value) ?? 0
        }
        result.append(
          StoredPair(
            pair: RelationshipPair(own: values[0], destination: values[1]),
            destinationNumber: Int(exactly: values[2]) ?? 0))
      }
      return result
    }
  }
}

extension StoreLayout {
  var concreteEntities: [EntityLayout] { entities.filter { model.entities[$0.name]?.isAbstract == false } }

  func relationships(of entityName: String) -> [(key: PropertyKey, relationship: Relationship)] {
    model.properties(of: entityName).inCodeUnitOrder().compactMap { name, inherited in
      guard let relationship = inherited.property.relationship, !relationship.traits.isTransient else { return nil }
      return (PropertyKey(entityName: inherited.declaringEntityName, name: name), relationship)
    }
  }

  func mutualInverse(
    of relationship: Relationship, _ key: PropertyKey
  ) -> (key: PropertyKey, relationship: Relationship)? {
    guard let found = model.inverse(of: relationship), model.inverse(of: found.relationship)?.key == key else {
      return nil
    }
    return found
  }

  func isKind(_ name: String, of ancestor: String) -> Bool {
    guard let entity = entity(named: name), let other = self.entity(named: ancestor) else { return false }
    return other.numbers.contains(entity.number)
  }
}
