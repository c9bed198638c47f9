internal import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat

/// The entity numbers that the rows and the names of a store have, as witnesses of how it numbers its entities.
///
/// Rows have them in `Z_ENT`, join tables and hidden columns in their names. `Z_PRIMARYKEY` is one witness more, whose rows
/// also name their superentities.
struct NumbersInUse {
  /// The rows of a table that have one number.
  struct Rows {
    var count = 0

    /// The columns in which any of them has a value, in upper case.
    var columns: Set<String> = []
  }

  let layout: StoreLayout

  /// The numbers in the rows of each table of the layout, by its name.
  private(set) var numbers: [String: [Int64: Rows]] = [:]

  /// The columns of each table of the store, both in upper case.
  private var tables: [String: Set<String>] = [:]

  /// How many pages of a table are looked at, at most.
  private static let pageLimit = 4096

  /// How many numbers are looked at of one table.
  private static let limit = 256

  /// Looks at the tables of a layout.
  ///
  /// - Parameter entries: the store's schema, as far as it could be read.
  init(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry], _ layout: StoreLayout
  ) throws(SalvageError) {
    self.layout = layout
    for entry in entries where entry.kind == .table {
      guard let definition = entry.tableDefinition else { continue }
      tables[entry.name.uppercased()] = Set(definition.columns.map { $0.name.uppercased() })
    }
    for table in layout.tables {
      guard let entry = entries.first(where: { $0.kind == .table && isSame($0.name, table.name) }), entry.rootPage > 0,
        let definition = entry.tableDefinition, definition.column(named: "Z_ENT") == 1
      else { continue }
      numbers[table.name] = try Self.rows(reader, map, entry.rootPage, definition)
    }
  }

  private static func rows(
    _ reader: PageReader, _ map: PageMap, _ root: UInt32, _ definition: TableDefinition
  ) throws(SalvageError) -> [Int64: Rows] {
    let rows = PageRows(reader)
    let stored = definition.storedColumns.map { definition.columns[$0].name.uppercased() }
    var used: [Int64: Rows] = [:]
    let (leaves, _) = try rows.leaves(of: root, shape: RecordShape(definition, isCoreData: true), map)
    for page in stride(from: 0, to: leaves.count, by: max(1, leaves.count / pageLimit)) {
      try rows.forEach(on: leaves[page]) { row in
        guard let number = row.record.value(at: 1)?.integer, number > 0, used.count < limit || used[number] != nil
        else { return }
        used[number, default: Rows()].count += 1
        for (field, type) in row.record.serialTypes.enumerated() where field < stored.count && type.rawValue != 0 {
          used[number, default: Rows()].columns.insert(stored[field])
        }
      }
    }
    return used
  }

  // MARK: What fits

  /// Whether all those columns are an entity's own or inherited.
  func fits(_ columns: Set<String>, of table: TableLayout, _ entity: String) -> Bool {
    let lineage = Set(layout.lineage(of: entity))
    return columns.allSatisfy { name in
      guard let column = table.column(named: name) else { return true }
      return column.role.property.map { owner(of: column.role, $0).map(lineage.contains) ?? true } ?? true
    }
  }

  /// The entity whose records have values in a column; nil where any may.
  private func owner(of role: ColumnRole, _ key: PropertyKey) -> String? {
    switch role {
    case .owner, .ownerOrder: nil
    case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOne, .toOneEntity, .toOneOrder:
      key.entityName
    }
  }

  /// Whether rows of a table can have a number by a numbering: it is that of an entity whose rows the table holds, and that
  /// has the columns in which they have values.
  private func explains(_ number: Int64, _ rows: Rows, of table: TableLayout, _ names: [Int64: String]) -> Bool {
    guard let name = names[number], layout.entity(named: name)?.tableName == table.name,
      layout.model.entities[name]?.isAbstract != true
    else { return false }
    return fits(rows.columns, of: table, name)
  }

  // MARK: Numberings

  /// How much speaks against a numbering: the rows whose number it does not explain, the tables and columns that have other
  /// numbers in their names, and the superentities that the store's list names by others.
  ///
  /// - Parameters:
  ///   - names: the names of entities by their numbers.
  ///   - superentities: the numbers of superentities, by the name of the entity, as the store's list has them.
  func contradictions(to names: [Int64: String], superentities: [String: Int64]) -> Int {
    let numbering = EntityNumbering(names, isListed: true)
    var count = 0
    for table in layout.tables {
      for (number, rows) in numbers[table.name] ?? [:] where !explains(number, rows, of: table, names) {
        count += rows.count
      }
    }
    let storeNames = StoreNames(layout, numbering)
    if !tables.isEmpty {
      for table in layout.joinTables where tables[storeNames.table(table.name).uppercased()] == nil { count += 1 }
    }
    for table in layout.tables {
      guard let found = tables[table.name.uppercased()] else { continue }
      count += table.columns.count { !found.contains(storeNames.column($0.name, of: table.name).uppercased()) }
    }
    for (name, above) in superentities {
      let parent = layout.entity(named: name)?.parentName
      let expected = parent.map { numbering.numbers[$0] ?? -1 } ?? 0
      if above != expected { count += 1 }
    }
    return count
  }

  /// The numbers in use that two numberings give to different entities.
  func disputed(_ names: [Int64: String], _ others: [Int64: String]) -> Set<Int64> {
    var disputed: Set<Int64> = []
    for used in numbers.values { disputed.formUnion(used.keys.filter { names[$0] != others[$0] }) }
    return disputed
  }

  /// A numbering without the entities that it gives a number which no row of theirs has, where their table has rows of a
  /// number that it does not explain.
  func supported(_ names: [Int64: String]) -> [Int64: String] {
    names.filter { number, name in
      guard let entity = layout.entity(named: name), let table = layout.table(named: entity.tableName),
        let used = numbers[table.name]
      else { return true }
      guard let rows = used[number] else { return used.keys.allSatisfy { names[$0] != nil } }
      return explains(number, rows, of: table, names)
    }
  }
}
