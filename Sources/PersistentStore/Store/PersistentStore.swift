internal import Foundation
public import GRDB
internal import GRDBSQLite
public import ManagedObjectModel
public import Platform
public import SystemPackage

/// An open Core Data store or plain SQLite database.
///
/// Opening checks only the header and schema, at little more than SQLite's cost. SQLite creates and removes `-wal` and
/// `-shm` beside the file, so evidence is only opened as a private copy.
///
/// Core Data's triggers call its own functions (format section 3.9), registered here without effect, except that
/// `NSCoreDataNow` returns the time: plain writes work, trigger counts stay right, and Core Data's contexts are not
/// notified. Core Data's collations are not registered: an index in another order would be damaged, so writing to such
/// an index fails.
public final class PersistentStore: Sendable {
  /// The main file.
  public let path: FilePath

  /// Whether Core Data's tables existed at opening.
  public let kind: StoreKind

  /// The model given at opening.
  public let model: ManagedObjectModel?

  private let state: Mutex<State>

  private struct State {
    var queue: DatabaseQueue?
    var layout: StoreLayout?
  }

  /// The opening options.
  public struct Options: Sendable {
    /// Whether writing is disabled.
    public var isReadOnly = false

    /// The wait for other processes' locks.
    public var busyTimeout: Duration = .seconds(5)

    /// Seconds since 2001-01-01T00:00:00Z for derived save times.
    public var now: @Sendable () -> Double

    /// The model's layout, if it is known already.
    var layout: StoreLayout?

    /// For a private evidence copy: read-only, without log or schema declarations.
    var isEvidence = false

    /// Options for a private evidence copy or a restored backup.
    static var evidence: Options {
      var options = Options(isReadOnly: true)
      options.isEvidence = true
      return options
    }

    /// Creates options, by default for reading and writing.
    public init(
      isReadOnly: Bool = false, busyTimeout: Duration = .seconds(5),
      now: @escaping @Sendable () -> Double = referenceDate
    ) {
      self.isReadOnly = isReadOnly
      self.busyTimeout = busyTimeout
      self.now = now
    }
  }

  /// Opens an existing store and never creates one.
  ///
  /// - Parameter model: the store version's model, needed to read records.
  /// - Throws: `PersistentStoreError`, environmental if the file is locked, forbidden or unreachable.
  public init(
    opening path: FilePath, model: ManagedObjectModel? = nil, options: Options = Options()
  ) throws(PersistentStoreError) {
    self.path = path
    self.model = model
    let (queue, names) = try PersistentStoreError.reporting("open the store", at: path) {
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
      return (queue, names)
    }
    kind = names.count == 2 ? .coreData : .sqlite
    state = Mutex(State(queue: queue, layout: options.layout))
  }

  /// Opens a store of a known layout for reading.
  package convenience init(reading path: FilePath, as layout: StoreLayout) throws(PersistentStoreError) {
    var options = Options(isReadOnly: true)
    options.layout = layout
    try self.init(opening: path, model: layout.model, options: options)
  }

  /// Returns the model's layout, computed on first use; nil without a model.
  public func layout() throws(PersistentStoreError) -> StoreLayout? {
    if let known = state.withLock({ $0.layout }) { return known }
    guard let model else { return nil }
    let layout = try StoreLayout(model)
    state.withLock { $0.layout = layout }
    return layout
  }

  /// Reads one consistent snapshot.
  ///
  /// Calls are serialized; the body must not call the store.
  ///
  /// - Throws: `PersistentStoreError` for SQLite's errors, and the body's own.
  public func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try run("read the store") { try $0.read(body) }
  }

  /// Writes in one transaction, rolled back if the body throws.
  ///
  /// Calls are serialized; the body must neither call the store nor end the transaction.
  ///
  /// - Throws: `PersistentStoreError` for SQLite's errors, and the body's own.
  public func write<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try run("write to the store") { try $0.write(body) }
  }

  /// Closes the store; repeated calls are allowed.
  ///
  /// The last connection of all processes checkpoints and removes the WAL.
  ///
  /// - Throws: `PersistentStoreError` if SQLite cannot close; the store stays open.
  public func close() throws(PersistentStoreError) {
    guard let queue = state.withLock({ $0.queue }) else { return }
    try PersistentStoreError.reporting("close the store", at: path) { try queue.close() }
    state.withLock { $0.queue = nil }
  }

  private func run<Value>(_ operation: String, _ body: (DatabaseQueue) throws -> Value) throws -> Value {
    guard let queue = state.withLock({ $0.queue }) else {
      throw PersistentStoreError(.closed, operation: operation, path: path, detail: "the store has been closed")
    }
    do {
      return try body(queue)
    } catch let error as DatabaseError {
      throw PersistentStoreError(error, operation: operation, path: path)
    }
  }
}

extension PersistentStore {
  /// Returns a Core Data store's metadata; nil for plain SQLite.
  ///
  /// - Throws: `PersistentStoreError` if unreadable.
  public func metadata() throws -> StoreMetadata? {
    guard kind == .coreData else { return nil }
    let found = try read { database -> (uuid: String, list: [UInt8])? in
      guard let row = try Row.fetchOne(database, sql: "SELECT Z_UUID, Z_PLIST FROM Z_METADATA LIMIT 1") else {
        return nil
      }
      return (row.text(0) ?? "", (row[1] as DatabaseValue).blob ?? [])
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

  /// Returns a Core Data store's compressed model archive, if any (format section 3.4).
  public func modelCache() throws -> [UInt8]? {
    try read { database in
      guard try database.tableExists("Z_MODELCACHE") else { return nil }
      let value = try DatabaseValue.fetchOne(database, sql: "SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1")
      return value?.blob
    }
  }

  /// Returns the system clock's seconds since 2001-01-01T00:00:00Z.
  @Sendable public static func referenceDate() -> Double { Date().timeIntervalSinceReferenceDate }

  /// Returns an SQLite URI that never creates the file.
  ///
  /// Special bytes are escaped, so question marks, line breaks and invalid UTF-8 work.
  package static func address(of path: FilePath, isReadOnly: Bool) -> String {
    escaped(path) + (isReadOnly ? "?mode=ro" : "?mode=rw")
  }

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

/// The kind of a store.
public enum StoreKind: String, Sendable, Hashable {
  /// Core Data's layout, shared by SwiftData.
  case coreData = "core-data"

  case sqlite
}

extension DatabaseValue {
  var blob: [UInt8]? { if case .blob(let data) = storage { [UInt8](data) } else { nil } }
}

package enum CoreDataFunctions {
  /// No-op replacements of functions that notify Core Data's contexts.
  ///
  /// The first two serve derived attributes, the third older `ZT_…` triggers (format section 3.9).
  static let notifications = [
    "NSCoreDataDATriggerUpdatedAffectedObjectValue", "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue",
    "NSCoreDataTriggerUpdateAffectedObjectValue",
  ]

  /// Returns all functions, with the clock for `NSCoreDataNow`.
  package static func all(now: @escaping @Sendable () -> Double) -> [DatabaseFunction] {
    notifications.map { name in DatabaseFunction(name) { _ in nil } }
      + [DatabaseFunction("NSCoreDataNow", argumentCount: 0) { _ in now() }]
  }
}

/// The process's SQLite library.
public enum SQLiteLibrary {
  /// The version, such as `3.40.1`.
  public static var version: String { unsafe String(cString: sqlite3_libversion()) }
}
