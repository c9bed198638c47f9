internal import Platform

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
    entity.properties.compactMapValues { $0.isStored ? propertyDigest($0, of: entity.name) : nil }
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
    for (_, digest) in all.inCodeUnitOrder() { message += digest }
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

  func isOwnInverse(_ relationship: Relationship, of entity: String) -> Bool {
    guard relationship.inverseName == relationship.name else { return false }
    if let inverseEntity = relationship.inverseEntityName { return inverseEntity == entity }
    return lineage(of: relationship.destinationEntityName).contains { $0.name == entity }
  }

  private func littleEndian(_ number: Int) -> [UInt8] {
    let value = UInt32(truncatingIfNeeded: number)
    return (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// Returns the digest of all version hashes, as in `NSStoreModelVersionHashesDigest` (SHA-512, base 64).
  public func versionHashesDigest() -> String { Self.versionHashesDigest(of: versionHashes()) }

  /// Returns the model's checksum, as in `NSStoreModelVersionChecksumKey` (SHA-256, base 64).
  public func versionChecksum() -> String { Self.versionChecksum(of: versionHashes()) }

  /// Returns the digest of known version hashes.
  public static func versionHashesDigest(of hashes: [String: VersionHash]) -> String {
    var message: [UInt8] = []
    for (name, hash) in hashes.inCodeUnitOrder() { message += Array(name.utf8) + hash.bytes }
    return Base64.encode(Array(SHA512.hash(data: message)))
  }

  /// Returns the checksum of known version hashes.
  public static func versionChecksum(of hashes: [String: VersionHash]) -> String {
    var message: [UInt8] = []
    for (_, hash) in hashes.inCodeUnitOrder() { message += hash.bytes }
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

extension Dictionary where Key == String {
  /// Returns the pairs in the order of their keys, of which large values take no part in the sorting.
  package func inCodeUnitOrder() -> [(key: String, value: Value)] {
    keys.inCodeUnitOrder().compactMap { key in self[key].map { (key, $0) } }
  }
}
