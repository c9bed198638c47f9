/// The generation and origin of a store among the stores of one place.
///
/// Salvaged and restored stores keep their identifier; a generation lasts from one quarantine at the place to the next.
/// Receipts, recovery kits and backup manifests hold it, never the store.
public struct StoreLineage: Sendable, Hashable, Codable {
  /// The backup from which a generation was restored.
  public struct Restored: Sendable, Hashable, Codable {
    /// The backup's name.
    public var backup: String

    /// The time of the backup, in RFC 3339.
    public var date: String

    /// The backed-up generation, if known.
    public var generation: String?

    /// Makes a reference to a backup.
    public init(backup: String, date: Timestamp, generation: String?) {
      self.backup = backup
      self.date = date.rfc3339
      self.generation = generation
    }
  }

  /// The generation: a random UUID.
  public var generation: String

  /// The start of the generation, in RFC 3339; without a preceding quarantine, when it was first named.
  public var since: String

  /// The quarantined predecessor; nil for the place's first store.
  public var parent: String?

  /// The restored backup, if any.
  public var restored: Restored?

  /// Makes a generation.
  public init(generation: String, since: Timestamp, parent: String? = nil, restored: Restored? = nil) {
    self.generation = generation
    self.since = since.rfc3339
    self.parent = parent
    self.restored = restored
  }
}

/// The evidence that counts for a store: kits and backups of its generation from before an event.
public struct EvidenceScope: Sendable, Hashable {
  /// The reason to exclude a kit or backup.
  public enum Exclusion: String, Sendable, Hashable {
    case later

    case otherGeneration = "other-generation"

    /// The reason, as a predicate to the kit or the backup.
    public var words: String {
      switch self {
      case .later: "was made after the store was quarantined"
      case .otherGeneration: "is of another generation of the store: of one that was at its place at another time"
      }
    }
  }

  /// The store's generation; nil if unknown, so that dates decide.
  public var lineage: StoreLineage?

  /// The time of quarantine, if any.
  public var event: Timestamp?

  /// Makes the scope of a store.
  public init(lineage: StoreLineage?, event: Timestamp?) {
    self.lineage = lineage
    self.event = event
  }

  /// Returns the reason to exclude a kit or backup, if any.
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
    // Older evidence of a place's first store counts under any generation.
    if lineage.parent == nil, made < since || made == since && generation == nil { return nil }
    // Evidence without a generation is from an earlier version, or its restorer.
    return generation == nil && made > since ? nil : .otherGeneration
  }
}
