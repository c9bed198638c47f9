internal import PersistentStore
public import Platform
internal import SQLiteFormat
public import SystemPackage

/// The outcome of a salvage, as `lazaret salvage --json` prints it.
public struct SalvageReport: Sendable, Hashable {
  /// The current JSON format, raised when a key changes its meaning.
  public static let currentFormat = 1

  /// The format of this report.
  public var format = SalvageReport.currentFormat

  /// The account of an entity, or of another table.
  public struct Entity: Sendable, Hashable {
    /// The evidence for a lost count.
    public enum Basis: String, Sendable, Hashable, Codable, CaseIterable {
      case none

      /// A recovery kit of the last state.
      case kit

      /// An intact index.
      case index

      /// Remains of every lost row, or a fixed count, as for metadata.
      case cells

      /// The neighbours of lost pages: an estimate.
      case estimate

      /// No page of the table is left, or its indexes contradict it.
      case unknown
    }

    /// The entity, else the table.
    public var name: String

    /// The table.
    public var table: String

    /// Recovered rows.
    public var recovered: Int64

    /// Recovered rows that may have a wrong value.
    public var doubtful: Int64 { doubts.values.reduce(0) { $0.addingClamped($1) } }

    /// The doubtful rows by reason, each once.
    public var doubts: [DoubtReason: Int64] = [:]

    /// Recovered rows rebuilt from an index.
    public var rebuilt: Int64

    /// Recovered rows from a backup.
    public var fromBackup: Int64 = 0

    /// Intact rows kept beside the rebuilt store.
    public var setAside: Int64 = 0

    /// Lost rows; if unknown, the missing referenced ones.
    public var lost: Int64

    /// The evidence for `lost`.
    public var lostBasis: Basis

    /// The known rowids of lost rows, at most ten thousand ranges.
    public var lostKeys = KeyRanges()

    /// The number of lost rows with known rowids.
    public var lostKeysKnown: Int64 = 0

    /// The likely rowids of the others: unused ones up to the highest assigned key; at most ten thousand ranges.
    public var lostKeysEstimated = KeyRanges()

    /// Set-aside rows, other versions, and remains of lost or incomplete rows.
    public var keptApart: Int64

    /// Those that are parts of recovered rows.
    package var keptParts: Int64 = 0

    package var rowsSetAside: Int64 { max(0, keptApart.subtractingClamped(keptParts)) }

    /// Deleted rows found.
    public var deleted: Int64

    /// Whether the model lacks the entity: the app cannot see its rows in the salvaged store.
    public var isOutsideModel = false

    /// Whether the lost count is exact.
    public var isLostExact: Bool { lostBasis != .estimate && lostBasis != .unknown }

    /// Whether all lost rowids are known.
    public var areLostKeysComplete: Bool { lostKeysKnown >= lost }

    /// Whether rows are, or may be, lost.
    public var hasLosses: Bool { lost > 0 || lostBasis == .unknown }

    static let maximumRanges = 10_000
  }

  /// The store's file as given; nil during the salvage.
  public var store: PathText?

  /// The result as given; nil during the salvage.
  public var output: PathText?

  /// Whether the result has the entire store, beyond doubt.
  public var isComplete: Bool

  /// Whether Core Data wrote the store.
  public var isCoreData: Bool

  /// The accounts, by name.
  public var entities: [Entity]

  /// Whether tables may be unknown: their list is damaged and no model replaces it, or rows belong to no known table.
  public var mayLackTables = false

  /// The state of the pages.
  public var pages: PageStates

  /// The likely causes, the surest and largest first.
  public var causes: [DamageCause] = []

  /// Rows that fit no table.
  public var unplacedRows: Int64

  /// Index entries in `lazaret_lost_and_found`, or rows of an unknown table without rowids.
  public var unplacedEntries: Int64 = 0

  /// Remarks on the files.
  public var remarks: [String]

  /// The recovery kit used.
  public var kit: KitUse?

  /// The backup used.
  public var backup: BackupUse?

  /// The rebuild; nil if rows were written as found.
  public var rebuild: Rebuild?

  /// A backup that lost rows were taken from.
  public struct BackupUse: Sendable, Hashable, Codable {
    /// The date in RFC 3339.
    public var date: String

    /// Its identifier; nil for another file.
    public var id: String?

    /// Rows taken from it.
    public var rows: Int64

    /// Creates a use of a dated backup.
    public init(date: Timestamp, id: String?, rows: Int64) {
      self.date = date.rfc3339
      self.id = id
      self.rows = rows
    }
  }

  /// A recovery kit and its use.
  public struct KitUse: Sendable, Hashable, Codable {
    /// The date in RFC 3339.
    public var date: String

    /// Whether the store is known to be unchanged since.
    public var isCurrent: Bool

    /// Whether the store was written since; nil if unknown.
    public var writtenSince: Bool?

    /// Pages identical to the kit's.
    public var pagesConfirmed: Int

    /// Pages one bit different from the kit's.
    public var pagesWithFlippedBit: Int

    init(date: String) {
      self.date = date
      isCurrent = false
      pagesConfirmed = 0
      pagesWithFlippedBit = 0
    }
  }

  /// Recovered records in all.
  public var recovered: Int64 { count.recovered }

  /// Lost records in all.
  public var lost: Int64 { count.lost }

  /// Whether every lost count is exact.
  public var isLostExact: Bool { !count.isEstimate }

  /// Doubtful records in all.
  public var doubtful: Int64 { count.doubtful }

  /// References to missing records in all.
  public var referencesCut: Int64 { rebuild?.referencesCut.reduce(0) { $0 + $1.count } ?? 0 }
}

extension SalvageReport {
  /// A part that a migration left out.
  package struct MigrationLoss: Sendable, Hashable, Codable {
    package var entity: String

    /// Nil for whole records.
    package var property: String?

    package var count: Int64?

    /// A sentence without its period.
    package var text: String
  }
}

extension SalvageReport {
  init(_ outcome: RowOutcome, _ found: FoundTrees, _ kit: KitEvidence?, evidence: Evidence) throws {
    let isSchemaWhole =
      found.schema.isWhole && !outcome.crawl.lacksTables || found.schema.isEmpty && outcome.crawl.hasFreePagesOnly
    let list = found.definitions.list
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
    var search = CauseSearch(outcome, found, evidence: evidence)
    causes = try search.run(hasLosses: entities.contains(where: \.hasLosses))
    self.kit = kit?.use
  }
}

extension SalvageReport {
  /// The recovered share from 0 to 100; 100 only if complete beyond doubt.
  ///
  /// Kept for programs only: ``count`` says more.
  ///
  /// The result's rows, doubtful ones as half, divided by all known rows, including unplaced and set-aside ones; less
  /// up to a fifth for cut references. Rounded down, but above 0 if any row was recovered.
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
  /// The version and repairs of a rebuilt store.
  public struct Rebuild: Sendable, Hashable, Codable {
    /// The evidence for the store's version.
    public enum Basis: String, Sendable, Hashable, Codable {
      /// The given model has the store's version hashes.
      case versionHashes = "version-hashes"

      /// The store has its model.
      case modelCache = "model-cache"

      /// The given model has a recovery kit's version hashes.
      case recoveryKit = "recovery-kit"

      /// The best-fitting version of the given model.
      case bestFit = "best-fit"

      /// A given schema of a plain store.
      case schema

      /// The store's own schema, without a model.
      case asFound = "as-found"
    }

    /// One kind of repair.
    public struct Repair: Sendable, Hashable, Codable {
      /// The entity, else the table.
      public var entity: String

      /// The properties between commas; nil for whole rows.
      public var property: String?

      /// The reason, for set-aside rows.
      public var reason: SetAsideReason?

      /// The number of rows, references or values.
      public var count: Int64

      /// The first ten primary keys, if any.
      public var primaryKeys: [Int64]
    }

    /// The reason for setting a row aside.
    public enum SetAsideReason: String, Sendable, Hashable, Codable, CaseIterable {
      /// The entity number is abstract or foreign to the table.
      case unknownEntity = "unknown-entity"

      /// Another row has the values of a unique constraint.
      case conflict

      /// A mandatory value without a default is missing.
      case missingValue = "missing-value"

      /// A record of a many-to-many pair is missing.
      case halfPair = "half-pair"

      /// A constraint of its table refuses it.
      case refused
    }

    /// The version of the rows; nil for other models and plain stores.
    public var version: String?

    /// The evidence for the store's version.
    public var basis: Basis

    /// Dangling references by relationship: cut, or dropped with their pair.
    public var referencesCut: [Repair] = []

    /// Dangling references of plain stores, left as found.
    public var referencesLeft: [Repair] {
      get { dangling ?? [] }
      set { dangling = newValue.isEmpty ? nil : newValue }
    }

    private var dangling: [Repair]?

    /// Rows kept in ``setAsideFile``, by entity and reason.
    public var setAside: [Repair] = []

    /// Missing mandatory values replaced by defaults, by attribute.
    public var defaulted: [Repair] = []

    /// Set-aside rows of a uniqueness conflict, by constraint.
    public var conflicts: [Repair] = []

    /// Entity numbers and save counts corrected with certainty.
    public var corrected: [Repair] = []

    /// Values without a column, kept in ``setAsideFile``.
    public var valuesSetAside: [Repair] {
      get { valuesApart ?? [] }
      set { valuesApart = newValue.isEmpty ? nil : newValue }
    }

    // Nil in reports of earlier versions.
    private var valuesApart: [Repair]?

    /// The file of set-aside content, if any.
    public var setAsideFile: FilePath? {
      get { setAsidePath?.path }
      set { setAsidePath = newValue.map { PathText($0) } }
    }

    private var setAsidePath: PathText?

    /// The version after migration; nil without one.
    public var migratedTo: String?

    /// The migration's steps, such as `V1 → V2`.
    public var steps: [String] = []

    package var migrationLosses: [MigrationLoss] {
      get { leftOutByMigration ?? [] }
      set { leftOutByMigration = newValue.isEmpty ? nil : newValue }
    }

    // Nil in reports of earlier versions.
    private var leftOutByMigration: [MigrationLoss]?

    /// The reason for a failed migration.
    public var migrationFailure: String?

    /// The reason why rows were fitted into the given model by names: no migration exists from the store's own.
    public var fittedBecause: String?

    private enum CodingKeys: String, CodingKey {
      case version, basis, referencesCut, setAside, defaulted, conflicts, corrected
      case dangling = "referencesLeft"
      case valuesApart = "valuesSetAside"
      case setAsidePath = "setAsideFile"
      case leftOutByMigration = "migrationLosses"
      case migratedTo, steps, migrationFailure, fittedBecause
    }

    /// Whether no part was omitted or invented.
    public var isFaithful: Bool {
      referencesCut.isEmpty && setAside.isEmpty && defaulted.isEmpty && conflicts.isEmpty && valuesSetAside.isEmpty
        && migrationFailure == nil && fittedBecause == nil
    }

    init(version: String?, basis: Basis) {
      self.version = version
      self.basis = basis
    }
  }
}

extension SalvageReport {
  /// The accounts of the app's records, without Core Data's own tables: lists, pairs, history and mirroring.
  public var records: [Entity] { isCoreData ? entities.filter { !$0.isCoreDatasOwn } : entities }

  /// The accounts of Core Data's own tables.
  public var ownTables: [Entity] { isCoreData ? entities.filter(\.isCoreDatasOwn) : [] }

  /// The accounts of many-to-many pairs, by table.
  public var pairs: [Entity] { isCoreData ? entities.filter(\.isOfPairs) : [] }

  /// Folds shadow tables into their virtual tables.
  mutating func foldShadowTables(of entries: [SchemaEntry]) {
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

  /// The record counts, the source of every output.
  public var count: RecoveryCount {
    var count = RecoveryCount(records, isComplete: isComplete)
    count.pairs = PairCount(pairs)
    if mayLackTables { count.noteUnknownTables() }
    count.unplaced = max(0, unplacedRows)
    count.valuesSetAside = rebuild?.valuesSetAside.reduce(Int64(0)) { $0.addingClamped(max(0, $1.count)) } ?? 0
    for loss in rebuild?.migrationLosses ?? [] { count.leaveOut(loss.count, isValues: loss.property != nil) }
    return count
  }

  package var hasDoubts: Bool { entities.contains { $0.doubtful > 0 } }

  /// Whether evidence of damage exists beyond a failed migration.
  package var showsDamage: Bool {
    !causes.isEmpty || unplacedRows > 0 || entities.contains { $0.hasLosses || $0.doubtful > 0 || $0.keptApart > 0 }
  }

  package var lacksRecords: Bool { count.lost > 0 || count.hasUnknown || !count.pairs.isWhole || referencesCut > 0 }

  private var rowsApart: Int64 {
    max(
      entities.reduce(Int64(0)) { $0.addingClamped($1.rowsSetAside) },
      rebuild?.setAside.reduce(Int64(0)) { $0.addingClamped($1.count) } ?? 0)
  }

  /// Whether content other than records is missing or doubtful.
  package var lacksDetails: Bool {
    referencesCut > 0 || rowsApart > 0 || rebuild?.defaulted.contains { $0.count > 0 } ?? false
      || ownTables.contains { $0.hasLosses || $0.doubtful > 0 }
  }

  /// The reasons for doubt other than lost and doubtful records.
  package var reservations: [String] {
    guard !isComplete else { return [] }
    var reasons: [String] = []
    func note(_ count: Int64, _ one: String, _ several: String) {
      if count > 0 { reasons.append(counted(count, one, several)) }
    }
    let date = backup.map { " of \(printable($0.date))" } ?? ""
    let taken = entities.reduce(Int64(0)) { $0.addingClamped($1.fromBackup) }
    note(taken, "row is from the backup\(date)", "rows are from the backup\(date)")
    note(rowsApart, "row was set aside", "rows were set aside")
    note(unplacedRows, "row that fit no table", "rows that fit no table")
    note(unplacedEntries, "entry of indexes that no root leads to", "entries of indexes that no root leads to")
    if ownTables.contains(where: { $0.hasLosses || $0.doubtful > 0 }) {
      reasons.append("rows of Core Data's own tables are lost or doubtful")
    }
    note(referencesCut, "reference to lost records was cut", "references to lost records were cut")
    let defaulted = rebuild?.defaulted.reduce(Int64(0)) { $0.addingClamped($1.count) } ?? 0
    note(defaulted, "missing value has the model's default", "missing values have the model's default")
    note(count.valuesSetAside, "value that has no column was set aside", "values that have no column were set aside")
    if rebuild?.fittedBecause != nil { reasons.append("rows were put into another version by the names of columns") }
    if rebuild?.migrationFailure != nil { reasons.append("the store could not be migrated") }
    guard reasons.isEmpty, count.lost == 0, !count.hasUnknown, count.doubtful == 0 else { return reasons }
    return remarks.isEmpty ? causes.map { $0.words.hasSuffix(".") ? String($0.words.dropLast()) : $0.words } : remarks
  }

  /// `Not beyond doubt: 12 rows were set aside.`, unless lost or doubtful records explain it.
  package var reservationWords: String? { count.words(reserving: reservations) }
}

extension SalvageReport.Entity {
  /// This entity's counts.
  public var count: RecoveryCount { RecoveryCount([self], isComplete: !hasLosses && doubtful == 0 && setAside == 0) }

  /// Entity tables are named `Z` and the entity.
  fileprivate var isCoreDatasOwn: Bool {
    guard name == table else { return false }
    let name = table.uppercased()
    return name.hasPrefix("Z_") || name.hasPrefix("ANSCK") || Self.history.contains(name)
  }

  /// Pair tables are named like `Z_3TAGS`, by an entity number.
  package var isOfPairs: Bool {
    isCoreDatasOwn && table.uppercased().hasPrefix("Z_") && table.dropFirst(2).first?.isWholeNumber == true
  }

  private static let history: Set<String> = ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"]
}
