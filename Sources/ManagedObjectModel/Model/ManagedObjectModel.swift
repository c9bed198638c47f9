public import Platform

/// A managed object model: the entities of one version of an app's data, their properties and their relationships.
///
/// A value without behaviour of its own; it is read from model source, from a compiled model or from the cache inside a
/// store, and knows nothing of SQL.
public struct ManagedObjectModel: Sendable, Hashable {
  /// The entities by name.
  ///
  /// Every `parentName`, `destinationEntityName` and `inverseName` in them has been checked by `validate()`.
  public var entities: [String: Entity]

  /// The identifiers that the developer gave this version, often one empty string.
  public var versionIdentifiers: [String]

  /// The named configurations, each a list of entity names.
  public var configurations: [String: [String]]

  /// The fetch requests stored in the model, by name.
  public var fetchRequests: [String: FetchRequestTemplate]

  /// A model; of entities with the same name the first counts.
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

/// A fetch request that is stored in a model under a name.
public struct FetchRequestTemplate: Sendable, Hashable {
  /// The entity it fetches.
  public var entityName: String

  /// The predicate in predicate format, where it has one that could be read.
  public var predicateFormat: String?

  /// A fetch request.
  public init(entityName: String, predicateFormat: String? = nil) {
    self.entityName = entityName
    self.predicateFormat = predicateFormat
  }
}

extension ManagedObjectModel {
  /// The entity of that name.
  public func entity(named name: String) -> Entity? { entities[name] }

  /// The entity and its ancestors, itself first, root last.
  ///
  /// Ends where a parent is missing or comes up a second time, so that it ends on any model.
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

  /// The root of the entity's hierarchy; its own name where it has no parent.
  public func rootName(of name: String) -> String { lineage(of: name).last?.name ?? name }

  /// The names of the entities that inherit from this one directly, in no particular order.
  public func childNames(of name: String) -> [String] {
    entities.values.filter { $0.parentName == name }.map(\.name)
  }

  /// The names of all entities that inherit from this one, itself left out, in no particular order.
  public func descendantNames(of name: String) -> Set<String> {
    var result: Set<String> = []
    var waiting = childNames(of: name)
    while let next = waiting.popLast() {
      guard next != name, result.insert(next).inserted else { continue }
      waiting += childNames(of: next)
    }
    return result
  }

  /// All properties of an entity, inherited ones included; a property declared nearer to the entity wins.
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

/// A property together with the entity that declares it.
public struct InheritedProperty: Sendable, Hashable {
  /// The property.
  public var property: Property

  /// The entity that declares it.
  public var declaringEntityName: String
}

extension ManagedObjectModel {
  /// The entities and properties that none of some other models has, as `Car` and `Car.owner`, renames considered.
  ///
  /// A store whose model has any is taken for one of a newer version, and is left alone.
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

  /// Whether two things may be one, because either has a name or an identifier of the other's.
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
  /// Reads the source of a model: the XML of `.xcdatamodel/contents`.
  ///
  /// - Throws: `ModelError` where it is no model source, or the model contradicts itself.
  public init(source bytes: [UInt8]) throws(ModelError) { self = try ModelSourceReader.read(bytes) }

  /// Reads a compiled model: the keyed archive of a `.mom`, or of an unpacked model cache.
  ///
  /// - Throws: `ModelError` where it is no compiled model, is damaged, or the model contradicts itself.
  public init(compiled bytes: [UInt8]) throws(ModelError) {
    if bytes.starts(with: Array("momv2$".utf8)) {
      throw ModelError(
        .optimizedFormat, detail: "it is the optimized form of a compiled model (momv2$), which is not read")
    }
    self = try CompiledModelReader.read(bytes)
  }

  /// Reads the model cache of a store: the content of `Z_MODELCACHE`, raw DEFLATE of a compiled model (section 3.4).
  ///
  /// - Throws: `ModelError` where it cannot be unpacked, unpacks to more than is plausible, or holds no model.
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

  /// Whether a model cache unpacks to a keyed archive, of whatever version.
  package static func isArchive(modelCache bytes: [UInt8]) -> Bool {
    guard let archive = try? unpacked(modelCache: bytes) else { return false }
    return (try? KeyedArchive(archive)) != nil
  }

  /// The keyed archive inside of a model cache.
  package static func unpacked(modelCache bytes: [UInt8]) throws(ModelError) -> [UInt8] {
    // Real caches unpack to five to twenty times their size; DEFLATE could give a thousand.
    let limit = min(64 << 20, (64 << 10) + 200 * min(bytes.count, 1 << 20))
    guard let archive = RawDeflate.unpack(bytes, limit: limit) else {
      throw ModelError(
        .damaged, operation: "read the model cache", detail: "it cannot be unpacked",
        hint: "Name the model that the store was written with.")
    }
    return archive
  }

  /// The model as stores cache it in `Z_MODELCACHE`: raw DEFLATE of a keyed archive.
  ///
  /// Default values and rules of kinds that are not read are left out; nothing of them enters the version hashes.
  ///
  /// - Throws: `ModelError` where the model contradicts itself or is too large for an archive.
  public func modelCache() throws(ModelError) -> [UInt8] {
    guard let packed = RawDeflate.pack(try compiledBytes()) else {
      throw ModelError(.unwritable, operation: "write the model cache", detail: "it could not be packed")
    }
    return packed
  }

  /// The model as a keyed archive in the form that Core Data caches it in a store.
  package func compiledBytes() throws(ModelError) -> [UInt8] { try CompiledModelWriter.bytes(of: self) }
}

extension ManagedObjectModel {
  /// The version hash of every entity, by name; equal to what Core Data computes, bit for bit.
  ///
  /// Section 4.2 of the format: SHA-256 over the name, whether it is abstract, the parent's hash, the digests of all
  /// stored properties (inherited ones included) in the order of their names' code units, the hash modifier and the
  /// uniqueness constraints. Checked against thousands of entities in stores of fifteen years.
  public func versionHashes() -> [String: VersionHash] {
    var digests: [String: [String: [UInt8]]] = [:]
    for (name, entity) in entities { digests[name] = propertyDigests(of: entity) }
    var hashes: [String: VersionHash] = [:]
    for name in entities.keys where hashes[name] == nil {
      // The root first, so that a parent's hash is always there before its children's.
      for entity in lineage(of: name).reversed() where hashes[entity.name] == nil {
        hashes[entity.name] = versionHash(of: entity, parent: entity.parentName.flatMap { hashes[$0] }, digests)
      }
    }
    return hashes
  }

  /// The version hash of an entity of this model whose parent's hash is known.
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

  /// The digest of a property, as it enters the hash of every entity that has it; `entity` declares it.
  ///
  /// Section 4.1 of the format. The digest of composite attributes is unverified.
  package func propertyDigest(_ property: Property, of entity: String) -> [UInt8] {
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
      // Neither the name nor the type of a derived attribute is hashed.
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

  /// The attributes that a composite consists of in the end, however deeply nested.
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

  /// Whether a relationship that `entity` declares is its own inverse.
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

  /// The digest of all version hashes, as stores keep it under `NSStoreModelVersionHashesDigest` (SHA-512, base 64).
  public func versionHashesDigest() -> String { Self.versionHashesDigest(of: versionHashes()) }

  /// The checksum of the model, as stores keep it under `NSStoreModelVersionChecksumKey` (SHA-256, base 64).
  public func versionChecksum() -> String { Self.versionChecksum(of: versionHashes()) }

  /// The digest of version hashes that are known already.
  public static func versionHashesDigest(of hashes: [String: VersionHash]) -> String {
    var message: [UInt8] = []
    for (name, hash) in hashes.ordered(by: { precedesByCodeUnit($0.key, $1.key) }) {
      message += Array(name.utf8) + hash.bytes
    }
    return Base64.text(of: Array(SHA512.hash(data: message)))
  }

  /// The checksum of version hashes that are known already.
  public static func versionChecksum(of hashes: [String: VersionHash]) -> String {
    var message: [UInt8] = []
    for (_, hash) in hashes.ordered(by: { precedesByCodeUnit($0.key, $1.key) }) { message += hash.bytes }
    return VersionHash(of: message).base64
  }
}

/// The version hash of an entity: the 32 bytes by which Core Data recognizes what a store was written with.
public struct VersionHash: Sendable, Hashable, CustomStringConvertible {
  /// The 32 bytes.
  public let bytes: [UInt8]

  /// A hash from its 32 bytes; nil where there are not 32 of them.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    self.bytes = bytes
  }

  /// A hash from 64 hexadecimal digits; nil where the text is anything else.
  public init?(hex: String) {
    guard let bytes = [UInt8](hexadecimal: hex) else { return nil }
    self.init(bytes: bytes)
  }

  /// The SHA-256 of a message.
  init(of message: [UInt8]) { bytes = Array(SHA256.hash(data: message)) }

  /// The hash as 64 lower-case hexadecimal digits.
  public var hex: String { bytes.hexadecimal }

  /// The hash in base 64, as Xcode shows it.
  public var base64: String { Base64.text(of: bytes) }

  /// The hash as hexadecimal digits.
  public var description: String { hex }
}

/// Base 64 with padding, as model checksums are written.
enum Base64 {
  private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func text(of bytes: [UInt8]) -> String {
    var out: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      var bits: UInt32 = 0
      for index in 0..<3 { bits = bits << 8 | UInt32(index < group.count ? group[start + index] : 0) }
      for index in 0..<4 {
        out.append(index <= group.count ? letters[Int(bits >> (18 - 6 * UInt32(index)) & 63)] : UInt8(ascii: "="))
      }
    }
    return String(decoding: out, as: UTF8.self)
  }
}

/// Text in the order that Core Data sorts names by: UTF-16 code unit by code unit, capital letters before small ones.
package func precedesByCodeUnit(_ first: String, _ second: String) -> Bool {
  first.utf16.lexicographicallyPrecedes(second.utf16)
}

extension Sequence<String> {
  /// The names in the order of their code units, sorted by code that is compiled once.
  package func inCodeUnitOrder() -> [String] { sorted(by: precedesByCodeUnit) }
}
