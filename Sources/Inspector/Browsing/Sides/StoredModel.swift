internal import Dispatch
internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SystemPackage

/// The model that a sound store was written with: a version that is given, or the one that it carries.
enum StoredModel {
  /// Reads it; nil for plain databases, and where nothing tells.
  static func find(in path: FilePath, among models: [ModelBundle]) throws -> ManagedObjectModel? {
    let (uuid, list, cache) = try read(path) { database in
      let metadata =
        try database.hasStored(["Z_UUID", "Z_PLIST"], in: "Z_METADATA")
        ? Row.fetchOne(database, sql: "SELECT Z_UUID, Z_PLIST FROM Z_METADATA LIMIT 1") : nil
      let cached =
        try database.hasStored(["Z_CONTENT"], in: "Z_MODELCACHE")
        ? DatabaseValue.fetchOne(database, sql: "SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1") : nil
      let uuid: DatabaseValue? = metadata?[0]
      let list: DatabaseValue? = metadata?[1]
      return (
        uuid.flatMap { String.fromDatabaseValue($0) } ?? "", list.flatMap { Data.fromDatabaseValue($0) },
        cached.flatMap { Data.fromDatabaseValue($0) }
      )
    }
    // A cache that does not unpack to a model is none; the tables are then shown as they are.
    let cached = cache.flatMap { try? ManagedObjectModel(modelCache: [UInt8]($0)) }
    if let list {
      // Metadata that cannot be read tell nothing; the model cache may.
      let metadata = try? StoreMetadata(uuid: uuid, propertyList: [UInt8](list))
      if let hashes = metadata?.versionHashes {
        for bundle in models {
          if let version = bundle.version(
            matching: hashes, identifiers: metadata?.versionIdentifiers, cached: cached)
          {
            return version.model
          }
        }
      }
    }
    return cached
  }

  /// The model that a file of found rows was arranged by.
  static func noted(in path: FilePath) throws -> ManagedObjectModel? {
    let bytes = try read(path) { database in
      try database.tableExists(TableProvenance.model)
        ? Data.fetchOne(database, sql: "SELECT content FROM \(TableProvenance.model)") : nil
    }
    return try bytes.map { try ManagedObjectModel(modelCache: [UInt8]($0)) }
  }

  private static func read<Value>(_ path: FilePath, _ body: (Database) throws -> Value) throws -> Value {
    let pool = ReaderPool([try BrowsedStore.connect(path)])
    let value = try pool.read(limit: BrowsedStore.Limits().opening, body)
    try pool.close()
    return value
  }
}

/// A few read-only connections to one file, lent to callers, each to one at a time and for a limited time.
final class ReaderPool: Sendable {
  private let queues: [DatabaseQueue]
  private let free: Mutex<[Int]>
  private let places: DispatchSemaphore

  init(_ queues: [DatabaseQueue]) {
    self.queues = queues
    free = Mutex(Array(queues.indices))
    places = DispatchSemaphore(value: queues.count)
  }

  /// Reads with a connection of its own; what takes longer than the limit is interrupted.
  ///
  /// - Throws: what the body throws; `DatabaseError` with `SQLITE_INTERRUPT` where the time is up.
  func read<Value>(limit: Duration, _ body: (Database) throws -> Value) throws -> Value {
    places.wait()
    let index = free.withLock { $0.removeLast() }
    defer {
      free.withLock { $0.append(index) }
      places.signal()
    }
    let limit = StatementLimit(time: limit)
    return try queues[index].read { database in try limit.apply(to: database) { try body(database) } }
  }

  func close() throws {
    for queue in queues { try queue.close() }
  }
}
