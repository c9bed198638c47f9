internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// Chooses the definition to read each table by: the store's own unless it contradicts the rows, else the model's.
struct DefinitionSearch {
  let schema: SchemaSearch
  let reader: PageReader
  let map: PageMap
  let evidence: Evidence

  /// Whether metadata or a model cache was found.
  let isCoreData: Bool

  struct Definitions {
    /// The tables of the store's model in its own numbering, if known.
    var shapes: ExpectedSchema?

    var entries: [SchemaEntry]

    /// The statements for a new store.
    var declarations: [SchemaEntry]

    /// The trees to search for.
    var list: TreeList

    var remarks: [String]
  }

  func run(_ expected: ExpectedSchema?, _ choice: ModelChoice) throws -> Definitions {
    var shapes = expected
    var entries = schema.entries
    var orders: ColumnOrders?
    var remarks: [String] = []
    var isListRefuted = false
    let rows = try TableRows.gather(entries, reader, map)
    if let layout = shapes?.layout {
      let finding = try EntityNames.find(reader, map, schema.entries, layout)
      if let numbering = finding.numbering { shapes?.renumber(numbering) }
      isListRefuted = finding.isListRefuted
    }
    if var expected = shapes {
      var repair = SchemaRepair(entries, isWhole: schema.isWhole, expected: expected, rows: rows)
      // A table with an unusable statement has a column order that only its rows show.
      if !schema.isWhole || repair.hasUnread, let layout = expected.layout {
        orders = try ColumnOrders.settle(
          &expected, found: repair.entries, settled: repair.settled,
          earlier: choice.earlierLayouts(than: layout.model), reader, map, evidence)
        shapes = expected
      }
      repair.complete(by: expected.entries)
      entries = repair.entries
      remarks = repair.remarks
    }
    var doubts = orders?.doubts ?? [:]
    CoreDataTables.restore(in: &entries)
    if shapes?.layout == nil { doubts = ColumnCounts.repair(&entries, rows: rows) }
    if schema.isWhole { remarks += IntegerKeys.restore(in: &entries, &doubts, rows: rows) }
    entries += ExpectedSchema.shadowTables(missingIn: entries)
    let own = isCoreData || CoreDataTables.areListed(in: entries) ? try ownTables() : nil
    var list = TreeList(found: entries, isWhole: schema.isWhole, expected: shapes, rows: rows, own: own)
    entries += list.trees.filter(\.isKnownByRows).compactMap { tree in
      own?.first { isSame($0.name, tree.name) }
    }
    list.doubt(doubts)
    list.noteRoots(behindEnd: schema.rootsBehindEnd)
    if let numbering = shapes?.numbering {
      remarks.append(
        "the store numbers its entities in another way than its model would"
          + (numbering.isListed ? "" : "; its list of them is damaged, and its tables were gone by"))
    }
    if let disputed = shapes?.numbering?.disputed.count, disputed > 0 {
      remarks.append(
        "the store's list of its entities and the order of its model give \(counted(Int64(disputed), "number")) to different entities, and nothing else tells which is right; the list was gone by, and which entity their records are of is doubtful"
      )
    }
    if isListRefuted {
      remarks.append(
        "the store's list of its entities gives them other numbers than its model, its rows and its tables do, and was not gone by"
      )
    }
    remarks += shapes?.remarks(on: entries) ?? []
    return Definitions(
      shapes: shapes, entries: entries, declarations: shapes?.declarations(besides: entries) ?? entries, list: list,
      remarks: remarks)
  }

  /// Returns Core Data's own tables identified by rows.
  private func ownTables() throws -> [SchemaEntry] {
    schema.isWhole ? [] : try CoreDataTables.find(reader, map)
  }
}

/// Restores `INTEGER PRIMARY KEY` in damaged statements.
///
/// SQLite stores no value of such a column in rows and makes no index for it. So a column was one if it alone is the
/// primary key or has a damaged type, has no index in a complete schema, and is NULL in every row: its values are the
/// rowids.
enum IntegerKeys {
  /// - Parameters:
  ///   - entries: a complete schema.
  ///   - doubts: the doubts by lowercase table name; a key that only its rows indicate is added.
  ///   - rows: the rows by root page.
  /// - Returns: remarks for the report.
  static func restore(
    in entries: inout [SchemaEntry], _ doubts: inout [String: ColumnDoubt], rows: [UInt32: TableRows]
  ) -> [String] {
    var remarks: [String] = []
    for index in entries.indices where entries[index].kind == .table {
      let entry = entries[index]
      guard let sql = entry.sql, let own = entry.tableDefinition, let seen = rows[entry.rootPage], seen.hasRowids,
        !own.isWithoutRowid, own.rowidAlias == nil, let place = key(of: own),
        let field = own.storedColumns.firstIndex(of: place), seen.isAlwaysNull(field)
      else { continue }
      let automatic = entries.count { $0.kind == .index && $0.sql == nil && isSame($0.tableName, entry.name) }
      guard automatic < own.automaticIndexes.count || !own.columns[place].isPrimaryKey else { continue }
      entries[index].sql = statement(own, place, sql)
      if !own.columns[place].isPrimaryKey, !own.columns[place].declaredType.uppercased().hasPrefix("INTEGER") {
        doubts[entry.name.lowercased()] = ColumnDoubt(
          words: "the declaration of the table is damaged, and only its rows indicate which column is the primary key")
      }
      remarks.append(
        "the column \(printable(own.columns[place].name)) of \(printable(entry.name)) is the primary key, has no index and "
          + "no value in any row: it was declared as INTEGER PRIMARY KEY, and has the rowids as its values")
    }
    return remarks
  }

  /// Returns the single primary key column, even by a damaged type: `INTEGER PRIMxRY KEY`, `INTEGER PRIMx`, or one with
  /// invalid bytes.
  private static func key(of table: TableDefinition) -> Int? {
    if table.primaryKey.count == 1 { return table.column(named: table.primaryKey[0]) }
    guard table.primaryKey.isEmpty else { return nil }
    if table.columns.first?.declaredType.contains("\u{FFFD}") == true { return 0 }
    return table.columns.firstIndex { column in
      let type = column.declaredType.uppercased()
      return type.hasPrefix("INTEGER") && type.hasSuffix(" KEY") || type.hasPrefix("INTEGER PRIM")
    }
  }

  /// Returns the statement with the column as rowid: with a corrected type only, or rewritten if that fails.
  private static func statement(_ own: TableDefinition, _ place: Int, _ sql: String) -> String {
    var wanted = own
    wanted.rowidAlias = place
    wanted.columns[place].declaredType = "INTEGER"
    let (name, type) = (own.columns[place].name, own.columns[place].declaredType)
    let words = Array("\(name) \(type)".utf8)
    let bytes = Array(sql.utf8)
    let start = bytes.indices.first {
      $0 + words.count <= bytes.count && bytes[$0..<($0 + words.count)].elementsEqual(words)
    }
    if let start, !type.isEmpty {
      let made = String(
        decoding: bytes[..<start] + Array("\(name) INTEGER".utf8) + bytes[(start + words.count)...], as: UTF8.self)
      if let read = TableDefinition(sql: made), read.rowidAlias == place, read.columns == wanted.columns { return made }
    }
    return SchemaRepair.statement(wanted)
  }
}

/// Compares the declared number of columns with the values of the rows.
///
/// A damaged comma merges or splits columns. If rows have more values than columns, a column is added at the best
/// place; if they have fewer and fit much better without one, it is removed.
enum ColumnCounts {
  private static let tolerance = 0.1

  /// Repairs the statements; returns the tables with guessed columns by lowercase name.
  ///
  /// - Parameter rows: the rows by root page.
  static func repair(_ entries: inout [SchemaEntry], rows: [UInt32: TableRows]) -> [String: ColumnDoubt] {
    var doubts: [String: ColumnDoubt] = [:]
    let tables = entries.compactMap { entry -> (TableDefinition, TableRows)? in
      guard let definition = entry.tableDefinition, let seen = rows[entry.rootPage] else { return nil }
      return (definition, seen)
    }
    for index in entries.indices where entries[index].kind == .table {
      guard var own = entries[index].tableDefinition, !own.isVirtual else { continue }
      if own.isWithoutRowid, own.hasUnclearKey {
        doubts[entries[index].name.lowercased()] = ColumnDoubt(
          words: "the primary key in the declaration of the table is damaged, and its columns come first in each row")
        if let seen = rows[entries[index].rootPage], !seen.hasRowids, !seen.rows.isEmpty {
          seen.extendKey(of: &own)
          entries[index].sql = SchemaRepair.statement(own)
        }
      }
      guard let seen = rows[entries[index].rootPage], let widths = seen.widths, own.isWithoutRowid != seen.hasRowids,
        let better = better(own, seen, widths), !isExchanged(own, seen, widths.usual, tables)
      else { continue }
      entries[index].sql = SchemaRepair.statement(better)
      doubts[entries[index].name.lowercased()] = ColumnDoubt(
        words: "the declaration of the table is damaged, and the rows have another number of values than it has columns"
      )
    }
    return doubts
  }

  private static func isExchanged(
    _ own: TableDefinition, _ seen: TableRows, _ width: Int, _ tables: [(definition: TableDefinition, rows: TableRows)]
  ) -> Bool {
    tables.contains { other in
      other.definition.name != own.name && other.definition.storedColumns.count == width
        && other.rows.widths?.most != width && seen.canBe(of: other.definition)
    }
  }

  /// The most columns, and possible commas, to search.
  private static let searched = (columns: 64, places: 2)

  private static func better(
    _ own: TableDefinition, _ seen: TableRows, _ widths: (usual: Int, most: Int)
  ) -> TableDefinition? {
    let missing = widths.usual - own.storedColumns.count
    if missing > 0 {
      let isSearched = own.columns.count <= searched.columns && missing <= searched.places
      var best = own
      for _ in 0..<missing {
        let end = best.columns.count
        guard let column = TableDefinition(sql: "CREATE TABLE t (column_\(end + 1))")?.columns.first else { return nil }
        let candidates = (isSearched ? 0...end : end...end).reversed().map { place in
          var candidate = best
          candidate.columns.insert(column, at: place)
          if let alias = best.rowidAlias, alias >= place { candidate.rowidAlias = alias + 1 }
          return candidate
        }
        best = seen.best(of: candidates)?.definition ?? best
      }
      return best
    }
    let strangeness = seen.strangeness(in: own)
    guard widths.most < own.storedColumns.count, strangeness > tolerance, own.columns.count <= searched.columns else {
      return nil
    }
    let candidates = own.columns.indices.filter { $0 != own.rowidAlias && !own.columns[$0].isPrimaryKey }.map { place in
      var candidate = own
      candidate.columns.remove(at: place)
      if let alias = own.rowidAlias, alias > place { candidate.rowidAlias = alias - 1 }
      return candidate
    }
    return seen.best(of: candidates).flatMap { $0.strangeness * 2 < strangeness ? $0.definition : nil }
  }
}

extension TableRows {
  /// The number of values that nearly all rows have, and the maximum.
  fileprivate var widths: (usual: Int, most: Int)? {
    let widths = rows.map(\.classes.count).sorted()
    return widths.last.map { (widths[widths.count / 10], $0) }
  }

  /// Adds the next columns without NULL to an uncertain key, so that it refuses no row; the stored order stays.
  fileprivate func extendKey(of table: inout TableDefinition) {
    table.makeAcceptable()
    let filled = table.storedColumns.enumerated().prefix { field, _ in
      rows.allSatisfy { $0.classes.indices.contains(field) && $0.classes[field] != .null }
    }
    for (_, place) in filled where !table.columns[place].isPrimaryKey {
      table.primaryKeyColumns.append(SQLiteFormat.IndexedColumn(name: table.columns[place].name))
    }
  }

  /// Returns the best-fitting definition, the first of equals.
  fileprivate func best(of definitions: [TableDefinition]) -> (definition: TableDefinition, strangeness: Double)? {
    definitions.map { ($0, strangeness(in: $0)) }.min { $0.1 < $1.1 }
  }

  /// Returns the share of misfit values; 1 if the rowid's column has any.
  fileprivate func strangeness(in definition: TableDefinition) -> Double {
    canBe(of: definition) ? strangeShare(in: definition) : 1
  }
}
