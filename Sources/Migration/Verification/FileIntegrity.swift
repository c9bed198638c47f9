internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import SystemPackage

/// Checks page use, b-trees, cells, overflow chains and index entries of a file.
///
/// It is independent of SQLite: four times as fast, in constant memory, and a second opinion on its output.
enum FileIntegrity {
  /// Checks the source of steps in place and counts its records.
  ///
  /// - Throws: `store-damaged`, `migration-data-violation` for records of an unknown entity, or a reading error.
  static func countRecords(
    of layout: StoreLayout, _ path: FilePath, in fileSystem: FileSystem
  ) throws -> InPlaceCount {
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
    return try InPlaceCount(counted, layout, in: path)
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
    } catch {
      throw MigrationError(any: error, path: path)
    }
    guard report.isSound else {
      let kinds = report.findings.damage.keys.map(\.rawValue).sorted().joined(separator: ", ")
      let detail = "its pages are damaged (\(kinds))"
      throw kind == .sourceDamaged ? MigrationError(kind, detail: detail) : StepVerification.failed(detail)
    }
    return report
  }
}

/// The record counts of a store changed in place.
///
/// The source's page check counts them.
struct InPlaceCount: Sendable {
  /// By entity number, equal in all models.
  private let rows: [Int: Int]

  /// Adds up the counts.
  ///
  /// - Parameters:
  ///   - counted: The rows by `Z_ENT`; nil for invalid ones.
  ///   - source: The file, for examples.
  /// - Throws: `migration-data-violation` for records of an unknown entity.
  init(
    _ counted: [String: [Int64?: Int]], _ layout: StoreLayout, in source: FilePath
  ) throws {
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
  ) throws -> MigrationError {
    try StepConnection.read(source) { try SourceContents.unknownRecords(in: table, numbers, $0) }
  }
}
