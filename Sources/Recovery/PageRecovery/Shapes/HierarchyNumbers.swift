internal import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat

/// Finds out which entity each number of a table's rows stands for where no list of the store's says so.
///
/// A table with one entity has its rows alone. In a hierarchy, numbers follow the order of the model, and an entity's rows
/// have values only in its own columns and those it inherits. A number for which several entities are left stays unknown.
struct HierarchyNumbers {
  private let layout: StoreLayout
  private let table: TableLayout
  private let listed: [Int64: String]

  /// How many pages of a table are looked at, at most.
  private static let pageLimit = 4096

  /// How many numbers are believed of one table.
  private static let limit = 64

  init(_ layout: StoreLayout, _ table: TableLayout, listed: [Int64: String]) {
    self.layout = layout
    self.table = table
    self.listed = listed
  }

  /// The names of the entities whose numbers could be told.
  func find(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry]
  ) throws(SalvageError) -> [Int64: String] {
    let taken = Set(listed.values)
    let candidates = layout.entities.filter { entity in
      entity.tableName == table.name && layout.model.entities[entity.name]?.isAbstract != true
        && !taken.contains(entity.name)
    }
    guard !candidates.isEmpty,
      let entry = entries.first(where: { $0.kind == .table && isSame($0.name, table.name) }), entry.rootPage > 0,
      let definition = entry.tableDefinition, definition.column(named: "Z_ENT") == 1
    else { return [:] }
    let used = try columnsInUse(reader, map, entry.rootPage, definition)
    let numbers = used.keys.filter { listed[$0] == nil }.sorted()
    guard !numbers.isEmpty, numbers.count <= Self.limit else { return [:] }
    // As the layout has them they need no other explanation.
    let own = Dictionary(candidates.map { (Int64($0.number), $0.name) }) { first, _ in first }
    if numbers.allSatisfy({ number in own[number].map { fits(used[number] ?? [], $0) } ?? false }) {
      return own.filter { numbers.contains($0.key) }
    }
    return assigned(numbers, candidates.map(\.name), used)
  }

  /// The columns that have values, by entity number.
  private func columnsInUse(
    _ reader: PageReader, _ map: PageMap, _ root: UInt32, _ definition: TableDefinition
  ) throws(SalvageError) -> [Int64: Set<String>] {
    let rows = PageRows(reader)
    let stored = definition.storedColumns.map { definition.columns[$0].name.uppercased() }
    var used: [Int64: Set<String>] = [:]
    let (leaves, _) = try rows.leaves(of: root, shape: RecordShape(definition, isCoreData: true), map)
    for page in stride(from: 0, to: leaves.count, by: max(1, leaves.count / Self.pageLimit)) {
      try rows.forEach(on: leaves[page]) { row in
        guard let number = row.record.value(at: 1)?.integer, number > 0,
          used.count < 4 * Self.limit || used[number] != nil
        else { return }
        for (field, type) in row.record.serialTypes.enumerated() where field < stored.count && type.rawValue != 0 {
          used[number, default: []].insert(stored[field])
        }
      }
    }
    return used
  }

  /// Whether all those columns are an entity's own or inherited.
  private func fits(_ columns: Set<String>, _ entity: String) -> Bool {
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

  /// Gives numbers to entities in the order of both, as far as there is one way only.
  private func assigned(
    _ numbers: [Int64], _ entities: [String], _ used: [Int64: Set<String>]
  ) -> [Int64: String] {
    guard numbers.count <= entities.count, entities.count <= Self.limit else { return [:] }
    let fit = numbers.map { number in entities.map { fits(used[number] ?? [], $0) } }
    // Whether the numbers from one on can go to the entities from one on.
    var rest = [[Bool]](repeating: [Bool](repeating: false, count: entities.count + 1), count: numbers.count + 1)
    rest[numbers.count] = [Bool](repeating: true, count: entities.count + 1)
    for number in numbers.indices.reversed() {
      for entity in entities.indices.reversed() {
        rest[number][entity] = rest[number][entity + 1] || fit[number][entity] && rest[number + 1][entity + 1]
      }
    }
    var before = [[Bool]](repeating: [Bool](repeating: false, count: entities.count + 1), count: numbers.count + 1)
    before[0] = [Bool](repeating: true, count: entities.count + 1)
    for number in numbers.indices {
      for entity in entities.indices {
        before[number + 1][entity + 1] =
          before[number + 1][entity] || fit[number][entity] && before[number][entity]
      }
    }
    var result: [Int64: String] = [:]
    for number in numbers.indices {
      let possible = entities.indices.filter { entity in
        fit[number][entity] && before[number][entity] && rest[number + 1][entity + 1]
      }
      if possible.count == 1 { result[numbers[number]] = entities[possible[0]] }
    }
    return result
  }
}
