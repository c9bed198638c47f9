/// Which store of several that had the same place a store is, and where it comes from.
///
/// The stores of a place may have one identifier, because a salvaged or restored one keeps it. A generation tells them apart:
/// it begins when a quarantine makes room at the place, and ends when the next one does. It is kept in receipts, recovery
/// kits and manifests of backups, and never in the store.
public struct StoreLineage: Sendable, Hashable, Codable {
  /// The backup that a generation was restored from.
  public struct Restored: Sendable, Hashable, Codable {
    /// The backup.
    public var backup: String

    /// When the backup was taken, in RFC 3339.
    public var date: String

    /// The generation that the backup was taken of; nil where it is not known.
    public var generation: String?

    /// A backup, and what it was taken of.
    public init(backup: String, date: Timestamp, generation: String?) {
      self.backup = backup
      self.date = date.rfc3339
      self.generation = generation
    }
  }

  /// The generation: a random UUID.
  public var generation: String

  /// When the generation began, in RFC 3339; where nothing made room for it, when it was first named.
  public var since: String

  /// The quarantined store that made room for it; nil for a store that was at its place before.
  public var parent: String?

  /// The backup that it was restored from; nil for any other store.
  public var restored: Restored?

  /// A generation.
  public init(generation: String, since: Timestamp, parent: String? = nil, restored: Restored? = nil) {
    self.generation = generation
    self.since = since.rfc3339
    self.parent = parent
    self.restored = restored
  }
}

/// Which kits and backups say something of a store: those of its own generation that were made before an event.
public struct EvidenceScope: Sendable, Hashable {
  /// Why a kit or a backup says nothing of the store.
  public enum Exclusion: String, Sendable, Hashable {
    /// It was made after the event.
    case later

    /// It is of a store that was at the same place at another time.
    case otherGeneration = "other-generation"

    /// The reason as the rest of a sentence that begins with the kit or the backup.
    public var words: String {
      switch self {
      case .later: "was made after the store was quarantined"
      case .otherGeneration: "is of another generation of the store: of one that was at its place at another time"
      }
    }
  }

  /// The store's generation; nil where it is not known, so that the dates alone decide.
  public var lineage: StoreLineage?

  /// When the store was quarantined; nil where it was not.
  public var event: Timestamp?

  /// The evidence of a store.
  public init(lineage: StoreLineage?, event: Timestamp?) {
    self.lineage = lineage
    self.event = event
  }

  /// Why a kit or a backup says nothing of the store; nil where it counts, as far as generations and dates tell.
  ///
  /// - Parameters:
  ///   - generation: what it was made of; nil where it does not say.
  ///   - date: when it was made.
  public func exclusion(generation: String?, date: Timestamp) -> Exclusion? {
    // Names and receipts have whole seconds.
    let made = date.secondsSince1970
    if let event, made > event.secondsSince1970 { return .later }
    guard let lineage, generation != lineage.generation else { return nil }
    if let restored = lineage.restored, restored.generation == generation,
      let taken = Timestamp(restored.date), made <= taken.secondsSince1970
    {
      return nil
    }
    guard let since = Timestamp(lineage.since)?.secondsSince1970 else { return .otherGeneration }
    // A store that was there before its generation had a name may have evidence under any, or none; all of it is older.
    if lineage.parent == nil, made < since || made == since && generation == nil { return nil }
    // What does not name a generation was noted by an earlier version of this software, or by its restorer.
    return generation == nil && made > since ? nil : .otherGeneration
  }
}
