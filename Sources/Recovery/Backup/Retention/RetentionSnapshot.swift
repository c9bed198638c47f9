package import StoreFiles

/// What retention has to know of a backup.
package struct RetentionSnapshot: Sendable, Hashable {
  /// Whether the backup has been shown to be good.
  package enum Proof: String, Sendable, Hashable, Codable {
    /// It has been restored and checked, and was good.
    case proven

    /// It has not been tried yet.
    case unproven

    /// It has been tried, and something was wrong.
    case failed

    /// It has been tried, and the surroundings did not let it come to an end.
    case inconclusive
  }

  /// How far the store in a proven backup was checked; each includes those before.
  package enum Verification: Int, Sendable, Hashable, Comparable {
    /// Its files are what was written; an earlier version of this software took it, and checked no store.
    case files

    /// Every page, and not every index: the entries of some could not be compared with rows.
    case pages

    /// Every page, and the indexes of the tables that had changed.
    case changed

    /// Every page and every index, when it was taken or when it was restored to be verified.
    case whole

    /// Whether one goes less far than another.
    package static func < (left: Verification, right: Verification) -> Bool { left.rawValue < right.rawValue }
  }

  /// Whether the rules are for a backup.
  package enum Standing: String, Sendable, Hashable {
    case ordinary

    /// It is evidence, or of a store that was not sound, and is kept apart.
    case apart

    /// What it is cannot be told, for instance because a later version of this software wrote it.
    case unknown
  }

  /// What it is called.
  package var identifier: String
  /// When it was taken.
  package var date: Timestamp
  /// Its tags.
  package var tags: [String]
  /// Whether it has been shown to be good.
  package var proof: Proof
  /// How far it was verified, where it is proven: it takes the place of none that was verified further.
  package var verification: Verification
  /// The entities that have few records, or none, where the backup before had many.
  package var falls: [BackupManifest.Fall]
  /// Whether a person has said that no fall keeps it any more.
  package var isReleased: Bool
  /// The backups that it cannot be restored without: the one it is a delta of, and those that have its large values.
  package var needs: [String]
  /// Whether the rules are for it.
  package var standing: Standing
  /// The large values that its records refer to and that it has not, by the names of their files.
  package var lacks: Set<String>
  /// Those of the large values that any backup of the history lacks which it has.
  package var holds: Set<String>
  /// The records that are only in it, so that it is kept until it is released; nil for one that nothing of the kind keeps.
  package var onlyHere: OnlyHereNote?
  /// Which store of several that had the same place it is of; nil where its manifest does not say.
  package var lineage: StoreLineage?

  /// What is known of a backup.
  package init(
    identifier: String, date: Timestamp, tags: [String] = [], proof: Proof = .proven, needs: [String] = [],
    standing: Standing = .ordinary, onlyHere: OnlyHereNote? = nil, lineage: StoreLineage? = nil,
    verification: Verification = .whole, falls: [BackupManifest.Fall] = [], isReleased: Bool = false,
    lacks: Set<String> = [], holds: Set<String> = []
  ) {
    self.identifier = identifier
    self.date = date
    self.tags = tags
    self.proof = proof
    self.verification = verification
    self.falls = falls
    self.isReleased = isReleased
    self.lacks = lacks
    self.holds = holds
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
