internal import ManagedObjectModel
internal import Migration
internal import PersistentStore
internal import StoreFiles
internal import StoreRecords

/// The work in progress on a comparison of a migrated store with its source.
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

  /// The mapping of each entity of the destination that inference made, by its name.
  let inferred: [String: EntityMapping]

  /// The entity that the records of an entity of the source become ones of, by the number of the latter.
  let images: [Int: String]

  init(
    _ mapping: MappingModel, _ source: PersistentStore, _ result: PersistentStore, _ options: StoreComparison.Options
  ) throws {
    self.mapping = mapping
    self.source = source
    self.result = result
    self.options = options
    old = try StoreLayout(mapping.source)
    new = try StoreLayout(mapping.destination)
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

  var alterations: [MigrationComparison.Alteration] {
    altered.sorted { precedesByCodeUnit($0.key, $1.key) }.map(\.value)
  }

  mutating func alter(_ kind: MigrationCondition.Kind, _ entity: String, _ property: String) {
    altered[
      "\(entity).\(property) \(kind.rawValue)",
      default: MigrationComparison.Alteration(kind: kind, entity: entity, property: property, count: 0)
    ].count += 1
  }

  mutating func run() throws {
    try compareMetadata()
    for entity in new.concreteEntities where !options.ignoring.contains(entity.name) {
      try compareRecords(of: entity)
    }
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

  private mutating func compare(_ expectation: ValueExpectation, _ one: Record, _ other: Record, _ entity: String) {
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

  /// Whether a large value's file has come along; one that the source lacks cannot.
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
      // A file that is there and cannot be read is as good as lost.
      return false
    }
  }

  /// For derived attributes that count a relationship, the numbers of destinations that records really have.
  private func derivedCounts(of entity: String) throws -> [(name: String, counts: [Int64: Int])] {
    try new.model.properties(of: entity).sorted { precedesByCodeUnit($0.key, $1.key) }.compactMap { name, inherited in
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
