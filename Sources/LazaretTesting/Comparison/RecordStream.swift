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
