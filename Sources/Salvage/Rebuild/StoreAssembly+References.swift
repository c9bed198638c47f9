internal import Foundation
internal import GRDB
import ManagedObjectModel
import Migration
internal import PersistentStore
internal import SQLiteFormat

extension StoreAssembly {
  /// Cuts a table's dangling references, and corrects the entity numbers beside the others.
  mutating func repairReferences(of table: TableLayout) throws {
    var number = -1
    for column in table.columns {
      switch column.role {
      case .toOne(let key):
        number += 1
        guard
          let name = layout.model.entities[key.entityName]?.properties[key.name]?.relationship?.destinationEntityName,
          let target = layout.entity(named: name),
          case .toOne(_, let entityColumn, let orderColumn) = layout.storage(of: key)
        else { continue }
        if target.isRoot, entityColumn == nil, try leadsSomewhere(table.name, number, target) { continue }
        try cut(column, of: table, key, to: target, entityColumn: entityColumn, orderColumn: orderColumn)
      case .owner(let key):
        number += 1
        guard let target = layout.entity(named: key.entityName) else { continue }
        if target.isRoot, try leadsSomewhere(table.name, number, target) { continue }
        let order = table.columns.first { $0.role == .ownerOrder(key) }?.name
        try cut(column, of: table, key, to: target, entityColumn: nil, orderColumn: order)
      case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOneEntity, .toOneOrder, .ownerOrder:
        continue
      }
    }
  }

  /// Returns the condition that an entity or a sub-entity has a key.
  private func exists(_ target: EntityLayout, key: String) -> String {
    let isWhole = target.isRoot
    let numbers = isWhole ? "" : " AND q.Z_ENT BETWEEN \(target.numbers.lowerBound) AND \(target.numbers.upperBound)"
    return "EXISTS (SELECT 1 FROM main.\(SQLText.identifier(target.tableName)) AS q WHERE q.Z_PK = \(key)\(numbers))"
  }

  private mutating func cut(
    _ column: ColumnLayout, of table: TableLayout, _ key: PropertyKey, to target: EntityLayout, entityColumn: String?,
    orderColumn: String?
  ) throws {
    let name = "main.\(SQLText.identifier(table.name))"
    try findGone(column.sqlName, of: name, target, into: "gone")
    if try database.hasRows("temp.gone") {
      try noteGone(target, "gone")
      let condition = "\(column.sqlName) IN (SELECT k FROM temp.gone)"
      let keys = try keys(of: SQLText.identifier(table.name), where: condition)
      try aside.noteReferences(
        table.name, column.name, "SELECT Z_PK, \(column.sqlName) FROM \(name) WHERE \(condition)")
      let columns = [column.name, entityColumn, orderColumn].compactMap(\.self).map(SQLText.identifier)
      try database.execute(
        sql: "UPDATE \(name) SET \(columns.map { "\($0) = NULL" }.joined(separator: ", ")) WHERE \(condition)")
      Self.note(
        &filled.account.referencesCut, key.entityName, key.name, count: Int64(database.changesCount), keys: keys)
    }
    guard let entityColumn else { return }
    let entity = SQLText.identifier(entityColumn)
    let right =
      "(SELECT q.Z_ENT FROM main.\(SQLText.identifier(target.tableName)) AS q WHERE q.Z_PK = o.\(column.sqlName))"
    let isWrong = "o.\(column.sqlName) IS NOT NULL AND o.\(entity) IS NOT \(right)"
    let keys = try Int64.fetchAll(
      database, sql: "SELECT o.Z_PK FROM \(name) AS o WHERE \(isWrong) ORDER BY o.Z_PK LIMIT \(Self.exampleKeys)")
    guard !keys.isEmpty else { return }
    try database.execute(sql: "UPDATE \(name) AS o SET \(entity) = \(right) WHERE \(isWrong)")
    Self.note(&filled.account.corrected, key.entityName, key.name, count: Int64(database.changesCount), keys: keys)
  }

  /// Fills a join table, and sets pairs of missing records aside.
  mutating func fill(_ table: JoinTableLayout) throws {
    guard let own = layout.entity(named: table.relationship.entityName),
      let other = layout.entity(named: table.inverse.entityName)
    else { return }
    let target = table.made.sql
    if let source = source(of: table.name), try database.hasRows(source.sql) {
      let pairs = table.columns.compactMap { column in
        source.column(found.names.column(column, of: table.name)).map { (column, "r.\(SQLText.quotedIdentifier($0))") }
      }
      let used = Set(table.columns.map { found.names.column($0, of: table.name).lowercased() })
      try keepUnknownColumns(source.columns.map(\.name).filter { !used.contains($0.lowercased()) }, of: source)
      let list = pairs.map { SQLText.identifier($0.0) }.joined(separator: ", ")
      let values = pairs.map(\.1).joined(separator: ", ")
      try database.execute(sql: "INSERT OR IGNORE INTO \(target) (\(list)) SELECT \(values) FROM \(source.sql) AS r")
    }
    if own.isRoot, other.isRoot, try leadsSomewhere(table.name, 0, own), try leadsSomewhere(table.name, 1, other) {
      return
    }
    var conditions: [String] = []
    for (column, entity, gone) in [(table.sourceColumn, own, "gone"), (table.destinationColumn, other, "gone_other")] {
      let name = SQLText.identifier(column)
      try findGone(name, of: target, entity, into: gone)
      conditions += ["+r.\(name) IS NULL", "+r.\(name) IN (SELECT k FROM temp.\(gone))"]
    }
    let isHalf = SQLText.any(conditions)
    let halves = try database.count("\(target) AS r WHERE \(isHalf)")
    guard halves > 0 else { return }
    for (entity, gone) in [(own, "gone"), (other, "gone_other")] { try noteGone(entity, gone) }
    try aside.keep(table.made, .halfPair, where: isHalf)
    try database.execute(sql: "DELETE FROM \(target) AS r WHERE \(isHalf)")
    halfPairs[table.name] = halves
    Self.note(
      &filled.account.referencesCut, table.relationship.entityName, table.relationship.name, reason: .halfPair,
      count: halves, keys: [])
  }

  /// Whether all references of a table are already known to lead to records.
  private func leadsSomewhere(_ name: String, _ number: Int, _ target: EntityLayout) throws -> Bool {
    guard filled.account.setAside.isEmpty, let facts = try facts(name), facts.references.indices.contains(number),
      let targets = try self.facts(target.tableName)
    else { return false }
    return facts.references[number].isKnownSubset(of: targets.keys)
  }

  /// Records missing referenced keys, once each, without other evidence of losses.
  private mutating func noteReferredTo(_ target: EntityLayout, _ query: String) throws {
    guard target.numbers.count == 1,
      found.report.entities.contains(where: { $0.name == target.name && !$0.isLostExact })
    else { return }
    try database.execute(
      sql: "CREATE TEMP TABLE IF NOT EXISTS referred_to (entity, k, PRIMARY KEY (entity, k)) WITHOUT ROWID")
    filled.referredTo[target.name.lowercased()] = 0
    try database.execute(
      sql: "INSERT OR IGNORE INTO temp.referred_to SELECT ?, k FROM (SELECT 0 AS k UNION ALL \(query)) "
        + "WHERE typeof(k) = 'integer' AND k > 0", arguments: [target.name])
  }

  mutating func countReferredTo() throws {
    for entity in layout.entities where filled.referredTo[entity.name.lowercased()] != nil {
      let apart = "lazaret_set_aside_\(source(of: entity.tableName)?.name ?? entity.tableName)"
      let names = try Set([apart, "\(apart)_as_found", "lazaret_set_aside_\(entity.tableName)"]).sorted().filter {
        try database.hasRows("aside.sqlite_master WHERE name = ?", [$0])
      }
      let others = names.map { name -> String in
        " AND k NOT IN (SELECT lazaret_key FROM aside.\(SQLText.quotedIdentifier(name)) WHERE lazaret_key NOT NULL)"
      }
      filled.referredTo[entity.name.lowercased()] =
        try database.count("temp.referred_to WHERE entity = ?\(others.joined())", [entity.name])
    }
  }

  /// Lists the values of a column that are no record's key in a temporary table.
  private func findGone(_ column: String, of table: String, _ target: EntityLayout, into gone: String) throws {
    try database.execute(
      sql: "CREATE TEMP TABLE IF NOT EXISTS \(gone) (k PRIMARY KEY) WITHOUT ROWID; DELETE FROM temp.\(gone)")
    // Each key is looked up once, and in order, so that no page is read twice.
    try database.execute(
      sql: "INSERT INTO temp.\(gone) SELECT k FROM (SELECT DISTINCT \(column) AS k FROM \(table) "
        + "WHERE \(column) IS NOT NULL ORDER BY 1) AS o WHERE NOT \(exists(target, key: "o.k"))")
  }

  /// Records referenced keys without a record; the highest must not be reused.
  private mutating func noteGone(_ target: EntityLayout, _ gone: String) throws {
    try noteReferredTo(target, "SELECT k FROM temp.\(gone)")
    let highest = try Int64.fetchOne(database, sql: "SELECT max(k) FROM temp.\(gone) WHERE typeof(k) = 'integer'")
    if let highest { highestGone[target.tableName] = max(highestGone[target.tableName] ?? 0, highest) }
  }

  /// Makes the index of a join table's key, without duplicates.
  mutating func createKey(of table: JoinTableLayout) throws {
    if store?.madeIndexes.contains(table.keyName) == true { return }
    let columns = [table.sourceColumn, table.destinationColumn].map(SQLText.identifier).joined(separator: ", ")
    let name = SQLText.identifier(table.name)
    let statement = table.keyStatement
    do {
      try database.execute(sql: statement)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      try database.execute(
        sql: "DELETE FROM main.\(name) WHERE rowid NOT IN (SELECT min(rowid) FROM main.\(name) GROUP BY \(columns))")
      try database.execute(sql: statement)
    }
  }

  /// Writes the join tables with their keys into the schema, as Core Data does.
  ///
  /// SQLite sorts an index once if made after the rows, with the same bytes.
  func nameKeys() throws {
    guard !layout.joinTables.isEmpty else { return }
    try database.execute(sql: "PRAGMA writable_schema = 1")
    for table in layout.joinTables {
      try database.execute(
        sql: "UPDATE main.sqlite_master SET sql = ? WHERE type = 'table' AND name = ?",
        arguments: [table.statement, table.name])
      try database.execute(
        sql: "UPDATE main.sqlite_master SET name = ?, sql = NULL WHERE type = 'index' AND name = ?",
        arguments: ["sqlite_autoindex_\(table.name)_1", table.keyName])
    }
    try database.execute(sql: "PRAGMA writable_schema = 0")
  }
}

extension StoreAssembly {
  /// Sets aside rows of tables that only share a name with the layout.
  mutating func setAsideUnclaimedTables() throws {
    let claimed = Set(layout.tableNames.map { found.names.table($0).lowercased() })
    for name in layout.tableNames where !claimed.contains(name.lowercased()) {
      guard let source = raw[name] else { continue }
      let count = try database.count(source.sql)
      guard count > 0 else { continue }
      try aside.keep(source, .unknownEntity, where: "1")
      Self.note(&filled.account.setAside, source.name, nil, reason: .unknownEntity, count: count, keys: [])
      filled.recounts.append(.init(name: source.name, table: source.name, recovered: 0, setAside: count, doubts: [:]))
    }
  }

  /// Copies persistent history, mirroring and the app's own tables.
  mutating func copyForeignTables() throws {
    var own = Set(layout.tableNames.map { $0.lowercased() } + found.names.foreignTables)
    for index in layout.spatialIndexes { own.formUnion(ShadowTables.names(of: index.name, module: "rtree")) }
    for entry in found.entries where own.contains(entry.name.lowercased()) {
      guard let module = entry.tableDefinition?.module else { continue }
      own.formUnion(ShadowTables.names(of: entry.name, module: module))
    }
    let names = raw.all.map(\.name).filter { name in !own.contains(name.lowercased()) && !name.hasPrefix("lazaret_") }
    let statements = found.statements
    var plain = try PlainTables(database, raw, doubtful, store, found, aside)
    try plain.make(names, by: statements)
    filled.account.setAside += plain.setAside
    let tables = Set((layout.tables.map(\.name) + layout.joinTables.map(\.name)).map { $0.lowercased() })
    let known = Set(layout.indexes.map { $0.name.lowercased() })
    let shapes = Set(layout.indexes.map { Self.shape($0.tableName, $0.columns.map(\.name)) })
    try plain.makeIndexes(
      statements.filter { statement in
        guard statement.kind == "index", tables.contains(statement.table.lowercased()),
          !known.contains(statement.name.lowercased()), store?.madeIndexes.contains(statement.name) != true,
          let index = IndexDefinition(sql: statement.sql)
        else { return false }
        return index.isPartial || !shapes.contains(Self.shape(statement.table, index.columns.map { $0.name ?? "" }))
      })
    // The layout makes Core Data's own views and triggers.
    let foreign = statements.filter { statement in
      switch statement.kind {
      case "view": true
      case "trigger": !StoreLayout.isOwnTrigger(statement.name)
      default: false
      }
    }
    try plain.makeRest(
      foreign, virtual: found.entries.filter { $0.kind == .table && !own.contains($0.name.lowercased()) },
      sequences: found.sequences)
    filled.remarks += plain.remarks + plain.conversions
    filled.recounts += plain.recounts
    if !plain.remarks.isEmpty { filled.isWhole = false }
  }

  /// Describes an index without its name, which differs between Core Data versions.
  static func shape(_ table: String, _ columns: [String]) -> String {
    ([table] + columns).map { $0.lowercased() }.joined(separator: "\u{0}")
  }
}

extension RawSalvage {
  /// Returns the store's own name for a raw table.
  func ownName(_ name: String) -> String { otherNames.first { $0.value == name }?.key ?? name }

  var statements: [Declarations.Statement] {
    entries.compactMap { entry in
      guard let sql = entry.sql, !entry.name.lowercased().hasPrefix("sqlite_") else { return nil }
      return Declarations.Statement(kind: entry.kind.rawValue, name: entry.name, table: entry.tableName, sql: sql)
    }
  }
}

extension StoreAssembly {
  /// The number before Core Data's own entities: history, mirroring, index tracking.
  private static let firstReservedNumber = 16000

  /// The highest plausible primary key in damaged bookkeeping.
  private static let highestKey: Int64 = 1 << 52

  func fillBookkeeping(uuid: String) throws {
    let keys = raw["Z_PRIMARYKEY"]
    // A name may be damaged; a number counts only in the same numbering.
    let isByNumber = found.numbering == nil && found.foreignModel == nil ? 1 : 0
    for entity in layout.entities {
      var highest: Int64 = 0
      if entity.isRoot {
        // Set-aside rows keep their keys reserved.
        let name = SQLText.identifier(entity.tableName)
        highest = try Int64.fetchOne(database, sql: "SELECT max(Z_PK) FROM main.\(name)") ?? 0
        if let last = store?.tables[entity.tableName.lowercased()]?.rows.last { highest = max(highest, last) }
        if let source = source(of: entity.tableName), let rowid = source.rowid {
          highest = max(highest, try Int64.fetchOne(database, sql: "SELECT max(\(rowid)) FROM \(source.sql)") ?? 0)
        }
        // So do lost rows with references.
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

  private static func isIdentifier(_ text: String) -> Bool { text.utf8.count == 36 && UUID(uuidString: text) != nil }
}
