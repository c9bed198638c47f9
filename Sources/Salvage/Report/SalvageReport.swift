internal import PersistentStore
public import Platform
package import SQLiteFormat
public import SystemPackage

/// What a salvage recovered and what it did not, why, and the state of every page.
///
/// It is what `lazaret salvage --json` prints, and what is written beside a result.
public struct SalvageReport: Sendable, Hashable {
  /// The number of the form that reports have in JSON.
  ///
  /// It grows when a key changes its meaning; keys may be added without.
  public static let currentFormat = 1

  /// The form that the report was written in.
  public var format = SalvageReport.currentFormat

  /// The account of an entity, or of a table that is no entity's.
  public struct Entity: Sendable, Hashable {
    /// What the number of lost rows stands on.
    public enum Basis: String, Sendable, Hashable, Codable, CaseIterable {
      case none

      /// A recovery kit of the store as it was last.
      case kit

      /// An index that is whole.
      case index

      /// The rows whose remains were found, each of them, or that every store has, as that of Core Data's metadata.
      case cells

      /// The neighbours of what is lost: an estimate.
      case estimate

      /// Nothing tells how many, or whether any: no page of the table is left, or the table and its indexes contradict each
      /// other. Where rows refer to others that are not there, those are lost at least.
      case unknown
    }

    /// The name of the entity, else of the table.
    public var name: String

    /// The table.
    public var table: String

    /// Rows recovered.
    public var recovered: Int64

    /// Those of them that are doubtful: a value of theirs may be wrong.
    public var doubtful: Int64 { doubts.values.reduce(0) { $0.addingClamped($1) } }

    /// Why they are, with how many for each reason; a record is counted once.
    public var doubts: [DoubtReason: Int64] = [:]

    /// Those of them that were rebuilt from an index.
    public var rebuilt: Int64

    /// Those of them that were taken from a backup.
    public var fromBackup: Int64 = 0

    /// Rows that were found whole and that the rebuilt store does not take; they are kept beside it.
    public var setAside: Int64 = 0

    /// Rows lost; where nothing tells how many, those that others refer to.
    public var lost: Int64

    /// What their number stands on.
    public var lostBasis: Basis

    /// The rowids (primary keys) of lost rows, as far as they are known; of more than ten thousand ranges the first.
    public var lostKeys = KeyRanges()

    /// How many of the lost rows are known by their rowids, those that are not listed included.
    public var lostKeysKnown: Int64 = 0

    /// The rowids that the other lost rows likely had: those that no row has, from behind the table's last page up to the
    /// highest that was given; of more than ten thousand ranges the first.
    public var lostKeysEstimated = KeyRanges()

    /// Rows beside the live ones: those that the rebuilt store does not take, other versions, and what is left of lost ones.
    ///
    /// Of a row of which a part is lost, what was found of it is among them, also where the rest of it is in the result.
    public var keptApart: Int64

    /// Those of them that are what was found of a recovered row, of the same cell: they are no rows besides it.
    package var keptParts: Int64 = 0

    /// Rows beside the live ones that are no parts of them.
    package var rowsSetAside: Int64 { max(0, keptApart.subtractingClamped(keptParts)) }

    /// Deleted rows found.
    public var deleted: Int64

    /// Whether the model that the store was rebuilt for lacks the entity: its rows are in the salvaged store, in the table
    /// they had, where no app of that model sees them.
    public var isOutsideModel = false

    /// Whether the number of lost rows is exact; else it is an estimate, or unknown.
    public var isLostExact: Bool { lostBasis != .estimate && lostBasis != .unknown }

    /// Whether each of the lost rows is known by its rowid.
    public var areLostKeysComplete: Bool { lostKeysKnown >= lost }

    /// Whether rows are lost, or may be.
    public var hasLosses: Bool { lost > 0 || lostBasis == .unknown }

    /// The most ranges of rowids that are listed.
    static let maximumRanges = 10_000
  }

  /// The store's main file, as it was named; nil until the salvage has ended.
  public var store: PathText?

  /// The result, as it was named; nil until the salvage has ended.
  public var output: PathText?

  /// Whether everything that the store held is in the result, beyond doubt.
  public var isComplete: Bool

  /// Whether Core Data wrote the store.
  public var isCoreData: Bool

  /// The accounts, by name.
  public var entities: [Entity]

  /// Whether the store may have held tables that nothing tells of: its list of tables is damaged, and no model has them, or
  /// pages with rows belong to none that is known.
  public var mayLackTables = false

  /// The state of the pages.
  public var pages: PageStates

  /// What most likely happened to the store; the surest and largest first, none where nothing is damaged.
  public var causes: [DamageCause] = []

  /// Rows that fit no table.
  public var unplacedRows: Int64

  /// Entries of indexes in `lazaret_lost_and_found`, which are no rows; those of a table without rowids that nothing tells of
  /// look alike.
  public var unplacedEntries: Int64 = 0

  /// What is remarkable about the files, in words.
  public var remarks: [String]

  /// The recovery kit that was used; nil where there was none.
  public var kit: KitUse?

  /// The backup that lost rows were taken from; nil where there was none.
  public var backup: BackupUse?

  /// What was done to make a store of the rows; nil where they were written as found.
  public var rebuild: Rebuild?

  /// A backup that lost rows were taken from.
  public struct BackupUse: Sendable, Hashable, Codable {
    /// When it was made, in RFC 3339.
    public var date: String

    /// What it is called among the backups; nil for a file that is none of ours.
    public var id: String?

    /// Rows taken from it.
    public var rows: Int64

    /// A backup of a date.
    public init(date: Timestamp, id: String?, rows: Int64) {
      self.date = date.rfc3339
      self.id = id
      self.rows = rows
    }
  }

  /// A recovery kit, and how it served.
  public struct KitUse: Sendable, Hashable, Codable {
    /// When it was made, in RFC 3339.
    public var date: String

    /// Whether it is known that nothing was written to the store since, so that what it says is exact.
    public var isCurrent: Bool

    /// Whether something was written to the store since; nil where that cannot be known, and in reports of earlier versions of
    /// this software.
    public var writtenSince: Bool?

    /// Pages that are, byte for byte, those that the kit knows.
    public var pagesConfirmed: Int

    /// Pages that differ from those that the kit knows by a single bit.
    public var pagesWithFlippedBit: Int

    /// A kit of a date.
    init(date: String) {
      self.date = date
      isCurrent = false
      pagesConfirmed = 0
      pagesWithFlippedBit = 0
    }
  }

  /// Records recovered in all.
  public var recovered: Int64 { count.recovered }

  /// Records lost in all.
  public var lost: Int64 { count.lost }

  /// Whether the number of lost records is exact for every entity.
  public var isLostExact: Bool { !count.isEstimate }

  /// Records that are doubtful, in all.
  public var doubtful: Int64 { count.doubtful }

  /// References to records that are gone, in all; 0 where no store was rebuilt.
  public var referencesCut: Int64 { rebuild?.referencesCut.reduce(0) { $0 + $1.count } ?? 0 }
}

extension SalvageReport {
  /// What the migration of a salvaged store left out, because the app's version has no place for it.
  package struct MigrationLoss: Sendable, Hashable, Codable {
    /// The entity, of the version that was migrated.
    package var entity: String

    /// The property; nil where it is about whole records.
    package var property: String?

    /// The values or records concerned; nil where that is not known.
    package var count: Int64?

    /// What it is, in one sentence without a full stop.
    package var text: String

    /// Something that a migration left out.
    package init(entity: String, property: String?, count: Int64?, text: String) {
      self.entity = entity
      self.property = property
      self.count = count
      self.text = text
    }
  }
}

extension SalvageReport {
  /// The report on the rows as they were found.
  init(
    _ outcome: RowOutcome, isSchemaWhole: Bool, list: TreeList, evidence: Evidence, isLogForeign: Bool,
    isJournalForeign: Bool, kit: KitEvidence?
  ) throws(SalvageError) {
    entities = try EntityAccounts(outcome: outcome, list: list, kit: kit).all()
      .ordered { ($0.name, $0.table) < ($1.name, $1.table) }
    isCoreData = list.isCoreData
    pages = PageStates(outcome)
    mayLackTables = !isSchemaWhole && !outcome.crawl.hasAllTables || outcome.crawl.lacksUnknownTable
    unplacedRows = outcome.unplacedRows
    unplacedEntries = outcome.unplacedEntries
    remarks = outcome.reader.overlay?.remarks ?? []
    let layout = outcome.reader.layout
    if layout.isGuessed {
      remarks.append("the file's header is destroyed; its layout was found by the looks of its pages")
    }
    if layout.base > 0 { remarks.append("the database begins at byte \(layout.base) of the file") }
    if !isSchemaWhole { remarks.append("the list of tables is damaged") }
    isComplete =
      !entities.contains { $0.hasLosses || $0.doubtful > 0 || $0.keptApart > 0 || $0.fromBackup > 0 }
      && unplacedRows == 0 && unplacedEntries == 0 && isSchemaWhole
    var search = CauseSearch(
      outcome, evidence: evidence, isLogForeign: isLogForeign, isJournalForeign: isJournalForeign)
    causes = try search.run(hasLosses: entities.contains(where: \.hasLosses))
    self.kit = kit?.use
  }
}

extension SalvageReport {
  /// How much of the store was recovered, from 0 to 100; 100 only where everything was, beyond doubt.
  ///
  /// It is kept for programs that read it, and shown nowhere: the numbers of ``count`` say more.
  ///
  /// The share of the rows that are in the result, a doubtful one counted as a half, among all that the store held as far
  /// as that is known; less up to a fifth for references that were cut, in proportion to the rows. Rows that fit no table
  /// and rows that were set aside count as rows the store held and the result lacks. Rounded down, but never to 0 where
  /// anything was recovered. It is as exact as the number of lost rows is.
  public var score: Int {
    if isComplete { return 100 }
    let inResult = Double(recovered)
    let leftOut = rebuild?.setAside.reduce(Int64(0)) { $0.addingClamped($1.count) } ?? 0
    let setAside = Double(max(leftOut, count.setAside))
    let certain = inResult - 0.5 * Double(min(doubtful, recovered))
    let all = Double(recovered) + Double(lost) + Double(unplacedRows) + setAside
    guard all > 0, certain > 0 else { return 0 }
    let referenceLoss = min(1, Double(referencesCut) / max(1, inResult))
    let value = 100 * certain / all * (1 - 0.2 * referenceLoss)
    return min(99, max(1, Int(value)))
  }
}

extension SalvageReport {
  /// How a store was made of the rows: its version, and everything that had to be repaired.
  public struct Rebuild: Sendable, Hashable, Codable {
    /// How it is known which version the store was written with.
    public enum Basis: String, Sendable, Hashable, Codable {
      /// A version of the given model has the store's version hashes.
      case versionHashes = "version-hashes"

      /// The store carries its model.
      case modelCache = "model-cache"

      /// A version of the given model has the version hashes that a recovery kit noted; nothing in the store tells.
      case recoveryKit = "recovery-kit"

      /// Nothing tells; the version of the given model whose tables fit the rows best was taken.
      case bestFit = "best-fit"

      /// The schema of a plain store was given.
      case schema

      /// No model is known; the tables are as the store's own schema lists them.
      case asFound = "as-found"
    }

    /// One kind of repair.
    public struct Repair: Sendable, Hashable, Codable {
      /// The entity, or the table where it is no entity's.
      public var entity: String

      /// The property, or the properties of a constraint with commas between; nil where it is about whole rows.
      public var property: String?

      /// Why; only for rows that were set aside.
      public var reason: SetAsideReason?

      /// How many rows, references or values.
      public var count: Int64

      /// The primary keys (rowids) of the first ten rows concerned; empty where they have none.
      public var primaryKeys: [Int64]

      /// A repair of some rows.
      package init(entity: String, property: String?, reason: SetAsideReason?, count: Int64, primaryKeys: [Int64]) {
        self.entity = entity
        self.property = property
        self.reason = reason
        self.count = count
        self.primaryKeys = primaryKeys
      }
    }

    /// Why a row is not part of the store.
    public enum SetAsideReason: String, Sendable, Hashable, Codable, CaseIterable {
      /// Its entity number is of no entity that the table holds, or of an abstract one.
      case unknownEntity = "unknown-entity"

      /// Another row has the same values where a constraint allows them once.
      case conflict

      /// It lacks a mandatory value for which the model has no default.
      case missingValue = "missing-value"

      /// It is a pair of a many-to-many relationship of which a record is gone.
      case halfPair = "half-pair"

      /// A constraint of its table refuses it.
      case refused
    }

    /// The name of the version the rows were put into; nil for a model that no version of the given one is, and for plain
    /// stores.
    public var version: String?

    /// How it is known which version the store was written with.
    public var basis: Basis

    /// References that led to records that are gone, by relationship: cut, or dropped with their pair.
    public var referencesCut: [Repair] = []

    /// References of plain stores that lead to no row, by table and column; they are as they were found.
    public var referencesLeft: [Repair] {
      get { dangling ?? [] }
      set { dangling = newValue.isEmpty ? nil : newValue }
    }

    private var dangling: [Repair]?

    /// Rows that are not part of the store but kept in ``setAsideFile``, by entity and reason.
    public var setAside: [Repair] = []

    /// Missing mandatory values that got the default of the model, by attribute.
    public var defaulted: [Repair] = []

    /// Rows that lost against another one where a constraint allows only one, by constraint; they were set aside.
    public var conflicts: [Repair] = []

    /// Entity numbers and save counts that could be put right with certainty, by property or column.
    public var corrected: [Repair] = []

    /// Values of records that are in the store, which has no column for them; they are kept in ``setAsideFile``, by entity and
    /// column.
    public var valuesSetAside: [Repair] {
      get { valuesApart ?? [] }
      set { valuesApart = newValue.isEmpty ? nil : newValue }
    }

    // Reports of earlier versions have none.
    private var valuesApart: [Repair]?

    /// The file of everything that is not in the store; nil where there is nothing.
    public var setAsideFile: FilePath? {
      get { setAsidePath?.path }
      set { setAsidePath = newValue.map { PathText($0) } }
    }

    private var setAsidePath: PathText?

    /// The version that the store was migrated to; nil where it was not migrated.
    public var migratedTo: String?

    /// The steps of the migration, such as `V1 → V2`.
    public var steps: [String] = []

    /// What the migration left out; empty where it left out nothing.
    package var migrationLosses: [MigrationLoss] {
      get { leftOutByMigration ?? [] }
      set { leftOutByMigration = newValue.isEmpty ? nil : newValue }
    }

    // Reports of earlier versions have none.
    private var leftOutByMigration: [MigrationLoss]?

    /// Why the store could not be migrated and is of its own version still; nil where it could, or did not have to be.
    public var migrationFailure: String?

    /// Why the rows of a store that carries its model were put into a version of the given one by the names of their tables and
    /// columns: no way leads there from its own; nil where they were not.
    public var fittedBecause: String?

    private enum CodingKeys: String, CodingKey {
      case version, basis, referencesCut, setAside, defaulted, conflicts, corrected
      case dangling = "referencesLeft"
      case valuesApart = "valuesSetAside"
      case setAsidePath = "setAsideFile"
      case leftOutByMigration = "migrationLosses"
      case migratedTo, steps, migrationFailure, fittedBecause
    }

    /// Whether nothing had to be left out or made up.
    public var isFaithful: Bool {
      referencesCut.isEmpty && setAside.isEmpty && defaulted.isEmpty && conflicts.isEmpty && valuesSetAside.isEmpty
        && migrationFailure == nil && fittedBecause == nil
    }

    /// A rebuild that has repaired nothing yet.
    package init(version: String?, basis: Basis) {
      self.version = version
      self.basis = basis
    }
  }
}

extension SalvageReport {
  /// The accounts of what holds records of the app's.
  ///
  /// Core Data's own tables hold none: its lists, the pairs of its relationships, its history, and its notes on what it
  /// mirrors.
  public var records: [Entity] { isCoreData ? entities.filter { !$0.isCoreDatasOwn } : entities }

  /// The accounts of Core Data's own tables.
  public var ownTables: [Entity] { isCoreData ? entities.filter(\.isCoreDatasOwn) : [] }

  /// The accounts of the pairs of many-to-many relationships, by table.
  public var pairs: [Entity] { isCoreData ? entities.filter(\.isOfPairs) : [] }

  /// Counts the rows of virtual tables once, under their own names: what their modules keep besides is no record.
  package mutating func foldShadowTables(of entries: [SchemaEntry]) {
    for entry in entries {
      guard let module = entry.tableDefinition?.module else { continue }
      let shadows = ShadowTables.names(of: entry.name, module: module)
      let rows = ShadowTables.rows(of: entry.name, module: module)
      entities = entities.compactMap { entity in
        guard shadows.contains(entity.table.lowercased()) else { return entity }
        guard entity.table.lowercased() == rows else { return nil }
        var entity = entity
        (entity.name, entity.table) = (entry.name, entry.name)
        return entity
      }
    }
  }

  /// The numbers of the records, which every text, list and page takes from here.
  public var count: RecoveryCount {
    var count = RecoveryCount(records, isComplete: isComplete)
    count.pairs = PairCount(pairs)
    if mayLackTables { count.noteUnknownTables() }
    count.unplaced = max(0, unplacedRows)
    count.valuesSetAside =
      rebuild?.valuesSetAside.reduce(Int64(0)) { $0.addingClamped(max(0, $1.count)) } ?? 0
    for loss in rebuild?.migrationLosses ?? [] { count.leaveOut(loss.count, isValues: loss.property != nil) }
    return count
  }

  /// Whether any row is doubtful, Core Data's own included.
  package var hasDoubts: Bool { entities.contains { $0.doubtful > 0 } }

  /// Whether anything shows that the store is damaged; nothing does of one that only could not be migrated.
  package var showsDamage: Bool {
    !causes.isEmpty || unplacedRows > 0 || entities.contains { $0.hasLosses || $0.doubtful > 0 || $0.keptApart > 0 }
  }

  /// Whether records or references are missing, or may be.
  package var lacksRecords: Bool { count.lost > 0 || count.hasUnknown || !count.pairs.isWhole || referencesCut > 0 }

  private var rowsApart: Int64 {
    max(
      entities.reduce(Int64(0)) { $0.addingClamped($1.rowsSetAside) },
      rebuild?.setAside.reduce(Int64(0)) { $0.addingClamped($1.count) } ?? 0)
  }

  /// Whether what is no record is missing from the result, or is doubtful: references, values, versions of rows, rows of Core
  /// Data's own tables.
  package var lacksDetails: Bool {
    referencesCut > 0 || rowsApart > 0 || rebuild?.defaulted.contains { $0.count > 0 } ?? false
      || ownTables.contains { $0.hasLosses || $0.doubtful > 0 }
  }

  /// Why the result is not complete beyond doubt, besides lost and doubtful records; empty where it is.
  package var reservations: [String] {
    guard !isComplete else { return [] }
    func sum(_ number: (Entity) -> Int64) -> Int64 { entities.reduce(0) { $0.addingClamped(number($1)) } }
    var reasons: [String] = []
    let taken = sum(\.fromBackup)
    if taken > 0 {
      reasons.append(
        "\(counted(taken, "row")) \(taken == 1 ? "is" : "are") from the backup"
          + (backup.map { " of \(printable($0.date))" } ?? ""))
    }
    let apart = rowsApart
    if apart > 0 { reasons.append("\(counted(apart, "row")) \(apart == 1 ? "was" : "were") set aside") }
    if unplacedRows > 0 { reasons.append("\(counted(unplacedRows, "row")) that fit no table") }
    if unplacedEntries > 0 {
      reasons.append("\(counted(unplacedEntries, "entry", "entries")) of indexes that no root leads to")
    }
    if ownTables.contains(where: { $0.hasLosses || $0.doubtful > 0 }) {
      reasons.append("rows of Core Data's own tables are lost or doubtful")
    }
    let cut = referencesCut
    if cut > 0 { reasons.append("\(counted(cut, "reference")) to lost records \(cut == 1 ? "was" : "were") cut") }
    let defaulted = rebuild?.defaulted.reduce(Int64(0)) { $0.addingClamped($1.count) } ?? 0
    if defaulted > 0 {
      reasons.append("\(counted(defaulted, "missing value")) \(defaulted == 1 ? "has" : "have") the model's default")
    }
    let values = count.valuesSetAside
    if values > 0 {
      reasons.append(
        "\(counted(values, "value")) that \(values == 1 ? "has" : "have") no column \(values == 1 ? "was" : "were") set aside"
      )
    }
    if rebuild?.fittedBecause != nil {
      reasons.append("rows were put into another version by the names of columns")
    }
    if rebuild?.migrationFailure != nil { reasons.append("the store could not be migrated") }
    guard reasons.isEmpty, count.lost == 0, !count.hasUnknown, count.doubtful == 0 else { return reasons }
    // Nothing is counted: the state of the files alone leaves a doubt.
    return remarks.isEmpty ? causes.map { $0.words.hasSuffix(".") ? String($0.words.dropLast()) : $0.words } : remarks
  }

  /// `Not beyond doubt: 12 rows were set aside.`; nil where the result is complete, or where lost or doubtful records tell why
  /// it is not.
  package var reservationWords: String? {
    count.words(reserving: reservations)
  }
}

extension SalvageReport.Entity {
  /// The numbers of this entity alone.
  public var count: RecoveryCount { RecoveryCount([self], isComplete: !hasLosses && doubtful == 0 && setAside == 0) }

  /// Whether a table of a Core Data store is Core Data's own; those of entities begin with `Z` and have their names.
  fileprivate var isCoreDatasOwn: Bool {
    guard name == table else { return false }
    let name = table.uppercased()
    return name.hasPrefix("Z_") || name.hasPrefix("ANSCK") || Self.history.contains(name)
  }

  /// Whether a table of a Core Data store has the pairs of a many-to-many relationship: `Z_3TAGS`, by the number of an entity.
  package var isOfPairs: Bool {
    isCoreDatasOwn && table.uppercased().hasPrefix("Z_") && table.dropFirst(2).first?.isWholeNumber == true
  }

  private static let history: Set<String> = ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"]
}
