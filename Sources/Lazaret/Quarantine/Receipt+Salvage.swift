internal import ManagedObjectModel
internal import PersistentStore
package import Platform
package import Salvage

extension Receipt {
  /// The salvage of a quarantined store.
  ///
  /// Earlier versions wrote receipts without some optional members.
  package struct Salvage: Sendable, Hashable, Codable {
    package enum State: String, Sendable, Hashable, Codable, CaseIterable {
      case pending

      case salvaged

      /// It produced no store that an app could open.
      case failed

      case installed
    }

    package var state: State

    /// RFC 3339.
    package var date: String

    /// Whether the place's next opening continues it and installs the result.
    package var isWanted: Bool

    /// The best result, to be installed.
    package var result: Result?

    /// The other results, oldest first.
    package var others: [Result]?

    /// The reason of the last attempt's failure.
    package var failure: Reason?

    package var installed: Release?

    /// A running or interrupted installation.
    var installing: Release?

    /// The salvaged store waits because it is newer than the app.
    package static let newerAppCode = "newer-than-app"

    /// The salvaged store waits because the given order omits its version.
    static let unlistedVersionCode = "unlisted-version"

    /// The salvaged store waits because its migration failed.
    package static let notMigratedCode = "salvage-not-migrated"

    /// The codes of stores that wait for another version of the app.
    package static let waitingCodes: Set<String> = [newerAppCode, unlistedVersionCode, notMigratedCode]

    private enum CodingKeys: String, CodingKey {
      case state, date
      case isWanted = "wanted"
      case result, others, failure, installed, installing
    }

    /// Creates a requested salvage.
    init(pendingSince date: Timestamp, isWanted: Bool) {
      state = .pending
      self.date = date.rfc3339
      self.isWanted = isWanted
    }
  }
}

extension Receipt.Salvage {
  /// The account of an entity, or of a table without one.
  package struct Entity: Sendable, Hashable, Codable {
    /// The entity, or the table.
    package var name: String

    package var table: String

    package var recovered: Int64

    package var doubtful: Int64

    /// By the codes of a salvage report.
    package var doubtfulReasons: [String: Int64]?

    /// The recovered records from a backup.
    package var fromBackup: Int64?

    /// The records found whole but set aside.
    package var setAside: Int64?

    package var lost: Int64

    /// Whether `lost` is exact; otherwise an estimate, a minimum, or unknown if 0.
    package var lostIsExact: Bool

    /// The basis of the lost number, as in a salvage report.
    package var lostBasis: String?

    /// Whether records are or may be lost.
    package var hasLosses: Bool { lost > 0 || !lostIsExact }

    package init(
      name: String, table: String, recovered: Int64, doubtful: Int64, doubtfulReasons: [String: Int64]? = nil,
      fromBackup: Int64? = nil, setAside: Int64? = nil, lost: Int64, lostIsExact: Bool, lostBasis: String? = nil
    ) {
      self.name = name
      self.table = table
      self.recovered = recovered
      self.doubtful = doubtful
      self.doubtfulReasons = doubtfulReasons
      self.fromBackup = fromBackup
      self.setAside = setAside
      self.lost = lost
      self.lostIsExact = lostIsExact
      self.lostBasis = lostBasis
    }
  }

  /// A result's sources other than the quarantined store.
  package struct Evidence: Sendable, Hashable, Codable {
    /// The recovery kit's date as a file name.
    package var kit: String?

    /// The donor of lost records: an identifier, or a foreign backup's date.
    package var backup: String?

    package var deleted: Bool

    /// The version of Lazaret.
    package var library: String

    /// The SHA-256 over the quarantined files at that time.
    package var digest: String?

    /// The files that had changed since the quarantine.
    package var changes: [EvidenceCheck.Difference]?

    package init(kit: String?, backup: String?, deleted: Bool, library: String, files: EvidenceCheck? = nil) {
      self.kit = kit
      self.backup = backup
      self.deleted = deleted
      self.library = library
      digest = files?.digest
      changes = files.flatMap { $0.differences.isEmpty ? nil : $0.differences }
    }
  }

  /// A salvaged store, with paths relative to the receipt's folder.
  package struct Result: Sendable, Hashable, Codable {
    package var name: PathText

    package var report: PathText

    /// The file of set-aside rows and values.
    package var setAside: PathText?

    /// RFC 3339.
    package var date: String

    package var bytes: Int64

    package var sha256: String

    /// Nil if its model is not a given version.
    package var version: String?

    /// Whether it opened with the given model's current version.
    package var isUsable: Bool

    /// Whether all content was recovered without doubt.
    package var isComplete: Bool

    /// Reasons for incompleteness other than lost and doubtful records.
    var incompleteBecause: [String]?

    /// Whether content other than records is missing or doubtful: references, values, rows of Core Data's own tables.
    var lacksDetails: Bool?

    /// The recovered share, from 0 to 100, for programs that read it; shown nowhere.
    package var score: Int?

    package var entities: [Entity]

    /// The accounts of many-to-many pairs, by table.
    package var pairs: [Entity]?

    /// Whether the store may have held unknown tables; nil if it held no table.
    package var mayLackTables: Bool?

    /// The values set aside for lack of a column.
    package var valuesSetAside: Int64?

    /// The rows set aside because they fit no table.
    package var unplacedRows: Int64?

    package var migrationLosses: [MigrationLoss]?

    package var evidence: Evidence?

    private enum CodingKeys: String, CodingKey {
      case name, report, setAside, date, bytes, sha256, version
      case isUsable = "usable"
      case isComplete = "complete"
      case incompleteBecause, lacksDetails, score, entities
      case pairs = "relationships"
      case mayLackTables, valuesSetAside, unplacedRows, migrationLosses, evidence
    }

    package init(
      name: PathText, report: PathText, setAside: PathText?, date: Timestamp, bytes: Int64, sha256: String,
      version: String?, isUsable: Bool, isComplete: Bool, incompleteBecause: [String]? = nil, lacksDetails: Bool? = nil,
      score: Int?, entities: [Entity], pairs: [Entity]? = nil, mayLackTables: Bool? = nil, valuesSetAside: Int64? = nil,
      unplacedRows: Int64? = nil, migrationLosses: [MigrationLoss]? = nil, evidence: Evidence? = nil
    ) {
      self.name = name
      self.report = report
      self.setAside = setAside
      self.date = date.rfc3339
      self.bytes = bytes
      self.sha256 = sha256
      self.version = version
      self.isUsable = isUsable
      self.isComplete = isComplete
      self.incompleteBecause = incompleteBecause
      self.lacksDetails = lacksDetails
      self.score = score
      self.entities = entities
      self.pairs = pairs
      self.mayLackTables = mayLackTables
      self.valuesSetAside = valuesSetAside
      self.unplacedRows = unplacedRows
      self.migrationLosses = migrationLosses
      self.evidence = evidence
    }
  }
}

extension RecoveryCount {
  package init(_ result: Receipt.Salvage.Result) {
    self.init(
      result.entities, pairs: result.pairs, isComplete: result.isComplete, mayLackTables: result.mayLackTables,
      valuesSetAside: result.valuesSetAside, unplaced: result.unplacedRows, losses: result.migrationLosses)
  }

  init(_ salvage: OpeningSalvage) {
    self.init(
      salvage.entities, pairs: salvage.pairAccounts, isComplete: salvage.isComplete,
      mayLackTables: salvage.mayLackTables, valuesSetAside: salvage.valuesSetAside, unplaced: salvage.unplacedRows,
      losses: salvage.migrationLosses)
  }

  package init(_ entity: Receipt.Salvage.Entity) {
    self.init([entity], pairs: nil, isComplete: !entity.hasLosses && entity.doubtful == 0 && entity.setAside ?? 0 == 0)
  }

  private init(
    _ entities: [Receipt.Salvage.Entity], pairs accounts: [Receipt.Salvage.Entity]?, isComplete: Bool,
    mayLackTables: Bool? = nil, valuesSetAside: Int64? = nil, unplaced: Int64? = nil,
    losses: [Receipt.Salvage.MigrationLoss]? = nil
  ) {
    self.init(isComplete: isComplete)
    for account in accounts ?? [] {
      pairs.add(
        recovered: account.recovered, setAside: account.setAside ?? 0, lost: account.lost, isExact: account.lostIsExact,
        isUnknown: account.lostBasis.flatMap(SalvageReport.Entity.Basis.init) == .unknown)
    }
    for entity in entities {
      add(
        recovered: entity.recovered, doubtful: entity.doubtful,
        reasons: DoubtReason.counts(entity.doubtfulReasons, of: entity.doubtful), setAside: entity.setAside ?? 0,
        lost: entity.lost, isExact: entity.lostIsExact, basis: entity.lostBasis.flatMap(SalvageReport.Entity.Basis.init)
      )
    }
    if mayLackTables == true { noteUnknownTables() }
    self.valuesSetAside = max(0, valuesSetAside ?? 0)
    self.unplaced = max(0, unplaced ?? 0)
    for loss in losses ?? [] { leaveOut(loss.count, isValues: loss.property != nil) }
  }
}

extension Receipt.Salvage.Entity {
  init(_ entity: SalvageReport.Entity) {
    self.init(
      name: entity.name, table: entity.table, recovered: entity.recovered, doubtful: entity.doubtful,
      doubtfulReasons: entity.doubts.isEmpty ? nil : DoubtReason.codes(entity.doubts),
      fromBackup: entity.fromBackup == 0 ? nil : entity.fromBackup,
      setAside: entity.setAside == 0 ? nil : entity.setAside, lost: entity.lost, lostIsExact: entity.isLostExact,
      lostBasis: entity.lostBasis.rawValue)
  }
}

extension Receipt.Salvage.Result {
  package var count: RecoveryCount { RecoveryCount(self) }

  package var words: String { count.words }

  /// A sentence on incompleteness that no number of records expresses.
  package var reservationWords: String? { count.words(reserving: incompleteBecause ?? []) }

  package var recovered: Int64 { count.recovered }

  var doubtful: Int64 { count.doubtful }

  package var lost: Int64 { count.lost }

  /// Whether `lost` is exact rather than an estimate.
  var lostIsExact: Bool { !count.isEstimate }
}

extension Receipt {
  /// The records of a sound store that fits neither the app nor its own model; nil if damaged or not counted.
  var soundRecords: Int64? {
    let codes = [
      "other-model", "unknown-version", "not-core-data", "other-schema", VerdictReason.notMigratableCode,
      VerdictReason.tablesMissingCode, VerdictReason.repairableCode, VerdictReason.migrationFailedCode,
      VerdictReason.repairFailedCode,
    ]
    guard codes.contains(reason.code), let entities else { return nil }
    var sum: Int64 = 0
    for entity in entities {
      guard let rows = entity.rows else { return nil }
      sum = max(0, sum &+ Int64(rows))
    }
    return sum
  }
}
