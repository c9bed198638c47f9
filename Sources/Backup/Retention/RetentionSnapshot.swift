public import StoreFiles

/// What retention has to know of a backup.
public struct RetentionSnapshot: Sendable, Hashable {
  /// Whether the backup has been shown to be good.
  public enum Proof: String, Sendable, Hashable, Codable {
    /// It has been restored and checked, and was good.
    case proven

    /// It has not been tried yet.
    case unproven

    /// It has been tried, and something was wrong.
    case failed

    /// It has been tried, and the surroundings did not let it come to an end.
    case inconclusive
  }

  /// Whether the rules are for a backup.
  public enum Standing: String, Sendable, Hashable {
    /// They are.
    case ordinary

    /// It is evidence, or of a store that was not sound, and is kept apart.
    case apart

    /// What it is cannot be told, for instance because a later version of this software wrote it.
    case unknown
  }

  /// What it is called.
  public var identifier: String
  /// When it was taken.
  public var date: Timestamp
  /// Its tags.
  public var tags: [String]
  /// Whether it has been shown to be good.
  public var proof: Proof
  /// The backups that it cannot be restored without: the one it is a delta of, and those that have its large values.
  public var needs: [String]
  /// Whether the rules are for it.
  public var standing: Standing
  /// The records that are only in it, so that it is kept until it is released; nil for one that nothing of the kind keeps.
  public var onlyHere: OnlyHereNote?
  /// Which store of several that had the same place it is of; nil where its manifest does not say.
  public var lineage: StoreLineage?

  /// What is known of a backup.
  public init(
    identifier: String, date: Timestamp, tags: [String] = [], proof: Proof = .proven, needs: [String] = [],
    standing: Standing = .ordinary, onlyHere: OnlyHereNote? = nil, lineage: StoreLineage? = nil
  ) {
    self.identifier = identifier
    self.date = date
    self.tags = tags
    self.proof = proof
    self.needs = needs
    self.standing = standing
    self.onlyHere = onlyHere
    self.lineage = lineage
  }

  /// Whether it has all of these tags; the empty tag stands for having none.
  func hasAll(_ wanted: [String]) -> Bool {
    wanted.allSatisfy { $0.isEmpty && tags.isEmpty || tags.contains($0) }
  }
}
