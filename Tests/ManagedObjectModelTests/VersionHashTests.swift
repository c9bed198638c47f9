import ManagedObjectModel
import Testing

@Suite struct VersionHashTests {
  struct Vector: Sendable, CustomTestStringConvertible {
    var feature: String
    var entity: Entity
    var parentHash: VersionHash?
    var hash: VersionHash?

    var testDescription: String { "\(feature): \(entity.name)" }
  }

  /// The vectors, parsed from their text.
  static let vectors: [Vector] = {
    var vectors: [Vector] = []
    for line in versionHashVectors.split(separator: "\n") {
      let fields = line.split(separator: "|").map { $0.trimmed }
      func text(_ index: Int) -> String? { fields[index] == "-" ? nil : fields[index] }
      switch fields[0] {
      case "entity":
        let constraints = text(5)?.split(separator: ";").map { $0.split(separator: ",").map(String.init) } ?? []
        let entity = Entity(
          name: fields[2], isAbstract: text(3) != nil, versionHashModifier: text(4), uniquenessConstraints: constraints)
        vectors.append(Vector(feature: fields[1], entity: entity))
      case "parent": vectors[vectors.count - 1].parentHash = text(1).flatMap { VersionHash(hex: $0) }
      case "hash": vectors[vectors.count - 1].hash = VersionHash(hex: fields[1])
      default:
        let property = property(fields, of: vectors[vectors.count - 1].entity.name)
        vectors[vectors.count - 1].entity.properties[property.name] = property
      }
    }
    return vectors
  }()

  private static func property(_ fields: [String], of entity: String) -> Property {
    let traits = PropertyTraits(
      name: fields[1], isOptional: fields[2].contains("optional"), isTransient: fields[2].contains("transient"),
      isReadOnly: fields[2].contains("readOnly"), versionHashModifier: fields[3] == "-" ? nil : fields[3])
    switch fields[0] {
    case "Relationship":
      let isOwnInverse = fields[5] == "=self"
      return .relationship(
        Relationship(
          traits: traits, destinationEntityName: fields[4],
          inverseName: isOwnInverse ? fields[1] : fields[5] == "-" ? nil : fields[5],
          inverseEntityName: isOwnInverse ? entity : "elsewhere", maximumCount: Int(fields[6]) ?? -99,
          minimumCount: Int(fields[7]) ?? -99, isOrdered: fields[8] == "ordered"))
    case "FetchedProperty": return .fetchedProperty(FetchedProperty(traits: traits, fetchRequest: nil))
    default:
      return .attribute(
        Attribute(
          traits: traits, type: Int(fields[4]).flatMap { AttributeType(rawValue: $0) } ?? .objectID,
          allowsExternalBinaryDataStorage: fields[5].contains("external"),
          preservesValueInHistoryOnDeletion: fields[5].contains("preserve"),
          derivationExpression: fields[6] == "-" ? nil : fields[6]))
    }
  }

  @Test func thereAreSixteenVectors() { #expect(Self.vectors.count == 16) }

  @Test(arguments: vectors) func equalsCoreData(_ vector: Vector) {
    let model = ManagedObjectModel(entities: [vector.entity])
    let hash = model.versionHash(of: vector.entity, parentHash: vector.parentHash)
    #expect(vector.hash != nil)
    #expect(hash == vector.hash)
  }

  @Test func hashesParentsFirst() throws {
    let model = try ManagedObjectModel(source: Array(garageSource.utf8))
    let hashes = model.versionHashes()
    #expect(hashes.count == 5)
    let car = try #require(model.entity(named: "Car"))
    #expect(hashes["Car"] == model.versionHash(of: car, parentHash: hashes["Vehicle"]))
    #expect(hashes["Car"] != model.versionHash(of: car, parentHash: nil))
  }

  @Test func ignoresWhatIsNotHashed() throws {
    let model = try ManagedObjectModel(source: Array(garageSource.utf8))
    var other = model
    for (name, entity) in model.entities {
      other.entities[name]?.fetchIndexes = []
      other.entities[name]?.userInfo = [:]
      other.entities[name]?.className = "Other"
      other.entities[name]?.explicitRenamingIdentifier = "other \(name)"
      for (propertyName, property) in entity.properties {
        switch property {
        case .attribute(var attribute):
          attribute.defaultValue = nil
          attribute.minimumValue = nil
          attribute.valueTransformerName = nil
          other.entities[name]?.properties[propertyName] = .attribute(attribute)
        case .relationship(var relationship):
          relationship.deleteRule = .noAction
          other.entities[name]?.properties[propertyName] = .relationship(relationship)
        case .fetchedProperty: other.entities[name]?.properties[propertyName] = nil
        }
      }
    }
    other.configurations = [:]
    #expect(other.versionHashes() == model.versionHashes())
    #expect(other.versionChecksum() == model.versionChecksum())
  }

  @Test func endsOnModelsThatInheritFromThemselves() {
    let model = ManagedObjectModel(entities: [
      Entity(name: "A", parentName: "B"), Entity(name: "B", parentName: "A"), Entity(name: "C", parentName: "missing"),
    ])
    #expect(model.versionHashes().count == 3)
  }

  @Test func readsHexadecimalDigits() throws {
    let hash = try #require(VersionHash(hex: String(repeating: "0f", count: 32)))
    #expect(hash.hex == String(repeating: "0f", count: 32))
    #expect(hash.base64 == "Dw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8=")
    #expect(VersionHash(hex: "0f") == nil)
    #expect(VersionHash(hex: String(repeating: "+f", count: 32)) == nil)
    #expect(VersionHash(bytes: [1]) == nil)
  }
}

extension Substring {
  fileprivate var trimmed: String {
    var text = self
    while text.first == " " { text.removeFirst() }
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}
