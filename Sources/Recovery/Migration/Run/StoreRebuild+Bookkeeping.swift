internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import PropertyLists
internal import StoreFiles

extension StoreRebuild {
  /// The first number of the entities that Core Data keeps for itself: history, mirroring, index tracking.
  static let firstReservedNumber = 16000

  /// Fills `Z_PRIMARYKEY`, `Z_METADATA` and `Z_MODELCACHE`.
  func fillBookkeeping(_ database: Database) throws {
    try fillPrimaryKeys(database)
    try writeMetadata(database, from: "old")
  }

  /// The highest primary key ever given out is that of the hierarchies the records come from (format section 3.3).
  private func fillPrimaryKeys(_ database: Database) throws {
    for entity in layout.destination.entities {
      var highest: Int64 = 0
      if entity.isRoot {
        highest =
          try Int64.fetchOne(database, sql: "SELECT max(Z_PK) FROM main.\(SQLText.identifier(entity.tableName))") ?? 0
        let roots = Set(
          layout.routes.filter { $0.destination.rootName == entity.name }
            .compactMap { layout.source.entity(named: $0.source.rootName)?.number })
        let before =
          try Int64.fetchOne(
            database, sql: "SELECT max(Z_MAX) FROM old.Z_PRIMARYKEY WHERE Z_ENT IN \(roots.sorted().sqlList)") ?? 0
        highest = max(highest, before)
      }
      try StoreLayout.notePrimaryKey(highest, of: entity, on: database)
    }
    try database.execute(
      sql: """
        INSERT INTO main.Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX)
        SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM old.Z_PRIMARYKEY WHERE Z_ENT > \(Self.firstReservedNumber)
        """)
  }

  /// Writes the metadata of the new model: the identifier and everything foreign stay, what describes the model is new.
  ///
  /// - Parameter schema: the database that has the old metadata; that of the new is always `main`.
  func writeMetadata(_ database: Database, from schema: String) throws {
    let model = layout.destination.model
    guard let row = try Row.fetchOne(database, sql: "SELECT Z_UUID, Z_PLIST FROM \(schema).Z_METADATA LIMIT 1") else {
      throw MigrationError(.dataViolation, detail: "the store has no metadata")
    }
    let uuid: DatabaseValue = row[0]
    let list: DatabaseValue = row[1]
    var metadata = try StoreMetadata(
      uuid: String.fromDatabaseValue(uuid) ?? "", propertyList: [UInt8](Data.fromDatabaseValue(list) ?? Data()))
    let fresh = StoreMetadata(model: model, uuid: metadata.uuid)
    for key in [
      StoreMetadata.Key.versionHashes, StoreMetadata.Key.versionHashesVersion, StoreMetadata.Key.versionIdentifiers,
      StoreMetadata.Key.versionHashesDigest, StoreMetadata.Key.versionChecksum, StoreMetadata.Key.autoVacuumLevel,
    ] {
      metadata.entries[key] = fresh.entries[key]
    }
    let bytes = Data(try metadata.propertyListBytes())
    try database.execute(sql: "DELETE FROM main.Z_METADATA; DELETE FROM main.Z_MODELCACHE")
    try database.execute(
      sql: "INSERT INTO main.Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?, ?)", arguments: [uuid, bytes])
    // Compiling a model costs as much as all the rest of a small step; only the last one's is ever read.
    guard isLast else { return }
    try database.execute(
      sql: "INSERT INTO main.Z_MODELCACHE (Z_CONTENT) VALUES (?)", arguments: [Data(try model.modelCache())])
  }

  /// Computes the derived attributes whose values could not be kept.
  func computeDerivedValues(_ database: Database) throws {
    for entity in layout.destination.entities {
      for property in layout.destinationSide.properties[entity.name] ?? []
      where property.declaringEntityName == entity.name && property.attribute?.isDerived == true {
        let numbers =
          layout.routes(of: property.key).filter { route in
            let old = layout.sourceSide.properties[route.source.name]?.first { $0.path == property.path }
            return !layout.keepsDerivedValue(old, property, route.destination.name)
          }.map(\.destination.number) + (layout.isCustom ? Array(entity.numbers) : [])
        guard !numbers.isEmpty, let attribute = property.attribute,
          case .attribute(let columns) = layout.destination.storage(of: property.key), let column = columns.first,
          let value = layout.destination.derivedValue(of: attribute, entity)
        else { continue }
        try database.execute(
          sql: "UPDATE main.\(SQLText.identifier(entity.tableName)) AS o SET \(column.sqlName) = \(value) "
            + "WHERE o.Z_ENT IN \(numbers.sqlList)")
      }
    }
  }
}
