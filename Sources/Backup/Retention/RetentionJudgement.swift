package import Platform

/// A history that is being judged.
struct RetentionJudgement {
  /// The history, newest first; of two in one second the one with the later name.
  private let history: [RetentionSnapshot]
  private let rules: RetentionRules
  private let now: Timestamp
  private let places: [String: Int]
  private var reasons: [[RetentionReason]]
  private(set) var isClockTrusted = true

  init(_ history: [RetentionSnapshot], policy: RetentionPolicy, now: Timestamp) {
    self.history = history.ordered { ($0.date, $0.identifier) > ($1.date, $1.identifier) }
    rules = RetentionRules(policy)
    self.now = now
    places = Dictionary(self.history.enumerated().map { ($1.identifier, $0) }) { first, _ in first }
    reasons = Array(repeating: [], count: self.history.count)
  }

  var decisions: [RetentionPlan.Decision] {
    zip(history, reasons).map { snapshot, reasons in
      if !reasons.isEmpty { return .init(snapshot: snapshot, isKept: true, reasons: reasons) }
      let reason: RetentionReason = snapshot.proof == .proven ? .noRule : .noProof(snapshot.proof)
      return .init(snapshot: snapshot, isKept: false, reasons: [reason])
    }
  }

  mutating func judge() {
    let counted = setAsideWhatRulesDoNotJudge()
    if let newest = counted.first { keep(newest, because: .newestOfAll) }
    judge(counted) { [$0] }
    for jump in jumps(in: counted) {
      isClockTrusted = false
      // As if the history ended there.
      judge(Array(counted[jump.place...])) { _ in [.clockMayHaveJumped(days: jump.days)] }
    }
    if let newest = counted.first, days(from: history[newest].date, to: now) > Self.longestPause {
      isClockTrusted = false
    }
    keepLastBeforeQuarantines(counted)
    keepLastBeforeFalls(counted)
    keepLastWithValues(counted)
    keepWhatIsNeeded()
  }

  private mutating func keep(_ place: Int, because reason: RetentionReason) {
    if !reasons[place].contains(reason) { reasons[place].append(reason) }
  }

  // MARK: What the rules do not judge

  /// Keeps what is apart or unknown, what holds records that its migration removed, and what has an impossible date; the
  /// rest is left to the rules, newest first.
  private mutating func setAsideWhatRulesDoNotJudge() -> [Int] {
    // Clocks of several machines differ by some minutes.
    let latest = Timestamp(secondsSince1970: now.secondsSince1970 + 300, nanoseconds: now.nanoseconds)
    var counted: [Int] = []
    for (place, snapshot) in history.enumerated() {
      if let note = snapshot.onlyHere {
        keep(place, because: .onlyHere(note))
      } else if snapshot.standing != .ordinary {
        keep(place, because: snapshot.standing == .apart ? .apart : .unknown)
      } else if snapshot.date > latest {
        isClockTrusted = false
        keep(place, because: .datedInTheFuture)
      } else if snapshot.needs.compactMap({ places[$0] }).contains(where: {
        history[$0].date > snapshot.date && history[$0].date <= latest
      }) {
        keep(place, because: .datedBeforeParent)
      } else {
        counted.append(place)
      }
    }
    return counted
  }

  // MARK: The rules

  /// Applies the rules to a part of the history.
  ///
  /// - Parameter told: the reasons to tell in place of a rule.
  private mutating func judge(_ part: [Int], told: (RetentionReason) -> [RetentionReason]) {
    let proven = part.filter { history[$0].proof == .proven }
    // Among those that were verified as far as one, it is dropped only for others of them.
    for depth in Set(proven.map { history[$0].verification }).sorted(by: >) {
      let equals = proven.filter { history[$0].verification >= depth }
      if let last = equals.first {
        for reason in told(.lastProven(history[last].verification)) { keep(last, because: reason) }
      }
      for (place, found) in zip(equals, rules.reasons(for: equals.map { history[$0] })) {
        for reason in found.flatMap(told) { keep(place, because: reason) }
      }
    }
    guard proven.count < part.count else { return }
    for (place, found) in zip(part, rules.reasons(for: part.map { history[$0] }))
    where !found.isEmpty && history[place].proof != .proven {
      keep(place, because: .notProven(history[place].proof))
      for reason in found.flatMap(told) { keep(place, because: reason) }
    }
  }

  // MARK: Quarantines

  /// The days for which the last backup of before a quarantine is kept, whatever the rules say.
  static let daysAfterQuarantine = 30

  /// Keeps the last good backup of each store that was quarantined lately: it may hold what the store in its place lacks.
  private mutating func keepLastBeforeQuarantines(_ counted: [Int]) {
    for (index, place) in counted.enumerated().dropLast() {
      guard let lineage = history[place].lineage, lineage.parent != nil, let since = Timestamp(lineage.since),
        days(from: since, to: now) < Self.daysAfterQuarantine
      else { continue }
      let former = counted[(index + 1)...].prefix { history[$0].lineage?.generation != lineage.generation }
      let last = former.first { history[$0].proof == .proven } ?? former.first
      if let last { keep(last, because: .beforeQuarantine) }
    }
  }

  // MARK: Falls

  /// The days for which the last backup of before a fall is kept, unless it is released earlier.
  static let daysAfterFall = 30

  /// Keeps the last backup of before entities lost more than half of their records: that may not have been meant.
  private mutating func keepLastBeforeFalls(_ counted: [Int]) {
    for place in counted where days(from: history[place].date, to: now) < Self.daysAfterFall {
      let fallen = Dictionary(grouping: history[place].falls, by: \.backup.description)
      for (identifier, falls) in fallen {
        guard let last = places[identifier], !history[last].isReleased else { continue }
        keep(last, because: .beforeFall(entities: falls.map(\.name).sorted(), in: history[place].identifier))
        // Without the one that shows the fall the next pruning would know nothing of it.
        keep(place, because: .showsFall(since: identifier))
      }
    }
  }

  // MARK: Large values

  /// Keeps the last backup with each large value that the records of a kept one refer to and that this one lacks: nothing else
  /// has it.
  private mutating func keepLastWithValues(_ counted: [Int]) {
    // The newest first, so that a value is told as lacking in the newest one.
    var seen: Set<String> = []
    for place in counted where !reasons[place].isEmpty {
      let wanted = history[place].lacks.subtracting(seen)
      guard !wanted.isEmpty else { continue }
      seen.formUnion(wanted)
      var found: [Int: Int] = [:]
      for name in wanted {
        let holders = counted.filter { history[$0].holds.contains(name) }
        let last = holders.first { history[$0].proof == .proven } ?? holders.first
        if let last { found[last, default: 0] += 1 }
      }
      for (last, count) in found.sorted(by: { $0.key < $1.key }) {
        keep(last, because: .holdsValues(count: count, lackedBy: history[place].identifier))
      }
    }
  }

  // MARK: Clocks

  /// The days without a backup from which on a clock is in doubt.
  private static let longestPause = 180

  /// The days of backups after a jump that show that the clock is right.
  private static let confirmation = 7

  /// The places behind which the history jumps, with the days of each jump.
  ///
  /// What is usual for the history is no jump: a pause must be ten times as long as most pauses before it.
  private func jumps(in counted: [Int]) -> [(place: Int, days: Int)] {
    guard counted.count > 1, let newest = counted.first else { return [] }
    let pauses = counted.indices.dropLast().map { index in
      days(from: history[counted[index + 1]].date, to: history[counted[index]].date)
    }
    var result: [(place: Int, days: Int)] = []
    var start = history[newest].date
    for (index, pause) in pauses.enumerated() where pause > Self.longestPause {
      let end = history[counted[index]].date
      guard days(from: end, to: start) < Self.confirmation, result.count < 8 else { break }
      let earlier = pauses[(index + 1)...].sorted()
      let usual = earlier.isEmpty ? 0 : earlier[earlier.count / 2]
      guard pause > usual * 10 else { continue }
      result.append((index + 1, pause))
      start = history[counted[index + 1]].date
    }
    return result
  }

  private func days(from earlier: Timestamp, to later: Timestamp) -> Int {
    Int(clamping: (later.secondsSince1970 &- earlier.secondsSince1970) / 86400)
  }

  // MARK: Deltas

  /// Keeps whatever a kept delta builds on, however long the chain.
  private mutating func keepWhatIsNeeded() {
    var waiting = reasons.indices.filter { !reasons[$0].isEmpty }
    while let place = waiting.popLast() {
      for needed in history[place].needs.compactMap({ places[$0] }) where needed != place {
        let wasKept = !reasons[needed].isEmpty
        keep(needed, because: .neededBy(history[place].identifier))
        if !wasKept { waiting.append(needed) }
      }
    }
  }
}

/// The rules of a policy on a history: restic's own way of deciding, and nothing else.
///
/// As restic 0.14 does it (Debian 12); since 0.16 restic keeps the oldest snapshot too while a count is not used up.
package struct RetentionRules: Sendable {
  package let policy: RetentionPolicy

  package init(_ policy: RetentionPolicy) { self.policy = policy }

  /// The rules that keep each backup; none for one that is not kept.
  ///
  /// - Parameter history: the backups, newest first.
  package func reasons(for history: some RandomAccessCollection<RetentionSnapshot>) -> [[RetentionReason]] {
    guard !policy.isEmpty else { return history.map { _ in [.policyIsEmpty] } }
    guard let latest = history.first?.date else { return [] }
    var counters = policy.counts.map { Counter(period: $0.period, left: $0.count) }
    var spans = policy.spans.map { Span(period: $0.period, duration: $0.duration, start: $0.duration.before(latest)) }
    let start = policy.within?.before(latest)
    return history.enumerated().map { place, snapshot in
      var reasons: [RetentionReason] = policy.tags.filter { snapshot.hasAll($0) }.map { .tags($0) }
      if let within = policy.within, let start, snapshot.date > start { reasons.append(.within(within)) }
      for index in counters.indices where counters[index].takes(snapshot, at: place) {
        reasons.append(.newest(of: counters[index].period))
      }
      for index in spans.indices where spans[index].takes(snapshot, at: place) {
        reasons.append(.newestWithin(spans[index].period, spans[index].duration))
      }
      return reasons
    }
  }

  /// A number of periods of which one backup each is kept.
  private struct Counter {
    let period: RetentionPeriod
    var left: RetentionCount
    var last: Int?

    mutating func takes(_ snapshot: RetentionSnapshot, at place: Int) -> Bool {
      guard !left.isNone else { return false }
      let number = period.number(of: snapshot.date, at: place)
      guard number != last else { return false }
      last = number
      if case .number(let count) = left { left = .number(count - 1) }
      return true
    }
  }

  /// A time for which one backup of each period is kept.
  private struct Span {
    let period: RetentionPeriod
    let duration: RetentionDuration
    let start: Timestamp
    var last: Int?

    mutating func takes(_ snapshot: RetentionSnapshot, at place: Int) -> Bool {
      guard snapshot.date > start else { return false }
      let number = period.number(of: snapshot.date, at: place)
      guard number != last else { return false }
      last = number
      return true
    }
  }
}

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
