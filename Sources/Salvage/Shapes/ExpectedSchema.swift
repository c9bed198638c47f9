internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// The tables and indexes that a store should have by its model or schema file.
struct ExpectedSchema {
  /// The entries, tables before indexes, without root pages.
  var entries: [SchemaEntry] = []

  var layout: StoreLayout?

  private(set) var encoding = TextEncoding.utf8

  /// Whether it is a backup's schema, which may be outdated.
  var isOfDonor = false

  /// The store's numbering of entities; nil if it is the layout's.
  private(set) var numbering: EntityNames?

  /// The store's names for the layout's tables and columns.
  private(set) var names = StoreNames()

  init(_ model: ManagedObjectModel) throws {
    let layout = try StoreLayout(model)
    self.layout = layout
    entries = Self.entries(of: layout.statements)
  }

  init(_ script: SchemaScript) throws {
    do {
      let image = try StoreCreation.bytes(of: script)
      let database = try Database(main: MemoryBytes(image))
      entries = try database.schema().entries
      encoding = database.encoding
      for index in entries.indices { entries[index].rootPage = 0 }
    } catch let error as PersistentStoreError {
      throw SalvageError(error)
    } catch let error as FileError {
      throw SalvageError(error)
    } catch {
      throw SalvageError(.model, operation: "read the schema", detail: "an unforeseen failure")
    }
  }

  /// Returns the statements for a new store: the given schema plus the store's other declarations.
  ///
  /// A table with columns unknown to the given schema keeps its own declaration.
  func declarations(besides found: [SchemaEntry]) -> [SchemaEntry] {
    guard layout == nil else { return found }
    func key(_ entry: SchemaEntry) -> String { "\(entry.kind.rawValue) \(entry.name.lowercased())" }
    let own = Dictionary(found.map { (key($0), $0) }) { first, _ in first }
    guard !isOfDonor else { return found + entries.filter { own[key($0)] == nil } }
    let given = Set(entries.map(key))
    return entries.map { entry in own[key(entry)].flatMap { hasOtherColumns($0, than: entry) ? $0 : nil } ?? entry }
      + found.filter { !given.contains(key($0)) }
  }

  /// Returns remarks on tables that keep their declarations.
  func remarks(on found: [SchemaEntry]) -> [String] {
    guard layout == nil, !isOfDonor else { return [] }
    let given = Dictionary(entries.filter { $0.kind == .table }.map { ($0.name.lowercased(), $0) }) { first, _ in first
    }
    return found.filter { other in
      given[other.name.lowercased()].map { hasOtherColumns(other, than: $0) } == true
    }.map {
      "\(printable($0.name)) has columns that the given schema lacks, and is as the store itself declares it"
    }
  }

  private func hasOtherColumns(_ other: SchemaEntry, than entry: SchemaEntry) -> Bool {
    guard let theirs = other.tableDefinition, let ours = entry.tableDefinition else { return false }
    return theirs.columns.contains { ours.column(named: $0.name) == nil }
  }

  /// Returns the shadow tables missing in a schema with virtual tables.
  static func shadowTables(missingIn found: [SchemaEntry]) -> [SchemaEntry] {
    let listed = Set(found.filter { $0.kind == .table }.map { $0.name.lowercased() })
    var missing: [SchemaEntry] = []
    for entry in found where missing.count < shadowLimit {
      guard let module = entry.tableDefinition?.module, let sql = entry.sql else { continue }
      let names = ShadowTables.names(of: entry.name, module: module).filter { !listed.contains($0) }
      // A statement that SQLite refuses has no shadow tables.
      guard !names.isEmpty, let script = try? SchemaScript(sql), let made = try? ExpectedSchema(script) else {
        continue
      }
      missing += made.entries.filter { $0.kind == .table && names.contains($0.name.lowercased()) }
    }
    return missing
  }

  private static let shadowLimit = 1000

  private static func entries(of statements: [String]) -> [SchemaEntry] {
    var entries: [SchemaEntry] = []
    for statement in statements {
      if let table = TableDefinition(sql: statement) {
        entries.append(
          SchemaEntry(kind: .table, name: table.name, tableName: table.name, rootPage: 0, sql: statement))
        guard !table.isWithoutRowid, table.rowidAlias == nil, !table.primaryKey.isEmpty else { continue }
        entries.append(
          SchemaEntry(
            kind: .index, name: "sqlite_autoindex_\(table.name)_1", tableName: table.name, rootPage: 0, sql: nil))
      } else if let index = IndexDefinition(sql: statement) {
        entries.append(
          SchemaEntry(kind: .index, name: index.name, tableName: index.tableName, rootPage: 0, sql: statement))
      }
    }
    return entries
  }

  /// Counts tables with equal columns, minus those with different ones.
  func agreement(with found: [SchemaEntry]) -> Int {
    func columns(_ entry: SchemaEntry) -> Set<String>? {
      entry.tableDefinition.map { Set($0.columns.map { $0.name.lowercased() }) }
    }
    var own: [String: Set<String>] = [:]
    for entry in entries where entry.kind == .table { own[entry.name.lowercased()] = columns(entry) }
    var agreement = 0
    for entry in found where entry.kind == .table {
      guard let here = own[entry.name.lowercased()], let there = columns(entry) else { continue }
      agreement += here == there ? 1 : -1
    }
    return agreement
  }

  /// Renames tables and columns for a store with other entity numbers.
  mutating func renumber(_ numbering: EntityNames) {
    guard let layout else { return }
    self.numbering = numbering
    let names = StoreNames(layout, numbering)
    self.names = names
    let known = Dictionary(layout.tables.map { ($0.name, $0) }) { first, _ in first }
    let joins = Dictionary(layout.joinTables.map { ($0.name, $0) }) { first, _ in first }
    for index in entries.indices {
      let table = entries[index].tableName
      guard known[table] != nil || joins[table] != nil, let sql = entries[index].sql else {
        // The automatic index of a join table's key.
        entries[index].tableName = names.table(table)
        if joins[table] != nil { entries[index].name = "sqlite_autoindex_\(names.table(table))_1" }
        continue
      }
      if entries[index].kind == .table {
        if let columns = known[table] {
          entries[index].sql = statement(columns, columns.columns)
        } else if let join = joins[table] {
          let list = join.columns.map { SQLText.identifier(names.column($0, of: table)) }
          entries[index].sql =
            "CREATE TABLE \(SQLText.identifier(names.table(table))) ( \(list.map { $0 + " INTEGER" }.joined(separator: ", ")), "
            + "PRIMARY KEY (\(list.prefix(2).joined(separator: ", "))) )"
        }
        entries[index].name = names.table(table)
      } else if entries[index].kind == .index, let definition = IndexDefinition(sql: sql), !definition.isPartial {
        let list = definition.columns.compactMap(\.name).map { SQLText.identifier(names.column($0, of: table)) }
        entries[index].sql =
          "CREATE INDEX \(SQLText.identifier(definition.name)) ON \(SQLText.identifier(names.table(table))) "
          + "(\(list.joined(separator: ", ")))"
      }
      entries[index].tableName = names.table(table)
    }
  }

  mutating func reorder(_ table: TableLayout, _ order: [String]) {
    guard let index = entries.firstIndex(where: { $0.kind == .table && isSame($0.name, table.name) }) else { return }
    let columns = Dictionary(
      table.columns.map { (names.column($0.name, of: table.name).uppercased(), $0) }
    ) { first, _ in first }
    let list = order.compactMap { columns[$0] }
    guard list.count == table.columns.count else { return }
    entries[index].sql = statement(table, list)
  }

  private func statement(_ table: TableLayout, _ columns: [ColumnLayout]) -> String {
    let list = columns.map { column in
      SQLText.identifier(names.column(column.name, of: table.name)) + " " + column.type.rawValue
        + (column.role == .primaryKey ? " PRIMARY KEY" : "")
    }
    return "CREATE TABLE \(SQLText.identifier(table.name)) ( \(list.joined(separator: ", ")) )"
  }

  /// Returns the entity numbers of a table's rows; nil without entities.
  func entityNumbers(ofTable name: String) -> ClosedRange<Int64>? {
    guard let layout, let table = layout.tables.first(where: { isSame($0.name, name) }),
      let entity = layout.entity(named: table.rootEntityName)
    else { return nil }
    let own = numbers(of: table)
    if let first = own.min(), let last = own.max() { return first...last }
    return Int64(entity.numbers.lowerBound)...Int64(entity.numbers.upperBound)
  }

  /// Returns all entity numbers, including the persistent history's, for a table of one entity; nil with a numbering of
  /// the store's own.
  func numbersBeside(soleEntityOf name: String) -> Set<Int64>? {
    guard let layout, numbering == nil, let table = layout.tables.first(where: { isSame($0.name, name) }) else {
      return nil
    }
    let own = layout.entities.count { entity in
      entity.tableName == table.name && layout.model.entities[entity.name]?.isAbstract != true
    }
    return own == 1 ? Set(layout.entities.map { Int64($0.number) }).union(CoreDataTables.entityNumbers) : nil
  }

  /// Returns the entities of a table with their numbers, in layout order.
  func entities(ofTable name: String) -> [(name: String, number: Int)] {
    guard let layout, let table = layout.tables.first(where: { isSame($0.name, name) }) else { return [] }
    let isRenumbered = !numbers(of: table).isEmpty
    return layout.entities.filter { $0.tableName == table.name }.compactMap { entity in
      guard isRenumbered else { return (entity.name, entity.number) }
      return numbering?.numbers[entity.name].map { (entity.name, Int($0)) }
    }
  }

  /// Returns the store's numbers for a table's entities, if not the layout's.
  private func numbers(of table: TableLayout) -> [Int64] {
    guard let layout, let numbering else { return [] }
    return numbering.names.filter { layout.entity(named: $0.value)?.tableName == table.name }.map(\.key)
  }
}
