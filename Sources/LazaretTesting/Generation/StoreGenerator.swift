/// Generates stores of a model for testing migrations.
///
/// Model, options and seed determine the bytes. Records are valid if the model is satisfiable: mandatory properties,
/// bounds, uniqueness and inverses are kept; `GeneratedStore.notes` lists exceptions. The store's own triggers compute
/// derived attributes. Memory is independent of the number of records.
public struct StoreGenerator: Sendable {
  /// The location of a store's records.
  public enum Journal: String, Sendable, Hashable, CaseIterable {
    /// In the main file in WAL mode, as after a quit.
    case none

    /// The last quarter and all many-to-many pairs in the log (`-wal`), as after a kill.
    case log

    /// In the main file in rollback mode, as on old systems.
    case rollback
  }

  /// The options of a generator.
  public struct Options: Sendable, Hashable {
    /// The profile of values.
    public var profile = StoreProfile.typical

    /// The seed of all random values.
    public var seed: UInt64 = 1

    /// The records of each concrete entity.
    ///
    /// Required destinations get more, entities with tight uniqueness constraints fewer.
    public var records = 20

    /// The records of single entities, by name.
    public var recordsByEntity: [String: Int] = [:]

    /// The location of the records.
    public var journal = Journal.none

    /// Makes the default options.
    public init() {}

    /// Makes options.
    public init(_ profile: StoreProfile, seed: UInt64 = 1, records: Int = 20, journal: Journal = .none) {
      self.profile = profile
      self.seed = seed
      self.records = records
      self.journal = journal
    }
  }

  /// The model.
  public let model: ManagedObjectModel

  /// The options.
  public let options: Options

  let layout: StoreLayout
  let plan: GenerationPlan

  /// Plans the records of a model.
  ///
  /// - Throws: `PersistentStoreError` if the model has no store layout.
  public init(_ model: ManagedObjectModel, options: Options = Options()) throws(PersistentStoreError) {
    do {
      layout = try StoreLayout(model)
    } catch {
      throw PersistentStoreError(testing: error, operation: "generate a store", path: nil)
    }
    self.model = model
    self.options = options
    plan = GenerationPlan(layout, options)
  }

  /// The records' save time: 2026-01-01T00:00:00Z, in seconds since 2001-01-01.
  static let referenceDate = 788_918_400.0

  /// Writes a store.
  ///
  /// - Parameter path: the main file; no part may exist.
  /// - Throws: `PersistentStoreError`: `file-exists`, or an error of the file system or SQLite; the files are then
  ///   removed.
  @discardableResult
  public func write(
    to path: FilePath, in fileSystem: FileSystem = FileSystem()
  ) throws(PersistentStoreError) -> GeneratedStore {
    do {
      let set = try StoreFileSet.locate(path, in: fileSystem)
      if let member = try set.members(in: fileSystem).first {
        throw FileError(.alreadyExists, operation: "generate a store", path: member.path)
      }
      var writing = StoreWriting(self, set, fileSystem)
      do {
        return try writing.run()
      } catch {
        writing.removeEverything()
        throw error
      }
    } catch {
      throw PersistentStoreError(testing: error, operation: "generate a store", path: path)
    }
  }
}

/// A generated store.
public struct GeneratedStore: Sendable, Hashable {
  /// The main file.
  public let path: FilePath

  /// The records of each concrete entity, by name.
  public let records: [String: Int]

  /// The number of external files.
  public let externalFiles: Int

  /// The violated rules of the model.
  public let notes: [GenerationNote]

  /// The number of all records.
  public var recordCount: Int { records.values.reduce(0, +) }
}

/// The profiles of values.
public enum StoreProfile: String, Sendable, Hashable, Codable, CaseIterable {
  case empty

  /// Realistic values, some nil.
  case typical

  /// Edge cases: extreme numbers and dates, empty and very long text, right-to-left writing, combining marks, large and
  /// empty data, external files.
  case edge

  /// Nil where permitted: fails a change to mandatory.
  case sparse

  /// Equal values and one common destination where permitted: fails a new uniqueness constraint.
  case uniform

  /// The records' description, for the end of a sentence.
  public var words: String {
    switch self {
    case .empty: "no records"
    case .typical: "usual values"
    case .edge: "extreme values"
    case .sparse: "nothing wherever the model allows that"
    case .uniform: "the same values in every record"
    }
  }
}

struct GenerationPlan: Sendable {
  let layout: StoreLayout
  let profile: StoreProfile
  let seed: UInt64
  private(set) var counts: [String: Int] = [:]
  private(set) var notes: [GenerationNote] = []

  /// The entities with own records of each hierarchy, by root name.
  private let concrete: [String: [EntityLayout]]

  init(_ layout: StoreLayout, _ options: StoreGenerator.Options) {
    self.layout = layout
    profile = options.profile
    seed = options.seed
    let entities = layout.concreteEntities
    concrete = Dictionary(grouping: entities, by: \.rootName)
    guard profile != .empty else { return }
    for entity in entities { counts[entity.name] = max(0, options.recordsByEntity[entity.name] ?? options.records) }
    guard entities.contains(where: { (counts[$0.name] ?? 0) > 0 }) else { return }
    raiseCounts(ceiling: max(64, 8 * (counts.values.max() ?? 0)))
    limitByUniqueness()
  }

  func members(of table: TableLayout) -> [RecordPool.Member] { pool(of: table.rootEntityName).members }

  /// Returns the records of an entity and its sub-entities, optionally only those of another entity too.
  func pool(of name: String, and other: String? = nil) -> RecordPool {
    guard let entity = layout.entity(named: name), let all = concrete[entity.rootName] else { return RecordPool([]) }
    let others = other.map { layout.entity(named: $0)?.numbers ?? 0...0 }
    var entries: [(entity: EntityLayout, count: Int, slot: Int, stride: Int)] = []
    for (slot, member) in all.enumerated()
    where entity.numbers.contains(member.number) && others?.contains(member.number) != false {
      entries.append((member, counts[member.name] ?? 0, slot, all.count))
    }
    return RecordPool(entries)
  }

  // MARK: Counts

  /// Raises counts until mandatory relationships can be filled, up to a bound: models may be unsatisfiable.
  private mutating func raiseCounts(ceiling: Int) {
    let pairs = relationshipPairs()
    for _ in 0..<8 {
      var hasChanged = false
      for pair in pairs {
        let (own, other) = (pool(of: pair.own, and: pair.ownLimit), pool(of: pair.other, and: pair.otherLimit))
        let needed = min(pair.needed(own.total), ceiling * max(1, other.members.count))
        guard other.total < needed, !other.members.isEmpty else { continue }
        let share = (needed - other.total + other.members.count - 1) / other.members.count
        for member in other.members { counts[member.entity.name, default: 0] += share }
        hasChanged = true
      }
      if !hasChanged { return }
    }
  }

  private struct Need {
    let own: String
    let ownLimit: String?
    let other: String
    let otherLimit: String?
    let needed: @Sendable (Int) -> Int
  }

  private func relationshipPairs() -> [Need] {
    var result: [Need] = []
    for entity in layout.entities {
      for (name, property) in (layout.model.entities[entity.name]?.properties ?? [:]).inCodeUnitOrder() {
        guard let relationship = property.relationship, !relationship.traits.isTransient else { continue }
        let least = relationship.leastDestinations
        guard least > 0 else { continue }
        let key = PropertyKey(entityName: entity.name, name: name)
        let inverse = layout.mutualInverse(of: relationship, key)
        let holder = inverse?.key.entityName
        let isExclusive = inverse.map { !$0.relationship.isToMany } ?? relationship.isToMany
        let isOwn = inverse?.key == key
        result.append(
          Need(own: entity.name, ownLimit: nil, other: relationship.destinationEntityName, otherLimit: holder) { own in
            guard own > 0 else { return 0 }
            // A self-inverse relationship pairs its records.
            if isOwn, !relationship.isToMany { return own + own % 2 }
            return isExclusive ? own * least : least
          })
      }
    }
    return result
  }

  /// Limits counts to the capacity of uniqueness constraints.
  private mutating func limitByUniqueness() {
    for (root, entities) in concrete.inCodeUnitOrder() {
      for key in uniqueAttributes(inHierarchyOf: root) {
        guard let attribute = layout.model.entities[key.entityName]?.properties[key.name]?.attribute,
          let holder = layout.entity(named: key.entityName)
        else { continue }
        let capacity = AttributeBounds(attribute).capacity
        guard !attribute.traits.isOptional, capacity < Int64.max else { continue }
        let members = entities.filter { holder.numbers.contains($0.number) }
        // Unique values follow the primary keys, assigned in turn within the hierarchy.
        let share = Int(capacity) / max(1, entities.count)
        for member in members where (counts[member.name] ?? 0) > share {
          counts[member.name] = share
          notes.append(GenerationNote(kind: .bounds, entityName: key.entityName, propertyName: key.name))
        }
      }
    }
  }

  /// Returns the attribute with the most values of each uniqueness constraint.
  func uniqueAttributes(inHierarchyOf root: String) -> Set<PropertyKey> {
    var result: Set<PropertyKey> = []
    for entity in layout.entities where entity.rootName == root {
      for constraint in layout.model.entities[entity.name]?.uniquenessConstraints ?? [] {
        let properties = layout.model.properties(of: entity.name)
        let attributes = constraint.compactMap { name -> (PropertyKey, Int64)? in
          guard let found = properties[name], let attribute = found.property.attribute, !attribute.traits.isTransient,
            !attribute.isDerived, attribute.type != .composite
          else { return nil }
          return (PropertyKey(entityName: found.declaringEntityName, name: name), AttributeBounds(attribute).capacity)
        }
        guard let best = attributes.max(by: { $0.1 < $1.1 }) else { continue }
        result.insert(best.0)
      }
    }
    return result
  }
}

extension Relationship {
  var leastDestinations: Int { max(minimumCount, traits.isOptional ? 0 : 1).clamped(to: isToMany ? 0...1000 : 0...1) }

  /// Nil if unlimited.
  var mostDestinations: Int? { maximumCount > 0 ? maximumCount : nil }
}

extension Comparable {
  func clamped(to range: ClosedRange<Self>) -> Self { min(max(self, range.lowerBound), range.upperBound) }
}

extension FixedWidthInteger {
  var bigEndianBytes: [UInt8] {
    stride(from: Self.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> $0) }
  }
}

extension ManagedObjectModel {
  /// Returns the inverse by its declaring entity, searched in the destination and its ancestors.
  func inverse(of relationship: Relationship) -> (key: PropertyKey, relationship: Relationship)? {
    guard let name = relationship.inverseName else { return nil }
    for ancestor in lineage(of: relationship.destinationEntityName) {
      guard let property = ancestor.properties[name] else { continue }
      guard let found = property.relationship, !found.traits.isTransient else { return nil }
      return (PropertyKey(entityName: ancestor.name, name: name), found)
    }
    return nil
  }
}

/// The records on one side of a relationship, by position from 0.
struct RecordPool: Sendable {
  struct Member: Sendable {
    let entity: EntityLayout
    let count: Int

    let offset: Int

    /// The entity's index and count within its hierarchy: primary keys are assigned in turn, to mix the records.
    let slot: Int
    let stride: Int

    func primaryKey(_ index: Int) -> Int64 { Int64(index * stride + slot + 1) }
  }

  let members: [Member]
  let total: Int
  private let places: [Int: Int]

  init(_ entries: [(entity: EntityLayout, count: Int, slot: Int, stride: Int)]) {
    var members: [Member] = []
    var offset = 0
    for entry in entries {
      members.append(
        Member(entity: entry.entity, count: entry.count, offset: offset, slot: entry.slot, stride: entry.stride))
      offset += entry.count
    }
    self.members = members
    total = offset
    places = Dictionary(
      members.enumerated().map { ($1.entity.number, $0) }, uniquingKeysWith: { first, _ in first })
  }

  func record(at position: Int) -> (number: Int, key: Int64)? {
    // Members without records share the next one's offset.
    let next = members.partitioningIndex { $0.offset > position }
    guard next > 0 else { return nil }
    let member = members[next - 1]
    return (member.entity.number, member.primaryKey(position - member.offset))
  }

  /// Returns a record's position; nil for another entity.
  func position(number: Int, index: Int) -> Int? { places[number].map { members[$0].offset + index } }
}
