public import StoreFiles

/// What retention has to know of a backup.
public struct RetentionSnapshot: Sendable, Hashable {
  /// Whether the backup has been shown to be good.
  public enum Proof: String, Sendable, Hashable, Codable {
    /// It has been restored and checked, and was good.
    case proven

    /// Nobody has tried yet.
    case unproven

    /// It has been tried, and something was wrong.
    case failed

    /// It has been tried, and the surroundings did not let it come to an end.
    case inconclusive
  }

  /// What it is called.
  public var identifier: String
  /// When it was taken.
  public var date: Timestamp
  /// Its tags.
  public var tags: [String]
  /// Whether it has been shown to be good.
  public var proof: Proof
  /// The backup that it is a delta of; nil for a whole one.
  public var parent: String?
  /// Whether it is evidence: raw files of a store that was damaged or set aside.
  public var isEvidence: Bool

  /// What is known of a backup.
  public init(
    identifier: String, date: Timestamp, tags: [String] = [], proof: Proof = .proven, parent: String? = nil,
    isEvidence: Bool = false
  ) {
    self.identifier = identifier
    self.date = date
    self.tags = tags
    self.proof = proof
    self.parent = parent
    self.isEvidence = isEvidence
  }

  /// Whether it has all of these tags; the empty tag stands for having none.
  func hasAll(_ wanted: [String]) -> Bool {
    wanted.allSatisfy { $0.isEmpty && tags.isEmpty || tags.contains($0) }
  }
}
