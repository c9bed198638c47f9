internal import GRDB
public import ManagedObjectModel
public import Platform
internal import SystemPackage

/// The creation of an empty store, as the bytes of its file.
///
/// Everything happens in memory; the caller writes the bytes to a file and decides how. The file opens in WAL mode and has Core
/// Data's parameters (format section 3.1): pages of 4,096 bytes, incremental auto-vacuum, UTF-8. The same input gives the
/// same bytes.
public struct StoreCreation: Sendable {
  /// The layout of the store.
  public let layout: StoreLayout

  /// What its `Z_METADATA` will hold.
  public let metadata: StoreMetadata

  /// What its `Z_MODELCACHE` will hold; nil leaves the table empty (format section 3.4).
  public let modelCache: [UInt8]?

  /// Prepares the creation of a Core Data store.
  ///
  /// - Parameters:
  ///   - layout: the layout of the store's model.
  ///   - metadata: the metadata, usually `StoreMetadata(model:uuid:)`.
  ///   - modelCache: the compressed archive of the same model, or nil.
  public init(layout: StoreLayout, metadata: StoreMetadata, modelCache: [UInt8]?) {
    self.layout = layout
    self.metadata = metadata
    self.modelCache = modelCache
  }

  /// Prepares the creation of a Core Data store for a model.
  ///
  /// - Throws: `PersistentStoreError.unstorableModel` where the model cannot be laid out.
  public init(model: ManagedObjectModel, uuid: String, modelCache: [UInt8]?) throws(PersistentStoreError) {
    self.init(
      layout: try StoreLayout(model), metadata: StoreMetadata(model: model, uuid: uuid), modelCache: modelCache)
  }

  /// The bytes of the store's file.
  ///
  /// - Throws: `PersistentStoreError` where SQLite refuses, for instance because a table gets more than 2,000 columns.
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

  /// The bytes of an empty plain SQLite database with the tables of a schema script.
  ///
  /// - Throws: `PersistentStoreError.schemaScriptRefused` where a statement is not SQLite's or not allowed.
  public static func bytes(of script: SchemaScript) throws(PersistentStoreError) -> [UInt8] {
    try image(operation: "create the store") { database in
      try script.run(in: database)
      guard try Bool.fetchOne(database, sql: "SELECT count(*) > 0 FROM sqlite_master") == true else {
        throw SchemaScript.refused("the schema creates nothing")
      }
    }
  }

  /// Runs statements on a database in memory and takes its bytes.
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

/// A private database in memory.
enum MemoryDatabase {
  /// Opens one, without foreign keys so that tables and rows can come in any order.
  static func open() throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    // Schemas of older apps have text in double quotes.
    configuration.acceptsDoubleQuotedStringLiterals = true
    configuration.label = "Lazaret.MemoryDatabase"
    return try DatabaseQueue(configuration: configuration)
  }
}
