internal import GRDB

/// A comparison of two stores, record by record.
///
/// Entities and properties match by renaming identifier, so versions may differ; records match by primary key. Memory
/// grows with the pairs of relationships, not with the records.
public struct StoreComparison: Sendable {
  /// The options of a comparison.
  public struct Options: Sendable, Hashable {
    /// Whether differences include values; off by default, since they are private.
    public var includesValues = false

    /// The most differences kept; all are counted.
    public var limit = 1000

    /// Ignored properties of the second store, as `Car.color`, and entities, as `Car`.
    public var ignoring: Set<String> = []

    /// Makes the default options.
    public init() {}
  }

  /// The differences, by entity, record and property.
  public let differences: [StoreDifference]

  /// The number of all differences.
  public let differenceCount: Int

  /// The number of compared records.
  public let comparedRecords: Int

  /// The entities in only one model, by name.
  public let unmatchedEntities: [String]

  /// The properties in only one model, as `Car.color`, of common entities.
  public let unmatchedProperties: [String]

  /// Whether the stores are equal.
  public var isEqual: Bool { differenceCount == 0 }

  /// Compares two stores opened with their models.
  ///
  /// - Throws: `PersistentStoreError` if a store has no model or is unreadable.
  public init(
    _ first: PersistentStore, _ second: PersistentStore, options: Options = Options()
  ) throws(PersistentStoreError) {
    do {
      guard let left = try first.layout(), let right = try second.layout() else {
        throw PersistentStoreError(
          .noModel, operation: "compare two stores", path: first.path,
          detail: "a store was opened without its model", hint: "Open both with their models.")
      }
      var work = ComparisonWork(
        first: first, second: second, left: left, right: right, options: options,
        list: DifferenceList(limit: options.limit, includesValues: options.includesValues))
      try work.run()
      differences = work.list.differences
      differenceCount = work.list.count
      comparedRecords = work.records
      unmatchedEntities = work.unmatchedEntities
      unmatchedProperties = work.unmatchedProperties
    } catch {
      throw PersistentStoreError(testing: error, operation: "compare two stores", path: second.path)
    }
  }
}

private struct ComparisonWork {
  let first: PersistentStore
  let second: PersistentStore
  let left: StoreLayout
  let right: StoreLayout
  let options: StoreComparison.Options
  var list: DifferenceList
  var records = 0
  var unmatchedEntities: [String] = []
  var unmatchedProperties: [String] = []

  mutating func run() throws {
    let byIdentifier = Dictionary(
      left.concreteEntities.compactMap { entity in
        left.model.entities[entity.name].map { ($0.renamingIdentifier, entity.name) }
      }, uniquingKeysWith: { first, _ in first })
    var matched: Set<String> = []
    for entity in right.concreteEntities where !options.ignoring.contains(entity.name) {
      let identifier = right.model.entities[entity.name]?.renamingIdentifier ?? entity.name
      guard let old = byIdentifier[identifier] ?? left.concreteEntities.first(where: { $0.name == entity.name })?.name
      else {
        unmatchedEntities.append(entity.name)
        continue
      }
      matched.insert(old)
      try compare(old, entity.name)
    }
    unmatchedEntities += left.concreteEntities.map(\.name).filter {
      !matched.contains($0) && !options.ignoring.contains($0)
    }
    unmatchedEntities.sort(by: precedesByCodeUnit)
  }

  private mutating func compare(_ old: String, _ new: String) throws {
    let properties = pairs(old, new)
    let attributes = properties.filter { $0.isAttribute }
    try RecordStream.zip((first, old), (second, new)) { one, other in
      guard let one, let other else {
        let key = one?.primaryKey ?? other?.primaryKey ?? 0
        list.add(StoreDifference(one == nil ? .extraRecord : .missingRecord, entity: new, primaryKey: key))
        return
      }
      records += 1
      for property in attributes { compareValues(one, other, property.old, property.new, new) }
    }
    for property in properties where !property.isAttribute {
      try compareDestinations(old, property.old, new, property.new)
    }
  }

  /// Compares values; composite attributes have one for each leaf, by path.
  private mutating func compareValues(
    _ one: StoreRecord, _ other: StoreRecord, _ old: String, _ new: String, _ entity: String
  ) {
    func check(_ oldPath: String, _ newPath: String) {
      let (before, after) = (one.values[oldPath] ?? .null, other.values[newPath] ?? .null)
      if !before.isEqual(to: after) {
        list.add(.value, entity, other.primaryKey, newPath, first: before, second: after)
      }
    }
    if one.values[old] != nil || other.values[new] != nil {
      check(old, new)
      return
    }
    let suffixes = one.values.keys.filter { $0.hasPrefix(old + ".") }.map { $0.dropFirst(old.count) }
    for suffix in suffixes.sorted() where other.values[new + suffix] != nil { check(old + suffix, new + suffix) }
  }

  private mutating func compareDestinations(_ old: String, _ oldName: String, _ new: String, _ newName: String) throws {
    let before = try first.pairs(of: oldName, entity: old).map(\.pair)
    let after = try second.pairs(of: newName, entity: new).map(\.pair)
    guard before != after else { return }
    let (olds, news) = (Set(before), Set(after))
    for pair in before where !news.contains(pair) {
      list.add(StoreDifference(.missingDestination, entity: new, primaryKey: pair.own, property: newName))
    }
    for pair in after where !olds.contains(pair) {
      list.add(StoreDifference(.extraDestination, entity: new, primaryKey: pair.own, property: newName))
    }
    let isOrdered = [left.model.properties(of: old)[oldName], right.model.properties(of: new)[newName]].allSatisfy {
      $0?.property.relationship?.isOrdered == true
    }
    guard olds == news, isOrdered else { return }
    let found = Dictionary(grouping: after, by: \.own)
    for (key, pairs) in Dictionary(grouping: before, by: \.own).sorted(by: { $0.key < $1.key })
    where pairs != found[key] {
      list.add(StoreDifference(.order, entity: new, primaryKey: key, property: newName))
    }
  }

  private mutating func pairs(_ old: String, _ new: String) -> [(old: String, new: String, isAttribute: Bool)] {
    func stored(_ layout: StoreLayout, _ entity: String) -> [(name: String, identifier: String, isAttribute: Bool)] {
      layout.model.properties(of: entity).values.compactMap { inherited in
        let traits = inherited.property.traits
        if case .fetchedProperty = inherited.property { return nil }
        guard !traits.isTransient else { return nil }
        return (traits.name, traits.renamingIdentifier, inherited.property.attribute != nil)
      }.sorted { precedesByCodeUnit($0.name, $1.name) }
    }
    let before = stored(left, old)
    var used: Set<String> = []
    var result: [(old: String, new: String, isAttribute: Bool)] = []
    for property in stored(right, new) where !options.ignoring.contains("\(new).\(property.name)") {
      let candidates = before.filter { $0.isAttribute == property.isAttribute && !used.contains($0.name) }
      guard
        let origin = candidates.first(where: { $0.identifier == property.identifier })
          ?? candidates.first(where: { $0.name == property.name })
      else {
        unmatchedProperties.append("\(new).\(property.name)")
        continue
      }
      used.insert(origin.name)
      result.append((origin.name, property.name, property.isAttribute))
    }
    unmatchedProperties += before.filter { !used.contains($0.name) }.map { "\(old).\($0.name)" }.filter {
      !options.ignoring.contains($0)
    }
    return result
  }
}

/// A bounded list of differences with the full count.
struct DifferenceList {
  private(set) var differences: [StoreDifference] = []
  private(set) var count = 0
  let limit: Int
  let includesValues: Bool

  init(limit: Int, includesValues: Bool) {
    self.limit = max(0, limit)
    self.includesValues = includesValues
  }

  mutating func add(_ difference: StoreDifference) {
    count += 1
    if differences.count < limit { differences.append(difference) }
  }

  mutating func add(
    _ kind: StoreDifference.Kind, _ entity: String, _ key: Int64, _ property: String, first: RecordValue?,
    second: RecordValue?
  ) {
    add(
      StoreDifference(
        kind, entity: entity, primaryKey: key, property: property,
        first: includesValues ? first.map { "\($0)" } : nil, second: includesValues ? second.map { "\($0)" } : nil))
  }
}

/// A difference between two stores, or between a migrated store and its mapping.
///
/// It has values only on request.
public struct StoreDifference: Sendable, Hashable, Codable, CustomStringConvertible {
  /// The kinds of differences.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    case missingRecord = "missing-record"

    case extraRecord = "extra-record"

    case value

    case missingDestination = "missing-destination"

    case extraDestination = "extra-destination"

    case order

    case oneSided = "one-sided"

    /// A large value's file is missing or differs.
    case externalFile = "external-file"

    /// The store's identifier or version hashes are wrong.
    case metadata
  }

  /// The kind of difference.
  public var kind: Kind

  /// The second store's entity, or the first's if only that has the record.
  ///
  /// Empty for metadata.
  public var entityName: String

  /// The record; nil for metadata.
  public var primaryKey: Int64?

  /// The property's name in the second store; nil for a whole record.
  public var propertyName: String?

  /// The first or expected value, on request.
  public var first: String?

  /// The second value, on request.
  public var second: String?

  /// Makes a difference.
  public init(
    _ kind: Kind, entity: String, primaryKey: Int64?, property: String? = nil, first: String? = nil,
    second: String? = nil
  ) {
    self.kind = kind
    entityName = entity
    self.primaryKey = primaryKey
    propertyName = property
    self.first = first
    self.second = second
  }

  /// The difference on one line, such as `value Car 7 color`.
  public var description: String {
    var words = [kind.rawValue, printable(entityName), primaryKey.map { String($0) } ?? ""]
    words.append(propertyName.map { printable($0) } ?? "")
    if let first { words.append("first: \(printable(first))") }
    if let second { words.append("second: \(printable(second))") }
    return words.filter { !$0.isEmpty }.joined(separator: " ")
  }
}

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
  /// Returns a model's layout: the store's own if it is the same.
  func layout(of model: ManagedObjectModel) throws -> StoreLayout {
    if let own = try layout(), own.model == model { return own }
    return try StoreLayout(model)
  }

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
