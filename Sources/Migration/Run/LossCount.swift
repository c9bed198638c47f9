internal import GRDB
internal import PersistentStore

/// The counting of what a step loses, in the store before the step.
struct LossCount {
  let layout: StepLayout

  /// What earlier steps have put in, which is nobody's to lose.
  let made: MadeValues

  /// What is really lost: the mapping's losses of which there is at least one record.
  func losses(_ database: Database) throws -> [StepAccount.Loss] {
    try layout.mapping.losses.compactMap { loss in
      if let path = loss.property, made.contains(loss.sourceEntityName, path) { return nil }
      guard let rows = try rows(of: loss, database), rows > 0 else { return nil }
      return StepAccount.Loss(
        kind: loss.kind, entity: loss.sourceEntityName, property: loss.property?.description, rows: rows)
    }
  }

  /// The records that lose something; nil where the source has no such entity or property.
  private func rows(of loss: MigrationLoss, _ database: Database) throws -> Int? {
    guard let entity = layout.source.entity(named: loss.sourceEntityName) else { return nil }
    let place = "FROM \(SQLText.identifier(entity.tableName)) AS o WHERE o.Z_ENT = \(entity.number)"
    guard let path = loss.property else { return try Int.fetchOne(database, sql: "SELECT count(*) \(place)") }
    guard let storage = layout.source.storage(of: path.name, in: loss.sourceEntityName) else { return nil }
    let condition: String
    switch storage {
    case .attribute(let columns):
      let names = columns.filter { column in
        switch column.role {
        case .compositeLeaf(_, let leaf, _): path.leaf.isEmpty || leaf == path.leaf
        default: true
        }
      }.map { "o.\(SQLText.identifier($0.name)) IS NOT NULL" }
      guard !names.isEmpty else { return nil }
      condition = names.joined(separator: " OR ")
    case .toOne(let column, _, _): condition = "o.\(SQLText.identifier(column)) IS NOT NULL"
    case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
      // Once through the other table, whatever its indexes are.
      condition =
        "o.Z_PK IN (SELECT \(SQLText.identifier(column)) FROM \(SQLText.identifier(table)) "
        + "WHERE \(SQLText.identifier(column)) IS NOT NULL)"
    }
    return try Int.fetchOne(database, sql: "SELECT count(*) \(place) AND (\(condition))")
  }
}
