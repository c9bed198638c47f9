internal import PersistentStore
internal import SQLiteFormat
internal import StoreFiles

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
