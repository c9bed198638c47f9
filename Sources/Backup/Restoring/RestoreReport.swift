internal import StoreFiles
public import SystemPackage

/// What a restore brought back, and what it could not.
public struct RestoreReport: Sendable, Hashable, Encodable {
  /// A block of a backup that is lost.
  public struct LostBlock: Sendable, Hashable, Encodable {
    /// The file of the backup.
    public var file: String

    /// The number of the block, from 0.
    public var block: Int
  }

  /// The backup that was restored.
  public var id: BackupIdentifier

  /// The backups that were read, the full one first.
  public var chain: [BackupIdentifier]

  /// Where the store is.
  public var path: FilePath

  /// The bytes of the database, or of the files of evidence.
  public var bytes: Int64

  /// The large values in files of their own.
  public var values: Int

  /// The blocks of the backup that are lost.
  public var lostBlocks: [LostBlock] = []

  /// Whether the database, or the evidence, is byte for byte what was backed up; salvaged where it is not.
  public var isContentRight = true

  /// The large values that are lost, by the names of their files.
  public var lostValues: [String] = []

  /// Whether everything is as it was when the backup was taken.
  public var isComplete: Bool { isContentRight && lostBlocks.isEmpty && lostValues.isEmpty }

  /// Writes the report of a restore, with `complete`.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "backup": id, "chain": chain, "store": PathText(path), "bytes": bytes, "values": values, "complete": isComplete,
      "lostBlocks": lostBlocks, "lostValues": lostValues,
    ])
  }
}
