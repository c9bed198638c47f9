internal import PersistentStore
internal import SQLiteFormat

/// Which entity each number in `Z_ENT` stands for, in a store that numbers them otherwise than the layout of its model.
///
/// Core Data numbers entities by their names (format section 3.3), other writers as they like. `Z_PRIMARYKEY` is one witness
/// of it, which damage changes like any other table; the rows, the names of tables and columns that have numbers in them, and
/// the order of the model are others. What most of them agree on is believed. Where the list is lost, the tables that rows
/// are in tell, and within a hierarchy the columns that have values.
package struct EntityNumbering {
  /// The names of entities by their numbers, as far as they are known; names that the model lacks among them.
  package private(set) var names: [Int64: String] = [:]

  /// Whether the store's own list of entities says so.
  package private(set) var isListed = true

  /// The numbers of rows that the store's list gives to one entity and the order of the model to another, where nothing else
  /// tells which is right.
  package private(set) var disputed: Set<Int64> = []

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

  /// What was found out about the numbers of a store.
  struct Finding {
    /// How it numbers the entities; nil where it does so as the layout, or nothing tells.
    var numbering: EntityNumbering?

    /// Whether its own list of them says otherwise.
    var isListRefuted = false
  }

  /// Finds out how a store numbers the entities of a model.
  ///
  /// - Parameter entries: the store's schema, as far as it could be read.
  static func find(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry], _ layout: StoreLayout
  ) throws(SalvageError) -> Finding {
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
        var numbering = EntityNumbering(listed, isListed: true)
        if againstModel == 0 { numbering.disputed = disputed }
        return Finding(numbering: numbering)
      }
      if againstList > 0 { names = use.supported(listed) }
    }
    for table in layout.tables {
      names.merge(HierarchyNumbers(use, table, listed: names).find()) { listed, _ in listed }
    }
    guard !isAsLaidOut(names) else { return Finding(isListRefuted: !known.isEmpty) }
    return Finding(numbering: EntityNumbering(names, isListed: false))
  }

  // MARK: The store's list

  /// What `Z_PRIMARYKEY` says.
  private struct List {
    /// The names of entities by their numbers; those of the model where an entity has an older name there.
    var names: [Int64: String] = [:]

    /// The numbers of superentities, by the name of the entity.
    var superentities: [String: Int64] = [:]
  }

  /// The numbers and names that `Z_PRIMARYKEY` lists; where its tree is lost, what looks like its rows.
  private static func list(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry], _ layout: StoreLayout
  ) throws(SalvageError) -> List {
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

  /// The shape of the rows of `Z_PRIMARYKEY`.
  private static let keys = RecordShape(
    fields: [
      RecordShape.Field(allowed: [.null], usual: [.null]), RecordShape.Field(allowed: [.text], usual: [.text]),
      RecordShape.Field(allowed: [.integer, .null], usual: [.integer]),
      RecordShape.Field(allowed: [.integer, .null], usual: [.integer]),
    ], minimumFields: 2)
}
