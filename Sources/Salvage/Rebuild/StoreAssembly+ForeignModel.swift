internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore

extension StoreAssembly {
  /// Gives the rows of a store of another model the entity numbers of this one, by the names of the entities.
  ///
  /// Core Data numbers entities by their names (format section 2), so another model has other numbers. A row of an entity
  /// that this model does not have gets 0, and is set aside with the other unknown ones.
  func translateEntityNumbers(of table: TableLayout) throws {
    guard let model = found.foreignModel, raw[table.name] != nil else { return }
    var cases = ""
    for entity in try StoreLayout(model).entities {
      let own = layout.entity(named: entity.name)
      let number = own?.tableName == table.name ? own?.number ?? 0 : 0
      if number != entity.number { cases += " WHEN \(entity.number) THEN \(number)" }
    }
    guard !cases.isEmpty else { return }
    try database.execute(
      sql: "UPDATE main.\(SQLText.identifier(table.name)) SET Z_ENT = CASE Z_ENT\(cases) ELSE Z_ENT END")
  }

  /// Notes whether a store of another model has values that this one has no column for; `fill` sets them aside.
  mutating func noteForeignColumns(of table: TableLayout) throws {
    guard found.foreignModel != nil, let source = raw[table.name] else { return }
    let own = Set(table.columns.map { $0.name.lowercased() })
    for column in source.columns where !own.contains(column.name.lowercased()) && column.name.hasPrefix("Z") {
      let count =
        try Int.fetchOne(
          database, sql: "SELECT count(\(SQLText.quotedIdentifier(column.name))) FROM \(source.sql)") ?? 0
      if count > 0 { hasForeignValues = true }
    }
  }
}

extension SalvageReport {
  /// Counts the records of entities that only the store's own model has as kept apart: no app of this model sees them.
  mutating func setApart(entitiesOf foreign: ManagedObjectModel, notIn layout: StoreLayout) {
    for index in entities.indices
    where foreign.entities[entities[index].name] != nil && layout.entity(named: entities[index].name) == nil {
      let count = entities[index].recovered
      guard count > 0 else { continue }
      entities[index].keptApart += count
      entities[index].recovered = 0
      entities[index].doubtful = 0
      isComplete = false
      remarks.append(
        "the model has no entity \(entities[index].name): its \(count) record\(count == 1 ? " is" : "s are") kept in "
          + "the table \(entities[index].table), where the app does not see them")
    }
  }
}
