internal import PersistentStore
internal import SQLiteFormat

/// The trees to search for, by the store's own schema and the expected one.
struct TreeList {
  /// The trees; the first is `sqlite_schema`.
  var trees: [Tree]

  var isCoreData = false

  /// Whether no other table can have rows: the schema is complete, or a model has all tables.
  private(set) var hasAllTables: Bool

  /// Whether the schema is complete with usable definitions.
  private(set) var isWhole: Bool

  /// The places of the trees by their constant names.
  private var places: [Name: Int] = [:]

  private let expected: ExpectedSchema?

  /// The rows by root page.
  private let rows: [UInt32: TableRows]

  /// - Parameters:
  ///   - found: the readable entries of the store's schema.
  ///   - isWhole: whether they are complete, which excludes live rows of other tables.
  ///   - own: Core Data's own tables indicated by rows; nil for a store not known as Core Data's without its schema.
  init(
    found: [SchemaEntry], isWhole: Bool, expected: ExpectedSchema?, rows: [UInt32: TableRows] = [:],
    own: [SchemaEntry]? = nil
  ) {
    var schema = Tree(name: "sqlite_schema", kind: .table, root: 1, shape: .schema)
    schema.isListed = true
    schema.isInternal = true
    trees = []
    self.expected = expected
    self.rows = rows
    self.isWhole = isWhole
    hasAllTables = isWhole || expected != nil
    let all = found + (expected?.entries ?? [])
    add(schema)
    isCoreData = own != nil || CoreDataTables.areListed(in: all)
    for entry in found where entry.kind == .table { addTable(entry, isListed: true) }
    for entry in expected?.entries ?? [] where entry.kind == .table { addTable(entry, isListed: false) }
    for entry in own ?? [] where !isWhole {
      let count = trees.count
      addTable(entry, isListed: false)
      if trees.count > count { trees[count].isKnownByRows = true }
    }
    markShadows(of: all)
    for entry in found where entry.kind == .index { addIndex(entry, isListed: true) }
    for entry in expected?.entries ?? [] where entry.kind == .index { addIndex(entry, isListed: false) }
    if found.contains(where: { $0.kind == .table && $0.rootPage > 1 && table(named: $0.name) == nil }) {
      // A table without a usable definition has rows outside this list.
      hasAllTables = false
      self.isWhole = false
    }
    if isWhole {
      // Tables missing in a complete schema have no live rows; they stay for deleted ones.
      for index in trees.indices where !trees[index].isListed {
        trees[index].isWalked = true
      }
    }
  }

  /// The suffixes of shadow tables (FTS3 to 5, R-tree).
  private static let shadowEnds = [
    "data", "idx", "content", "docsize", "config", "segments", "segdir", "stat", "node", "rowid", "parent",
  ]

  private mutating func markShadows(of entries: [SchemaEntry]) {
    var shadows: Set<String> = []
    for entry in entries where entry.kind == .table && entry.tableDefinition?.isVirtual == true {
      for end in Self.shadowEnds { shadows.insert("\(entry.name)_\(end)".lowercased()) }
    }
    guard !shadows.isEmpty else { return }
    for index in trees.indices where shadows.contains(trees[index].name.lowercased()) {
      trees[index].isShadow = true
      // Columns are never added to them.
      trees[index].shape.minimumFields = trees[index].shape.fields.count
    }
  }

  /// Adds dropped tables, for their deleted rows.
  mutating func addDropped(_ entries: [SchemaEntry]) {
    for entry in entries where entry.kind == .table {
      let count = trees.count
      addTable(entry, isListed: false)
      guard trees.count > count else { continue }
      trees[count].isDropped = true
      trees[count].isWalked = true
      trees[count].droppedRoot = trees[count].root
      trees[count].root = 0
    }
  }

  /// Marks tables with doubtful columns by lowercase name.
  mutating func doubt(_ reasons: [String: ColumnDoubt]) {
    for index in trees.indices where trees[index].kind != .index {
      trees[index].doubt = reasons[trees[index].name.lowercased()]
    }
  }

  /// Notes the roots missing in the file, by ``SchemaSearch/key(_:_:)``.
  mutating func noteRoots(behindEnd roots: [String: UInt32]) {
    guard !roots.isEmpty else { return }
    for index in trees.indices where trees[index].isListed && trees[index].root == 0 {
      trees[index].rootBehindEnd = roots[SchemaSearch.key(trees[index].kind == .index, trees[index].name)] ?? 0
    }
  }

  private mutating func addTable(_ entry: SchemaEntry, isListed: Bool) {
    guard places[.table(foldedName(entry.name))] == nil, trees.count < Int(PageMap.noOwner) - 1,
      var definition = entry.tableDefinition, !definition.isVirtual, !definition.storedColumns.isEmpty
    else { return }
    definition.makeAcceptable()
    // Core Data's tables strictly have their columns' types; others may not.
    let isOwn =
      isCoreData && definition.name.uppercased().hasPrefix("Z") && isExpected(definition.name)
      || definition.column(named: "Z_ENT") != nil
    var tree = Tree(
      name: definition.name, kind: definition.isWithoutRowid ? .withoutRowid : .table, root: entry.rootPage,
      shape: RecordShape.ownTable(definition.name)
        ?? RecordShape(definition, isCoreData: isOwn, entityNumbers: entityNumbers(of: definition)))
    tree.shape.admitTombstones(of: definition)
    if isListed, let seen = rows[entry.rootPage] { tree.shape.admit(seen) }
    tree.definition = definition
    tree.isListed = isListed
    tree.otherNumbers = expected?.numbersBeside(soleEntityOf: definition.name)
    tree.isInternal = definition.name.lowercased().hasPrefix("sqlite_")
    add(tree)
  }

  /// Returns the trees with the entity numbers of the store's own list, without a model.
  func trees(constrainedBy list: EntityList) -> [Tree] {
    guard isCoreData, expected?.layout == nil else { return trees }
    var trees = trees
    for index in trees.indices where trees[index].kind != .index && trees[index].shape.entityNumbers != nil {
      let seen = trees[index].isListed ? rows[trees[index].root] : nil
      guard let numbers = list.entityNumbers(ofTable: trees[index].name, seen) else { continue }
      trees[index].shape.entityNumbers = numbers
    }
    return trees
  }

  /// Whether a table can be Core Data's: a known model has its entities and relationships.
  private func isExpected(_ name: String) -> Bool {
    guard let expected, expected.layout != nil, !name.uppercased().hasPrefix("Z_") else { return true }
    return expected.entries.contains { $0.kind == .table && isSame($0.name, name) }
  }

  /// Returns the allowed entity numbers of a table's rows: the model's, else those that Core Data assigns.
  ///
  /// Its own entities, of the persistent history, start with 16001, those of models with 1 (Core Data's `Z_PRIMARYKEY`
  /// of stores with persistent history).
  private func entityNumbers(of definition: TableDefinition) -> ClosedRange<Int64>? {
    if let numbers = expected?.entityNumbers(ofTable: definition.name) { return numbers }
    guard isCoreData, definition.column(named: "Z_PK") != nil else { return nil }
    if let number = CoreDataTables.entityNumber(ofTable: definition.name) { return number...number }
    return definition.name.uppercased().hasPrefix("A") ? 16000...Self.highestNumber : 1...15999
  }

  private static let highestNumber: Int64 = 1 << 20

  private mutating func addIndex(_ entry: SchemaEntry, isListed: Bool) {
    guard places[.index(foldedName(entry.name))] == nil,
      trees.count < Int(PageMap.noOwner) - 1, let table = table(named: entry.tableName),
      let definition = trees[table].definition
    else { return }
    let columns: [SQLiteFormat.IndexedColumn]
    var isPartial = false
    if let sql = entry.sql {
      guard let index = IndexDefinition(sql: sql) else { return }
      columns = index.columns
      isPartial = index.isPartial
    } else {
      columns = Self.automaticColumns(entry.name, definition)
    }
    guard !columns.isEmpty else { return }
    let isOwn = isCoreData && definition.name.uppercased().hasPrefix("Z")
    var tree = Tree(
      name: entry.name, kind: .index, root: entry.rootPage,
      shape: RecordShape(indexOf: columns, on: definition, isCoreData: isOwn))
    tree.table = table
    tree.indexedColumns = columns.map(\.name)
    tree.keyColumns = definition.isWithoutRowid ? definition.keyFields(behind: columns).compactMap(\.name) : []
    tree.isPartialIndex = isPartial
    tree.isListed = isListed
    add(tree)
  }

  /// Returns the columns of an automatic index by the number in its name.
  private static func automaticColumns(_ name: String, _ table: TableDefinition) -> [SQLiteFormat.IndexedColumn] {
    let indexes = table.automaticIndexes
    let number = name.split(separator: "_").last.flatMap { Int($0) } ?? 1
    guard indexes.indices.contains(number - 1) else { return indexes.first ?? [] }
    return indexes[number - 1]
  }

  func entityNames(ofTable name: String) -> [(name: String, number: Int)] {
    expected?.entities(ofTable: name) ?? []
  }

  /// Returns the entity names of either side of a join table; empty for other tables, and under other names in the
  /// store.
  func sides(ofJoinTable name: String) -> [[String]] {
    guard let layout = expected?.layout, let join = layout.joinTables.first(where: { isSame($0.name, name) }),
      !trees.contains(where: { tree in
        tree.isListed && tree.kind != .index && tree.name.uppercased().hasPrefix("Z_")
          && tree.name.dropFirst(2).first?.isWholeNumber == true
          && !layout.joinTables.contains { isSame($0.name, tree.name) }
      })
    else { return [] }
    return [join.relationship, join.inverse].compactMap { key in
      layout.entity(named: key.entityName).map { entityNames(ofTable: $0.tableName).map(\.name) }
    }
  }

  func table(named name: String) -> Int? { places[.table(foldedName(name))] }

  private enum Name: Hashable {
    case table(String)
    case index(String)
  }

  private mutating func add(_ tree: Tree) {
    let name = foldedName(tree.name)
    let key = tree.kind == .index ? Name.index(name) : .table(name)
    if places[key] == nil { places[key] = trees.count }
    trees.append(tree)
  }
}

/// The entity numbers of each table by the store's own list, without a model.
struct EntityList {
  private struct Entity {
    var name: String
    var above: Int64
  }

  private var numbers: [String: ClosedRange<Int64>] = [:]

  private var known: Set<Int64> = []

  /// The lower limit of Core Data's own entities, with table names on A.
  private static let firstOwnNumber: Int64 = 16000

  private static let depthLimit = 64

  /// Reads a store's list; empty if its tree is incomplete.
  ///
  /// - Parameter entries: the readable schema.
  static func find(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry]
  ) throws -> EntityList {
    var list = EntityList()
    guard let entry = entries.first(where: { $0.kind == .table && isSame($0.name, "Z_PRIMARYKEY") }),
      let definition = entry.tableDefinition, entry.rootPage > 1,
      definition.columns.map({ $0.name.uppercased() }) == ["Z_ENT", "Z_NAME", "Z_SUPER", "Z_MAX"]
    else { return list }
    let rows = PageRows(reader)
    let shape = RecordShape(definition, isCoreData: true)
    let (leaves, isWhole) = try rows.leaves(of: entry.rootPage, shape: shape, map)
    guard isWhole else { return list }
    var entities: [Int64: Entity] = [:]
    for page in leaves {
      try rows.forEach(on: page) { row in
        guard row.rowid > 0, let name = row.record.value(at: 1)?.string, let above = row.record.value(at: 2)?.integer
        else { return }
        entities[row.rowid] = Entity(name: name, above: above)
      }
    }
    list.add(entities)
    return list
  }

  private mutating func add(_ entities: [Int64: Entity]) {
    // An inconsistent list is damaged, or another page.
    guard entities.values.allSatisfy({ $0.above == 0 || entities[$0.above] != nil }) else { return }
    known = Set(entities.keys)
    for (number, entity) in entities {
      var root = entity
      for _ in 0..<Self.depthLimit {
        guard root.above != 0, let next = entities[root.above] else { break }
        root = next
      }
      guard root.above == 0 else { continue }
      let table = (number < Self.firstOwnNumber ? "z" : "a") + root.name.lowercased()
      let range = numbers[table] ?? number...number
      numbers[table] = min(range.lowerBound, number)...max(range.upperBound, number)
    }
  }

  /// Returns the allowed entity numbers of a table's rows; nil if unknown.
  ///
  /// - Parameter seen: the rows under its root, where an unknown number indicates damage of either side.
  func entityNumbers(ofTable name: String, _ seen: TableRows?) -> ClosedRange<Int64>? {
    guard let range = numbers[name.lowercased()] else { return nil }
    let isKnown = seen?.rows.allSatisfy { row in row.entity.map { known.contains($0) } ?? false } ?? true
    return isKnown ? range : nil
  }
}

/// A table or index of the damaged store, with its pages.
struct Tree {
  enum Kind {
    case table
    case withoutRowid
    case index
  }

  var name: String

  var kind: Kind

  /// The root page; 0 if unknown.
  var root: UInt32

  /// The listed root if beyond the end of the file; else 0.
  var rootBehindEnd: UInt32 = 0

  var shape: RecordShape

  /// The table's definition; nil for indexes.
  var definition: TableDefinition?

  /// An index's table, as a place in the list of trees.
  var table: Int?

  /// An index's column names; nil for an expression.
  var indexedColumns: [String?] = []

  /// For an index without rowids, the key columns at the end of each entry.
  var keyColumns: [String] = []

  /// Whether an index has a condition, and so not every row.
  var isPartialIndex = false

  /// Whether the store's own schema lists it, not only the model.
  var isListed = false

  /// Whether only rows like those of Core Data's own tables indicate it.
  var isKnownByRows = false

  /// Whether only a deleted schema row indicates it, so all its rows are deleted.
  var isDropped = false

  /// The root in a dropped table's definition, else 0.
  var droppedRoot: UInt32 = 0

  var isShadow = false

  /// Whether it belongs to SQLite or the salvage, and not to the result.
  var isInternal = false

  /// Whether it is `sqlite_sequence`.
  var isSequence: Bool { isInternal && kind == .table && name.lowercased() == "sqlite_sequence" }

  /// All entity numbers of the model, if the table has one entity.
  var otherNumbers: Set<Int64>?

  var doubt: ColumnDoubt?

  /// The leaves as found; sorted by first rowid before reading.
  var leaves: [UInt32] = []

  /// The interior pages of trees without rowids, whose cells are rows or entries.
  var innerPages: [UInt32] = []

  var gaps: [Gap] = []

  var isWalked = false

  /// Whether every page was found, so it has no others.
  var isComplete: Bool { isWalked && gaps.isEmpty }

  /// Whether `Z_ENT` distinguishes its rows from those of all other tables.
  var isToldByEntity: Bool { shape.entityNumbers.map { $0.count < 8000 } ?? false }

  var hasRowids: Bool { kind == .table }

  /// The kind and name of its entry in the schema.
  var key: String { "\(kind == .index ? "index" : "table") \(name)" }

  /// A missing page of the tree.
  struct Gap {
    var page: UInt32

    /// The exclusive lower bound of its rowids.
    var above: Int64

    /// The upper bound of its rowids.
    var upTo: Int64

    /// Whether it was a leaf like its neighbors; false if unknown.
    var isLeaf = false
  }

  /// Marks the missing children of an interior page as leaves.
  ///
  /// - Parameter first: the first gap possibly below it.
  mutating func noteLeaves(of node: InnerPage, from first: Int) {
    let children = Set(node.children)
    for place in gaps.indices.dropFirst(first) where children.contains(gaps[place].page) { gaps[place].isLeaf = true }
  }
}
