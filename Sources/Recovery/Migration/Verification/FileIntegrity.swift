internal import PersistentStore
internal import SQLiteFormat
internal import StoreFiles
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
