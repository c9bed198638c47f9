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
    entities: [Entity] = [],
    versionIdentifiers: [String] = [],
    configurations: [String: [String]] = [:],
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
  public func childNames(of name: String) -> [String] {
    entities.values.filter { $0.parentName == name }.map(\.name)
  }

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
    for (name, entity) in entities.ordered(by: { precedesByCodeUnit($0.key, $1.key) }) {
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
  fileprivate var isStored: Bool {
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

extension ManagedObjectModel {
  /// Computes version hashes, bit for bit as Core Data does.
  ///
  /// Section 4.2 of the format: SHA-256 over the name, abstractness, the parent's hash, the digests of all stored
  /// properties (including inherited ones) in code unit order, the hash modifier and the uniqueness constraints.
  /// Checked against thousands of entities in stores of fifteen years.
  public func versionHashes() -> [String: VersionHash] {
    var digests: [String: [String: [UInt8]]] = [:]
    for (name, entity) in entities { digests[name] = propertyDigests(of: entity) }
    var hashes: [String: VersionHash] = [:]
    for name in entities.keys where hashes[name] == nil {
      for entity in lineage(of: name).reversed() where hashes[entity.name] == nil {
        hashes[entity.name] = versionHash(of: entity, parent: entity.parentName.flatMap { hashes[$0] }, digests)
      }
    }
    return hashes
  }

  package func versionHash(of entity: Entity, parentHash: VersionHash?) -> VersionHash {
    var digests: [String: [String: [UInt8]]] = [:]
    for ancestor in lineage(of: entity.name) { digests[ancestor.name] = propertyDigests(of: ancestor) }
    return versionHash(of: entity, parent: parentHash, digests)
  }

  private func propertyDigests(of entity: Entity) -> [String: [UInt8]] {
    entity.properties.compactMapValues { isHashed($0) ? propertyDigest($0, of: entity.name) : nil }
  }

  private func isHashed(_ property: Property) -> Bool {
    if case .fetchedProperty = property { return false }
    return !property.traits.isTransient
  }

  private func versionHash(
    of entity: Entity, parent: VersionHash?, _ digests: [String: [String: [UInt8]]]
  ) -> VersionHash {
    var message = Array(entity.name.utf8)
    message.append(entity.isAbstract ? 1 : 0)
    message += parent?.bytes ?? []
    var all: [String: [UInt8]] = [:]
    for ancestor in lineage(of: entity.name).reversed() {
      for name in ancestor.properties.keys { all[name] = digests[ancestor.name]?[name] }
    }
    for (_, digest) in all.ordered(by: { precedesByCodeUnit($0.key, $1.key) }) { message += digest }
    message += Array((entity.versionHashModifier ?? "").utf8)
    let constraints = entity.uniquenessConstraints.map { $0.joined(separator: ".") }
    for constraint in constraints.inCodeUnitOrder() { message += Array(constraint.utf8) }
    return VersionHash(of: message)
  }

  /// Returns a property's digest; `entity` declares it.
  ///
  /// Section 4.1 of the format. Digests of composites are unverified.
  func propertyDigest(_ property: Property, of entity: String) -> [UInt8] {
    switch property {
    case .attribute(let attribute): attributeDigest(attribute)
    case .relationship(let relationship): relationshipDigest(relationship, of: entity)
    case .fetchedProperty(let property): baseDigest(property.traits)
    }
  }

  private func baseDigest(_ traits: PropertyTraits) -> [UInt8] {
    let flags = (traits.isOptional ? 1 : 0) | (traits.isTransient ? 2 : 0) | (traits.isReadOnly ? 4 : 0)
    var message = Array(traits.name.utf8)
    message += [UInt8(flags), 0]
    message += Array((traits.versionHashModifier ?? "").utf8)
    return VersionHash(of: message).bytes
  }

  private func attributeDigest(_ attribute: Attribute) -> [UInt8] {
    if let expression = attribute.derivationExpression {
      // A derived attribute's name and type are not hashed.
      return VersionHash(of: Array(expression.utf8) + Array((attribute.filteringPredicate ?? "").utf8)).bytes
    }
    if attribute.type == .composite, !attribute.compositeElements.isEmpty {
      let leaves = Self.leaves(of: attribute).filter { !$0.traits.isTransient }
      let message = leaves.ordered { precedesByCodeUnit($0.name, $1.name) }.flatMap { attributeDigest($0) }
      return VersionHash(of: message).bytes
    }
    var message = baseDigest(attribute.traits)
    message += littleEndian(attribute.type.rawValue)
    if attribute.allowsExternalBinaryDataStorage { message.append(1) }
    if attribute.preservesValueInHistoryOnDeletion { message.append(1) }
    return VersionHash(of: message).bytes
  }

  package static func leaves(of attribute: Attribute) -> [Attribute] {
    var leaves: [Attribute] = []
    var waiting = [attribute]
    while let next = waiting.popLast() {
      if next.type == .composite, !next.compositeElements.isEmpty {
        waiting += next.compositeElements.reversed()
      } else {
        leaves.append(next)
      }
    }
    return leaves
  }

  private func relationshipDigest(_ relationship: Relationship, of entity: String) -> [UInt8] {
    var message = baseDigest(relationship.traits)
    message += Array(relationship.destinationEntityName.utf8)
    if let inverse = relationship.inverseName, !isOwnInverse(relationship, of: entity) {
      message += Array(inverse.utf8)
    }
    message += littleEndian(relationship.maximumCount)
    message += littleEndian(relationship.minimumCount)
    if relationship.isOrdered { message += [1, 0] }
    return VersionHash(of: message).bytes
  }

  package func isOwnInverse(_ relationship: Relationship, of entity: String) -> Bool {
    guard relationship.inverseName == relationship.name else { return false }
    if let inverseEntity = relationship.inverseEntityName { return inverseEntity == entity }
    return lineage(of: relationship.destinationEntityName).contains { $0.name == entity }
  }

  private func littleEndian(_ number: Int) -> [UInt8] {
    let value = UInt32(truncatingIfNeeded: number)
    return [
      UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value >> 16),
      UInt8(truncatingIfNeeded: value >> 24),
    ]
  }

  /// Returns the digest of all version hashes, as in `NSStoreModelVersionHashesDigest` (SHA-512, base 64).
  public func versionHashesDigest() -> String { Self.versionHashesDigest(of: versionHashes()) }

  /// Returns the model's checksum, as in `NSStoreModelVersionChecksumKey` (SHA-256, base 64).
  public func versionChecksum() -> String { Self.versionChecksum(of: versionHashes()) }

  /// Returns the digest of known version hashes.
  public static func versionHashesDigest(of hashes: [String: VersionHash]) -> String {
    var message: [UInt8] = []
    for (name, hash) in hashes.ordered(by: { precedesByCodeUnit($0.key, $1.key) }) {
      message += Array(name.utf8) + hash.bytes
    }
    return Base64.encode(Array(SHA512.hash(data: message)))
  }

  /// Returns the checksum of known version hashes.
  public static func versionChecksum(of hashes: [String: VersionHash]) -> String {
    var message: [UInt8] = []
    for (_, hash) in hashes.ordered(by: { precedesByCodeUnit($0.key, $1.key) }) { message += hash.bytes }
    return VersionHash(of: message).base64
  }
}

/// An entity's 32-byte version hash, by which Core Data identifies a store's model.
public struct VersionHash: Sendable, Hashable, CustomStringConvertible {
  /// The 32 bytes.
  public let bytes: [UInt8]

  /// Creates a hash from exactly 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    self.bytes = bytes
  }

  /// Creates a hash from exactly 64 hexadecimal digits.
  public init?(hex: String) {
    guard let bytes = [UInt8](hexadecimal: hex) else { return nil }
    self.init(bytes: bytes)
  }

  init(of message: [UInt8]) { bytes = Array(SHA256.hash(data: message)) }

  /// The hash as 64 lower-case hexadecimal digits.
  public var hex: String { bytes.hexadecimal }

  /// The hash in base 64, as in Xcode.
  public var base64: String { Base64.encode(bytes) }

  /// The hash as hexadecimal digits.
  public var description: String { hex }
}

/// Compares UTF-16 code units, as Core Data does; upper case first.
package func precedesByCodeUnit(_ first: String, _ second: String) -> Bool {
  first.utf16.lexicographicallyPrecedes(second.utf16)
}

extension Sequence<String> {
  /// Sorts in code compiled once.
  package func inCodeUnitOrder() -> [String] { sorted(by: precedesByCodeUnit) }
}
