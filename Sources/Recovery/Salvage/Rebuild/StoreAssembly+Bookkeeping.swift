internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import Migration
internal import PersistentStore

extension StoreAssembly {
  /// The first number of the entities that Core Data keeps for itself: history, mirroring, index tracking.
  private static let firstReservedNumber = 16000

  /// The highest primary key that is believed of a bookkeeping row that may be damaged.
  private static let highestKey: Int64 = 1 << 52

  /// The literal of a default; `NULL` for what cannot be written.
  func defaultLiteral(_ value: AttributeValue, isMarked: Bool) -> String { value.literal(isMarked: isMarked) }

  /// Fills `Z_PRIMARYKEY`, `Z_METADATA` and `Z_MODELCACHE`.
  func fillBookkeeping(uuid: String) throws {
    let keys = raw["Z_PRIMARYKEY"]
    // A name may be damaged; a number counts where the store numbers its entities as this layout.
    let isByNumber = found.numbering == nil && found.foreignModel == nil ? 1 : 0
    for entity in layout.entities {
      var highest: Int64 = 0
      if entity.isRoot {
        // A row that was set aside keeps its key, so that no other gets it.
        let name = SQLText.identifier(entity.tableName)
        highest = try Int64.fetchOne(database, sql: "SELECT max(Z_PK) FROM main.\(name)") ?? 0
        if let last = store?.tables[entity.tableName.lowercased()]?.last { highest = max(highest, last) }
        if let source = source(of: entity.tableName), let rowid = source.rowid {
          highest = max(
            highest, try Int64.fetchOne(database, sql: "SELECT max(\(rowid)) FROM \(source.sql)") ?? 0)
        }
        // So does one that is lost, where something led to it.
        if let gone = highestGone[entity.tableName], gone <= Self.highestKey { highest = max(highest, gone) }
        if let keys, ["Z_ENT", "Z_NAME", "Z_MAX"].allSatisfy({ keys.column($0) != nil }) {
          let before = try Int64.fetchOne(
            database,
            sql: "SELECT max(Z_MAX) FROM \(keys.sql) WHERE (Z_NAME = ? OR \(isByNumber) AND Z_ENT = ?) "
              + "AND typeof(Z_MAX) = 'integer' AND Z_MAX <= ?",
            arguments: [entity.name, entity.number, Self.highestKey])
          highest = max(highest, before ?? 0)
        }
      }
      try StoreLayout.notePrimaryKey(highest, of: entity, on: database)
    }
    if let keys, ["Z_ENT", "Z_NAME", "Z_SUPER", "Z_MAX"].allSatisfy({ keys.column($0) != nil }) {
      try database.execute(
        sql: """
          INSERT OR IGNORE INTO main.Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX)
          SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM \(keys.sql) WHERE Z_ENT > \(Self.firstReservedNumber)
          """)
    }
    try writeMetadata(uuid: uuid)
  }

  private func writeMetadata(uuid: String) throws {
    let model = layout.model
    var metadata = found.metadata ?? StoreMetadata(model: model, uuid: uuid)
    if !Self.isIdentifier(metadata.uuid) { metadata.uuid = uuid }
    let fresh = StoreMetadata(model: model, uuid: metadata.uuid)
    if metadata.versionHashes != fresh.versionHashes {
      for key in [
        StoreMetadata.Key.versionHashes, StoreMetadata.Key.versionHashesVersion, StoreMetadata.Key.versionIdentifiers,
        StoreMetadata.Key.versionHashesDigest, StoreMetadata.Key.versionChecksum,
      ] {
        metadata.entries[key] = fresh.entries[key]
      }
    }
    metadata.entries[StoreMetadata.Key.storeType] = fresh.entries[StoreMetadata.Key.storeType]
    metadata.entries[StoreMetadata.Key.autoVacuumLevel] = fresh.entries[StoreMetadata.Key.autoVacuumLevel]
    try layout.noteMetadata(metadata, on: database)
  }

  /// Whether text is a UUID as stores have it.
  private static func isIdentifier(_ text: String) -> Bool {
    text.utf8.count == 36 && UUID(uuidString: text) != nil
  }
}
