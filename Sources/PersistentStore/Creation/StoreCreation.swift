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
    self.init(layout: try StoreLayout(model), metadata: StoreMetadata(model: model, uuid: uuid), modelCache: modelCache)
  }

  /// Returns the bytes of the store file.
  ///
  /// - Throws: `PersistentStoreError` if SQLite refuses, such as for a table of over 2,000 columns.
  public func bytes() throws(PersistentStoreError) -> [UInt8] {
    try Self.image { database in
      try database.execute(sql: "PRAGMA page_size = 4096; PRAGMA auto_vacuum = 2; PRAGMA encoding = 'UTF-8'")
      try database.inTransaction {
        for statement in layout.statements { try database.execute(sql: statement) }
        for entity in layout.entities { try StoreLayout.notePrimaryKey(0, of: entity, on: database) }
        try layout.noteMetadata(metadata, modelCache: modelCache, on: database)
        return .commit
      }
    }
  }

  /// Returns the bytes of an empty plain SQLite database for a schema script.
  ///
  /// - Throws: `PersistentStoreError.schemaScriptRefused` for an invalid or forbidden statement.
  public static func bytes(of script: SchemaScript) throws(PersistentStoreError) -> [UInt8] {
    try image { database in
      try script.run(in: database)
      guard try Bool.fetchOne(database, sql: "SELECT count(*) > 0 FROM sqlite_master") == true else {
        throw SchemaScript.refused("the schema creates nothing")
      }
    }
  }

  private static func image(_ make: @Sendable (Database) throws -> Void) throws(PersistentStoreError) -> [UInt8] {
    try PersistentStoreError.reporting("create the store") {
      try MemoryDatabase.open().inDatabase { database in
        try make(database)
        return try DatabaseImage.bytes(of: database)
      }
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
