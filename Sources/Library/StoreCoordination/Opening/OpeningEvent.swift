/// One thing that was done to get a store open.
package struct OpeningEvent: Sendable, Hashable, Codable {
  /// What kind of thing.
  package enum Kind: String, Sendable, Codable {
    /// An earlier run, or another process, had begun or done something of this: an interrupted quarantine was finished or
    /// taken back, or the store that was here before was found in quarantine.
    case recovery

    /// The store as it was before its repair or migration was kept.
    case backup

    /// What the store lacked of its own model was added.
    case repair

    /// The store was migrated to the app's version.
    case migration

    /// The store was moved into quarantine.
    case quarantine

    /// The quarantined store was salvaged, and a copy of the result put into its place; or nothing came out.
    case salvage

    /// An empty store was created.
    case create

    /// A recovery kit of the store was noted; told by ``Opening/backgroundPass`` and not among the events, because it
    /// happens after the opening.
    case recoveryKit = "recovery-kit"
  }

  /// What was done.
  package var kind: Kind

  /// When, in RFC 3339.
  package var date: String

  /// The file that it produced: the quarantined store, or the new one.
  package var path: PathText

  /// What happened, in one plain sentence.
  package var words: String

  /// For a quarantine: what the store is called there.
  package var id: String?

  /// For a quarantine: why.
  package var reason: Receipt.Reason?

  /// For a quarantine: the receipt.
  package var receipt: PathText?

  /// For a repair: what was added, and what was left as it is.
  package var repair: RepairAccount?

  /// For a migration: what it did and what was lost.
  package var migration: OpeningMigration?

  /// For a salvage: what was recovered and what was not; for a quarantine: what has become of its salvage so far.
  package var salvage: OpeningSalvage?

  /// For a quarantine: the command that puts the store back where it came from.
  package var undo: String?

  /// For a quarantine after a failed migration: the report, where one could be written.
  package var report: PathText?

  /// For a quarantine of a sound store: how many records it held; nil where they were not counted.
  package var records: Int64?

  /// One thing that was done, and when.
  package init(
    _ kind: Kind, at date: Timestamp, path: FilePath, words: String, id: String? = nil,
    reason: Receipt.Reason? = nil, receipt: FilePath? = nil, migration: OpeningMigration? = nil
  ) {
    self.kind = kind
    self.date = date.rfc3339
    self.path = PathText(path)
    self.words = words
    self.id = id
    self.reason = reason
    self.receipt = receipt.map { PathText($0) }
    self.migration = migration
  }
}
