internal import GRDB
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

/// A copy of the store that consecutive steps change in place, one after the other on one connection.
///
/// What one step leaves as the schema is what the next one finds, so that it is read once.
struct InPlaceCopy {
  private let connection: StepConnection

  /// The schema after the last step that was carried out; nil before the first.
  private var schema: SQLSchema?

  /// Opens a copy without a log, which no other connection has open.
  init(_ path: FilePath, referenceDate: Double) throws(MigrationError) {
    connection = try StepConnection(path, .write, referenceDate: referenceDate)
    // Both version bytes of the header say WAL, as in every store of Core Data's (format section 3.1).
    try connection.run { database in
      try database.execute(
        sql: """
          PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL;
          PRAGMA wal_autocheckpoint = 0
          """)
    }
  }

  /// What a step finds in the copy as it is now.
  func contents(for change: InPlaceChange, _ layout: StepLayout) throws(MigrationError) -> SourceContents {
    let schema = schema
    return try connection.read { try SourceContents(for: change, schema: schema, $0, layout) }
  }

  /// Carries a step out.
  ///
  /// - Returns: what was done; nil where the store turned out to need a rebuild, and is as it was before the step.
  /// - Throws: `migration-data-violation`, `migration-constraint-violation`, `migration-sqlite` or a file error.
  mutating func carryOut(_ step: InPlaceStep) throws(MigrationError) -> InPlaceStep.Outcome? {
    do throws(MigrationError) {
      let outcome = try connection.run { try step.run(in: $0) }
      if let outcome { schema = outcome.schema }
      return outcome
    } catch {
      throw error.told(step: step.rebuild.name)
    }
  }

  /// Closes it; all changes are in the main file then.
  func close() throws(MigrationError) { try connection.close() }
}

extension SourceContents {
  /// What a step in place needs to know of its source.
  init(for change: InPlaceChange, schema: SQLSchema?, _ database: Database, _ layout: StepLayout) throws {
    try self.init(schema: schema ?? SQLSchema(database), database, layout)
    guard change.fillsRecords else { return }
    for table in change.tables { try countRows(of: table.name.old, database) }
  }
}
