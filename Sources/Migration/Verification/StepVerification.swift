package import GRDB
import ManagedObjectModel
package import PersistentStore
internal import Platform
internal import SystemPackage

/// The checks of a migrated store before it replaces the old one.
struct StepVerification {
  let layout: StepLayout

  /// Checks a rebuild against its source.
  ///
  /// - Parameter before: The source's schema.
  /// - Throws: `migration-verification-failed`, or `migration-data-violation` for missing mandatory values.
  func check(_ target: FilePath, against source: FilePath, before: SQLSchema, _ account: StepAccount) throws {
    let after = try StepConnection.read(target) { database in
      try check(SQLSchema(database), before: before)
      try checkMetadata(database)
      try checkCounts(database, account)
      try checkConditions(database)
      return try Dangling.exist(database, layout.destination) ? Dangling.count(database, layout.destination) : 0
    }
    guard after > 0 else { return }
    // Earlier dangling pairs may remain, but not increase.
    let earlier = try StepConnection.read(source) { try Dangling.count($0, layout.source) }
    guard after <= earlier else {
      throw Self.failed("\(after - earlier) references lead to records that are not there")
    }
  }

  /// Checks a step in place before commit.
  ///
  /// Records and references are unchanged; counts and pages are checked after the last step.
  ///
  /// - Returns: The present schema.
  func checkChanged(_ database: Database, before: SQLSchema) throws -> SQLSchema {
    let schema = try SQLSchema(database)
    try check(schema, before: before)
    try checkMetadata(database)
    try checkPrimaryKeys(database)
    try checkConditions(database)
    return schema
  }

  static func checkIntegrity(of table: String, _ database: Database) throws {
    guard try IntegrityCheck.lines(of: database, table: table) == ["ok"] else {
      throw failed("SQLite's integrity check fails for table \(printable(table))")
    }
  }

  static func failed(_ detail: String, entity: String? = nil) -> MigrationError {
    MigrationError(.verificationFailed, operation: "verify the migrated store", detail: detail, entityName: entity)
  }

  /// Compares tables, columns and indexes with a new store's.
  private func check(_ found: SQLSchema, before: SQLSchema) throws {
    let expected = try layout.destinationSchema()
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
    if let first = serious.first {
      throw Self.failed("it differs from a new store of the version: \(first.text)" + more(than: serious.count))
    }
    let missing = layout.destination.triggers.filter { found.triggers[$0.name] == nil }
    if let first = missing.first {
      throw Self.failed(
        "trigger \(printable(first.name)) of table \(printable(first.tableName)) is missing" + more(than: missing.count)
      )
    }
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

  static func records(of table: String, _ database: Database, _ layout: StoreLayout) throws -> [Int: Int] {
    let numbers = layout.entities.filter { $0.tableName == table }.map(\.number)
    let name = table.sqlName
    var found: [Int: Int] = [:]
    // Hierarchy tables have an index of the numbers; without one, grouping sorts all records.
    if numbers.count == 1, let number = numbers.first {
      guard let row = try Row.fetchOne(database, sql: "SELECT count(*), total(Z_ENT = \(number)) FROM \(name)") else {
        return [:]
      }
      let (all, own): (Int, Double) = (row[0], row[1])
      found[number] = Int(own)
      if all > Int(own) { found[0] = all - Int(own) }
      return found
    }
    let cursor = try Row.fetchCursor(database, sql: "SELECT Z_ENT, count(*) FROM \(name) GROUP BY Z_ENT")
    while let row = try cursor.next() {
      found[Int.fromDatabaseValue(row[0]) ?? 0, default: 0] += row[1]
    }
    return found
  }

  func checkCounts(_ database: Database, _ account: StepAccount) throws {
    for table in layout.destination.tables {
      var found = try Self.records(of: table.name, database, layout.destination)
      for entity in layout.destination.entities where entity.tableName == table.name {
        let expected = account.entities.filter { $0.entity == entity.name }.reduce(0) { $0 + $1.rows }
        let rows = found.removeValue(forKey: entity.number) ?? 0
        guard rows == expected else {
          throw Self.failed(
            "\(printable(entity.name)) has \(counted(rows, "record")) and should have \(expected)", entity: entity.name)
        }
        if rows > 0, layout.destinationSide.entity(entity.name)?.isAbstract == true {
          throw Self.failed(
            "\(counted(rows, "record")) of \(printable(entity.name)), which is abstract, \(rows == 1 ? "is" : "are") there",
            entity: entity.name)
        }
      }
      guard found.isEmpty else {
        throw Self.failed("\(found.count) numbers of records are of no entity", entity: table.rootEntityName)
      }
    }
    try checkPrimaryKeys(database)
  }

  private func checkPrimaryKeys(_ database: Database) throws {
    for root in layout.destination.entities where root.isRoot {
      let table = root.tableName.sqlName
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

  /// Checks new mandatory values and destination counts (Core Data's 134110).
  private func checkConditions(_ database: Database) throws {
    for condition in layout.mapping.conditions {
      guard let path = condition.destinationProperty,
        let entity = layout.destination.entity(named: condition.destinationEntityName)
      else { continue }
      let isUnfit: String
      switch condition.kind {
      case .missingAttributeValue, .newMandatoryAttribute:
        guard case .attribute(let columns) = layout.destination.storage(of: path.name, in: entity.name),
          let column = columns.first, columns.count == 1
        else { continue }
        isUnfit = "\(column.sqlName) IS NULL"
      case .missingRelationship, .newMandatoryRelationship:
        switch layout.destination.storage(of: path.name, in: entity.name) {
        case .toOne(let column, _, _):
          // A dangling key counts as empty.
          let key = column.sqlName
          let target = layout.destinationSide.property(path, of: entity.name)?.relationship
          let table = target.flatMap { layout.destination.entity(named: $0.destinationEntityName)?.tableName }
          isUnfit =
            table.map { table in
              "(o.\(key) IS NULL OR NOT EXISTS (SELECT 1 FROM \(table.sqlName) AS q WHERE q.Z_PK = o.\(key)))"
            } ?? "o.\(key) IS NULL"
        case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
          isUnfit = "NOT EXISTS (SELECT 1 FROM \(table.sqlName) AS p WHERE p.\(column.sqlName) = o.Z_PK)"
        case .attribute, nil: continue
        }
      case .tooFewDestinations, .tooManyDestinations:
        guard let count = layout.destination.destinationCount(of: path.name, in: entity.name) else { continue }
        let limit = condition.limit ?? 0
        isUnfit = condition.kind == .tooManyDestinations ? "\(count) > \(limit)" : "\(count) BETWEEN 1 AND \(limit - 1)"
      case .duplicateValues, .recordsOfAbstractEntity, .valueOutOfRange, .severalOwners, .destinationOfOtherEntity,
        .newInverse, .unreadableDefault:
        continue
      }
      let place = "\(entity.tableName.sqlName) AS o WHERE o.Z_ENT = \(entity.number) AND \(isUnfit)"
      let rows = try database.count(from: place)
      guard rows == 0 else {
        throw StepLayout.violation(condition, rows: rows, examples: try database.examples(from: place))
      }
    }
  }
}

/// The dangling references of a store: to-one columns, hidden columns and join tables.
package enum Dangling {
  /// Whether any reference dangles; sorted single lookups make this as fast as reading the tables.
  package static func exist(_ database: Database, _ layout: StoreLayout) throws -> Bool {
    try references(of: layout).contains { reference in
      let column = reference.column.sqlName
      let table = reference.table.sqlName
      return try Bool.fetchOne(
        database,
        sql: "SELECT EXISTS (SELECT 1 FROM (SELECT DISTINCT \(column) AS k FROM \(table) WHERE \(column) IS NOT NULL) "
          + "AS o WHERE NOT EXISTS (SELECT 1 FROM \(reference.target.sqlName) AS q WHERE q.Z_PK = o.k))")
        == true
    }
  }

  static func count(_ database: Database, _ layout: StoreLayout) throws -> Int {
    try references(of: layout).reduce(0) { total, reference in
      let column = reference.column.sqlName
      return try total
        &+ database.count(
          from: "\(reference.table.sqlName) AS o WHERE o.\(column) IS NOT NULL "
            + "AND NOT EXISTS (SELECT 1 FROM \(reference.target.sqlName) AS q WHERE q.Z_PK = o.\(column))")
    }
  }

  private static func references(of layout: StoreLayout) -> [(table: String, column: String, target: String)] {
    let rules = RecordRules(layout)
    return rules.references.map { ($0.table, $0.column, $0.target) }
      + rules.pairs.flatMap { pairs in zip(pairs.columns, pairs.tables).map { (pairs.join.name, $0, $1) } }
  }
}
