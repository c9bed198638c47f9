internal import ManagedObjectModel
internal import Migration
package import Platform
internal import Salvage

extension Receipt {
  /// What has become of the salvage of a quarantined store.
  package struct Salvage: Sendable, Hashable, Codable {
    /// How far it is.
    package enum State: String, Sendable, Hashable, Codable, CaseIterable {
      /// It was asked for and has not been done, or not to its end.
      case pending

      /// There is a salvaged store beside the quarantined one.
      case salvaged

      /// It gave nothing that an app could open.
      case failed

      /// A copy of the salvaged store was put into a store's place.
      case installed
    }

    /// How far it is.
    package var state: State

    /// Since when, in RFC 3339.
    package var date: String

    /// Whether the next opening at the store's place goes on with it, and installs what comes out.
    package var isWanted: Bool

    /// The best that came out of it, which is the one to install; nil where nothing has.
    package var result: Result?

    /// What else came out of it, oldest first: results that are not better, or that a better one came after; nil for none.
    package var others: [Result]?

    /// Why the last attempt gave nothing that an app could open; nil where it did, or none was made.
    package var failure: Reason?

    /// Where a copy of the salvaged store was put, and when; nil where it was not.
    package var installed: Release?

    /// Where a copy of the salvaged store is being put, and since when; it stays behind where that was interrupted.
    package var installing: Release?

    /// The code of the reason why a salvaged store waits: it is newer than the app.
    package static let newerAppCode = "newer-than-app"

    /// The code of the reason why a salvaged store waits: the order of versions that was given leaves its version out.
    package static let unlistedVersionCode = "unlisted-version"

    /// The code of the reason why a salvaged store waits: it is of an earlier version, and its migration failed.
    package static let notMigratedCode = "salvage-not-migrated"

    /// The codes of the reasons why a salvaged store waits, with its records, for another version of the app.
    package static let waitingCodes: Set<String> = [newerAppCode, unlistedVersionCode, notMigratedCode]

    private enum CodingKeys: String, CodingKey {
      case state
      case date
      case isWanted = "wanted"
      case result
      case others
      case failure
      case installed
      case installing
    }

    /// A salvage that is asked for.
    ///
    /// - Parameter isWanted: whether the next opening goes on with it.
    package init(pendingSince date: Timestamp, isWanted: Bool) {
      state = .pending
      self.date = date.rfc3339
      self.isWanted = isWanted
    }
  }
}

extension Receipt.Salvage {
  /// The account of an entity, or of a table that is no entity's.
  package struct Entity: Sendable, Hashable, Codable {
    /// The name of the entity, else of the table.
    package var name: String

    /// The table.
    package var table: String

    /// Records recovered.
    package var recovered: Int64

    /// Those of them that are doubtful.
    package var doubtful: Int64

    /// Why they are, by the codes of a salvage report; nil where none is, or an earlier version wrote the receipt.
    package var doubtfulReasons: [String: Int64]?

    /// Those recovered that were taken from a backup; nil where none was, or an earlier version wrote the receipt.
    package var fromBackup: Int64?

    /// Records that were found whole and are not in the salvaged store; nil where there are none, or an earlier version wrote
    /// the receipt.
    package var setAside: Int64?

    /// Records lost.
    package var lost: Int64

    /// Whether the number of lost records is exact; else it is an estimate, or the least, or where it is 0 not known.
    package var lostIsExact: Bool

    /// What the number of lost records stands on, by the word of a salvage report; nil where an earlier version wrote the
    /// receipt.
    package var lostBasis: String?

    /// Whether records are lost, or may be.
    package var hasLosses: Bool { lost > 0 || !lostIsExact }

    /// An account.
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

  /// What a result stands on beside the quarantined store.
  package struct Evidence: Sendable, Hashable, Codable {
    /// The recovery kit, by its date as a file name; nil where none was used.
    package var kit: String?

    /// The backup that lost records were taken from: its identifier, or its date where it is none of ours; nil for none.
    package var backup: String?

    /// Whether deleted records were looked for.
    package var deleted: Bool

    /// The version of this software.
    package var library: String

    /// The SHA-256 over the quarantined files as they were then; nil in receipts of earlier versions of this software.
    package var digest: String?

    /// The files that were not as they were quarantined; nil for none, and in receipts of earlier versions of this software.
    package var changes: [EvidenceCheck.Difference]?

    /// The evidence of a result.
    package init(kit: String?, backup: String?, deleted: Bool, library: String, files: EvidenceCheck? = nil) {
      self.kit = kit
      self.backup = backup
      self.deleted = deleted
      self.library = library
      digest = files?.digest
      changes = files.flatMap { $0.differences.isEmpty ? nil : $0.differences }
    }
  }

  /// A salvaged store: its files, relative to the folder of the receipt, and what is in it.
  package struct Result: Sendable, Hashable, Codable {
    /// The salvaged store.
    package var name: PathText

    /// The report.
    package var report: PathText

    /// The file of what is not part of the store; nil where there is nothing.
    package var setAside: PathText?

    /// When it was made, in RFC 3339.
    package var date: String

    /// The size of the salvaged store in bytes.
    package var bytes: Int64

    /// The SHA-256 of the salvaged store in hexadecimal digits.
    package var sha256: String

    /// The version of the model that it is of; nil where it is none of the given model's.
    package var version: String?

    /// Whether it was seen to open with the current version of the given model.
    package var isUsable: Bool

    /// Whether everything that the store held is in it, beyond doubt.
    package var isComplete: Bool

    /// Why not, besides lost and doubtful records, in words; nil where it is complete, where nothing else tells, and in receipts of
    /// earlier versions of this software.
    package var incompleteBecause: [String]?

    /// Whether what is no record is missing from it, or is doubtful: references, values of recovered records, rows of Core Data's
    /// own tables; nil where it is complete, and in receipts of earlier versions of this software.
    package var lacksDetails: Bool?

    /// How much of the store was recovered, from 0 to 100; nil where not known.
    ///
    /// It is kept for programs that read it, and shown nowhere.
    package var score: Int?

    /// The accounts, by name.
    package var entities: [Entity]

    /// The accounts of the pairs of many-to-many relationships, by table; nil for none, and in receipts of earlier versions of
    /// this software.
    package var pairs: [Entity]?

    /// Whether the store may have held tables that nothing tells of; nil where it held none, and in receipts of earlier versions
    /// of this software.
    package var mayLackTables: Bool?

    /// Values of records in it that were set aside, because it has no column for them; nil for none, and in receipts of earlier
    /// versions of this software.
    package var valuesSetAside: Int64?

    /// Rows that were found and fit no table, which are kept beside it; nil for none, and in receipts of earlier versions of this
    /// software.
    package var unplacedRows: Int64?

    /// What the migration to the app's version left out; nil for nothing, and in receipts of earlier versions of this software.
    package var migrationLosses: [MigrationLoss]?

    /// What it stands on beside the quarantined store; nil in receipts of earlier versions of this software.
    package var evidence: Evidence?

    private enum CodingKeys: String, CodingKey {
      case name
      case report
      case setAside
      case date
      case bytes
      case sha256
      case version
      case isUsable = "usable"
      case isComplete = "complete"
      case incompleteBecause
      case lacksDetails
      case score
      case entities
      case pairs = "relationships"
      case mayLackTables
      case valuesSetAside
      case unplacedRows
      case migrationLosses
      case evidence
    }

    /// A salvaged store.
    package init(
      name: PathText, report: PathText, setAside: PathText?, date: Timestamp, bytes: Int64, sha256: String,
      version: String?, isUsable: Bool, isComplete: Bool,
      incompleteBecause: [String]? = nil, lacksDetails: Bool? = nil, score: Int?, entities: [Entity],
      pairs: [Entity]? = nil,
      mayLackTables: Bool? = nil,
      valuesSetAside: Int64? = nil, unplacedRows: Int64? = nil, migrationLosses: [MigrationLoss]? = nil,
      evidence: Evidence? = nil
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
