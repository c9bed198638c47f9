internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import SystemPackage

/// The new store during recovery: SQLite creates tables, and rows are written directly where the result is the same.
final class NewStore {
  /// A numeric index, built along with the rows.
  struct NumericIndex {
    let name: String
    let table: String
    let statement: String
    let isUnique: Bool

    /// Column indices in the new table.
    let columns: [Int]
    let keys: EntrySorter.Keys

    /// Whether the app created it itself.
    var isForeign = false
  }

  private let layout: StoreLayout?
  private let numericIndexes: [NumericIndex]
  private let pages: NewPages
  private let roots: [String: UInt32]

  /// Tables outside the layout, by lowercase name.
  private let definitions: [String: TableDefinition]
  private let budget = KeySet.Budget()
  private let space: SortingSpace

  private(set) var madeIndexes: Set<String> = []

  /// Empty indexes, to be dropped before SQLite reads their tables.
  var emptyIndexes: [String] {
    numericIndexes.map(\.name).filter { roots[Self.indexKey($0)] != nil && !madeIndexes.contains($0) }
  }

  /// Directly written tables by lowercase name.
  private(set) var tables: [String: DirectTable] = [:]

  /// Creates empty tables: all of a Core Data store, and a plain store's without constraints.
  init(_ path: FilePath, _ facts: StoreFacts, in fileSystem: FileSystem) throws {
    layout = facts.layout
    numericIndexes = facts.numericIndexes
    space = SortingSpace(path.sibling(suffix: "-sorting"), in: fileSystem)
    let isCoreData = facts.layout != nil
    let size = isCoreData ? 4096 : facts.pageSize
    let vacuum = isCoreData ? 2 : facts.header.map { $0.isAutoVacuum ? ($0.incrementalVacuum == 0 ? 1 : 2) : 0 } ?? 0
    definitions = Dictionary(
      facts.entries.compactMap { entry in entry.tableDefinition.map { (entry.name.lowercased(), $0) } }
    ) { first, _ in first }
    roots = try Self.makeTables(path, facts, numericIndexes, pageSize: size, vacuum: vacuum)
    pages = try NewPages(path, pageSize: size, hasPointerMaps: vacuum > 0, in: fileSystem)
  }

  private static func makeTables(
    _ path: FilePath, _ facts: StoreFacts, _ numericIndexes: [NumericIndex], pageSize: Int, vacuum: Int
  ) throws -> [String: UInt32] {
    let database = try OutputDatabase(path, pageSize: pageSize, encoding: facts.encoding)
    // The first schema statement writes the encoding into the header.
    try database.execute("PRAGMA auto_vacuum = \(vacuum); CREATE VIEW v AS SELECT 1; DROP VIEW v; BEGIN")
    var names: [String] = []
    for table in facts.layout?.tables ?? [] {
      try database.execute(table.statement)
      names.append(table.name)
    }
    for table in facts.layout?.joinTables ?? [] {
      try database.execute(table.unindexedStatement)
      names.append(table.name)
    }
    var own = Set(names.map { $0.lowercased() } + StoreLayout.bookkeepingTableNames.map { $0.lowercased() })
    if let layout = facts.layout {
      // The model's indexes and R-tree tables take these names once rows exist.
      own.formUnion(layout.indexes.map { $0.name.lowercased() })
      for index in layout.spatialIndexes { own.formUnion(ShadowTables.names(of: index.name, module: "rtree")) }
    }
    // Content for rebuilding virtual tables stays among the rows as found.
    for entry in facts.entries {
      guard let module = entry.tableDefinition?.module else { continue }
      own.formUnion(ShadowTables.content(of: entry.name, module: module))
    }
    let unique = facts.tablesWithUniqueIndexes
    for entry in facts.entries where entry.kind == .table && !own.contains(entry.name.lowercased()) {
      guard let sql = entry.sql, let definition = entry.tableDefinition, definition.isPlain(sql),
        isSame(definition.name, entry.name), !unique.contains(entry.name.lowercased())
      else { continue }
      // A refused table is created differently later.
      if try database.tries(sql) { names.append(entry.name) }
    }
    if facts.layout != nil {
      for statement in StoreLayout.bookkeepingStatements { try database.execute(statement) }
    }
    for index in numericIndexes {
      if index.isForeign {
        // A refused index is retried once rows exist.
        _ = try database.tries(index.statement)
      } else {
        try database.execute(index.statement)
      }
    }
    try database.execute("COMMIT")
    var roots: [String: UInt32] = [:]
    let tables = try database.tableNumbers("rootpage")
    let indexes = try database.tableNumbers("rootpage", of: "index")
    for name in names { roots[name.lowercased()] = tables[name].flatMap { UInt32(exactly: $0) } }
    for index in numericIndexes { roots[indexKey(index.name)] = indexes[index.name].flatMap { UInt32(exactly: $0) } }
    return roots
  }

  private static func indexKey(_ name: String) -> String { "\u{0}\(name)" }

  /// The direct table for a definition; nil if SQLite must insert the rows.
  func table(for definition: TableDefinition) -> DirectTable? {
    let name = definition.name.lowercased()
    guard let root = roots[name], root > 1, tables[name] == nil, !definition.isWithoutRowid,
      let columns = columns(for: definition)
    else { return nil }
    let table = DirectTable(
      TableTree(pages, root: root), columns: columns, fieldCount: definition.storedColumns.count, budget: budget)
    for index in numericIndexes where isSame(index.table, definition.name) {
      table.rows.add(
        index.name, isUnique: index.isUnique, columns: index.columns,
        EntrySorter(space, keys: index.keys, width: index.columns.count))
    }
    tables[name] = table
    return table
  }

  func writeIndexes() throws {
    for (_, table) in tables.sorted(by: { $0.key < $1.key }) { try table.rows.writeInteriorPages() }
    for (_, table) in tables.sorted(by: { $0.key < $1.key }) {
      let made = try table.rows.writeIndexes { name in roots[Self.indexKey(name)].map { IndexTree(pages, root: $0) } }
      madeIndexes.formUnion(made)
    }
    space.clear()
    try pages.writePageCount()
  }

  // MARK: Which column goes where

  private func columns(for definition: TableDefinition) -> [DirectTable.Column]? {
    let stored = definition.storedColumns
    guard stored.count == definition.columns.count,
      definition.columns.allSatisfy({ $0.defaultValue == nil || $0.defaultValue == .null })
    else { return nil }
    var targets: [(name: String, affinity: Affinity, role: DirectTable.Role)] = []
    if let table = layout?.tables.first(where: { isSame($0.name, definition.name) }) {
      guard let alias = definition.rowidAlias, isSame(definition.columns[alias].name, "Z_PK") else { return nil }
      var references = 0
      for column in table.columns {
        var role = DirectTable.Role.other
        switch column.role {
        case .primaryKey: role = .key
        case .entityNumber: role = .entityNumber
        case .saveCount: role = .saveCount
        case .toOne, .owner:
          role = .reference(references)
          references += 1
        case .attribute, .compositeLeaf, .toOneEntity, .toOneOrder, .ownerOrder: break
        }
        targets.append((column.name, Affinity(declaredType: column.type.rawValue), role))
      }
    } else if let table = layout?.joinTables.first(where: { isSame($0.name, definition.name) }) {
      guard definition.rowidAlias == nil,
        [table.sourceColumn, table.destinationColumn].allSatisfy({ definition.column(named: $0) != nil })
      else { return nil }
      targets = table.columns.enumerated().map {
        ($0.element, .integer, $0.offset < 2 ? .reference($0.offset) : .other)
      }
    } else {
      guard let made = definitions[definition.name.lowercased()],
        made.rowidAlias.map({ made.columns[$0].name }) == definition.rowidAlias.map({ definition.columns[$0].name }),
        made.columns.allSatisfy({ !$0.hasDefault && !$0.isNotNull || definition.column(named: $0.name) != nil })
      else { return nil }
      for (index, column) in made.columns.enumerated() {
        targets.append((column.name, column.affinity, index == made.rowidAlias ? .key : .other))
      }
    }
    var columns: [DirectTable.Column] = []
    var used = 0
    for target in targets {
      var column = DirectTable.Column(classes: StorageClasses(keptBy: target.affinity), role: target.role)
      if let place = definition.column(named: target.name) {
        guard let field = stored.firstIndex(of: place) else { return nil }
        column.field = field
        let isMandatory =
          definition.columns[place].isNotNull
          || definitions[definition.name.lowercased()]?.columns.contains {
            $0.isNotNull && isSame($0.name, target.name)
          } == true
        if isMandatory { column.classes.remove(.null) }
        if target.role == .key { column.classes = .any }
        used += 1
      }
      columns.append(column)
    }
    // A column unknown to the layout must not vanish silently.
    return used == stored.count ? columns : nil
  }
}

extension StoreFacts {
  fileprivate var numericIndexes: [NewStore.NumericIndex] {
    layout.map { Self.numericIndexes($0) + Self.foreignIndexes(entries, $0) } ?? []
  }

  private static func numericIndexes(_ layout: StoreLayout) -> [NewStore.NumericIndex] {
    var result = layout.joinTables.map { table in
      NewStore.NumericIndex(
        name: table.keyName, table: table.name, statement: table.keyStatement, isUnique: true, columns: [0, 1],
        keys: .integers)
    }
    for index in layout.indexes where !index.isUnique && index.condition == nil && index.columns.count <= 2 {
      guard index.columns.allSatisfy({ $0.isAscending != false }) else { continue }
      guard let keys = keys(index.tableName, index.columns.map(\.name), layout) else { continue }
      result.append(
        NewStore.NumericIndex(
          name: index.name, table: index.tableName, statement: index.statement, isUnique: false,
          columns: keys.places, keys: keys.keys))
    }
    return result
  }

  private static func foreignIndexes(_ entries: [SchemaEntry], _ layout: StoreLayout) -> [NewStore.NumericIndex] {
    var names = Set(layout.indexes.map { $0.name.lowercased() })
    let shapes = Set(layout.indexes.map { StoreAssembly.shape($0.tableName, $0.columns.map(\.name)) })
    var result: [NewStore.NumericIndex] = []
    for entry in entries where entry.kind == .index {
      guard let sql = entry.sql, let index = IndexDefinition(sql: sql), !index.isUnique, !index.isPartial,
        isSame(index.name, entry.name), isSame(index.tableName, entry.tableName), (1...2).contains(index.columns.count),
        !entry.name.lowercased().hasPrefix("sqlite_"), sql.hasPrefix("CREATE INDEX "), sql.isPlainSQL,
        index.columns.allSatisfy({ !$0.isDescending })
      else { continue }
      let columns = index.columns.compactMap(\.name)
      guard columns.count == index.columns.count, !shapes.contains(StoreAssembly.shape(index.tableName, columns)),
        let keys = keys(index.tableName, columns, layout), names.insert(entry.name.lowercased()).inserted
      else { continue }
      result.append(
        NewStore.NumericIndex(
          name: entry.name, table: index.tableName, statement: sql, isUnique: false, columns: keys.places,
          keys: keys.keys, isForeign: true))
    }
    return result
  }

  /// The indices and numeric kind of columns in a layout table; nil for other kinds.
  private static func keys(
    _ tableName: String, _ columns: [String], _ layout: StoreLayout
  ) -> (places: [Int], keys: EntrySorter.Keys)? {
    var places: [Int] = []
    var types: Set<ColumnType> = []
    if let table = layout.table(named: tableName) {
      for column in columns {
        // Records don't contain the primary key.
        guard let place = table.columns.firstIndex(where: { isSame($0.name, column) }), place > 0,
          table.columns[place].role != .primaryKey
        else { return nil }
        places.append(place)
        types.insert(table.columns[place].type)
      }
    } else if let table = layout.joinTable(named: tableName) {
      places = columns.compactMap { column in table.columns.firstIndex { isSame($0, column) } }
      types = [.integer]
    }
    guard places.count == columns.count, !places.isEmpty, !places.contains(0) || types == [.integer],
      types.isSubset(of: [.integer, .float, .timestamp]), types.count == 1
    else { return nil }
    return (places, types == [.integer] ? .integers : .numbers)
  }

  /// Lowercase names of tables with unique indexes, as their rows may conflict.
  fileprivate var tablesWithUniqueIndexes: Set<String> {
    Set(
      entries.filter { $0.kind == .index && ($0.sql?.uppercased().contains("UNIQUE") ?? true) }
        .map { $0.tableName.lowercased() })
  }
}

extension TableDefinition {
  /// Whether a table accepts every row: no checks, unique constraints, generated columns or autoincrement.
  fileprivate func isPlain(_ sql: String) -> Bool {
    let text = sql.uppercased()
    return !isVirtual && !isWithoutRowid && !isStrict && uniqueConstraints.isEmpty
      && (primaryKey.isEmpty || rowidAlias != nil) && columns.allSatisfy { $0.generation == nil && !$0.isUnique }
      && !["CHECK", "AUTOINCREMENT", "CONFLICT", "GENERATED"].contains(where: text.contains)
      && !name.lowercased().hasPrefix("sqlite_")
  }
}

extension JoinTableLayout {
  /// The key index's name until the schema is rewritten like Core Data's.
  var keyName: String { "lazaret_key_of_\(name)" }

  var keyStatement: String {
    let columns = [sourceColumn, destinationColumn].map(SQLText.identifier).joined(separator: ", ")
    return "CREATE UNIQUE INDEX \(SQLText.quotedIdentifier(keyName)) ON \(SQLText.identifier(name)) (\(columns))"
  }

  /// Creates the table without its key, added as an index once rows exist.
  var unindexedStatement: String {
    let list = columns.map { "\(SQLText.identifier($0)) INTEGER" }.joined(separator: ", ")
    return "CREATE TABLE \(SQLText.identifier(name)) ( \(list) )"
  }
}
