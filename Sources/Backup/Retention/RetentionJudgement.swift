package import Platform

/// The evaluation of a history.
struct RetentionJudgement {
  /// Newest first; within a second, the later name first.
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
      // Judged as if the history ended before the jump.
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

  /// Keeps backups outside the rules: apart, unknown, with removed records, or with impossible dates; returns the
  /// others, newest first.
  private mutating func setAsideWhatRulesDoNotJudge() -> [Int] {
    // A tolerance for clocks of several machines.
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
  /// - Parameter told: maps a rule's reason to the reported ones.
  private mutating func judge(_ part: [Int], told: (RetentionReason) -> [RetentionReason]) {
    let proven = part.filter { history[$0].proof == .proven }
    // A backup is dropped only for others verified at least as far.
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

  /// The days that the last backup before a quarantine is kept.
  static let daysAfterQuarantine = 30

  /// Keeps the last good backup of each recently quarantined store, which may hold data that its replacement lacks.
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

  /// The days that the last backup before a drop in records is kept, unless released.
  static let daysAfterFall = 30

  /// Keeps the last backup before entities lost more than half of their records, perhaps unintentionally.
  private mutating func keepLastBeforeFalls(_ counted: [Int]) {
    for place in counted where days(from: history[place].date, to: now) < Self.daysAfterFall {
      for (identifier, falls) in Dictionary(grouping: history[place].falls, by: \.backup.description) {
        guard let last = places[identifier], !history[last].isReleased else { continue }
        keep(last, because: .beforeFall(entities: falls.map(\.name).sorted(), in: history[place].identifier))
        // The next pruning needs this backup as evidence of the drop.
        keep(place, because: .showsFall(since: identifier))
      }
    }
  }

  // MARK: Large values

  /// Keeps the last backup with each external value that a kept one refers to but lacks.
  private mutating func keepLastWithValues(_ counted: [Int]) {
    // Newest first, so that the reason names the newest backup lacking a value.
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

  /// A pause of more days puts the clock in doubt.
  private static let longestPause = 180

  /// The days of backups after a jump that confirm the clock.
  private static let confirmation = 7

  /// Finds jumps in the history: their positions and days.
  ///
  /// A jump is a pause ten times as long as most before it.
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

  /// Keeps every ancestor of a kept delta.
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

/// The rules of a policy exactly as in restic.
///
/// As of restic 0.14 (Debian 12); since 0.16 restic also keeps the oldest snapshot while a count is not used up.
struct RetentionRules: Sendable {
  let policy: RetentionPolicy

  init(_ policy: RetentionPolicy) { self.policy = policy }

  /// Returns the rules that keep each backup.
  ///
  /// - Parameter history: the backups, newest first.
  func reasons(for history: some RandomAccessCollection<RetentionSnapshot>) -> [[RetentionReason]] {
    guard !policy.isEmpty else { return history.map { _ in [.policyIsEmpty] } }
    guard let latest = history.first?.date else { return [] }
    var rules = policy.counts.map { Rule(period: $0.period, reason: .newest(of: $0.period), left: $0.count) }
    rules += policy.spans.map {
      Rule(period: $0.period, reason: .newestWithin($0.period, $0.duration), start: $0.duration.before(latest))
    }
    let start = policy.within?.before(latest)
    return history.enumerated().map { place, snapshot in
      var reasons: [RetentionReason] = policy.tags.filter { snapshot.hasAll($0) }.map { .tags($0) }
      if let within = policy.within, let start, snapshot.date > start { reasons.append(.within(within)) }
      for index in rules.indices where rules[index].takes(snapshot, at: place) { reasons.append(rules[index].reason) }
      return reasons
    }
  }

  /// A rule that keeps the newest backup of each period.
  private struct Rule {
    let period: RetentionPeriod
    let reason: RetentionReason

    /// The number of backups that it still keeps.
    var left = RetentionCount.unlimited

    /// The moment after which it keeps any.
    var start: Timestamp?

    var last: Int?

    mutating func takes(_ snapshot: RetentionSnapshot, at place: Int) -> Bool {
      guard !left.isNone, start.map({ snapshot.date > $0 }) ?? true else { return false }
      let number = period.number(of: snapshot.date, at: place)
      guard number != last else { return false }
      last = number
      if case .number(let count) = left { left = .number(count - 1) }
      return true
    }
  }
}

/// The decision which backups of a history to keep, with reasons.
///
/// The rules are restic's. These exceptions take precedence:
///
/// - Only proven backups count. An unproven one is kept if a rule selects it, but replaces no proven one.
/// - A proven one replaces no other that was verified further.
/// - The last proven one of each depth and the newest of all are kept.
/// - The last one before an entity lost more than half of its records is kept for thirty days, unless released.
/// - The last one with an external value that a kept one refers to but lacks is kept.
/// - The ancestors of a kept delta are kept.
/// - The last good one before a quarantine is kept for thirty days.
/// - No backup is dropped because of a clock: one dated in the future, or before its parent, is kept and not counted;
///   before a jump, the history is also judged on its own, until a week of backups confirms the clock.
/// - Evidence is kept, and so are unreleased originals with records that their migrations removed. Neither replaces
///   another.
package struct RetentionPlan: Sendable, Hashable {
  package struct Decision: Sendable, Hashable, Encodable {
    package var snapshot: RetentionSnapshot

    package var isKept: Bool

    /// The reasons; never empty.
    package var reasons: [RetentionReason]

    package func encode(to encoder: any Encoder) throws {
      try encoder.encode([
        "id": snapshot.identifier, "kept": isKept, "reasons": reasons.map { ["code": $0.code, "words": $0.words] },
      ])
    }
  }

  /// The decisions, newest backup first.
  package private(set) var decisions: [Decision]

  /// Whether the dates up to now are plausible; if not, no backup is deleted by age.
  package let isClockTrusted: Bool

  package var kept: [Decision] { decisions.filter(\.isKept) }

  /// The dropped backups, newest first, so deltas precede their parents.
  package var dropped: [Decision] { decisions.filter { !$0.isKept } }

  package init(_ history: [RetentionSnapshot], policy: RetentionPolicy, now: Timestamp) {
    var judgement = RetentionJudgement(history, policy: policy, now: now)
    judgement.judge()
    decisions = judgement.decisions
    isClockTrusted = judgement.isClockTrusted
  }

  /// Judges the backups of a place's store; others in the folder don't count, and keep those they need.
  init(of catalog: BackupCatalog, policy: RetentionPolicy, now: Timestamp) {
    let others = catalog.others.map { backup in
      var snapshot = RetentionSnapshot(backup)
      snapshot.standing = .apart
      return snapshot
    }
    let names = Set(others.map(\.identifier))
    self.init(RetentionSnapshot.history(of: catalog.backups) + others, policy: policy, now: now)
    decisions.removeAll { names.contains($0.snapshot.identifier) }
  }
}
