package import Backup
package import Salvage
internal import StoreFiles
package import SystemPackage

/// What a restore brought back, and what it could not.
package struct RestoreReport: Sendable, Hashable, Encodable {
  /// A block of a backup that is lost.
  package struct LostBlock: Sendable, Hashable, Codable {
    /// The file of the backup.
    package var file: String

    /// The number of the block, from 0.
    package var block: Int
  }

  /// The backup that was restored.
  package var id: BackupIdentifier

  /// The backups that were read, the full one first.
  package var chain: [BackupIdentifier]

  /// Where the store is.
  package var path: FilePath

  /// The bytes of the database, or of the files of evidence.
  package var bytes: Int64

  /// The large values in files of their own.
  package var values: Int

  /// The blocks of the backup that are lost.
  package var lostBlocks: [LostBlock] = []

  /// Whether the database, or the evidence, is byte for byte what was backed up; salvaged where it is not.
  package var isContentRight = true

  /// The large values that are lost, by the names of their files: those that could not be unpacked, and those that records
  /// refer to and that the backup does not have.
  package var lostValues: [String] = []

  /// What of the database was salvaged, and what is lost; nil where it was not salvaged.
  package var salvage: SalvageReport?

  /// Whether what was salvaged of a Core Data store has no metadata, so that it is none any more.
  package var lacksMetadata = false

  /// Whether everything is as it was when the backup was taken.
  package var isComplete: Bool { isContentRight && lostBlocks.isEmpty && lostValues.isEmpty }

  /// Why the store was not sound when it was backed up, as what was restored is not; nil where that is, was salvaged, or nothing
  /// tells.
  ///
  /// - Parameter backup: the one that was restored.
  package func damage(_ backup: StoredBackup) -> (code: String, words: String)? {
    salvage == nil ? backup.damage : nil
  }

  /// Writes the report of a restore, with `complete`.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "backup": id, "chain": chain, "store": PathText(path), "bytes": bytes, "values": values, "complete": isComplete,
      "lostBlocks": lostBlocks, "lostValues": lostValues, "salvage": salvage,
      "metadata": salvage.map { _ in lacksMetadata ? "missing" : "present" },
    ])
  }
}
