import Backup
import Salvage
internal import StoreFiles

/// What a restore brought back, as its note says until the store is in its place.
struct RestoreAccount: Codable {
  /// The backups that were read, the full one first.
  var chain: [BackupIdentifier]

  /// The bytes of the database, or of the files of evidence.
  var bytes: Int64

  /// The large values in files of their own.
  var values: Int

  /// The blocks of the backup that are lost.
  var lostBlocks: [RestoreReport.LostBlock]

  /// The large values that are lost.
  var lostValues: [String]

  /// Whether the content is byte for byte what was backed up.
  var isContentRight: Bool

  /// What was salvaged; nil where nothing was, and in notes of earlier versions.
  var salvage: SalvageReport?

  /// Whether the salvaged store has no metadata; nil in notes of earlier versions.
  var lacksMetadata: Bool?

  /// The account of a restore.
  init(_ report: RestoreReport) {
    chain = report.chain
    bytes = report.bytes
    values = report.values
    lostBlocks = report.lostBlocks
    lostValues = report.lostValues
    isContentRight = report.isContentRight
    salvage = report.salvage
    lacksMetadata = report.lacksMetadata
  }
}
