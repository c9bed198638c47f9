internal import Foundation
internal import GRDB
import ManagedObjectModel
internal import PersistentStore
internal import Platform

extension RepairRun {
  struct KeyRow {
    var name: String?
    var parent: Int64?
    var highest: Int64
  }

  // MARK: Numbers

  /// Finds hierarchies with entity numbers that differ from the model's.
  ///
  /// If `Z_PRIMARYKEY` disagrees with the model, the records decide: with the model's numbers only the bookkeeping is
  /// wrong; with those of `Z_PRIMARYKEY` the records are renumbered. In a table of one entity the table decides.
  ///
  /// - Throws: `repair-refused` for other numbers, or if history or mirroring would have to follow.
  mutating func resolveNumbers() throws {
    var tables: Set<String> = []
    for case .otherEntityNumber(let entity, _) in drift.differences { tables.insert(entity.tableName) }
    for case .otherNumbersInRows(let table, _) in drift.differences { tables.insert(table) }
    for case .missingNumbersInRows(let table) in drift.differences { tables.insert(table) }
    guard !tables.isEmpty else { return }
    let rows = try keyRows()
    for root in layout.entities
    where root.isRoot && tables.contains(root.tableName) && foundTable(root.tableName) != nil {
      renumberings[root.tableName] = try renumbering(of: root, rows)
    }
    let following = renumberings.filter(\.value.isOfStore).keys.sorted()
    guard !following.isEmpty else { return }
    let list = following.map(printable).joined(separator: ", ")
    let obstacle =
      found.tables.keys.contains { StoreRebuild.isMirroring($0) }
      ? "the store is mirrored to CloudKit" : found.tables["ACHANGE"] != nil ? "the store has persistent history" : nil
    if let obstacle {
      throw Self.refused(
        "the records of \(list) have other entity numbers than the model, and \(obstacle), whose tables name entities "
          + "by number",
        hint: "Salvage it with lazaret salvage, or switch that off and remove its tables in a copy of the store and "
          + "repair that; this store is as it was.")
    }
  }

  /// A hierarchy's new numbers; nil if they are the model's.
  private func renumbering(of root: EntityLayout, _ rows: [Int64: KeyRow]) throws -> Renumbering? {
    guard hadColumn("Z_ENT", in: root.tableName) else { return nil }
    let table = root.tableName.sqlName
    let values = try DatabaseValue.fetchAll(database, sql: "SELECT DISTINCT Z_ENT FROM \(table) NOT INDEXED")
    let numbers = values.compactMap { value -> Int? in
      guard case .int64(let number) = value.storage else { return nil }
      return Int(exactly: number)
    }
    if let sole = layout.soleNumber(ofRoot: root.name) {
      let others = numbers.filter { $0 != sole }
      guard !others.isEmpty || numbers.count < values.count else { return nil }
      let isInPlace = layout.entity(numbered: sole).map { layout.isName(rows[Int64(sole)]?.name, of: $0) } ?? false
      return Renumbering(
        numbers: Dictionary(uniqueKeysWithValues: others.map { ($0, sole) }), sole: sole, isOfStore: !isInPlace)
    }
    guard numbers.count == values.count else {
      throw Self.refused("records of table \(printable(root.tableName)) have no entity number")
    }
    return try renumbering(of: root, from: numbers, rows)
  }

  private func renumbering(of root: EntityLayout, from numbers: [Int], _ rows: [Int64: KeyRow]) throws -> Renumbering? {
    var known: [Int: Int] = [:]
    for entity in layout.entities where entity.rootName == root.name {
      let own = rows.filter { layout.isName($0.value.name, of: entity) }.keys
      guard own.count < 2 else {
        throw Self.refused("Z_PRIMARYKEY has several rows of entity \(printable(entity.name))")
      }
      if let number = own.first.flatMap({ Int(exactly: $0) }) { known[number] = entity.number }
    }
    let isModel = numbers.allSatisfy { root.numbers.contains($0) }
    let isKnown = numbers.allSatisfy { known[$0] != nil }
    if isKnown, numbers.allSatisfy({ known[$0] == $0 }) { return nil }
    switch (isModel, isKnown) {
    case (true, false): return nil
    case (false, true):
      return Renumbering(
        numbers: known.filter { numbers.contains($0.key) && $0.key != $0.value }, isOfStore: true)
    case (true, true):
      throw Self.refused(
        "the numbers of entities in table \(printable(root.tableName)) are those of the model as well as of Z_PRIMARYKEY, "
          + "and these differ, so that the entity of each record cannot be told")
    case (false, false):
      throw Self.refused(
        "records of table \(printable(root.tableName)) have entity numbers that neither the model nor Z_PRIMARYKEY has")
    }
  }

  mutating func renumberRecords() throws {
    for (name, renumbering) in renumberings.ordered(by: { $0.key < $1.key }) {
      let changed = try renumber("Z_ENT", of: name, renumbering, isOwn: true)
      note(
        .entityNumbers, in: name, layout.table(named: name)?.rootEntityName ?? name, rows: changed,
        "\(counted(changed, "record")) of table \(printable(name)) get the entity numbers of the model")
      for table in layout.tables where foundTable(table.name) != nil {
        for column in table.columns where hadColumn(column.name, in: table.name) {
          guard case .toOneEntity(let key) = column.role, layout.destination(of: key)?.tableName == name else {
            continue
          }
          _ = try renumber(column.name, of: table.name, renumbering, isOwn: false)
        }
      }
    }
  }

  private func renumber(_ column: String, of table: String, _ renumbering: Renumbering, isOwn: Bool) throws -> Int {
    let name = column.sqlName
    try database.execute(
      sql: "UPDATE \(table.sqlName) SET \(name) = \(renumbering.sql(of: name, isOwn: isOwn)) "
        + "WHERE \(renumbering.condition(of: name, isOwn: isOwn))")
    return database.changesCount
  }

  // MARK: Z_PRIMARYKEY

  private func keyRows() throws -> [Int64: KeyRow] {
    guard found.tables["Z_PRIMARYKEY"] != nil else { return [:] }
    var result: [Int64: KeyRow] = [:]
    let rows = try Row.fetchCursor(database, sql: "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY")
    while let row = try rows.next() {
      let values = Array(row.databaseValues)
      guard case .int64(let number) = values[0].storage else { continue }
      result[number] = KeyRow(
        name: String.fromDatabaseValue(values[1]), parent: Int64.fromDatabaseValue(values[2]),
        highest: Int64.fromDatabaseValue(values[3]) ?? 0)
    }
    return result
  }

  /// Adds or corrects the model's entity rows; others stay.
  mutating func completePrimaryKeys() throws {
    let rows = try keyRows()
    let wrong = drift.differences.compactMap { difference -> (entity: EntityLayout, isMissing: Bool)? in
      switch difference {
      case .missingKeyRow(let entity, _): (entity, true)
      case .otherEntityNumber(let entity, _), .otherParentNumber(let entity, _), .otherEntityName(let entity, _):
        (entity, false)
      case .missingTable, .missingJoinTable, .missingBookkeepingTable, .missingBookkeepingColumn,
        .otherBookkeepingTable, .missingColumn, .missingJoinColumn, .missingIndex, .missingSpatialIndex,
        .missingTrigger, .lowKeyMaximum, .otherNumbersInRows, .missingNumbersInRows, .otherModelCached:
        nil
      }
    }
    // Delete all wrong rows first: they may have each other's numbers.
    for (entity, _) in wrong {
      for (number, row) in rows where number == entity.number || isOwn(row, number, of: entity) {
        try database.execute(sql: "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = ?", arguments: [number])
      }
    }
    for (entity, isMissing) in wrong { try insert(entity, isMissing: isMissing, rows) }
    let names = Set(wrong.map(\.entity.name))
    for case .lowKeyMaximum(let root, _, _) in drift.differences where !names.contains(root.name) {
      let highest = try highestKey(of: root, rows)
      try database.execute(
        sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ?", arguments: [highest, root.number])
      note(
        .highestKey, in: "Z_PRIMARYKEY", root.name,
        "the highest primary key of \(printable(root.name)) in Z_PRIMARYKEY becomes \(highest)")
    }
  }

  private func isOwn(_ row: KeyRow, _ number: Int64, of entity: EntityLayout) -> Bool {
    number < StoreRebuild.firstReservedNumber && layout.isName(row.name, of: entity)
  }

  private mutating func insert(_ entity: EntityLayout, isMissing: Bool, _ rows: [Int64: KeyRow]) throws {
    let highest = try highestKey(of: entity, rows)
    try StoreLayout.notePrimaryKey(highest, of: entity, on: database)
    note(
      .primaryKeyRow, in: "Z_PRIMARYKEY", entity.name,
      "the row of \(printable(entity.name)) in Z_PRIMARYKEY is \(isMissing ? "added" : "made as the model has it")"
        + (entity.isRoot ? ", with the highest primary key \(highest)" : ""))
  }

  private func highestKey(of entity: EntityLayout, _ rows: [Int64: KeyRow]) throws -> Int64 {
    var highest: Int64 = 0
    for (number, row) in rows
    where isOwn(row, number, of: entity)
      || (number == entity.number && !layout.entities.contains { layout.isName(row.name, of: $0) })
    {
      highest = max(highest, row.highest)
    }
    guard entity.isRoot else { return highest }
    let table = entity.tableName.sqlName
    highest = max(highest, try Int64.fetchOne(database, sql: "SELECT max(Z_PK) FROM \(table)") ?? 0)
    // History includes deleted records; their keys are not reused.
    if ["ZENTITY", "ZENTITYPK"].allSatisfy({ hadColumn($0, in: "ACHANGE") }) {
      let noted = try Int64.fetchOne(
        database, sql: "SELECT max(ZENTITYPK) FROM ACHANGE WHERE ZENTITY BETWEEN ? AND ?",
        arguments: [entity.numbers.lowerBound, entity.numbers.upperBound])
      highest = max(highest, noted ?? 0)
    }
    return highest
  }

  // MARK: Z_MODELCACHE

  /// Replaces a foreign model in the cache by the store's.
  mutating func replaceModelCache() throws {
    let lacksColumn = drift.differences.contains { difference in
      if case .missingBookkeepingColumn("Z_MODELCACHE", _, _) = difference { true } else { false }
    }
    guard lacksColumn || drift.differences.contains(.otherModelCached) else { return }
    let bytes = Data(try layout.model.modelCache())
    if lacksColumn {
      try database.execute(sql: "UPDATE Z_MODELCACHE SET Z_CONTENT = ?", arguments: [bytes])
    } else {
      try database.execute(sql: "DELETE FROM Z_MODELCACHE")
    }
    try database.execute(
      sql: "INSERT INTO Z_MODELCACHE (Z_CONTENT) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM Z_MODELCACHE)",
      arguments: [bytes])
    note(
      .modelCache, in: "Z_MODELCACHE", account.versionName,
      "the model that the store carries is replaced by that of its version")
  }
}

package struct Renumbering: Hashable {
  /// The new number for each one the model does not give this entity.
  var numbers: [Int: Int]

  /// Nil for several entities.
  var sole: Int?

  /// Whether `Z_PRIMARYKEY` differs too; else only records are wrong.
  var isOfStore: Bool

  /// The SQL that renumbers a column.
  ///
  /// - Parameter isOwn: Whether it has the row's own entity, not a reference's.
  func sql(of column: String, isOwn: Bool) -> String {
    if isOwn, let sole { return "\(sole)" }
    guard !numbers.isEmpty else { return column }
    let cases = numbers.ordered { $0.key < $1.key }.map { "WHEN \($0.key) THEN \($0.value)" }.joined(separator: " ")
    return "CASE \(column) \(cases) ELSE \(column) END"
  }

  func condition(of column: String, isOwn: Bool) -> String {
    if isOwn, let sole { return "\(column) IS NOT \(sole)" }
    return "\(column) IN \(numbers.keys.sorted().sqlList)"
  }
}
