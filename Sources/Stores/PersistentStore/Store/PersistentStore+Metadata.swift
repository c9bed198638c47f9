internal import GRDB
internal import StoreFiles
internal import SystemPackage

extension PersistentStore {
  /// The metadata of a Core Data store; nil for a plain SQLite database.
  ///
  /// - Throws: `PersistentStoreError` where it cannot be read.
  public func metadata() throws -> StoreMetadata? {
    guard kind == .coreData else { return nil }
    let found = try read { database -> (uuid: String, list: [UInt8])? in
      guard let row = try Row.fetchOne(database, sql: "SELECT Z_UUID, Z_PLIST FROM Z_METADATA LIMIT 1") else {
        return nil
      }
      let uuid: DatabaseValue = row[0]
      let list: DatabaseValue = row[1]
      return (String.fromDatabaseValue(uuid) ?? "", BlobBytes.fromDatabaseValue(list)?.bytes ?? [])
    }
    guard let found else {
      throw PersistentStoreError(
        .damagedMetadata, operation: "read the store's metadata", path: path, detail: "there is no row in Z_METADATA")
    }
    do {
      return try StoreMetadata(uuid: found.uuid, propertyList: found.list)
    } catch {
      var error = error
      error.path = path
      throw error
    }
  }

  /// The compressed archive of its model that a Core Data store carries; nil where it has none (format section 3.4).
  public func modelCache() throws -> [UInt8]? {
    try read { database in
      guard try database.tableExists("Z_MODELCACHE") else { return nil }
      let value = try DatabaseValue.fetchOne(database, sql: "SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1")
      return value.flatMap { BlobBytes.fromDatabaseValue($0)?.bytes }
    }
  }
}
