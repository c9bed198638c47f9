internal import Platform

/// The bundles of a damage that are salvaged again together, and what came of it so far.
package struct SalvageBatch: Sendable, Hashable {
  /// Records of salvages, added up.
  package struct Sum: Sendable, Hashable, Encodable {
    /// Records recovered.
    package var recovered: Int64 = 0

    /// Those of them that are doubtful.
    package var doubtful: Int64 = 0

    /// Records lost, as far as that is known.
    package var lost: Int64 = 0

    /// A sum.
    package init(recovered: Int64 = 0, doubtful: Int64 = 0, lost: Int64 = 0) {
      self.recovered = recovered
      self.doubtful = doubtful
      self.lost = lost
    }

    /// Adds records.
    package mutating func add(recovered: Int64, doubtful: Int64, lost: Int64) {
      self.recovered += recovered
      self.doubtful += doubtful
      self.lost += lost
    }
  }

  /// Its number.
  package var number: Int64

  /// The damage.
  package var group: String

  /// The version of this software that was to do it.
  package var version: String

  /// When it was begun, in RFC 3339.
  package var date: String

  /// How many bundles there are.
  package var total: Int

  /// How many wait or are being salvaged.
  package var remaining = 0

  /// How many could not be salvaged.
  package var failed = 0

  /// Of how many nothing is known: they were removed, or an earlier version salvaged them.
  package var unknown = 0

  /// How many are done, by what changed.
  package var changes: [SalvageChange: Int] = [:]

  /// The records before and after, of the bundles of which both are known.
  package var before = Sum()
  package var after = Sum()

  /// The most bundles of a batch; what is left is for the next one.
  package static let maximumBundles = 10_000

  /// A batch that was just begun.
  package init(number: Int64, group: String, version: String, date: String, total: Int) {
    self.number = number
    self.group = group
    self.version = version
    self.date = date
    self.total = total
  }

  /// How many are done.
  package var done: Int { changes.values.reduce(0, +) }

  /// Whether nothing of it waits or is being done any more.
  package var isOver: Bool { remaining == 0 }

  /// Counts bundles of it.
  ///
  /// - Parameters:
  ///   - change: the word of what changed; nil where they are not done.
  ///   - state: the word of the state of their jobs; nil for no job.
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
  /// Writes the batch for programs.
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

/// A bundle of a batch, and what its salvage gave before and now.
package struct SalvageBatchItem: Sendable, Hashable {
  /// The bundle.
  package var bundle: String

  /// What changed; nil where it is not done.
  package var change: SalvageChange?

  /// What an earlier version had recovered; nil where that is not known.
  package var before: SalvageCount?

  /// What this one recovered; nil where it is not done.
  package var after: SalvageCount?

  /// A bundle of a batch.
  package init(bundle: String, change: SalvageChange?, before: SalvageCount?, after: SalvageCount?) {
    self.bundle = bundle
    self.change = change
    self.before = before
    self.after = after
  }
}

extension SalvageBatchItem: Encodable {
  /// Writes the bundle for programs.
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
