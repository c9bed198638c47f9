import StoreFiles

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
