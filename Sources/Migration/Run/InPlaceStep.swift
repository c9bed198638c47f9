internal import GRDB
internal import PersistentStore
import Platform

/// A step that only adds and renames, in one transaction on a copy of the store.
struct InPlaceStep {
  let change: InPlaceChange
  let contents: SourceContents

  let rebuild: StoreRebuild

  var layout: StepLayout { rebuild.layout }

  struct Outcome {
    /// The account, before records are counted.
    var account: StepAccount

    /// The tables with changed pages, indexes included.
    var changedTables: Set<String>

    var schema: SQLSchema
  }

  /// The same tables by new name.
  func renamed(_ tables: Set<String>) -> Set<String> {
    Set(tables.map { name in change.tables.first { $0.name.old == name }?.name.new ?? name })
  }

  /// Runs the step on a copy without a WAL that is open nowhere else.
  ///
  /// - Returns: The outcome; nil if the store needs a rebuild and is unchanged.
  /// - Throws: `migration-data-violation`, `migration-constraint-violation`, `migration-sqlite` or a file error.
  func run(on copy: StepConnection) throws -> Outcome? {
    do {
      return try copy.run { try run(in: $0) }
    } catch { throw MigrationError(any: error).told(step: rebuild.name) }
  }

  /// Changes the store atomically, without syncing.
  ///
  /// - Parameter database: Exclusive, with a WAL.
  /// - Returns: Nil if the store needs a rebuild.
  private func run(in database: Database) throws -> Outcome? {
    try layout.refuseViolations(database)
    var outcome = Outcome(
      account: StepAccount(step: rebuild.name, way: .inPlace), changedTables: [], schema: contents.schema)
    outcome.account.losses = try StepForecast(of: layout, made: rebuild.made).losses(database)
    try database.execute(sql: "BEGIN")
    do {
      try apply(database, &outcome)
      outcome.schema = try StepVerification(layout: layout).checkChanged(database, before: contents.schema)
    } catch is InPlaceObstacle {
      try database.execute(sql: "ROLLBACK")
      return nil
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      // SQLite refuses renames that break app objects; a rebuild leaves those behind.
      try database.execute(sql: "ROLLBACK")
      return nil
    }
    try database.execute(sql: "COMMIT")
    try database.bringLogIntoMainFile()
    return outcome
  }

  private func apply(_ database: Database, _ outcome: inout Outcome) throws {
    for name in contents.schema.triggers.keys.sorted() { try database.execute(sql: "DROP TRIGGER \(name.quotedName)") }
    for name in contents.schema.views.keys.sorted() { try database.execute(sql: "DROP VIEW \(name.quotedName)") }
    for index in change.droppedIndexes { try drop(index, database) }
    try rename(database)
    for table in change.tables {
      for column in table.added {
        try database.execute(
          sql: "ALTER TABLE \(table.name.new.sqlName) ADD COLUMN \(column.sqlName) \(column.type.rawValue)")
      }
    }
    for table in change.newTables { try database.execute(sql: table.statement) }
    for table in change.tables { try fill(table, database) }
    try updatePrimaryKeys(database)
    if contents.schema.tables["Z_MODELCACHE"] == nil {
      try database.execute(sql: "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)")
    }
    try rebuild.writeMetadata(database, from: "main")
    if contents.schema.hasTable("ACHANGE") {
      try rebuild.renumberHistory(database, &outcome.account)
      outcome.changedTables.insert("ACHANGE")
    }
    outcome.changedTables.formUnion(try createMissingIndexes(database))
    outcome.changedTables.formUnion(StoreLayout.bookkeepingTableNames + change.newTables.map(\.name))
    outcome.changedTables.formUnion(change.tables.filter { !$0.fillings.isEmpty }.map(\.name.new))
    try rebuild.computeDerivedValues(database)
    try layout.destination.makeTriggers(on: database)
    try StoreRebuild.make(contents.schema.appObjects, database, &outcome.account)
  }

  // MARK: Names

  /// Renames tables and columns, with temporary names for conflicts.
  private func rename(_ database: Database) throws {
    let tables = change.tables.map(\.name).filter { $0.old != $0.new }
    try rename(tables) { from, to in try database.execute(sql: "ALTER TABLE \(from.sqlName) RENAME TO \(to.sqlName)") }
    for table in change.tables where !table.columns.isEmpty {
      try rename(table.columns) { from, to in
        try database.execute(
          sql: "ALTER TABLE \(table.name.new.sqlName) RENAME COLUMN \(from.sqlName) TO \(to.sqlName)")
      }
    }
  }

  private func rename(_ renamings: [InPlaceChange.Renaming], _ execute: (String, String) throws -> Void) throws {
    let old = Set(renamings.map { $0.old.uppercased() })
    // The new name may be another's old one, or differ in case only.
    guard renamings.contains(where: { old.contains($0.new.uppercased()) }) else {
      for renaming in renamings { try execute(renaming.old, renaming.new) }
      return
    }
    for (index, renaming) in renamings.enumerated() { try execute(renaming.old, "lazaret_renamed_\(index)") }
    for (index, renaming) in renamings.enumerated() { try execute("lazaret_renamed_\(index)", renaming.new) }
  }

  // MARK: Values

  private func fill(_ table: InPlaceChange.TableChange, _ database: Database) throws {
    let name = table.name.new.sqlName
    // Each record is rewritten only once.
    let together = Dictionary(grouping: table.fillings.filter { !$0.replacesNil }, by: \.numbers)
    for (numbers, fillings) in together.ordered(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      let values = fillings.map { "\($0.column.sqlName) = \($0.literal)" }.joined(separator: ", ")
      try database.execute(sql: "UPDATE \(name) SET \(values) WHERE Z_ENT IN \(numbers.sqlList)")
    }
    for filling in table.fillings where filling.replacesNil {
      let column = filling.column.sqlName
      try database.execute(
        sql: "UPDATE \(name) SET \(column) = \(filling.literal) WHERE \(column) IS NULL "
          + "AND Z_ENT IN \(filling.numbers.sqlList)")
    }
  }

  /// Updates names and parents; raises the highest keys if records exceed them (format section 3.3), as when other
  /// software filled the store.
  private func updatePrimaryKeys(_ database: Database) throws {
    for entity in layout.destination.entities {
      try database.execute(
        sql: "UPDATE Z_PRIMARYKEY SET Z_NAME = ?, Z_SUPER = ? WHERE Z_ENT = ?",
        arguments: [entity.name, entity.parentNumber, entity.number])
      guard database.changesCount == 0 else { continue }
      try StoreLayout.notePrimaryKey(0, of: entity, on: database)
    }
    for root in layout.destination.entities where root.isRoot {
      try database.execute(
        sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = max(ifnull(Z_MAX, 0), "
          + "ifnull((SELECT max(Z_PK) FROM \(root.tableName.sqlName)), 0)) WHERE Z_ENT = ?", arguments: [root.number])
    }
  }

  // MARK: Indexes

  /// Drops an index of the old model under any earlier name; keeps the app's.
  private func drop(_ index: IndexLayout, _ database: Database) throws {
    for found in contents.schema.indexes.values where isSame(found, index) {
      try database.execute(sql: "DROP INDEX \(found.name.quotedName)")
    }
  }

  /// Whether an index, possibly of an earlier name, is the framework's for this purpose.
  private func isSame(_ found: SQLIndex, _ index: IndexLayout) -> Bool {
    found.tableName.uppercased() == index.tableName.uppercased() && found.isUnique == index.isUnique
      && found.columns.map { $0.uppercased() } == index.columns.map { $0.name.uppercased() }
      && found.name.hasPrefix("Z")
  }

  /// Makes the new model's missing indexes.
  ///
  /// - Returns: The tables with new indexes.
  private func createMissingIndexes(_ database: Database) throws -> Set<String> {
    let found = try SQLSchema.indexes(of: database)
    var tables: Set<String> = []
    for index in layout.destination.indexes {
      if found.values.contains(where: { isSame($0, index) && (!$0.isPartial || !index.isUnique) }) { continue }
      guard found[index.name] == nil else { throw InPlaceObstacle("an older index has the name \(index.name)") }
      try rebuild.make(index, database)
      tables.insert(index.tableName)
    }
    return tables
  }
}

extension SourceContents {
  init(for change: InPlaceChange, schema: SQLSchema?, _ database: Database, _ layout: StepLayout) throws {
    try self.init(schema: schema ?? SQLSchema(database), database, layout)
    guard change.fillsRecords else { return }
    for table in change.tables { try countRows(of: table.name.old, database) }
  }
}
