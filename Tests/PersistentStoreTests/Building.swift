import Foundation
import GRDB
import ManagedObjectModel
import PersistentStore
import SystemPackage

/// Short words for models in tests.
func attribute(
  _ name: String, _ type: AttributeType, indexed: Bool = false, external: Bool = false, derived: String? = nil,
  elements: [Attribute] = [], transient: Bool = false
) -> Property {
  .attribute(
    Attribute(
      traits: PropertyTraits(name: name, isOptional: true, isTransient: transient, isIndexed: indexed), type: type,
      allowsExternalBinaryDataStorage: external, derivationExpression: derived, compositeElements: elements))
}

func leaf(_ name: String, _ type: AttributeType, elements: [Attribute] = []) -> Attribute {
  Attribute(traits: PropertyTraits(name: name, isOptional: true), type: type, compositeElements: elements)
}

func toOne(_ name: String, _ destination: String, inverse: String? = nil) -> Property {
  .relationship(
    Relationship(
      traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: destination, inverseName: inverse))
}

func toMany(_ name: String, _ destination: String, inverse: String? = nil, ordered: Bool = false) -> Property {
  .relationship(
    Relationship(
      traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: destination, inverseName: inverse,
      maximumCount: 0, isOrdered: ordered))
}

func layout(_ entities: Entity...) throws -> StoreLayout { try StoreLayout(ManagedObjectModel(entities: entities)) }

/// A folder that is removed with its content when the value goes.
final class ScratchFolder {
  let path: FilePath

  init() throws {
    path = FilePath(NSTemporaryDirectory()).appending("lazaret-store-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }

  func write(_ bytes: [UInt8], as name: String = "Store.sqlite") throws -> FilePath {
    let file = path.appending(name)
    try Data(bytes).write(to: URL(fileURLWithPath: file.string))
    return file
  }
}

let testUUID = "0F0E0D0C-0B0A-0908-0706-050403020100"
