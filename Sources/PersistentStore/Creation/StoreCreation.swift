internal import GRDB
public import ManagedObjectModel
public import Platform
internal import SystemPackage

/// The creation of an empty store as file bytes.
///
/// It works in memory; the caller writes the file. The store is in WAL mode with Core Data's parameters (format section
/// 3.1): pages of 4,096 bytes, incremental auto-vacuum, UTF-8. Equal input gives equal bytes.
public struct StoreCreation: Sendable {
  /// The store's layout.
  public let layout: StoreLayout

  /// The content of `Z_METADATA`.
  public let metadata: StoreMetadata

  /// The content of `Z_MODELCACHE`; nil leaves the table empty (format section 3.4).
  public let modelCache: [UInt8]?

  /// Prepares a Core Data store.
  ///
  /// - Parameter modelCache: the model's compressed archive.
  public init(layout: StoreLayout, metadata: StoreMetadata, modelCache: [UInt8]?) {
    self.layout = layout
    self.metadata = metadata
    self.modelCache = modelCache
  }

  /// Prepares a Core Data store for a model.
  ///
  /// - Throws: `PersistentStoreError.unstorableModel` if the model has no layout.
  public init(model: ManagedObjectModel, uuid: String, modelCache: [UInt8]?) throws(PersistentStoreError) {
    self.init(
      layout: try StoreLayout(model), metadata: StoreMetadata(model: model, uuid: uuid), modelCache: modelCache)
  }

  /// Returns the bytes of the store file.
  ///
  /// - Throws: `PersistentStoreError` if SQLite refuses, such as for a table of over 2,000 columns.
  public func bytes() throws(PersistentStoreError) -> [UInt8] {
    let propertyList = try metadata.propertyListBytes()
    return try Self.image(operation: "create the store") { database in
      try database.execute(sql: "PRAGMA page_size = 4096; PRAGMA auto_vacuum = 2; PRAGMA encoding = 'UTF-8'")
      try database.inTransaction {
        for statement in layout.statements { try database.execute(sql: statement) }
        let insert = try database.makeStatement(
          sql: "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, ?, 0)")
        for entity in layout.entities {
          try insert.execute(arguments: [entity.number, entity.name, entity.parentNumber])
        }
        try database.execute(
          sql: "INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?, ?)",
          arguments: [metadata.uuid, BlobBytes(propertyList)])
        if let modelCache {
          try database.execute(
            sql: "INSERT INTO Z_MODELCACHE (Z_CONTENT) VALUES (?)", arguments: [BlobBytes(modelCache)])
        }
        return .commit
      }
    }
  }

  /// Returns the bytes of an empty plain SQLite database for a schema script.
  ///
  /// - Throws: `PersistentStoreError.schemaScriptRefused` for an invalid or forbidden statement.
  public static func bytes(of script: SchemaScript) throws(PersistentStoreError) -> [UInt8] {
    try image(operation: "create the store") { database in
      try script.run(in: database)
      guard try Bool.fetchOne(database, sql: "SELECT count(*) > 0 FROM sqlite_master") == true else {
        throw SchemaScript.refused("the schema creates nothing")
      }
    }
  }

  private static func image(
    operation: String, _ body: @Sendable (Database) throws -> Void
  ) throws(PersistentStoreError) -> [UInt8] {
    do {
      return try MemoryDatabase.open().inDatabase { database in
        try body(database)
        return try DatabaseImage.bytes(of: database)
      }
    } catch let error as PersistentStoreError {
      throw error
    } catch let error as DatabaseError {
      throw PersistentStoreError(error, operation: operation, path: nil)
    } catch {
      throw PersistentStoreError(.database, operation: operation, detail: "an unforeseen failure")
    }
  }
}

enum MemoryDatabase {
  /// Opens it without foreign key checks, so that tables and rows can come in any order.
  static func open() throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    // Schemas of older apps use double-quoted text.
    configuration.acceptsDoubleQuotedStringLiterals = true
    configuration.label = "Lazaret.MemoryDatabase"
    return try DatabaseQueue(configuration: configuration)
  }
}

/// A check whether SQLite accepts a `CREATE TABLE` statement.
///
/// A damaged store's statement is only compiled, in an empty private database.
package struct StatementChecker {
  private let queue: DatabaseQueue

  package init() throws { queue = try MemoryDatabase.open() }

  /// Returns whether the text is one statement that SQLite compiles.
  package func accepts(_ statement: String) -> Bool {
    do {
      try queue.inDatabase { _ = try $0.makeStatement(sql: statement) }
      return true
    } catch {
      // Any SQLite error makes the statement unusable.
      return false
    }
  }
}
