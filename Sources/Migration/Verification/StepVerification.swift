internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

/// The checks that a migrated store must pass before it may take the place of the old one.
struct StepVerification {
  let layout: StepLayout

  /// Checks a new store against the one it was made from.
  ///
  /// - Throws: `migration-verification-failed`, or `migration-data-violation` where records lack what is mandatory.
  func check(_ target: FilePath, against source: FilePath, _ account: StepAccount) throws(MigrationError) {
    let new = try StepConnection(target, .immutable)
    let old = try StepConnection(source, .immutable)
    try new.read { database in
      try checkIntegrity(database)
      try checkSchema(database, old)
      try checkMetadata(database)
      try checkCounts(database, account)
      try checkMandatory(database)
    }
    // Pairs that led nowhere before may do so afterwards, but there must be no more of them.
    let before = try old.read { try Dangling.count($0, layout.source) }
    let after = try new.read { try Dangling.count($0, layout.destination) }
    try old.close()
    try new.close()
    guard after <= before else {
      throw Self.failed("\(after - before) references lead to records that are not there")
    }
  }

  static func failed(_ detail: String, entity: String? = nil) -> MigrationError {
    MigrationError(.verificationFailed, operation: "verify the migrated store", detail: detail, entityName: entity)
  }

  private func checkIntegrity(_ database: Database) throws {
    let problems =
      try Int.fetchOne(
        database, sql: "SELECT count(*) FROM pragma_integrity_check(10) WHERE integrity_check <> 'ok'") ?? 0
    guard problems == 0 else { throw Self.failed("SQLite's integrity check fails") }
  }

  /// The tables, columns and indexes must be those of a store that was freshly created.
  private func checkSchema(_ database: Database, _ old: StepConnection) throws {
    let expected = try SQLSchema(layout.destination)
    let found = try SQLSchema(database)
    let before = try old.read { try SQLSchema($0) }
    let serious = expected.differences(to: found).filter { difference in
      switch difference {
      case .unexpectedTable(let name): before.tables[name] == nil
      case .unexpectedIndex(let table, let columns, _):
        !found.indexes.values.contains { index in
          index.tableName == table && index.columns == columns && before.indexes[index.name] != nil
        }
      case .missingTable, .missingColumn, .unexpectedColumn, .otherType, .missingIndex: true
      }
    }
    guard serious.isEmpty else {
      throw Self.failed("its tables differ from those of a new store in \(serious.count) places")
    }
    let missing = layout.destination.triggers.filter { found.triggers[$0.name] == nil }
    guard missing.isEmpty else { throw Self.failed("\(missing.count) triggers are missing") }
  }

  private func checkMetadata(_ database: Database) throws {
    guard let row = try Row.fetchOne(database, sql: "SELECT Z_UUID, Z_PLIST FROM Z_METADATA") else {
      throw Self.failed("it has no metadata")
    }
    let list: DatabaseValue = row[1]
    guard case .blob(let data) = list.storage else { throw Self.failed("its metadata cannot be read") }
    let metadata = try StoreMetadata(uuid: "", propertyList: [UInt8](data))
    guard metadata.versionHashes == layout.mapping.destinationHashes else {
      throw Self.failed("its version hashes are not those of the model")
    }
  }

  private func checkCounts(_ database: Database, _ account: StepAccount) throws {
    for entity in layout.destination.entities {
      let expected = account.entities.filter { $0.entity == entity.name }.reduce(0) { $0 + $1.rows }
      let rows =
        try Int.fetchOne(
          database,
          sql: "SELECT count(*) FROM \(SQLText.identifier(entity.tableName)) WHERE Z_ENT = \(entity.number)") ?? 0
      guard rows == expected else {
        throw Self.failed(
          "\(printable(entity.name)) has \(rows) records and should have \(expected)", entity: entity.name)
      }
      if rows > 0, layout.destinationSide.entity(entity.name)?.isAbstract == true {
        throw Self.failed("\(rows) records are of \(printable(entity.name)), which is abstract", entity: entity.name)
      }
    }
    for root in layout.destination.entities where root.isRoot {
      let table = SQLText.identifier(root.tableName)
      let isFit = try Bool.fetchOne(
        database,
        sql:
          "SELECT ifnull((SELECT max(Z_PK) FROM \(table)), 0) <= (SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(root.number))"
      )
      guard isFit == true else {
        throw Self.failed("the next primary key of \(printable(root.name)) is taken already", entity: root.name)
      }
    }
  }

  /// What the mapping made mandatory must be there (Core Data's 134110).
  private func checkMandatory(_ database: Database) throws {
    for condition in layout.mapping.conditions {
      guard let path = condition.destinationProperty,
        let entity = layout.destination.entity(named: condition.destinationEntityName)
      else { continue }
      let isEmpty: String
      switch condition.kind {
      case .missingAttributeValue, .newMandatoryAttribute:
        guard case .attribute(let columns) = layout.destination.storage(of: path.name, in: entity.name),
          let column = columns.first, columns.count == 1
        else { continue }
        isEmpty = "\(column.sqlName) IS NULL"
      case .missingRelationship, .newMandatoryRelationship:
        switch layout.destination.storage(of: path.name, in: entity.name) {
        case .toOne(let column, _, _): isEmpty = "\(SQLText.identifier(column)) IS NULL"
        case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
          isEmpty =
            "NOT EXISTS (SELECT 1 FROM \(SQLText.identifier(table)) AS p WHERE p.\(SQLText.identifier(column)) = o.Z_PK)"
        case .attribute, nil: continue
        }
      default: continue
      }
      let place = "FROM \(SQLText.identifier(entity.tableName)) AS o WHERE o.Z_ENT = \(entity.number) AND \(isEmpty)"
      let rows = try Int.fetchOne(database, sql: "SELECT count(*) \(place)") ?? 0
      guard rows == 0 else {
        let keys = try Int64.fetchAll(database, sql: "SELECT o.Z_PK \(place) ORDER BY o.Z_PK LIMIT 10")
        throw ConditionCount.violation(condition, rows: rows, examples: keys)
      }
    }
  }
}

/// The references of a store that lead to no record.
enum Dangling {
  /// Counts them: to-one columns, hidden columns and both sides of join tables.
  static func count(_ database: Database, _ layout: StoreLayout) throws -> Int {
    var total = 0
    func add(_ table: String, _ column: String, leadingTo target: String) throws {
      let column = SQLText.identifier(column)
      total &+=
        try Int.fetchOne(
          database,
          sql: "SELECT count(*) FROM \(SQLText.identifier(table)) AS o WHERE o.\(column) IS NOT NULL AND NOT EXISTS "
            + "(SELECT 1 FROM \(SQLText.identifier(target)) AS q WHERE q.Z_PK = o.\(column))") ?? 0
    }
    for table in layout.tables {
      for column in table.columns {
        switch column.role {
        case .toOne(let key):
          guard
            let name = layout.model.entities[key.entityName]?.properties[key.name]?.relationship?.destinationEntityName,
            let target = layout.entity(named: name)
          else { continue }
          try add(table.name, column.name, leadingTo: target.tableName)
        case .owner(let key):
          guard let target = layout.entity(named: key.entityName) else { continue }
          try add(table.name, column.name, leadingTo: target.tableName)
        default: continue
        }
      }
    }
    for join in layout.joinTables {
      guard let own = layout.entity(named: join.relationship.entityName),
        let other = layout.entity(named: join.inverse.entityName)
      else { continue }
      try add(join.name, join.sourceColumn, leadingTo: own.tableName)
      try add(join.name, join.destinationColumn, leadingTo: other.tableName)
    }
    return total
  }
}
