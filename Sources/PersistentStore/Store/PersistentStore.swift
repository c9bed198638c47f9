internal import Foundation
public import GRDB
public import ManagedObjectModel
public import Platform
public import SystemPackage

/// An open store: a Core Data store or a plain SQLite database.
///
/// Opening costs little more than opening with SQLite alone; nothing is checked beyond the header and the list of tables.
/// SQLite creates and removes `-wal` and `-shm` beside the file, so a store that is evidence is never opened like this, but
/// a private copy of it.
///
/// Core Data's triggers call functions that only Core Data has (format section 3.9). They are registered here and do
/// nothing, except that `NSCoreDataNow` tells the time: plain inserts and updates work, counts kept by triggers stay
/// right, and Core Data's contexts are told nothing. Collations of Core Data's own are not registered: an index in another
/// order than Core Data's would be a damaged one, so writing to such an index fails instead.
public final class PersistentStore: Sendable {
  /// The store's main file.
  public let path: FilePath

  /// Whether Core Data's tables were there when it was opened.
  public let kind: StoreKind

  /// The model it was opened with.
  public let model: ManagedObjectModel?

  private let state: Mutex<State>

  private struct State {
    var queue: DatabaseQueue?
    var layout: StoreLayout?
  }

  /// How a store is opened.
  public struct Options: Sendable {
    /// Whether records can be changed.
    public var isReadOnly = false

    /// How long to wait for the locks of other processes.
    public var busyTimeout: Duration = .seconds(5)

    /// Seconds since 2001-01-01T00:00:00Z, for derived attributes that hold the time of the last save.
    public var now: @Sendable () -> Double

    /// Whether it is a private copy of evidence, of which nothing that its schema declares may run; it is only read, and
    /// without the log.
    package var isEvidence = false

    /// For a private copy of evidence, or a restored backup that is only looked at.
    package static var evidence: Options {
      var options = Options(isReadOnly: true)
      options.isEvidence = true
      return options
    }

    /// Opens for reading and writing unless told otherwise.
    public init(
      isReadOnly: Bool = false, busyTimeout: Duration = .seconds(5),
      now: @escaping @Sendable () -> Double = referenceDate
    ) {
      self.isReadOnly = isReadOnly
      self.busyTimeout = busyTimeout
      self.now = now
    }
  }

  /// Opens a store that exists; nothing is ever created.
  ///
  /// - Parameters:
  ///   - path: the store's main file.
  ///   - model: the model of the version the store is in, needed for reading records.
  ///   - options: how to open it.
  /// - Throws: `PersistentStoreError`, environmental where the file is locked, forbidden or out of reach.
  public init(
    opening path: FilePath, model: ManagedObjectModel? = nil, options: Options = Options()
  ) throws(PersistentStoreError) {
    self.path = path
    self.model = model
    do {
      let queue =
        options.isEvidence
        ? try EvidenceConnection.open(path, .unchanging, label: "Lazaret.PersistentStore")
        : try DatabaseQueue(
          path: Self.address(of: path, isReadOnly: options.isReadOnly), configuration: Self.configuration(options))
      let names = try queue.unsafeRead { database in
        try Set(
          String.fetchAll(
            database,
            sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('Z_PRIMARYKEY', 'Z_METADATA')"))
      }
      kind = names.count == 2 ? .coreData : .sqlite
      state = Mutex(State(queue: queue, layout: nil))
    } catch let error as DatabaseError {
      throw PersistentStoreError(error, operation: "open the store", path: path)
    } catch {
      throw PersistentStoreError(.database, operation: "open the store", path: path, detail: "an unforeseen failure")
    }
  }

  /// The layout of the model, computed when it is first asked for; nil without a model.
  public func layout() throws(PersistentStoreError) -> StoreLayout? {
    if let known = state.withLock({ $0.layout }) { return known }
    guard let model else { return nil }
    let layout = try StoreLayout(model)
    state.withLock { $0.layout = layout }
    return layout
  }

  /// Reads in one consistent view of the store.
  ///
  /// Calls wait for each other; the body must not call the store again.
  ///
  /// - Throws: `PersistentStoreError` for what SQLite reports, and whatever the body throws of its own.
  public func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    let queue = try openQueue(for: "read the store")
    do {
      return try queue.read(body)
    } catch {
      throw PersistentStoreError.translated(error, operation: "read the store", path: path)
    }
  }

  /// Writes in one transaction, which is undone where the body throws.
  ///
  /// Calls wait for each other; the body must neither call the store again nor end the transaction itself.
  ///
  /// - Throws: `PersistentStoreError` for what SQLite reports, and whatever the body throws of its own.
  public func write<Value>(_ body: (Database) throws -> Value) throws -> Value {
    let queue = try openQueue(for: "write to the store")
    do {
      return try queue.write(body)
    } catch {
      throw PersistentStoreError.translated(error, operation: "write to the store", path: path)
    }
  }

  /// Closes the store; closing twice is allowed.
  ///
  /// SQLite writes the WAL back and removes it when the last connection of all processes closes.
  ///
  /// - Throws: `PersistentStoreError` where SQLite cannot close; the store is open then.
  public func close() throws(PersistentStoreError) {
    guard let queue = state.withLock({ $0.queue }) else { return }
    do {
      try queue.close()
    } catch let error as DatabaseError {
      throw PersistentStoreError(error, operation: "close the store", path: path)
    } catch {
      throw PersistentStoreError(.database, operation: "close the store", path: path, detail: "an unforeseen failure")
    }
    state.withLock { $0.queue = nil }
  }

  private func openQueue(for operation: String) throws(PersistentStoreError) -> DatabaseQueue {
    if let queue = state.withLock({ $0.queue }) { return queue }
    throw PersistentStoreError(.closed, operation: operation, path: path, detail: "the store has been closed")
  }
}

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

extension PersistentStore {
  /// Seconds since 2001-01-01T00:00:00Z, by the system's clock.
  @Sendable public static func referenceDate() -> Double { Date().timeIntervalSinceReferenceDate }

  /// The path as an SQLite URI that opens the file and never creates it.
  ///
  /// Every byte that is not plain is escaped, so that any name works: with question marks, with line breaks, and with
  /// bytes that are not UTF-8.
  package static func address(of path: FilePath, isReadOnly: Bool) -> String {
    escaped(path) + (isReadOnly ? "?mode=ro" : "?mode=rw")
  }

  /// The path as an SQLite URI without parameters.
  static func escaped(_ path: FilePath) -> String {
    var address = path.isAbsolute ? "file://" : "file:"
    for byte in path.rawBytes {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
        UInt8(ascii: "_"):
        address.unicodeScalars.append(Unicode.Scalar(byte))
      default: address += "%" + CollectionOfOne(byte).hexadecimal.uppercased()
      }
    }
    return address
  }

  /// The settings of a connection.
  static func configuration(_ options: Options) -> Configuration {
    var configuration = Configuration()
    configuration.readonly = options.isReadOnly
    configuration.foreignKeysEnabled = false
    configuration.label = "Lazaret.PersistentStore"
    let (seconds, attoseconds) = options.busyTimeout.components
    configuration.busyMode = .timeout(max(0, Double(seconds) + Double(attoseconds) * 1e-18))
    configuration.prepareDatabase { database in
      for function in CoreDataFunctions.all(now: options.now) { database.add(function: function) }
    }
    return configuration
  }
}

extension PersistentStore {
  /// Reads a batch of an entity's records in the order of their primary keys, those of its sub-entities included.
  ///
  /// - Parameters:
  ///   - entityName: the entity.
  ///   - key: only records with a higher primary key are read.
  ///   - limit: the most records read.
  /// - Throws: `PersistentStoreError` where the store has no model, the model no such entity, or SQLite reports an error.
  public func records(
    of entityName: String, after key: Int64 = .min, limit: Int = 500
  ) throws -> [Record] {
    let reader = try recordReader(for: entityName)
    return try read { try reader.records($0, after: key, limit: limit) }
  }

  /// Calls a closure with every record of an entity, in batches, so that memory stays flat.
  ///
  /// Each batch is a read of its own: changes made meanwhile may or may not be seen.
  ///
  /// - Parameters:
  ///   - entityName: the entity; records of its sub-entities are included.
  ///   - batchSize: how many records are read at once.
  ///   - body: called with each record; reading ends where it throws.
  public func forEachRecord(
    of entityName: String, batchSize: Int = 500, _ body: (Record) throws -> Void
  ) throws {
    let reader = try recordReader(for: entityName)
    let batchSize = max(1, batchSize)
    var key = Int64.min
    while true {
      let batch = try read { try reader.records($0, after: key, limit: batchSize) }
      for record in batch { try body(record) }
      guard let last = batch.last, batch.count == batchSize, last.primaryKey > key else { return }
      key = last.primaryKey
    }
  }

  /// The number of records of an entity, those of its sub-entities included.
  public func recordCount(of entityName: String) throws -> Int {
    guard let layout = try layout() else { throw withoutModel() }
    guard let entity = layout.entity(named: entityName) else { throw unknown("entity", entityName) }
    let table = SQLText.identifier(entity.tableName)
    return try read { database in
      let sql =
        entity.isRoot
        ? "SELECT count(*) FROM \(table)"
        : "SELECT count(*) FROM \(table) WHERE Z_ENT BETWEEN \(entity.number) AND \(entity.lastDescendantNumber)"
      return try Int.fetchOne(database, sql: sql) ?? 0
    }
  }

  /// The primary keys of the records that a to-many relationship of one record leads to.
  ///
  /// They come in the relationship's order where it has one, else by primary key.
  ///
  /// - Throws: `PersistentStoreError.unknownName` where the entity has no stored to-many relationship of that name.
  public func destinationKeys(
    of relationship: String, entity entityName: String, primaryKey: Int64
  ) throws -> [Int64] {
    guard let layout = try layout() else { throw withoutModel() }
    let source: (table: String, key: String, owner: String, order: String?)
    switch layout.storage(of: relationship, in: entityName) {
    case .toManyByColumn(let table, let column, let order): source = (table, "Z_PK", column, order)
    case .toManyByJoinTable(let table, let own, let destination, let order): source = (table, destination, own, order)
    case .attribute, .toOne, nil: throw unknown("to-many relationship", "\(entityName).\(relationship)")
    }
    let key = SQLText.identifier(source.key)
    let order = (source.order.map { [SQLText.identifier($0)] } ?? []) + [key]
    return try read { database in
      try Int64.fetchAll(
        database,
        sql: """
          SELECT \(key) FROM \(SQLText.identifier(source.table)) WHERE \(SQLText.identifier(source.owner)) = ?
          AND typeof(\(key)) = 'integer' ORDER BY \(order.joined(separator: ", "))
          """, arguments: [primaryKey])
    }
  }

  private func recordReader(for entityName: String) throws(PersistentStoreError) -> RecordReader {
    guard let layout = try layout() else { throw withoutModel() }
    guard let reader = RecordReader(layout: layout, entityName: entityName) else { throw unknown("entity", entityName) }
    return reader
  }

  private func withoutModel() -> PersistentStoreError {
    PersistentStoreError(
      .noModel, operation: "read records", path: path, detail: "the store was opened without a model")
  }

  private func unknown(_ what: String, _ name: String) -> PersistentStoreError {
    PersistentStoreError(
      .unknownName, operation: "read records", path: path, detail: "there is no \(what) \"\(printable(name))\"")
  }
}

/// What a store is.
public enum StoreKind: String, Sendable, Hashable {
  /// A store in Core Data's layout; SwiftData's is the same.
  case coreData = "core-data"

  case sqlite
}

/// Bytes as a value that SQLite can be given.
struct BlobBytes: DatabaseValueConvertible {
  let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var databaseValue: DatabaseValue { Data(bytes).databaseValue }

  static func fromDatabaseValue(_ value: DatabaseValue) -> BlobBytes? {
    if case .blob(let data) = value.storage { BlobBytes([UInt8](data)) } else { nil }
  }
}

/// The SQL functions that triggers of Core Data stores call.
package enum CoreDataFunctions {
  /// Functions that tell Core Data's contexts about changes made by triggers; here they do nothing.
  ///
  /// The first two are those of derived attributes, the third that of older `ZT_…` triggers (format section 3.9).
  package static let notifications = [
    "NSCoreDataDATriggerUpdatedAffectedObjectValue",
    "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue",
    "NSCoreDataTriggerUpdateAffectedObjectValue",
  ]

  /// All functions, with the clock that `NSCoreDataNow` tells.
  package static func all(now: @escaping @Sendable () -> Double) -> [DatabaseFunction] {
    notifications.map { name in DatabaseFunction(name) { _ in nil } }
      + [DatabaseFunction("NSCoreDataNow", argumentCount: 0) { _ in now() }]
  }
}
