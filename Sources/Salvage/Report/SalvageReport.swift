internal import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat

/// What a salvage recovered and what it did not, and the state of every page.
public struct SalvageReport: Sendable {
  /// The account of an entity, or of a table that is no entity's.
  public struct Entity: Sendable, Hashable {
    /// The name of the entity, else of the table.
    public var name: String

    /// The table.
    public var table: String

    /// Rows recovered.
    public var recovered: Int64

    /// Those of them that are doubtful.
    public var doubtful: Int64

    /// Those of them that were rebuilt from an index.
    public var rebuilt: Int64

    /// Rows lost.
    public var lost: Int64

    /// Whether the number of lost rows is exact; else it is an estimate.
    public var isLostExact: Bool

    /// Rows kept apart from the live ones.
    public var keptApart: Int64

    /// Deleted rows found.
    public var deleted: Int64
  }

  /// Whether everything that the store held is in the result, beyond doubt.
  public var isComplete: Bool

  /// Whether Core Data wrote the store.
  public var isCoreData: Bool

  /// The accounts, by name.
  public var entities: [Entity]

  /// The state of the pages.
  public var pages: PageStates

  /// Rows that fit no table.
  public var unplacedRows: Int64

  /// What is remarkable about the files, in words.
  public var remarks: [String]

  /// What was done to make a store of the rows; nil where they were written as found.
  public var rebuild: Rebuild?

  /// Rows recovered in all.
  public var recovered: Int64 { entities.reduce(0) { $0 + $1.recovered } }

  /// Rows lost in all.
  public var lost: Int64 { entities.reduce(0) { $0 + $1.lost } }

  /// Rows that are doubtful, in all.
  public var doubtful: Int64 { entities.reduce(0) { $0 + $1.doubtful } }
}

extension SalvageReport {
  init(
    _ harvest: RowHarvest, isSchemaWhole: Bool, list: TreeList
  ) throws(SalvageError) {
    var entities: [Entity] = []
    for index in harvest.crawl.trees.indices {
      guard harvest.liveTables[index] != nil else { continue }
      let tally = harvest.tallies[index]
      let whole = Entity(
        name: tally.name, table: tally.name, recovered: tally.recovered, doubtful: tally.doubtful,
        rebuilt: tally.fromIndex, lost: tally.lost, isLostExact: tally.isExact || tally.lost == 0,
        keptApart: tally.keptApart, deleted: tally.deleted)
      entities += try harvest.split(whole, tree: index, list)
    }
    self.entities = entities.sorted { ($0.name, $0.table) < ($1.name, $1.table) }
    isCoreData = list.isCoreData
    pages = PageStates(harvest)
    unplacedRows = harvest.unplacedRows
    remarks = harvest.reader.overlay?.remarks ?? []
    let layout = harvest.reader.layout
    if layout.isGuessed {
      remarks.append("the file's header is destroyed; its layout was found by the looks of its pages")
    }
    if layout.base > 0 { remarks.append("the database begins at byte \(layout.base) of the file") }
    if !isSchemaWhole { remarks.append("the list of tables is damaged") }
    isComplete =
      !entities.contains { $0.lost > 0 || $0.doubtful > 0 || $0.keptApart > 0 } && unplacedRows == 0 && isSchemaWhole
  }
}

extension RowHarvest {
  /// The accounts of a table's entities; that of the table itself where it has but one, or none.
  fileprivate func split(
    _ whole: SalvageReport.Entity, tree index: Int, _ list: TreeList
  ) throws(SalvageError) -> [SalvageReport.Entity] {
    let names = list.entityNames(ofTable: whole.table)
    guard let first = names.first else { return [whole] }
    var only = whole
    only.name = first.name
    guard names.count > 1 else { return [only] }
    var result: [SalvageReport.Entity] = []
    for (name, number) in names {
      var entity = whole
      entity.name = name
      entity.recovered = try liveTables[index]?.count(ofEntity: number) ?? 0
      // What is lost or doubtful cannot be told apart by entity; it is told with the first one.
      if name != first.name {
        entity.lost = 0
        entity.doubtful = 0
        entity.rebuilt = 0
        entity.keptApart = 0
        entity.deleted = 0
      }
      result.append(entity)
    }
    return result
  }
}
