internal import Platform

/// A repeated salvage of all bundles with similar damage.
package struct SalvageBatch: Sendable, Hashable {
  package struct Sum: Sendable, Hashable, Encodable {
    package var recovered: Int64 = 0

    package var doubtful: Int64 = 0

    /// Records lost, as far as known.
    package var lost: Int64 = 0

    package init(recovered: Int64 = 0, doubtful: Int64 = 0, lost: Int64 = 0) {
      self.recovered = recovered
      self.doubtful = doubtful
      self.lost = lost
    }

    package mutating func add(recovered: Int64, doubtful: Int64, lost: Int64) {
      self.recovered += recovered
      self.doubtful += doubtful
      self.lost += lost
    }
  }

  package var number: Int64

  package var group: String

  /// The software version that salvages.
  package var version: String

  /// The start, in RFC 3339.
  package var date: String

  package var total: Int

  package var remaining = 0

  package var failed = 0

  /// Bundles without result: removed, or salvaged by an earlier version.
  package var unknown = 0

  package var changes: [SalvageChange: Int] = [:]

  /// The sums over bundles with both results.
  package var before = Sum()
  package var after = Sum()

  /// The most bundles; the next batch takes the rest.
  package static let maximumBundles = 10_000

  package init(number: Int64, group: String, version: String, date: String, total: Int) {
    self.number = number
    self.group = group
    self.version = version
    self.date = date
    self.total = total
  }

  package var done: Int { changes.values.reduce(0, +) }

  package var isOver: Bool { remaining == 0 }

  /// Counts bundles.
  ///
  /// - Parameters:
  ///   - change: nil unless done.
  ///   - state: of their jobs, if any.
  package mutating func count(_ count: Int, change: String?, state: String?) {
    if let change {
      changes[SalvageChange(rawValue: change) ?? .same, default: 0] += count
      return
    }
    switch state.flatMap({ InboxJob.State(rawValue: $0) }) {
    case .waiting, .running: remaining += count
    case .failed: failed += count
    case .done, nil: unknown += count
    }
  }
}

extension SalvageBatch: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "number": number, "group": group, "version": version, "date": date, "total": total, "done": done,
      "remaining": remaining, "failed": failed, "unknown": unknown, "over": isOver,
      "changes": Dictionary(
        uniqueKeysWithValues: SalvageChange.allCases.map { ($0.rawValue, changes[$0] ?? 0) }),
      "before": before, "after": after,
    ])
  }
}

/// A bundle of a batch.
package struct SalvageBatchItem: Sendable, Hashable {
  package var bundle: String

  /// Nil unless done.
  package var change: SalvageChange?

  /// The result of an earlier version, if known.
  package var before: SalvageCount?

  /// The new result; nil unless done.
  package var after: SalvageCount?

  package init(bundle: String, change: SalvageChange?, before: SalvageCount?, after: SalvageCount?) {
    self.bundle = bundle
    self.change = change
    self.before = before
    self.after = after
  }
}

extension SalvageBatchItem: Encodable {
  package func encode(to encoder: any Encoder) throws {
    func told(_ count: SalvageCount?) -> JSON.Object? {
      count.map { count in
        [
          "version": count.library, "recovered": count.recovered, "doubtful": count.doubtful, "lost": count.lost,
          "usable": count.isUsable, "entities": count.entities,
        ]
      }
    }
    try encoder.encode(["bundle": bundle, "change": change, "before": told(before), "after": told(after)])
  }
}
