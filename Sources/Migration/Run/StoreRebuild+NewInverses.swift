internal import Foundation
internal import GRDB
import ManagedObjectModel
internal import PersistentStore
import Platform

internal import struct SQLiteFormat.TableDefinition

extension StoreRebuild {
  /// Joins the pairs of newly inverse one-to-one relationships.
  ///
  /// In conflicts the side whose name sorts first wins, then the lowest primary key. The columns must be indexed.
  func joinNewInverses(_ database: Database) throws {
    var done: Set<PropertyKey> = []
    for key in newOneToOneKeys() where !done.contains(key) {
      guard let relationship = layout.relationship(key), let inverse = layout.destinationSide.inverse(of: relationship),
        !inverse.relationship.isToMany,
        layout.destinationSide.inverse(of: inverse.relationship)?.key == key,
        let own = side(key), let other = side(inverse.key)
      else { continue }
      done.insert(key)
      done.insert(inverse.key)
      guard key != inverse.key else {
        try pairUp(own, database)
        continue
      }
      let statements =
        key.description <= inverse.key.description
        ? Self.statements(joining: own, other) : Self.statements(joining: other, own)
      for statement in statements { try database.execute(sql: statement) }
    }
  }

  /// The to-one relationships that may have to drop pairs, by declaring entity.
  private func newOneToOneKeys() -> [PropertyKey] {
    var result: [PropertyKey] = []
    for condition in layout.mapping.conditions where condition.kind == .newInverse || condition.kind == .severalOwners {
      guard let name = condition.destinationProperty?.name,
        let found = layout.destinationSide.properties[condition.destinationEntityName]?
          .first(where: { $0.path == PropertyPath(name) }),
        found.relationship?.isToMany == false, !result.contains(found.key)
      else { continue }
      result.append(found.key)
    }
    return result
  }

  private struct Side {
    let table: String
    let column: String
    let entityColumn: String?

    var cut: String { ([column] + [entityColumn].compactMap { $0 }).map { "\($0) = NULL" }.joined(separator: ", ") }

    func follow(_ other: Side) -> String {
      let place = "FROM main.\(other.table) AS p WHERE p.\(other.column) = o.Z_PK ORDER BY p.Z_PK LIMIT 1"
      let key = "\(column) = (SELECT p.Z_PK \(place))"
      return entityColumn.map { "\(key), \($0) = (SELECT p.Z_ENT \(place))" } ?? key
    }
  }

  private func side(_ key: PropertyKey) -> Side? {
    guard let entity = layout.destination.entity(named: key.entityName),
      case .toOne(let column, let entityColumn, _) = layout.destination.storage(of: key)
    else { return nil }
    return Side(
      table: SQLText.identifier(entity.tableName), column: SQLText.identifier(column),
      entityColumn: entityColumn.map(SQLText.identifier))
  }

  private static func keepFirst(_ side: Side) -> String {
    "UPDATE main.\(side.table) AS o SET \(side.cut) WHERE o.\(side.column) IS NOT NULL AND "
      + "o.Z_PK <> (SELECT min(p.Z_PK) FROM main.\(side.table) AS p WHERE p.\(side.column) = o.\(side.column))"
  }

  /// No statement may depend on its own changes.
  private static func statements(joining first: Side, _ second: Side) -> [String] {
    [
      keepFirst(first),
      // The first side's records and partners are taken.
      "UPDATE main.\(second.table) AS o SET \(second.cut) WHERE o.\(second.column) IS NOT NULL AND ("
        + "EXISTS (SELECT 1 FROM main.\(first.table) AS p WHERE p.\(first.column) = o.Z_PK) OR "
        + "EXISTS (SELECT 1 FROM main.\(first.table) AS p WHERE p.Z_PK = o.\(second.column) "
        + "AND p.\(first.column) IS NOT NULL))",
      keepFirst(second),
      "UPDATE main.\(first.table) AS o SET \(first.follow(second)) WHERE o.\(first.column) IS NULL AND "
        + "EXISTS (SELECT 1 FROM main.\(second.table) AS p WHERE p.\(second.column) = o.Z_PK)",
      "UPDATE main.\(second.table) AS o SET \(second.follow(first)) WHERE o.\(second.column) IS NULL AND "
        + "EXISTS (SELECT 1 FROM main.\(first.table) AS p WHERE p.\(first.column) = o.Z_PK)",
    ]
  }

  /// Pairs the records of a self-inverse relationship.
  ///
  /// Mutual pairs come first, then primary key order; both records must be free. One pair is in memory at a time.
  private func pairUp(_ side: Side, _ database: Database) throws {
    let table = "main.\(side.table)"
    let back = "(SELECT p.\(side.column) FROM \(table) AS p WHERE p.Z_PK = o.\(side.column))"
    try database.execute(
      sql: """
        CREATE TEMP TABLE IF NOT EXISTS lazaret_pairs (own INTEGER, other INTEGER, isMutual INTEGER);
        DELETE FROM temp.lazaret_pairs;
        INSERT INTO temp.lazaret_pairs SELECT o.Z_PK, o.\(side.column), \(back) IS o.Z_PK
        FROM \(table) AS o WHERE o.\(side.column) IS NOT NULL;
        UPDATE \(table) SET \(side.cut) WHERE \(side.column) IS NOT NULL
        """)
    let entity = side.entityColumn.map { ", \($0) = (SELECT p.Z_ENT FROM \(table) AS p WHERE p.Z_PK = :other)" } ?? ""
    let update = try database.makeStatement(
      sql: "UPDATE \(table) AS o SET \(side.column) = :other\(entity) WHERE o.Z_PK = :own AND o.\(side.column) IS NULL "
        + "AND EXISTS (SELECT 1 FROM \(table) AS p WHERE p.Z_PK = :other "
        + "AND ifnull(p.\(side.column), :own) = :own)")
    let pairs = try Row.fetchCursor(
      database, sql: "SELECT own, other FROM temp.lazaret_pairs ORDER BY isMutual DESC, own")
    while let row = try pairs.next() {
      let (own, other): (DatabaseValue, DatabaseValue) = (row[0], row[1])
      try update.execute(arguments: ["own": own, "other": other])
      guard database.changesCount > 0, own != other else { continue }
      try update.execute(arguments: ["own": other, "other": own])
    }
  }
}

extension StoreRebuild {
  /// The first of Core Data's own entity numbers: history, mirroring, index tracking.
  static let firstReservedNumber = 16000

  func fillBookkeeping(_ database: Database) throws {
    try fillPrimaryKeys(database)
    try writeMetadata(database, from: "old")
  }

  /// Keeps the source's highest keys (format section 3.3).
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

  /// Writes the new model's metadata; keeps the identifier and foreign entries.
  ///
  /// - Parameter schema: The database of the old metadata; the new one is always `main`.
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
    // Compiling a model costs as much as a small step; only the last one is read.
    guard isLast else { return }
    try database.execute(
      sql: "INSERT INTO main.Z_MODELCACHE (Z_CONTENT) VALUES (?)", arguments: [Data(try model.modelCache())])
  }

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

extension StoreRebuild {
  /// Whether a table belongs to CloudKit mirroring (format section 3.11).
  static func isMirroring(_ table: String) -> Bool { table.hasPrefix("ANSCK") }

  static func foreignTables(_ contents: SourceContents, _ layout: StoreLayout) -> [SQLTable] {
    let own = Set(layout.tableNames.map { $0.uppercased() })
    return contents.schema.tables.values.filter { !own.contains($0.name.uppercased()) }.ordered { $0.name < $1.name }
  }

  /// Copies persistent history and the app's tables.
  ///
  /// - Throws: `migration-data-violation` for mirroring tables if entity numbers change, and for virtual tables other
  ///   than full-text and R-tree indexes with their own content.
  func copyForeign(
    _ database: Database, _ contents: SourceContents, _ custom: CustomRun?, _ account: inout StepAccount
  ) throws {
    let tables = Self.foreignTables(contents, layout.source)
    for table in tables { try Self.check(table, layout) }
    // Full-text indexes may use other tables' content.
    for table in tables.filter({ !$0.isVirtual }) + tables.filter(\.isVirtual) {
      if table.isVirtual {
        try copyVirtual(table, database)
        continue
      }
      try database.execute(sql: table.statement)
      let name = SQLText.quotedIdentifier(table.name)
      try copyRows(of: table, name, database)
      if table.name == "ACHANGE" {
        try custom?.moveHistory()
        try renumberHistory(database, &account)
      }
      for index in contents.schema.indexes.values.filter({ $0.tableName == table.name }).ordered(by: {
        $0.name < $1.name
      }) {
        if let statement = contents.indexStatements[index.name] { try database.execute(sql: statement) }
      }
    }
    if try Bool.fetchOne(database, sql: "SELECT count(*) > 0 FROM old.sqlite_master WHERE name = 'sqlite_sequence'")
      == true,
      try Bool.fetchOne(database, sql: "SELECT count(*) > 0 FROM main.sqlite_master WHERE name = 'sqlite_sequence'")
        == true
    {
      try database.execute(
        sql: "DELETE FROM main.sqlite_sequence; INSERT INTO main.sqlite_sequence SELECT * FROM old.sqlite_sequence")
    }
  }

  private func copyRows(of table: SQLTable, _ name: String, _ database: Database) throws {
    let columns = try String.fetchAll(
      database, sql: "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid", arguments: [table.name])
    let taken = Set(columns.map { $0.lowercased() })
    let hasRowids = TableDefinition(sql: table.statement)?.isWithoutRowid == false
    let rowid = hasRowids ? ["rowid", "_rowid_", "oid"].first { !taken.contains($0) } : nil
    let list = ([rowid].compactMap(\.self) + columns.map(SQLText.quotedIdentifier)).joined(separator: ", ")
    try database.execute(sql: "INSERT INTO main.\(name) (\(list)) SELECT \(list) FROM old.\(name)")
  }

  static func check(_ table: SQLTable, _ layout: StepLayout) throws {
    guard let refusal = refusal(table, layout) else { return }
    throw MigrationError(.dataViolation, detail: refusal.detail, hint: refusal.wayRound)
  }

  static func refusal(_ table: SQLTable, _ layout: StepLayout) -> MigrationRefusal? {
    if isMirroring(table.name), layout.isRenumbering || layout.isCustom {
      return MigrationRefusal(
        .foreignTable, entity: table.name, reason: "The store is mirrored to CloudKit",
        detail: "the store is mirrored to CloudKit, and "
          + (layout.isCustom ? "the step is a custom one" : "entities would get other numbers")
          + ", which the tables of the mirroring cannot follow",
        wayRound: "Choose entity names that keep the alphabetical order, or switch the mirroring off first.")
    }
    if table.isVirtual, VirtualTable(table) == nil {
      return MigrationRefusal(
        .foreignTable, entity: table.name, reason: "The store has a virtual table that is not the model's",
        detail: "the virtual table \(printable(table.name)) is not the model's and cannot be copied",
        wayRound: "Drop the table before the migration and make it again afterwards.")
    }
    return nil
  }

  func recreateAppObjects(_ database: Database, _ contents: SourceContents, _ account: inout StepAccount) throws {
    let tables = Set(layout.source.tables.map(\.name) + layout.source.joinTables.map(\.name))
    let indexes = contents.schema.indexes.values.filter { index in
      tables.contains(index.tableName) && !index.name.hasPrefix("Z") && contents.indexStatements[index.name] != nil
    }
    try Self.make(
      indexes.map { ($0.name, contents.indexStatements[$0.name] ?? "") } + contents.schema.appObjects, database,
      &account)
  }

  /// Recreates app objects sorted by name and leaves behind misfits.
  static func make(
    _ statements: [(name: String, sql: String)], _ database: Database, _ account: inout StepAccount
  ) throws {
    for (name, statement) in statements.ordered(by: { $0.0 < $1.0 }) {
      do {
        try database.execute(sql: statement)
      } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
        account.leftBehind.append(name)
      }
    }
  }
}

extension SQLSchema {
  var appObjects: [(name: String, sql: String)] {
    views.map { ($0.key, $0.value) }
      + triggers.filter { !StoreLayout.isOwnTrigger($0.key) }.map { ($0.key, $0.value) }
  }
}
