internal import Foundation
internal import GRDB

/// The removal of a part of a Core Data store's schema or bookkeeping, with every page sound.
///
/// SQL on the copy, which checkpoints its log. Reproducible: SQLite leaves no log.
struct SchemaDrift {
  let kind: DamageKind
  let files: StoreFileSet

  /// - Throws: `nothing-to-damage` without a target, or if SQLite rejects the store.
  func apply(drawing generator: inout SeededGenerator) throws {
    var drawn = generator
    do {
      let queue = try EvidenceConnection.open(files.main, .copy, label: "Lazaret.Damage") { database in
        // Triggers may call functions that only Core Data has.
        try database.execute(sql: "PRAGMA legacy_alter_table = ON")
      }
      try queue.writeWithoutTransaction { database in
        try EvidenceConnection.limit(for: [files.main]).apply(to: database) {
          try database.inTransaction {
            try change(database, drawing: &drawn)
            return .commit
          }
        }
        try database.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
      }
      try queue.close()
    } catch let error as DatabaseError {
      throw kind.nothing(files.main, "SQLite cannot do it here (\(error.resultCode.rawValue))")
    }
    generator = drawn
  }

  private func change(_ database: GRDB.Database, drawing generator: inout SeededGenerator) throws {
    switch kind.word {
    case "column": try dropColumn(database, &generator)
    case "table":
      let table = try pick(Self.entityTables(database), "it has no table of an entity", &generator)
      try database.execute(sql: "DROP TABLE \(SQLText.quotedIdentifier(table))")
    case "index", "trigger":
      let names = try String.fetchAll(
        database,
        sql: "SELECT name FROM sqlite_master WHERE type = ? AND sql IS NOT NULL AND name LIKE 'Z%' ORDER BY name",
        arguments: [kind.word])
      let name = try pick(names, "it has no \(kind.word) of its model", &generator)
      try database.execute(sql: "DROP \(kind.word) \(SQLText.quotedIdentifier(name))")
    case "key-row":
      let number = try pick(Self.entityNumbers(database), "Z_PRIMARYKEY has no row of an entity", &generator)
      try database.execute(sql: "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = ?", arguments: [number])
    case "key-maximum": try lowerMaximum(database, &generator)
    case "entity-number": try renumber(database, &generator)
    default:
      guard try Bool.fetchOne(database, sql: "SELECT count(*) > 0 FROM Z_MODELCACHE") == true else {
        throw nothing("it carries no model")
      }
      try database.execute(
        sql: "UPDATE Z_MODELCACHE SET Z_CONTENT = ?", arguments: [Data(try Self.otherModel.modelCache())])
    }
  }

  // MARK: Kinds

  private func dropColumn(_ database: GRDB.Database, _ generator: inout SeededGenerator) throws {
    var columns: [(table: String, column: String)] = []
    for table in try Self.entityTables(database) {
      for column in try database.columns(in: table).map(\.name).sorted()
      where column.uppercased().hasPrefix("Z") && !["Z_PK", "Z_ENT", "Z_OPT"].contains(column.uppercased()) {
        columns.append((table, column))
      }
    }
    guard let (table, column) = columns.randomElement(using: &generator) else {
      throw nothing("no table of an entity has a column that can be spared")
    }
    let objects = try Row.fetchAll(
      database,
      sql: """
        SELECT type, name FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL
        AND instr(upper(sql), upper(?)) > 0 AND (type = 'trigger' OR tbl_name = ?) ORDER BY name
        """, arguments: [column, table])
    for object in objects {
      let type: String = object[0]
      let name: String = object[1]
      try database.execute(sql: "DROP \(type) \(SQLText.quotedIdentifier(name))")
    }
    try database.execute(
      sql: "ALTER TABLE \(SQLText.quotedIdentifier(table)) DROP COLUMN \(SQLText.quotedIdentifier(column))")
  }

  /// Lowers a hierarchy's noted maximum key below the table's.
  private func lowerMaximum(_ database: GRDB.Database, _ generator: inout SeededGenerator) throws {
    var entities: [(number: Int64, highest: Int64)] = []
    for table in try Self.entityTables(database) {
      let highest = try Int64.fetchOne(database, sql: "SELECT max(Z_PK) FROM \(SQLText.quotedIdentifier(table))") ?? 0
      let number = try Int64.fetchOne(
        database, sql: "SELECT Z_ENT FROM Z_PRIMARYKEY WHERE 'Z' || upper(Z_NAME) = upper(?) AND Z_SUPER = 0",
        arguments: [table])
      if let number, highest > 0 { entities.append((number, highest)) }
    }
    guard let (number, highest) = entities.randomElement(using: &generator) else {
      throw nothing("no entity has records")
    }
    let maximum = Int64.random(in: 0..<highest, using: &generator)
    try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ?", arguments: [maximum, number])
  }

  /// Renumbers an entity, in its row and its records, to a number unknown to the model.
  private func renumber(_ database: GRDB.Database, _ generator: inout SeededGenerator) throws {
    let numbers = try Self.entityNumbers(database)
    let old = try pick(numbers, "Z_PRIMARYKEY has no row of an entity", &generator)
    let new = (numbers.max() ?? 0) + Int64.random(in: 1...9, using: &generator)
    let triggers = try Row.fetchAll(
      database, sql: "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid")
    for trigger in triggers {
      try database.execute(sql: "DROP TRIGGER \(SQLText.quotedIdentifier(trigger[0] as String))")
    }
    for table in try Self.entityTables(database) {
      try database.execute(
        sql: "UPDATE \(SQLText.quotedIdentifier(table)) SET Z_ENT = ? WHERE Z_ENT = ?", arguments: [new, old])
    }
    for trigger in triggers { try database.execute(sql: trigger[1] as String) }
    try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_ENT = ? WHERE Z_ENT = ?; ", arguments: [new, old])
    try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_SUPER = ? WHERE Z_SUPER = ?", arguments: [new, old])
  }

  private static let otherModel = ManagedObjectModel(entities: [
    Entity(
      name: "LazaretRehearsal",
      properties: [.attribute(Attribute(traits: PropertyTraits(name: "place", isOptional: true), type: .string))])
  ])

  // MARK: Queries

  private static func entityTables(_ database: GRDB.Database) throws -> [String] {
    try String.fetchAll(
      database,
      sql: """
        SELECT m.name FROM sqlite_master AS m WHERE m.type = 'table' AND m.name LIKE 'Z%' AND m.sql NOT LIKE '%VIRTUAL%'
        AND EXISTS (SELECT 1 FROM Z_PRIMARYKEY AS p WHERE 'Z' || upper(p.Z_NAME) = upper(m.name) AND p.Z_ENT <= 16000)
        AND (SELECT count(*) FROM pragma_table_info(m.name) WHERE name IN ('Z_PK', 'Z_ENT', 'Z_OPT')) = 3
        ORDER BY m.name
        """)
  }

  /// Returns the numbers of the model's entities; Core Data's own begin at 16001.
  private static func entityNumbers(_ database: GRDB.Database) throws -> [Int64] {
    try Int64.fetchAll(database, sql: "SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_ENT <= 16000 ORDER BY Z_ENT")
  }

  private func pick<Value>(
    _ values: [Value], _ otherwise: String, _ generator: inout SeededGenerator
  ) throws(PersistentStoreError) -> Value {
    guard let value = values.randomElement(using: &generator) else { throw nothing(otherwise) }
    return value
  }

  private func nothing(_ detail: String) -> PersistentStoreError { kind.nothing(files.main, detail) }
}
