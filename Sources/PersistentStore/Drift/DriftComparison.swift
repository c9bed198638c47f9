/// The comparison of a store with its model.
///
/// Variations of Core Data are not drift: index names and directions, one index for two purposes, a `Z_PRIMARYKEY` row
/// under an entity's former name (71 real stores, fw 246 to 1526).
struct DriftComparison {
  let outline: StoreOutline
  let layout: StoreLayout
  var drift = StoreDrift()

  private let tables: [String: StoreOutline.Table]

  init(_ outline: StoreOutline, _ layout: StoreLayout) {
    self.outline = outline
    self.layout = layout
    tables = Dictionary(
      outline.tables.map { (StoreOutline.key($0.name), $0) }, uniquingKeysWith: { first, _ in first })
  }

  private func table(_ name: String) -> StoreOutline.Table? { tables[StoreOutline.key(name)] }

  // MARK: Tables and columns

  mutating func compareTables() {
    for table in layout.tables where self.table(table.name) == nil { drift.differences.append(.missingTable(table)) }
    for table in layout.joinTables where self.table(table.name) == nil {
      drift.differences.append(.missingJoinTable(table))
    }
    // Old stores lack Z_MODELCACHE; without metadata the model is unknown.
    if table("Z_PRIMARYKEY") == nil, let statement = StoreLayout.bookkeepingStatements.first {
      drift.differences.append(.missingBookkeepingTable(name: "Z_PRIMARYKEY", statement: statement))
    }
    for table in StoreLayout.bookkeepingTables { compareBookkeeping(table) }
    for table in layout.tables {
      guard let found = self.table(table.name) else { continue }
      let columns = columns(of: found)
      remarkKey(of: found, expected: "Z_PK")
      for column in table.columns {
        guard let other = columns[StoreOutline.key(column.name)] else {
          drift.differences.append(.missingColumn(table: table.name, column: column))
          continue
        }
        remarkType(of: other, in: table.name, expected: column.type.rawValue)
      }
      remarkMandatory(found, expected: table.columns.map(\.name))
    }
    for table in layout.joinTables {
      guard let found = self.table(table.name) else { continue }
      let columns = columns(of: found)
      for column in table.columns where columns[StoreOutline.key(column)] == nil {
        let isKey = column == table.sourceColumn || column == table.destinationColumn
        drift.differences.append(.missingJoinColumn(table: table.name, column: column, isKey: isKey))
      }
      remarkMandatory(found, expected: table.columns)
    }
  }

  /// Compares a bookkeeping table: missing columns can be added, another shape is recreated.
  private mutating func compareBookkeeping(_ table: StoreLayout.BookkeepingTable) {
    guard let found = self.table(table.name), !found.isVirtual else { return }
    let columns = columns(of: found)
    var hasOtherShape = table.key != nil && found.rowidAlias.map(StoreOutline.key) != table.key
    for (name, type) in table.columns {
      guard let column = columns[name] else {
        drift.differences.append(.missingBookkeepingColumn(table: table.name, column: name, type: type))
        continue
      }
      if type == "INTEGER", Self.changesIntegers(column.declaredType) {
        hasOtherShape = true
      } else {
        remarkType(of: column, in: table.name, expected: type)
      }
    }
    if hasOtherShape { drift.differences.append(.otherBookkeepingTable(name: table.name, statement: table.statement)) }
    remarkMandatory(found, expected: [table.key].compactMap(\.self) + table.columns.map(\.name))
  }

  /// Returns whether a type converts integers (https://sqlite.org/datatype3.html#determination_of_column_affinity).
  private static func changesIntegers(_ type: String) -> Bool {
    let type = type.uppercased()
    return !type.contains("INT") && ["CHAR", "CLOB", "TEXT", "REAL", "FLOA", "DOUB"].contains { type.contains($0) }
  }

  /// Remarks a missing primary key, which lets two records share a key.
  private mutating func remarkKey(of table: StoreOutline.Table, expected: String) {
    guard table.rowidAlias.map(StoreOutline.key) != expected, !table.isVirtual, columns(of: table)[expected] != nil
    else { return }
    drift.remarks.append(.otherPrimaryKey(table: table.name, expected: expected))
  }

  private func columns(of table: StoreOutline.Table) -> [String: StoreOutline.Column] {
    Dictionary(table.columns.map { (StoreOutline.key($0.name), $0) }, uniquingKeysWith: { first, _ in first })
  }

  private mutating func remarkType(of column: StoreOutline.Column, in table: String, expected: String) {
    guard StoreOutline.key(column.declaredType) != expected else { return }
    drift.remarks.append(.otherType(table: table, column: column.name, expected: expected, found: column.declaredType))
  }

  private mutating func remarkMandatory(_ table: StoreOutline.Table, expected: [String]) {
    let names = Set(expected.map(StoreOutline.key))
    for column in table.columns where column.isMandatory && !names.contains(StoreOutline.key(column.name)) {
      drift.remarks.append(.mandatoryColumn(table: table.name, column: column.name))
    }
  }

  // MARK: Indexes and triggers

  /// Equal shapes serve the same purpose.
  private struct IndexShape: Hashable {
    let table: String
    let columns: [String]
    let isUnique: Bool

    init(table: String, columns: [String], isUnique: Bool) {
      self.table = StoreOutline.key(table)
      self.columns = isUnique ? columns.map(StoreOutline.key).sorted() : columns.map(StoreOutline.key)
      self.isUnique = isUnique
    }
  }

  /// Compares indexes by function, except on missing tables.
  mutating func compareIndexes() {
    var shapes: Set<IndexShape> = []
    for index in outline.indexes {
      let columns = index.columns.compactMap(\.self)
      guard columns.count == index.columns.count else { continue }
      // A unique index also serves searches; a partial one is no constraint.
      shapes.insert(IndexShape(table: index.tableName, columns: columns, isUnique: false))
      if index.isUnique, !index.isPartial {
        shapes.insert(IndexShape(table: index.tableName, columns: columns, isUnique: true))
      }
    }
    for table in layout.joinTables {
      let key = [table.sourceColumn, table.destinationColumn]
      guard let found = self.table(table.name), !found.isVirtual,
        !shapes.contains(IndexShape(table: table.name, columns: key, isUnique: true)),
        Set(key.map(StoreOutline.key)).isSubset(of: columns(of: found).keys)
      else { continue }
      drift.remarks.append(.otherPrimaryKey(table: found.name, expected: key.joined(separator: ", ")))
    }
    let names = Set((outline.indexes.map(\.name) + outline.tables.map(\.name)).map(StoreOutline.key))
    for index in layout.indexes
    where !shapes.contains(
      IndexShape(table: index.tableName, columns: index.columns.map(\.name), isUnique: index.isUnique))
    {
      drift.differences.append(.missingIndex(index))
      if names.contains(StoreOutline.key(index.name)) {
        drift.remarks.append(.otherObject(name: index.name, kind: "index"))
      }
    }
    for index in layout.spatialIndexes {
      guard let found = table(index.name) else {
        drift.differences.append(.missingSpatialIndex(index))
        continue
      }
      if !found.isVirtual { drift.remarks.append(.otherObject(name: index.name, kind: "table")) }
    }
  }

  /// Compares triggers by name.
  ///
  /// Where another version's triggers maintain a derived attribute or R-tree index, ours must not be added: a count
  /// would change twice.
  mutating func compareTriggers() {
    let expected = Set(layout.triggers.map { StoreOutline.key($0.name) })
    let found = Set(outline.triggers.map(StoreOutline.key))
    let others = found.subtracting(expected)
    for trigger in layout.triggers where !found.contains(StoreOutline.key(trigger.name)) {
      let isKeptByOthers: Bool
      if let attribute = trigger.derivedAttribute {
        let part = StoreOutline.key("_\(attribute.entityName)_\(attribute.name)_")
        isKeptByOthers = others.contains { $0.hasPrefix("Z_DA_") && $0.contains(part) }
      } else {
        let prefix = layout.spatialIndexes.map(\.name).filter { trigger.name.hasPrefix($0) }.max { $0.count < $1.count }
        isKeptByOthers = prefix.map { name in others.contains { $0.hasPrefix(StoreOutline.key(name) + "_") } } ?? false
      }
      if !isKeptByOthers { drift.differences.append(.missingTrigger(trigger)) }
    }
  }

  // MARK: Bookkeeping

  /// Compares `Z_PRIMARYKEY` rows with the model's entities, except Core Data's own.
  mutating func compareKeyRows() {
    let isMissing = table("Z_PRIMARYKEY") == nil
    guard let rows = isMissing ? [] : outline.keyRows else { return }
    let byNumber = Dictionary(rows.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
    var byName: [String: StoreOutline.KeyRow] = [:]
    for row in rows {
      guard let name = row.name else { continue }
      // Of rows with equal names, the one with the model's number counts.
      if byName[name] == nil || layout.entity(named: name)?.number == Int(exactly: row.number) { byName[name] = row }
    }
    for entity in layout.entities {
      let atNumber = byNumber[Int64(entity.number)]
      if let row = atNumber, layout.isName(row.name, of: entity) {
        if row.parentNumber != Int64(entity.parentNumber) {
          drift.differences.append(.otherParentNumber(entity, found: row.parentNumber))
        }
        compareMaximum(row, entity)
      } else if let row = byName[entity.name] {
        drift.differences.append(.otherEntityNumber(entity, found: row.number))
        compareMaximum(row, entity)
      } else if let row = atNumber, layout.entity(named: row.name ?? "") == nil {
        drift.differences.append(.otherEntityName(entity, found: row.name))
        compareMaximum(row, entity)
      } else {
        drift.differences.append(.missingKeyRow(entity, highestKey: entity.isRoot ? highestKey(of: entity) : 0))
      }
    }
  }

  private func highestKey(of entity: EntityLayout) -> Int64 {
    max(0, outline.highestKeys[StoreOutline.key(entity.tableName)] ?? 0)
  }

  /// Only a root's maximum is used: a hierarchy shares its primary keys.
  private mutating func compareMaximum(_ row: StoreOutline.KeyRow, _ entity: EntityLayout) {
    let highest = highestKey(of: entity)
    guard entity.isRoot, row.maximum ?? 0 < highest else { return }
    drift.differences.append(.lowKeyMaximum(entity, noted: row.maximum, highestKey: highest))
  }

  mutating func compareRows() {
    for table in layout.tables {
      if outline.tablesWithoutNumbers.contains(StoreOutline.key(table.name)) {
        drift.differences.append(.missingNumbersInRows(table: table.name))
      }
      guard let found = outline.entityNumbers[StoreOutline.key(table.name)],
        let root = layout.entity(named: table.rootEntityName)
      else { continue }
      let others = found.filter { $0 < Int64(root.numbers.lowerBound) || $0 > Int64(root.numbers.upperBound) }
      if !others.isEmpty { drift.differences.append(.otherNumbersInRows(table: table.name, numbers: others.sorted())) }
    }
  }
}
