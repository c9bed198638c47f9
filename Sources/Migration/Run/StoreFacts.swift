internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
import Platform
internal import SystemPackage

extension Migrator {
  /// A store's metadata.
  struct StoreFacts {
    var metadata: StoreMetadata

    var model: ManagedObjectModel?
  }

  func storeFacts(_ path: FilePath) throws -> StoreFacts {
    let connection = try StepConnection(path, .immutable)
    let facts = try connection.read { try StoreFacts($0) }
    try connection.close()
    return facts
  }
}

extension Migrator.StoreFacts {
  /// Reads the metadata; an unreadable model cache counts as missing.
  init(_ database: Database) throws {
    if try !database.hasStored(["Z_UUID"], in: "Z_METADATA"), try database.hasStored(["Z_PLIST"], in: "Z_METADATA") {
      throw MigrationError(
        .sourceDamaged, detail: "its metadata has no column for the store's identifier, which nothing else shows")
    }
    // Z_PRIMARYKEY can be repaired; reject computed values of a hostile store.
    guard try database.hasStored(["Z_UUID", "Z_PLIST"], in: "Z_METADATA"),
      let row = try Row.fetchOne(database, sql: "SELECT Z_UUID, Z_PLIST FROM Z_METADATA LIMIT 1")
    else {
      throw MigrationError(
        .dataViolation, detail: "it is not a Core Data store", hint: "Give a store that Core Data or SwiftData made.")
    }
    let uuid: DatabaseValue = row[0]
    let list: DatabaseValue = row[1]
    metadata = try StoreMetadata(
      uuid: String.fromDatabaseValue(uuid) ?? "", propertyList: [UInt8](Data.fromDatabaseValue(list) ?? Data()))
    model = nil
    if try database.hasStored(["Z_CONTENT"], in: "Z_MODELCACHE"),
      let value = try DatabaseValue.fetchOne(database, sql: "SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1"),
      let bytes = Data.fromDatabaseValue(value)
    {
      // Only versions outside the app's model need it; without it such a store is refused.
      model = try? ManagedObjectModel(modelCache: [UInt8](bytes))
    }
  }
}
