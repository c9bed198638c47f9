import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat

/// The entities of the numbers in `Z_ENT`, in a store that numbers them differently from its model's layout.
///
/// Core Data numbers entities by name (format section 3.3), other writers arbitrarily. The evidence is `Z_PRIMARYKEY`,
/// itself subject to damage, the rows, numbers in table and column names, and the order of the model; the majority
/// counts. If the list is lost, the tables of the rows identify entities, and within a hierarchy the columns with
/// values.
struct EntityNames {
  /// The known entity names by number, including names outside the model.
  private(set) var names: [Int64: String] = [:]

  /// Whether the store's own list confirms it.
  private(set) var isListed = true

  /// The numbers of rows on which the store's list and the model's order disagree without further evidence.
  private(set) var disputed: Set<Int64> = []

  private(set) var numbers: [String: Int64] = [:]

  /// The most plausible entities.
  private static let limit = 16384

  init(_ names: [Int64: String], isListed: Bool) {
    self.names = names
    self.isListed = isListed
    for (number, name) in names { numbers[name] = max(numbers[name] ?? .min, number) }
  }

  struct Finding {
    /// The store's numbering; nil if it is the layout's, or unknown.
    var numbering: EntityNames?

    /// Whether the store's own list is wrong.
    var isListRefuted = false
  }

  /// - Parameter entries: the readable schema.
  static func find(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry], _ layout: StoreLayout
  ) throws -> Finding {
    let list = try list(reader, map, entries, layout)
    let listed = list.names
    let known = listed.filter { layout.entity(named: $0.value) != nil }
    func isAsLaidOut(_ names: [Int64: String]) -> Bool {
      names.allSatisfy { number, name in layout.entity(named: name).map { Int64($0.number) == number } ?? true }
    }
    var names = listed
    if known.isEmpty {
      if !listed.isEmpty { return Finding() }
    } else if isAsLaidOut(known) {
      return Finding()
    }
    let use = try NumbersInUse(reader, map, entries, layout)
    if !known.isEmpty {
      let own = Dictionary(layout.entities.map { (Int64($0.number), $0.name) }) { first, _ in first }
      let superentities = list.superentities.filter { layout.entity(named: $0.key) != nil }
      let againstModel = use.contradictions(to: own, superentities: superentities)
      let againstList = use.contradictions(to: known, superentities: superentities)
      let disputed = use.disputed(known, own)
      if againstModel < againstList || againstModel == againstList && disputed.isEmpty {
        return Finding(isListRefuted: true)
      }
      let all = Set(known.values)
      if againstList == 0, layout.entities.allSatisfy({ all.contains($0.name) }) {
        var numbering = EntityNames(listed, isListed: true)
        if againstModel == 0 { numbering.disputed = disputed }
        return Finding(numbering: numbering)
      }
      if againstList > 0 { names = use.supported(listed) }
    }
    for table in layout.tables {
      names.merge(HierarchyNumbers(use, table, listed: names).find()) { listed, _ in listed }
    }
    guard !isAsLaidOut(names) else { return Finding(isListRefuted: !known.isEmpty) }
    return Finding(numbering: EntityNames(names, isListed: false))
  }

  // MARK: The store's list

  private struct List {
    /// The names by number, with the model's name for a renamed entity.
    var names: [Int64: String] = [:]

    /// By entity name.
    var superentities: [String: Int64] = [:]
  }

  /// Returns the list of `Z_PRIMARYKEY`, or similar rows if its tree is lost.
  private static func list(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry], _ layout: StoreLayout
  ) throws -> List {
    var list = List()
    var contradicted: Set<Int64> = []
    func add(_ row: PageRows.Row) {
      guard list.names.count < limit, row.record.columnCount >= 3, row.record.value(at: 0)?.isNull == true,
        let found = row.record.value(at: 1)?.string, let above = row.record.value(at: 2)?.integer, row.rowid > 0
      else { return }
      let name = layout.entities.first { layout.isName(found, of: $0) }?.name ?? found
      if let other = list.names[row.rowid], other != name { contradicted.insert(row.rowid) }
      list.names[row.rowid] = name
      list.superentities[name] = above
    }
    let rows = PageRows(reader)
    let root = entries.first { $0.kind == .table && isSame($0.name, "Z_PRIMARYKEY") }?.rootPage ?? 0
    var isRead = false
    if root > 0 {
      let (leaves, isWhole) = try rows.leaves(of: root, shape: keys, map)
      for page in leaves { try rows.forEach(on: page, add) }
      isRead = isWhole && !list.names.isEmpty
    }
    if !isRead, map.pageCount >= 1 {
      for page in 1...map.pageCount where map.look(page) == .tableLeaf && map.fieldCount(page) == 4 {
        try rows.forEach(on: page, add)
      }
    }
    for number in contradicted { list.names[number] = nil }
    return list
  }

  private static let keys = RecordShape(
    fields: [
      RecordShape.Field(allowed: [.null], usual: [.null]), RecordShape.Field(allowed: [.text], usual: [.text]),
      RecordShape.Field(allowed: [.integer, .null], usual: [.integer]),
      RecordShape.Field(allowed: [.integer, .null], usual: [.integer]),
    ], minimumFields: 2)
}

/// Identifies the entity numbers of a table's rows without the store's list.
///
/// A table of one entity has only its rows. In a hierarchy, numbers follow the model's order, and rows have values only
/// in own and inherited columns. An ambiguous number stays unknown.
struct HierarchyNumbers {
  private let use: NumbersInUse
  private let table: TableLayout
  private let listed: [Int64: String]

  private var layout: StoreLayout { use.layout }

  private static let limit = 64

  init(_ use: NumbersInUse, _ table: TableLayout, listed: [Int64: String]) {
    self.use = use
    self.table = table
    self.listed = listed
  }

  func find() -> [Int64: String] {
    let taken = Set(listed.values)
    let candidates = layout.entities.filter { entity in
      entity.tableName == table.name && layout.model.entities[entity.name]?.isAbstract != true
        && !taken.contains(entity.name)
    }
    guard !candidates.isEmpty, let used = use.numbers[table.name] else { return [:] }
    let numbers = used.keys.filter { listed[$0] == nil }.sorted()
    guard !numbers.isEmpty, numbers.count <= Self.limit else { return [:] }
    // The layout's own numbering needs no other explanation.
    let own = Dictionary(candidates.map { (Int64($0.number), $0.name) }) { first, _ in first }
    if numbers.allSatisfy({ number in own[number].map { fits(number, $0) } ?? false }) {
      return own.filter { numbers.contains($0.key) }
    }
    return assigned(numbers, candidates.map(\.name))
  }

  private func fits(_ number: Int64, _ entity: String) -> Bool {
    use.numbers[table.name]?[number].map { use.fits($0.columns, of: table, entity) } ?? false
  }

  /// Assigns numbers to entities in the order of both, as far as unique.
  private func assigned(_ numbers: [Int64], _ entities: [String]) -> [Int64: String] {
    guard numbers.count <= entities.count, entities.count <= Self.limit else { return [:] }
    let fit = numbers.map { number in entities.map { fits(number, $0) } }
    // Whether the numbers from an index on can go to the entities from an index on.
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

/// The entity numbers in rows and names, as evidence of the store's numbering.
struct NumbersInUse {
  struct Rows {
    var count = 0

    /// The columns with any value, in upper case.
    var columns: Set<String> = []
  }

  let layout: StoreLayout

  /// By table of the layout.
  private(set) var numbers: [String: [Int64: Rows]] = [:]

  /// All names are in upper case.
  private var tables: [String: Set<String>] = [:]

  private static let pageLimit = 4096

  private static let limit = 256

  init(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry], _ layout: StoreLayout
  ) throws {
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
  ) throws -> [Int64: Rows] {
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

  // MARK: Fit

  /// Whether all columns are an entity's own or inherited.
  func fits(_ columns: Set<String>, of table: TableLayout, _ entity: String) -> Bool {
    let lineage = Set(layout.lineage(of: entity))
    return columns.allSatisfy { name in
      guard let column = table.column(named: name) else { return true }
      return column.role.property.map { owner(of: column.role, $0).map(lineage.contains) ?? true } ?? true
    }
  }

  /// Returns the entity with values in a column; nil if any may have them.
  private func owner(of role: ColumnRole, _ key: PropertyKey) -> String? {
    switch role {
    case .owner, .ownerOrder: nil
    case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOne, .toOneEntity, .toOneOrder:
      key.entityName
    }
  }

  /// Whether a numbering explains a number in a table: its entity belongs there and has the columns with values.
  private func explains(_ number: Int64, _ rows: Rows, of table: TableLayout, _ names: [Int64: String]) -> Bool {
    guard let name = names[number], layout.entity(named: name)?.tableName == table.name,
      layout.model.entities[name]?.isAbstract != true
    else { return false }
    return fits(rows.columns, of: table, name)
  }

  // MARK: Numberings

  /// Counts the contradictions to a numbering: unexplained rows, other numbers in table and column names, and other
  /// superentities in the store's list.
  func contradictions(to names: [Int64: String], superentities: [String: Int64]) -> Int {
    let numbering = EntityNames(names, isListed: true)
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

  /// Returns the numbers in use that two numberings assign differently.
  func disputed(_ names: [Int64: String], _ others: [Int64: String]) -> Set<Int64> {
    var disputed: Set<Int64> = []
    for used in numbers.values { disputed.formUnion(used.keys.filter { names[$0] != others[$0] }) }
    return disputed
  }

  /// Removes entities without rows if their table has rows of an unexplained number.
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
