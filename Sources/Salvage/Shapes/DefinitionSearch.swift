internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// Settles by which definition each table is read: the store's own where it does not contradict the rows, else the model's.
///
/// In: the schema that was found, the one that is to be expected, and what rows are like. Out: the trees to look for.
struct DefinitionSearch {
  let schema: SchemaSearch
  let reader: PageReader
  let map: PageMap
  let evidence: Evidence

  /// Whether the store's metadata or its model cache was found, so that Core Data wrote it.
  let isCoreData: Bool

  struct Definitions {
    /// The tables of the model that the store is of, numbered as the store does; nil where no model is known.
    var shapes: ExpectedSchema?

    /// The entries of the schema, repaired.
    var entries: [SchemaEntry]

    /// What a new store is made by.
    var declarations: [SchemaEntry]

    /// The trees to look for.
    var list: TreeList

    /// What is to be said of it in the report.
    var remarks: [String]
  }

  /// Settles the definitions.
  ///
  /// - Parameters:
  ///   - expected: the tables of the model that the store is of; nil where none is known.
  ///   - choice: tells the earlier versions of a model.
  func run(_ expected: ExpectedSchema?, _ choice: ModelChoice) throws(SalvageError) -> Definitions {
    var shapes = expected
    var entries = schema.entries
    var orders: ColumnOrders?
    var remarks: [String] = []
    var isListRefuted = false
    let rows = try TableRows.gather(entries, reader, map)
    if let layout = shapes?.layout {
      let finding = try EntityNumbering.find(reader, map, schema.entries, layout)
      if let numbering = finding.numbering { shapes?.renumber(numbering) }
      isListRefuted = finding.isListRefuted
    }
    if var expected = shapes {
      var repair = SchemaRepair(entries, isWhole: schema.isWhole, expected: expected, rows: rows)
      // Whose statement cannot be used, has its columns in an order that nothing but its rows tells.
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
    if schema.isWhole { remarks += IntegerKeys.restore(in: &entries, rows: rows) }
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

  /// The tables of Core Data's own that rows tell of; none where the schema lists all tables.
  private func ownTables() throws(SalvageError) -> [SchemaEntry] {
    schema.isWhole ? [] : try CoreDataTables.find(reader, map)
  }
}

/// Finds the tables whose statements have lost the word by which a column is the rowid.
///
/// SQLite keeps no value of an `INTEGER PRIMARY KEY` in the rows, and makes no index for it. A column that is the primary key
/// by itself, has no index in a schema that is whole, and no value in any row, was one: its values are the rowids.
enum IntegerKeys {
  /// Declares these columns as what they were.
  ///
  /// - Parameters:
  ///   - entries: those of a schema that is whole.
  ///   - rows: what the rows are like, by the root pages of their tables.
  /// - Returns: what is to be said of it in the report.
  static func restore(in entries: inout [SchemaEntry], rows: [UInt32: TableRows]) -> [String] {
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
      remarks.append(
        "the column \(printable(own.columns[place].name)) of \(printable(entry.name)) is the primary key, has no index and "
          + "no value in any row: it was declared as INTEGER PRIMARY KEY, and has the rowids as its values")
    }
    return remarks
  }

  /// The column that is the primary key by itself, or of which a damaged type tells that it was: `INTEGER PRIMxRY KEY`.
  private static func key(of table: TableDefinition) -> Int? {
    if table.primaryKey.count == 1 { return table.column(named: table.primaryKey[0]) }
    guard table.primaryKey.isEmpty else { return nil }
    return table.columns.firstIndex { column in
      let words = column.declaredType.uppercased().split(separator: " ")
      return words.count == 3 && words[0] == "INTEGER" && words[2] == "KEY"
    }
  }

  /// The statement with the column as the rowid: as it is but for the type, or made anew where that does not do.
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
