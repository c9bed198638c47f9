/// A comparison of a migrated store with the result implied by its mapping.
///
/// Expected values are computed one at a time from source records and mapping, independently of the migrating SQL.
/// Memory grows with the pairs of relationships, not with the records.
public struct MigrationComparison: Sendable {
  /// A change permitted by the mapping.
  public struct Alteration: Sendable, Hashable, Codable {
    /// The permission.
    public var kind: MigrationCondition.Kind

    /// The destination entity.
    public var entity: String

    /// The destination property.
    public var property: String

    /// The number of values or pairs.
    public var count: Int
  }

  /// The deviations from the mapping.
  public let differences: [StoreDifference]

  /// The number of all differences.
  public let differenceCount: Int

  /// The number of compared source records.
  public let comparedRecords: Int

  /// The permitted changes: numbers that do not fit, dropped pairs.
  public let alterations: [Alteration]

  /// The destination's entities and properties made by custom steps, which are not checked.
  public let unchecked: [String]

  /// Compares a store with its source before one step.
  ///
  /// - Parameters:
  ///   - source: the earlier store, opened with the source model.
  ///   - result: the later store, opened with the destination model.
  public init(
    _ mapping: MappingModel, source: PersistentStore, result: PersistentStore,
    options: StoreComparison.Options = StoreComparison.Options()
  ) throws(PersistentStoreError) {
    do {
      var work = try MigrationComparisonWork(mapping, source, result, options)
      try work.run()
      differences = work.list.differences
      differenceCount = work.list.count
      comparedRecords = work.records
      alterations = work.alterations
      unchecked = work.unchecked.sorted(by: precedesByCodeUnit)
    } catch {
      throw PersistentStoreError(
        testing: error, operation: "compare a store with what it was migrated from", path: result.path)
    }
  }
}

struct MigrationComparisonWork {
  let mapping: MappingModel
  let source: PersistentStore
  let result: PersistentStore
  let old: StoreLayout
  let new: StoreLayout
  let options: StoreComparison.Options
  var list: DifferenceList
  var records = 0
  var unchecked: Set<String> = []
  private var altered: [String: MigrationComparison.Alteration] = [:]

  let inferred: [String: EntityMapping]

  /// The destination entity of each source entity, by the latter's number.
  let images: [Int: String]

  init(
    _ mapping: MappingModel, _ source: PersistentStore, _ result: PersistentStore, _ options: StoreComparison.Options
  ) throws {
    self.mapping = mapping
    self.source = source
    self.result = result
    self.options = options
    old = try source.layout(of: mapping.source)
    new = try result.layout(of: mapping.destination)
    list = DifferenceList(limit: options.limit, includesValues: options.includesValues)
    var inferred: [String: EntityMapping] = [:]
    var images: [Int: String] = [:]
    for entity in mapping.entityMappings where entity.kind == .copy || entity.kind == .transform {
      guard let from = entity.sourceEntityName, let to = entity.destinationEntityName, entity.sourceFilter == nil,
        mapping.entityMappings(from: from).count == 1, mapping.entityMappings(to: to).count == 1
      else { continue }
      inferred[to] = entity
      if let number = old.entity(named: from)?.number { images[number] = to }
    }
    self.inferred = inferred
    self.images = images
  }

  var alterations: [MigrationComparison.Alteration] { altered.inCodeUnitOrder().map(\.value) }

  mutating func alter(_ kind: MigrationCondition.Kind, _ entity: String, _ property: String) {
    altered[
      "\(entity).\(property) \(kind.rawValue)",
      default: MigrationComparison.Alteration(kind: kind, entity: entity, property: property, count: 0)
    ].count += 1
  }

  mutating func run() throws {
    try compareMetadata()
    for entity in new.concreteEntities where !options.ignoring.contains(entity.name) { try compareRecords(of: entity) }
    try compareRelationships()
  }

  private mutating func compareMetadata() throws {
    let (before, after) = (try source.metadata(), try result.metadata())
    if before?.uuid != after?.uuid || after?.versionHashes != mapping.destinationHashes {
      list.add(StoreDifference(.metadata, entity: "", primaryKey: nil))
    }
  }

  private mutating func compareRecords(of entity: EntityLayout) throws {
    let mappings = mapping.entityMappings(to: entity.name)
    guard let found = inferred[entity.name], let from = found.sourceEntityName else {
      if mappings.allSatisfy({ $0.kind == .add }) {
        var stream = RecordStream(result, entity.name)
        while let record = try stream.next() {
          list.add(StoreDifference(.extraRecord, entity: entity.name, primaryKey: record.primaryKey))
        }
      } else {
        unchecked.insert(entity.name)
      }
      return
    }
    let expectations = try ValueExpectation.all(of: found, old, new)
    for expectation in expectations where expectation.isUnknown {
      unchecked.insert("\(entity.name).\(expectation.name)")
    }
    let counts = try derivedCounts(of: entity.name)
    try RecordStream.zip((source, from), (result, entity.name)) { one, other in
      guard let one, let other else {
        let key = one?.primaryKey ?? other?.primaryKey ?? 0
        list.add(StoreDifference(one == nil ? .extraRecord : .missingRecord, entity: entity.name, primaryKey: key))
        return
      }
      records += 1
      for expectation in expectations where !options.ignoring.contains("\(entity.name).\(expectation.name)") {
        compare(expectation, one, other, entity.name)
      }
      for (name, counts) in counts {
        let expected = RecordValue.integer(Int64(counts[other.primaryKey] ?? 0))
        let found = other.values[name] ?? .null
        if !expected.isEqual(to: found) {
          list.add(.value, entity.name, other.primaryKey, name, first: expected, second: found)
        }
      }
    }
  }

  private mutating func compare(
    _ expectation: ValueExpectation, _ one: StoreRecord, _ other: StoreRecord, _ entity: String
  ) {
    guard let expected = expectation.expected(one) else { return }
    let found = other.values[expectation.name] ?? .null
    guard expected.values.contains(where: { $0.isSame(as: found) }) else {
      list.add(.value, entity, other.primaryKey, expectation.name, first: expected.values.first, second: found)
      return
    }
    if !expected.isExact { alter(.valueOutOfRange, entity, expectation.name) }
    if case .externalData(let name) = found, !hasSameFile(name) {
      list.add(StoreDifference(.externalFile, entity: entity, primaryKey: other.primaryKey, property: expectation.name))
    }
  }

  /// Whether a large value's file was migrated; a file missing from the source cannot be.
  private func hasSameFile(_ name: String) -> Bool {
    let fileSystem = FileSystem()
    func digest(_ store: PersistentStore) throws -> FileDigest? {
      let path = StoreFileSet(main: store.path).path(of: .externalData).appending("_EXTERNAL_DATA").appending(name)
      guard try fileSystem.status(of: path) != nil else { return nil }
      return try FileDigest(of: fileSystem.open(path))
    }
    do {
      guard let before = try digest(source) else { return true }
      return try digest(result) == before
    } catch {
      // An unreadable file counts as lost.
      return false
    }
  }

  /// For derived counts of a relationship, the actual numbers of destinations.
  private func derivedCounts(of entity: String) throws -> [(name: String, counts: [Int64: Int])] {
    try new.model.properties(of: entity).inCodeUnitOrder().compactMap { name, inherited in
      guard let attribute = inherited.property.attribute, !attribute.traits.isTransient,
        attribute.filteringPredicate == nil, let text = attribute.derivationExpression,
        case .function("count", let path) = DerivationExpression(text), path.count == 1
      else { return nil }
      var counts: [Int64: Int] = [:]
      for stored in try result.pairs(of: path[0], entity: entity) { counts[stored.pair.own, default: 0] += 1 }
      return (name, counts)
    }
  }
}

extension MigrationComparisonWork {
  private struct Place: Hashable {
    let entity: String
    let relationship: String

    var path: String { "\(entity).\(relationship)" }
  }

  private struct Known {
    let place: Place
    let key: PropertyKey
    let relationship: Relationship
  }

  private struct Expected {
    var pairs: Set<RelationshipPair> = []
    var sequence: [RelationshipPair] = []
    var isOrdered = false
  }

  /// Compares every relationship with the pairs implied by the mapping.
  mutating func compareRelationships() throws {
    var expected: [Place: Expected] = [:]
    var known: [Known] = []
    var halves: [Known] = []
    for entity in new.concreteEntities.sorted(by: { $0.name < $1.name }) {
      for (key, relationship) in new.relationships(of: entity.name) {
        let place = Place(entity: entity.name, relationship: key.name)
        let value = inferred[entity.name]?.propertyMapping(of: PropertyPath(key.name))?.value
        let isMade = isMadeByCustomStep(entity.name, key.name)
        guard !isMade, !isInverseMadeByCustomStep(relationship, key) else {
          unchecked.insert("\(entity.name).\(key.name)")
          // An inverse leads back regardless.
          if !isMade { halves.append(Known(place: place, key: key, relationship: relationship)) }
          continue
        }
        known.append(Known(place: place, key: key, relationship: relationship))
        guard case .relationship(let name) = value, let from = inferred[entity.name]?.sourceEntityName else { continue }
        try add(name, of: from, at: place, key, relationship, to: &expected)
      }
    }
    for half in halves where !options.ignoring.contains(half.place.path) {
      guard let inverse = new.mutualInverse(of: half.relationship, half.key) else { continue }
      let pairs = try result.pairs(of: half.place.relationship, entity: half.place.entity).map(\.pair)
      try compareInverse(Set(pairs), half.place, inverse.key)
    }
    for one in known where !options.ignoring.contains(one.place.path) {
      try compare(expected[one.place] ?? Expected(), one.place, one.key, one.relationship)
    }
  }

  private func isMadeByCustomStep(_ entity: String, _ relationship: String) -> Bool {
    guard let own = inferred[entity] else { return mapping.entityMappings(to: entity).contains { $0.kind != .add } }
    switch own.propertyMapping(of: PropertyPath(relationship))?.value {
    case .expression, .destinations: return true
    case nil, .copy?, .convert?, .externalize?, .defaultValue?, .null?, .recompute?, .relationship?, .inverse?:
      return false
    }
  }

  /// Whether a custom step sets a relationship through its inverse.
  private func isInverseMadeByCustomStep(_ relationship: Relationship, _ key: PropertyKey) -> Bool {
    guard let inverse = new.mutualInverse(of: relationship, key) else { return false }
    return new.concreteEntities.contains { entity in
      new.isKind(entity.name, of: inverse.key.entityName) && isMadeByCustomStep(entity.name, inverse.key.name)
    }
  }

  private func add(
    _ name: String, of from: String, at place: Place, _ key: PropertyKey, _ relationship: Relationship,
    to expected: inout [Place: Expected]
  ) throws {
    let inverse = new.mutualInverse(of: relationship, key)
    let isOld = old.model.properties(of: from)[name]?.property.relationship?.isOrdered == true
    expected[place, default: Expected()].isOrdered = relationship.isOrdered && isOld
    for stored in try source.pairs(of: name, entity: from) {
      // The other record must have arrived as a permitted destination.
      guard let image = images[stored.destinationNumber], new.isKind(image, of: relationship.destinationEntityName)
      else { continue }
      if let inverse {
        guard new.isKind(image, of: inverse.key.entityName),
          new.isKind(place.entity, of: inverse.relationship.destinationEntityName)
        else { continue }
        let back = Place(entity: image, relationship: inverse.key.name)
        expected[back, default: Expected()].pairs.insert(stored.pair.reversed)
      }
      expected[place, default: Expected()].pairs.insert(stored.pair)
      expected[place, default: Expected()].sequence.append(stored.pair)
    }
  }

  private mutating func compare(
    _ expected: Expected, _ place: Place, _ key: PropertyKey, _ relationship: Relationship
  ) throws {
    let actual = try result.pairs(of: place.relationship, entity: place.entity)
    let found = Set(actual.map(\.pair))
    for stored in actual where !expected.pairs.contains(stored.pair) { add(.extraDestination, stored.pair.own, place) }
    let inverse = new.mutualInverse(of: relationship, key)
    let isExclusive = inverse.map { !$0.relationship.isToMany } ?? relationship.isToMany
    let owned = Set(found.map(\.own))
    let missing = expected.pairs.subtracting(found)
    // A record of another entity in the hierarchy may have taken the missing one.
    let reached = missing.isEmpty || !isExclusive ? [] : try destinations(of: key)
    for pair in missing.sorted(by: { ($0.own, $0.destination) < ($1.own, $1.destination) }) {
      let hasOther = !relationship.isToMany && owned.contains(pair.own)
      let isTaken = isExclusive && reached.contains(pair.destination)
      if hasOther || isTaken, let kind = permission(place, inverse?.key) {
        alter(kind, place.entity, place.relationship)
      } else {
        add(.missingDestination, pair.own, place)
      }
    }
    if let inverse { try compareInverse(found, place, inverse.key) }
    guard expected.isOrdered, expected.pairs == found, expected.sequence != actual.map(\.pair) else { return }
    let sequences = Dictionary(grouping: actual.map(\.pair), by: \.own)
    for (own, pairs) in Dictionary(grouping: expected.sequence, by: \.own).sorted(by: { $0.key < $1.key })
    where sequences[own] != pairs {
      add(.order, own, place)
    }
  }

  private func destinations(of key: PropertyKey) throws -> Set<Int64> {
    var reached: Set<Int64> = []
    for entity in new.concreteEntities where new.isKind(entity.name, of: key.entityName) {
      for stored in try result.pairs(of: key.name, entity: entity.name) { reached.insert(stored.pair.destination) }
    }
    return reached
  }

  private mutating func add(_ kind: StoreDifference.Kind, _ own: Int64, _ place: Place) {
    list.add(StoreDifference(kind, entity: place.entity, primaryKey: own, property: place.relationship))
  }

  /// Returns the condition that permits dropping a pair, because only one can be kept.
  private func permission(_ place: Place, _ inverse: PropertyKey?) -> MigrationCondition.Kind? {
    let kinds: Set<MigrationCondition.Kind> = [.severalOwners, .newInverse]
    return mapping.conditions.first { condition in
      guard kinds.contains(condition.kind), let name = condition.destinationProperty?.name else { return false }
      let isOwn = condition.destinationEntityName == place.entity && name == place.relationship
      let isInverse =
        name == inverse?.name
        && (inverse.map { new.isKind(condition.destinationEntityName, of: $0.entityName) } ?? false)
      return isOwn || isInverse
    }?.kind
  }

  private mutating func compareInverse(_ found: Set<RelationshipPair>, _ place: Place, _ inverse: PropertyKey) throws {
    guard !found.isEmpty else { return }
    var back: Set<RelationshipPair> = []
    for entity in new.concreteEntities where new.isKind(entity.name, of: inverse.entityName) {
      for stored in try result.pairs(of: inverse.name, entity: entity.name) { back.insert(stored.pair.reversed) }
    }
    for pair in found.subtracting(back).sorted(by: { ($0.own, $0.destination) < ($1.own, $1.destination) }) {
      add(.oneSided, pair.own, place)
    }
  }
}
