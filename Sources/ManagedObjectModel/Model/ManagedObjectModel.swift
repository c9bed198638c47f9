public import Platform

/// A managed object model: the entities of one version of an app's data.
///
/// It is a plain value, independent of SQL.
public struct ManagedObjectModel: Sendable, Hashable {
  /// The entities by name.
  ///
  /// `validate()` checks every `parentName`, `destinationEntityName` and `inverseName`.
  public var entities: [String: Entity]

  /// The developer's version identifiers, often one empty string.
  public var versionIdentifiers: [String]

  /// The named configurations, as lists of entity names.
  public var configurations: [String: [String]]

  /// The fetch request templates by name.
  public var fetchRequests: [String: FetchRequestTemplate]

  /// Creates a model; the first of equally named entities counts.
  public init(
    entities: [Entity] = [], versionIdentifiers: [String] = [], configurations: [String: [String]] = [:],
    fetchRequests: [String: FetchRequestTemplate] = [:]
  ) {
    self.entities = Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    self.versionIdentifiers = versionIdentifiers
    self.configurations = configurations
    self.fetchRequests = fetchRequests
  }
}

/// A named fetch request of a model.
public struct FetchRequestTemplate: Sendable, Hashable {
  /// The fetched entity.
  public var entityName: String

  /// The predicate, if present and readable.
  public var predicateFormat: String?

  /// Creates a fetch request.
  public init(entityName: String, predicateFormat: String? = nil) {
    self.entityName = entityName
    self.predicateFormat = predicateFormat
  }
}

extension ManagedObjectModel {
  /// Returns the entity of a name.
  public func entity(named name: String) -> Entity? { entities[name] }

  /// Returns an entity and its ancestors, root last.
  ///
  /// Stops at a missing or repeated parent.
  public func lineage(of name: String) -> [Entity] {
    var result: [Entity] = []
    var seen: Set<String> = []
    var next: String? = name
    while let current = next, let entity = entities[current], seen.insert(current).inserted {
      result.append(entity)
      next = entity.parentName
    }
    return result
  }

  /// Returns the root of an entity's hierarchy; its own name without a parent.
  public func rootName(of name: String) -> String { lineage(of: name).last?.name ?? name }

  /// Returns the direct sub-entities, unordered.
  public func childNames(of name: String) -> [String] { entities.values.filter { $0.parentName == name }.map(\.name) }

  /// Returns all sub-entities, unordered.
  public func descendantNames(of name: String) -> Set<String> {
    var result: Set<String> = []
    var waiting = childNames(of: name)
    while let next = waiting.popLast() {
      guard next != name, result.insert(next).inserted else { continue }
      waiting += childNames(of: next)
    }
    return result
  }

  /// Returns all properties of an entity, including inherited ones; the nearest declaration wins.
  public func properties(of name: String) -> [String: InheritedProperty] {
    var result: [String: InheritedProperty] = [:]
    for ancestor in lineage(of: name).reversed() {
      for (name, property) in ancestor.properties {
        result[name] = InheritedProperty(property: property, declaringEntityName: ancestor.name)
      }
    }
    return result
  }
}

/// A property with its declaring entity.
public struct InheritedProperty: Sendable, Hashable {
  /// The property.
  public var property: Property

  /// The declaring entity.
  public var declaringEntityName: String
}

extension ManagedObjectModel {
  /// Returns the parts absent from all other models, as `Car` and `Car.owner`, considering renames.
  ///
  /// A store with any counts as newer and is left alone.
  package func surplus(over others: [ManagedObjectModel]) -> [String] {
    var result: [String] = []
    for (name, entity) in entities.inCodeUnitOrder() {
      let counterparts = others.flatMap { other in
        other.entities.values.filter { Self.isSame(entity.names, $0.names) }.map { other.properties(of: $0.name) }
      }
      if counterparts.isEmpty {
        result.append(name)
        continue
      }
      let known = counterparts.flatMap { properties in properties.values.map { $0.property.traits.names } }
      result += entity.properties.values
        .filter { $0.isStored }
        .filter { property in !known.contains { Self.isSame(property.traits.names, $0) } }
        .map(\.name).inCodeUnitOrder().map { "\(name).\($0)" }
    }
    return result
  }

  private static func isSame(_ first: (name: String, identifier: String), _ second: (name: String, identifier: String))
    -> Bool
  {
    first.name == second.name || first.identifier == second.identifier || first.name == second.identifier
      || first.identifier == second.name
  }
}

extension Entity {
  fileprivate var names: (name: String, identifier: String) { (name, renamingIdentifier) }
}

extension Property {
  /// Whether stores hold it, and version hashes.
  package var isStored: Bool {
    if case .fetchedProperty = self { return false }
    return !traits.isTransient
  }
}

extension PropertyTraits {
  fileprivate var names: (name: String, identifier: String) { (name, renamingIdentifier) }
}

extension ManagedObjectModel {
  /// Reads model source: the XML of `.xcdatamodel/contents`.
  ///
  /// - Throws: `ModelError` for other data or contradictions.
  public init(source bytes: [UInt8]) throws(ModelError) { self = try ModelSourceReader.read(bytes) }

  /// Reads a compiled model: the keyed archive of a `.mom` or unpacked model cache.
  ///
  /// - Throws: `ModelError` for other or damaged data, or contradictions.
  public init(compiled bytes: [UInt8]) throws(ModelError) {
    if bytes.starts(with: Array("momv2$".utf8)) {
      throw ModelError(
        .optimizedFormat, detail: "it is the optimized form of a compiled model (momv2$), which is not read")
    }
    self = try CompiledModelReader.read(bytes)
  }

  /// Reads a store's model cache: `Z_MODELCACHE`, raw DEFLATE of a compiled model (section 3.4).
  ///
  /// - Throws: `ModelError` for damaged, implausibly large or other data.
  public init(modelCache bytes: [UInt8]) throws(ModelError) {
    let archive = try Self.unpacked(modelCache: bytes)
    do {
      self = try ManagedObjectModel(compiled: archive)
    } catch {
      var error = error
      error.operation = "read the model cache"
      error.hint = "Name the model that the store was written with."
      throw error
    }
  }

  /// Whether a model cache contains a keyed archive.
  package static func isArchive(modelCache bytes: [UInt8]) -> Bool {
    guard let archive = try? unpacked(modelCache: bytes) else { return false }
    return (try? KeyedArchive(archive)) != nil
  }

  package static func unpacked(modelCache bytes: [UInt8]) throws(ModelError) -> [UInt8] {
    // Real caches unpack to 5 to 20 times their size; DEFLATE allows a thousand.
    let limit = min(64 << 20, (64 << 10) + 200 * min(bytes.count, 1 << 20))
    guard let archive = RawDeflate.unpack(bytes, limit: limit) else {
      throw ModelError(
        .damaged, operation: "read the model cache", detail: "it cannot be unpacked",
        hint: "Name the model that the store was written with.")
    }
    return archive
  }

  /// Returns the model as in `Z_MODELCACHE`: raw DEFLATE of a keyed archive.
  ///
  /// Omits unsupported defaults and rules, which are not hashed.
  ///
  /// - Throws: `ModelError` if the model is contradictory or too large.
  public func modelCache() throws(ModelError) -> [UInt8] {
    guard let packed = RawDeflate.pack(try compiledBytes()) else {
      throw ModelError(.unwritable, operation: "write the model cache", detail: "it could not be packed")
    }
    return packed
  }

  package func compiledBytes() throws(ModelError) -> [UInt8] { try CompiledModelWriter.bytes(of: self) }
}
