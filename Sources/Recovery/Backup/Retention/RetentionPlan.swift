package import StoreFiles

/// Which backups of a history are kept and which are dropped, and why.
///
/// The rules are restic's. Beyond them, and whatever they say:
///
/// - Only proven backups count. One that is not proven is kept where a rule would keep it, and takes no proven one's place.
/// - A proven one takes the place of no other one that was verified further.
/// - The last proven one of each depth and the newest of all are kept.
/// - The last one of before an entity lost more than half of its records is kept for thirty days, unless it is released.
/// - The last one with a large value that the records of a kept one refer to, and that this one lacks, is kept.
/// - What a kept delta cannot be restored without is kept.
/// - The last good one of before the store was quarantined is kept for thirty days.
/// - Nothing is dropped because of a clock: what is dated in the future, or before the backup it builds on, is kept and not
///   counted; where the history jumps, what lies behind the jump is also judged without what came after it, until a week of
///   backups shows that the clock is right.
/// - Evidence is kept, and so is, until it is released, an original with records that its migration removed. Neither takes
///   another one's place.
package struct RetentionPlan: Sendable, Hashable {
  /// What is done with one backup.
  package struct Decision: Sendable, Hashable, Encodable {
    /// The backup.
    package var snapshot: RetentionSnapshot

    /// Whether it is kept.
    package var isKept: Bool

    /// Why; never empty.
    package var reasons: [RetentionReason]

    /// Writes which backup it is about, the decision and the reasons for it.
    package func encode(to encoder: any Encoder) throws {
      try encoder.encode([
        "id": snapshot.identifier, "kept": isKept,
        "reasons": reasons.map { ["code": $0.code, "words": $0.words] },
      ])
    }
  }

  /// One for each backup, the newest first.
  package let decisions: [Decision]

  /// Whether the dates of the history, and now, go on as a clock does; where they do not, nothing is removed for its age.
  package let isClockTrusted: Bool

  /// The backups that are kept, the newest first.
  package var kept: [Decision] { decisions.filter(\.isKept) }

  /// The backups that are dropped, the newest first: a delta always comes before what it builds on.
  package var dropped: [Decision] { decisions.filter { !$0.isKept } }

  /// Judges a history.
  ///
  /// - Parameter now: what the clock says.
  package init(_ history: [RetentionSnapshot], policy: RetentionPolicy, now: Timestamp) {
    var judgement = RetentionJudgement(history, policy: policy, now: now)
    judgement.judge()
    decisions = judgement.decisions
    isClockTrusted = judgement.isClockTrusted
  }

  /// Judges the backups of a place's store; those of others in the same folder count for nothing, and keep what they need.
  package init(of catalog: BackupCatalog, policy: RetentionPolicy, now: Timestamp) {
    let others = catalog.others.map { backup in
      var snapshot = RetentionSnapshot(backup)
      snapshot.standing = .apart
      return snapshot
    }
    let names = Set(others.map(\.identifier))
    var judgement = RetentionJudgement(
      RetentionSnapshot.history(of: catalog.backups) + others, policy: policy, now: now)
    judgement.judge()
    decisions = judgement.decisions.filter { !names.contains($0.snapshot.identifier) }
    isClockTrusted = judgement.isClockTrusted
  }
}
