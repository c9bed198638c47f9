internal import Foundation
package import GRDB
internal import ManagedObjectModel

/// The steps in which a store is made from its layout while it is filled; everything is in the schema `main`.
extension StoreLayout {
  /// The names of everything that is the layout's own among the store's tables, R-tree indexes included.
  package var tableNames: [String] {
    tables.map(\.name) + joinTables.map(\.name) + spatialIndexes.map(\.name) + Self.bookkeepingTableNames
  }

  /// Whether a trigger is Core Data's by the beginning of its name (format section 3.9), so that a layout makes it anew.
  package static func isOwnTrigger(_ name: String) -> Bool {
    ["Z_DA_", "Z_RT_", "ZT_", "ZQ_"].contains { name.hasPrefix($0) }
  }

  /// Makes all tables, still without indexes and triggers.
  package func makeTables(on database: Database) throws {
    for table in tables { try database.execute(sql: table.statement) }
    for table in joinTables { try database.execute(sql: table.statement) }
    for statement in Self.bookkeepingStatements { try database.execute(sql: statement) }
  }

  /// Makes the R-tree indexes, and fills them from the rows that are in their tables.
  package func makeSpatialIndexes(on database: Database) throws {
    for index in spatialIndexes { try make(index, on: database) }
  }

  /// Makes an R-tree index that is not there, and fills it from the rows of its table.
  package func make(_ index: SpatialIndexLayout, on database: Database) throws {
    // What is left of one that the schema lists no more stands in its way.
    for name in ShadowTables.names(of: index.name, module: "rtree") {
      try database.execute(sql: "DROP TABLE IF EXISTS main.\(SQLText.quotedIdentifier(name))")
    }
    try database.execute(sql: index.statement)
    try database.execute(sql: fillingStatement(of: index))
  }

  /// Makes the triggers; what is done to records before that is not seen by them.
  package func makeTriggers(on database: Database) throws {
    for trigger in triggers { try database.execute(sql: trigger.statement) }
  }

  /// Writes an entity's row of `Z_PRIMARYKEY`.
  package static func notePrimaryKey(_ highest: Int64, of entity: EntityLayout, on database: Database) throws {
    try database.execute(
      sql: "INSERT INTO main.Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, ?, ?)",
      arguments: [entity.number, entity.name, entity.parentNumber, highest])
  }

  /// Writes the rows of `Z_METADATA` and, unless `hasModelCache` is false, of `Z_MODELCACHE`.
  package func noteMetadata(_ metadata: StoreMetadata, hasModelCache: Bool = true, on database: Database) throws {
    try database.execute(
      sql: "INSERT INTO main.Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?, ?)",
      arguments: [metadata.uuid, Data(try metadata.propertyListBytes())])
    guard hasModelCache else { return }
    try database.execute(
      sql: "INSERT INTO main.Z_MODELCACHE (Z_CONTENT) VALUES (?)", arguments: [Data(try model.modelCache())])
  }
}
