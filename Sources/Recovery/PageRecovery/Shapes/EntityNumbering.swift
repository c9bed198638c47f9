internal import PersistentStore
internal import SQLiteFormat

/// Which entity each number in `Z_ENT` stands for, in a store that numbers them otherwise than the layout of its model.
///
/// Core Data numbers entities by their names (format section 3.3), other writers as they like; `Z_PRIMARYKEY` tells. Where
/// it is lost, the tables that rows are in tell, and within a hierarchy the columns that have values.
package struct EntityNumbering {
  /// The names of entities by their numbers, as far as they are known; names that the model lacks among them.
  package private(set) var names: [Int64: String] = [:]

  /// Whether the store's own list of entities says so.
  package private(set) var isListed = true

  /// Numbers of entities from names.
  package private(set) var numbers: [String: Int64] = [:]

  /// The most entities that are believed of a store.
  private static let limit = 16384

  /// A numbering by names.
  package init(_ names: [Int64: String], isListed: Bool) {
    self.names = names
    self.isListed = isListed
    for (number, name) in names { numbers[name] = max(numbers[name] ?? .min, number) }
  }

  /// Finds out how a store numbers the entities of a model; nil where it does so as the layout, or nothing tells.
  ///
  /// - Parameter entries: the store's schema, as far as it could be read.
  static func find(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry], _ layout: StoreLayout
  ) throws(SalvageError) -> EntityNumbering? {
    let listed = try list(reader, map, entries)
    let known = listed.filter { layout.entity(named: $0.value) != nil }
    func isAsLaidOut(_ names: [Int64: String]) -> Bool {
      names.allSatisfy { number, name in layout.entity(named: name).map { Int64($0.number) == number } ?? true }
    }
    if !known.isEmpty {
      if isAsLaidOut(known) { return nil }
      let names = Set(known.values)
      if layout.entities.allSatisfy({ names.contains($0.name) }) { return EntityNumbering(listed, isListed: true) }
    } else if !listed.isEmpty {
      return nil
    }
    var names = listed
    for table in layout.tables {
      let search = HierarchyNumbers(layout, table, listed: listed)
      names.merge(try search.find(reader, map, entries)) { listed, _ in listed }
    }
    guard !isAsLaidOut(names) else { return nil }
    return EntityNumbering(names, isListed: false)
  }

  // MARK: The store's list

  /// The numbers and names that `Z_PRIMARYKEY` lists; where its tree is lost, whatever looks like its rows.
  private static func list(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry]
  ) throws(SalvageError) -> [Int64: String] {
    var names: [Int64: String] = [:]
    var contradicted: Set<Int64> = []
    func add(_ row: PageRows.Row) {
      guard names.count < limit, row.record.columnCount >= 3, row.record.value(at: 0)?.isNull == true,
        let name = row.record.value(at: 1)?.string, row.record.value(at: 2)?.integer != nil, row.rowid > 0
      else { return }
      if let other = names[row.rowid], other != name { contradicted.insert(row.rowid) }
      names[row.rowid] = name
    }
    let rows = PageRows(reader)
    let root = entries.first { $0.kind == .table && isSame($0.name, "Z_PRIMARYKEY") }?.rootPage ?? 0
    if root > 0 {
      let (leaves, isWhole) = try rows.leaves(of: root, shape: keys, map)
      for page in leaves { try rows.forEach(on: page, add) }
      if isWhole, !names.isEmpty { return names }
    }
    guard map.pageCount >= 1 else { return names }
    for page in 1...map.pageCount where map.look(page) == .tableLeaf && map.fieldCount(page) == 4 {
      try rows.forEach(on: page, add)
    }
    for number in contradicted { names[number] = nil }
    return names
  }

  /// The shape of the rows of `Z_PRIMARYKEY`.
  private static let keys = RecordShape(
    fields: [
      RecordShape.Field(allowed: [.null], usual: [.null]), RecordShape.Field(allowed: [.text], usual: [.text]),
      RecordShape.Field(allowed: [.integer, .null], usual: [.integer]),
      RecordShape.Field(allowed: [.integer, .null], usual: [.integer]),
    ], minimumFields: 2)
}
