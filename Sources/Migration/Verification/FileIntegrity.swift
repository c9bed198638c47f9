internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import SystemPackage

/// The check of a finished file's bytes: every page has one use, every b-tree, cell and overflow chain fits, and every
/// index has as many entries as its table has rows.
///
/// It is the project's own and not SQLite's: four times as fast, in constant memory, and a second opinion on what SQLite
/// itself has written.
enum FileIntegrity {
  /// Checks the file that a step is made of: damage in it is the store's, and salvage is for that.
  ///
  /// - Throws: `store-damaged`, or the error of reading it.
  static func checkSource(_ path: FilePath, in fileSystem: FileSystem) throws(MigrationError) {
    try check(path, in: fileSystem, orThrow: .sourceDamaged)
  }

  /// Checks the file that steps in place begin with, and counts its records on the way.
  ///
  /// - Throws: `store-damaged`, `migration-data-violation` for records of no entity, or the error of reading it.
  static func countRecords(
    of layout: StoreLayout, _ path: FilePath, in fileSystem: FileSystem
  ) throws(MigrationError) -> InPlaceCount {
    var tables: [UInt32: String] = [:]
    let report: IntegrityReport
    do {
      let database = try Database(main: try fileSystem.open(path))
      let schema = try database.schema()
      var columns: [UInt32: Int] = [:]
      for table in layout.tables {
        guard let entry = schema.table(named: table.name) else { continue }
        tables[entry.rootPage] = table.name
        columns[entry.rootPage] = entry.tableDefinition?.column(named: "Z_ENT")
      }
      report = try database.checkIntegrity(findingLimit: 10, countingBy: columns)
    } catch {
      throw MigrationError(database: error, path: path)
    }
    try refuseDamage(.sourceDamaged, report)
    var counted: [String: [Int64?: Int]] = [:]
    for tree in report.trees {
      if let name = tables[tree.root] { counted[name] = tree.counts }
    }
    return try InPlaceCount(counted, layout, in: path)
  }

  /// Checks a file that no process writes to, without a log.
  ///
  /// - Throws: `migration-verification-failed` where it is damaged, or the error of reading it.
  static func check(_ path: FilePath, in fileSystem: FileSystem) throws(MigrationError) {
    try check(path, in: fileSystem, orThrow: .verificationFailed)
  }

  private static func check(
    _ path: FilePath, in fileSystem: FileSystem, orThrow kind: MigrationError.Kind
  ) throws(MigrationError) {
    let report: IntegrityReport
    do {
      report = try Database(main: try fileSystem.open(path)).checkIntegrity(findingLimit: 10)
    } catch {
      throw MigrationError(database: error, path: path)
    }
    try refuseDamage(kind, report)
  }

  private static func refuseDamage(_ kind: MigrationError.Kind, _ report: IntegrityReport) throws(MigrationError) {
    guard report.isSound else {
      let kinds = report.findings.damage.keys.map(\.rawValue).sorted().joined(separator: ", ")
      let detail = "its pages are damaged (\(kinds))"
      throw kind == .sourceDamaged ? MigrationError(kind, detail: detail) : StepVerification.failed(detail)
    }
  }
}

/// The records of a store that is changed in place, which stay as many as they are.
///
/// They are counted in the source, by the pass that checks its pages.
struct InPlaceCount: Sendable {
  /// The records of each entity, under its number, which is the same in all models of the way.
  private let rows: [Int: Int]

  /// Sums up what was counted.
  ///
  /// - Parameters:
  ///   - counted: the rows of each table by `Z_ENT`, those with anything else there under nil.
  ///   - layout: the source's.
  ///   - source: the file, for examples.
  /// - Throws: `migration-data-violation` where there are records of an entity that the model does not have.
  init(
    _ counted: [String: [Int64?: Int]], _ layout: StoreLayout, in source: FilePath
  ) throws(MigrationError) {
    var rows: [Int: Int] = [:]
    for table in layout.tables {
      let numbers = layout.entities.filter { $0.tableName == table.name }.map(\.number)
      for (number, count) in counted[table.name] ?? [:] {
        guard let number = number.map({ Int($0) }), numbers.contains(number) else {
          throw try Self.unknownRecords(in: table, numbers, of: source)
        }
        rows[number] = count
      }
    }
    self.rows = rows
  }

  /// The accounts of the entities after a step that led to a layout's destination.
  func entities(_ layout: StepLayout) -> [StepAccount.EntityRows] {
    var entities: [Int: StepAccount.EntityRows] = [:]
    for table in layout.destination.tables {
      for route in layout.routes(to: table) {
        entities[route.destination.number] = .init(
          entity: route.destination.name, source: route.source.name, rows: rows[route.destination.number] ?? 0)
      }
    }
    return entities.ordered { $0.key < $1.key }.map(\.value)
  }

  private static func unknownRecords(
    in table: TableLayout, _ numbers: [Int], of source: FilePath
  ) throws(MigrationError) -> MigrationError {
    let connection = try StepConnection(source, .immutable)
    let error = try connection.read { try SourceContents.unknownRecords(in: table, numbers, $0) }
    try connection.close()
    return error
  }
}
