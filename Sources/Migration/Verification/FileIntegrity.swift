internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import SystemPackage

/// Checks page use, b-trees, cells, overflow chains and index entries of a file.
///
/// It is independent of SQLite: four times as fast, in constant memory, and a second opinion on its output.
enum FileIntegrity {
  /// Checks the source of steps in place and counts its records by entity number, equal in all models.
  ///
  /// - Throws: `store-damaged`, `migration-data-violation` for records of an unknown entity, or a reading error.
  static func countRecords(of layout: StoreLayout, _ path: FilePath, in fileSystem: FileSystem) throws -> [Int: Int] {
    var tables: [UInt32: String] = [:]
    let report = try report(path, in: fileSystem, orThrow: .sourceDamaged) { database in
      let schema = try database.schema()
      var columns: [UInt32: Int] = [:]
      for table in layout.tables {
        guard let entry = schema.table(named: table.name) else { continue }
        tables[entry.rootPage] = table.name
        columns[entry.rootPage] = entry.tableDefinition?.column(named: "Z_ENT")
      }
      return columns
    }
    var counted: [String: [Int64?: Int]] = [:]
    for tree in report.trees {
      if let name = tables[tree.root] { counted[name] = tree.counts }
    }
    var rows: [Int: Int] = [:]
    for table in layout.tables {
      let numbers = layout.entities.filter { $0.tableName == table.name }.map(\.number)
      for (number, count) in counted[table.name] ?? [:] {
        guard let number = number.map({ Int($0) }), numbers.contains(number) else {
          throw try StepConnection.read(path) { try SourceContents.unknownRecords(in: table, numbers, $0) }
        }
        rows[number] = count
      }
    }
    return rows
  }

  /// Checks a file without writers and WAL.
  ///
  /// - Parameter kind: `store-damaged` for a step's source, whose damage needs a salvage, or
  ///   `migration-verification-failed`.
  /// - Throws: An error of the kind, or a reading error.
  static func check(_ path: FilePath, in fileSystem: FileSystem, orThrow kind: MigrationError.Kind) throws {
    _ = try report(path, in: fileSystem, orThrow: kind) { _ in [:] }
  }

  private static func report(
    _ path: FilePath, in fileSystem: FileSystem, orThrow kind: MigrationError.Kind,
    countingBy columns: (inout Database) throws -> [UInt32: Int]
  ) throws -> IntegrityReport {
    let report: IntegrityReport
    do {
      var database = try Database(main: try fileSystem.open(path))
      report = try database.checkIntegrity(findingLimit: 10, countingBy: try columns(&database))
    } catch { throw MigrationError(any: error, path: path) }
    guard report.isSound else {
      let kinds = report.findings.damage.keys.map(\.rawValue).sorted().joined(separator: ", ")
      let detail = "its pages are damaged (\(kinds))"
      throw kind == .sourceDamaged ? MigrationError(kind, detail: detail) : StepVerification.failed(detail)
    }
    return report
  }
}
