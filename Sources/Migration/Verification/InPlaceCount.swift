internal import GRDB
internal import PersistentStore
internal import StoreFiles

/// The records of a store that was changed in place, which are as many as before.
struct InPlaceCount: Sendable {
  /// The records of each entity, under its number in both models.
  let entities: [StepAccount.EntityRows]

  /// Counts them after the last step.
  ///
  /// - Throws: `migration-data-violation` where there are records of an entity that the model does not have.
  init(_ database: Database, _ layout: StepLayout) throws {
    var entities: [Int: StepAccount.EntityRows] = [:]
    for table in layout.destination.tables {
      let records = try StepVerification.records(of: table.name, database, layout.destination)
      let numbers = layout.destination.entities.filter { $0.tableName == table.name }.map(\.number)
      guard records.keys.allSatisfy({ numbers.contains($0) }) else {
        throw try SourceContents.unknownRecords(in: table, numbers, database)
      }
      for route in layout.routes(to: table) {
        entities[route.destination.number] = .init(
          entity: route.destination.name, source: route.source.name, rows: records[route.destination.number] ?? 0)
      }
    }
    self.entities = entities.sorted { $0.key < $1.key }.map(\.value)
  }
}
