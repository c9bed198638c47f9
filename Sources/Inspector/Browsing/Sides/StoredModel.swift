internal import Dispatch
internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SystemPackage

/// The model of a sound store: a matching given version, or the embedded one.
enum StoredModel {
  /// Finds the model; nil for plain databases, or if unknown.
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
    // Without a decodable cache, the raw tables are shown.
    let cached = cache.flatMap { try? ManagedObjectModel(modelCache: [UInt8]($0)) }
    if let list {
      // Without readable metadata, the model cache may still help.
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

  /// The model by which a file of found rows was arranged.
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

/// Read-only connections to one file, each lent for a limited time.
final class ReaderPool: Sendable {
  private let queues: [DatabaseQueue]
  private let free: Mutex<[Int]>
  private let places: DispatchSemaphore

  init(_ queues: [DatabaseQueue]) {
    self.queues = queues
    free = Mutex(Array(queues.indices))
    places = DispatchSemaphore(value: queues.count)
  }

  /// - Throws: the body's errors; `DatabaseError` with `SQLITE_INTERRUPT` on timeout.
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
