internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

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
