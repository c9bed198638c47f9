package import StoreFiles

/// What a pruning did, or would do.
package struct PruningReport: Sendable, Hashable, Encodable {
  /// A backup that is in the trash, and until when.
  package struct Trashed: Sendable, Hashable, Encodable {
    /// What it is called.
    package var id: BackupIdentifier

    /// From when on it may be removed for good; nil where it stays, because its record cannot be read or it is an original
    /// with records that its migration removed.
    package var expires: Timestamp?
  }

  /// What was decided of each backup, and why.
  package var plan: RetentionPlan

  /// The backups that were not what was written when they were read before others were dropped for them.
  package var failed: [BackupIdentifier] = []

  /// What was removed from the trash for good.
  package var emptied: [BackupIdentifier] = []

  /// What is in the trash afterwards, newest first.
  package var trash: [Trashed] = []

  /// The bytes that were dropped into the trash.
  package var droppedBytes: Int64 = 0

  /// The bytes that were removed for good.
  package var freedBytes: Int64 = 0

  /// Writes the report of a pruning, each backup with the reasons for its decision.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "clockTrusted": plan.isClockTrusted, "backups": plan.decisions, "droppedBytes": droppedBytes, "failed": failed,
      "emptied": emptied, "freedBytes": freedBytes, "trash": trash,
    ])
  }
}

extension RetentionPlan.Decision {
  /// The identifier of the backup that was judged.
  package var id: BackupIdentifier {
    BackupIdentifier(snapshot.identifier) ?? BackupIdentifier(date: snapshot.date)
  }
}
