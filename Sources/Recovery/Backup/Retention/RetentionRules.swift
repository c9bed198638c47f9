import StoreFiles

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
