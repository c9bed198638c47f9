package import Lazaret
internal import Platform

/// A repeated salvage of all bundles with similar damage.
package struct SalvageBatch: Sendable, Hashable {
  package struct Sum: Sendable, Hashable, Encodable {
    package var recovered: Int64 = 0

    package var doubtful: Int64 = 0

    /// Records lost, as far as known.
    package var lost: Int64 = 0

    mutating func add(recovered: Int64, doubtful: Int64, lost: Int64) {
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
  static let maximumBundles = 10_000

  package var done: Int { changes.values.reduce(0, +) }

  package var isOver: Bool { remaining == 0 }

  /// Counts bundles.
  ///
  /// - Parameters:
  ///   - change: nil unless done.
  ///   - state: of their jobs, if any.
  mutating func count(_ count: Int, change: String?, state: String?) {
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
      "changes": Dictionary(uniqueKeysWithValues: SalvageChange.allCases.map { ($0.rawValue, changes[$0] ?? 0) }),
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

/// The counts of one salvage, small enough to store and compare.
package struct SalvageCount: Sendable, Hashable, Codable {
  /// The software version, if the receipt has it.
  package var library: String?

  /// At most ``BundleAccount/maximumEntities``.
  package var entities: [BundleAccount.Entity]

  /// Many-to-many pairs by table; nil also if not recorded by an earlier version.
  package var pairs: [BundleAccount.Entity]?

  /// Rows that fit no table; nil also if not recorded by an earlier version.
  package var unplacedRows: Int64?

  /// Whether the salvaged store opened.
  var isUsable: Bool

  /// The cap of each number, so that sums of hostile numbers cannot overflow.
  private static let maximumNumber: Int64 = 1 << 48

  /// The cap of each sum, so that sums over millions of bundles cannot overflow.
  private static let maximumSum: Int64 = 1 << 40

  package init(_ result: Receipt.Salvage.Result) {
    func bounded(_ number: Int64) -> Int64 { min(max(0, number), Self.maximumNumber) }
    library = result.evidence.map { String($0.library.prefix(100)) }
    func account(_ entity: Receipt.Salvage.Entity) -> BundleAccount.Entity {
      BundleAccount.Entity(
        name: String(entity.name.prefix(500)), recovered: bounded(entity.recovered),
        doubtful: bounded(entity.doubtful), lost: bounded(entity.lost), lostIsExact: entity.lostIsExact,
        setAside: entity.setAside.map(bounded))
    }
    entities = result.entities.prefix(BundleAccount.maximumEntities).map(account)
    pairs = result.pairs.map { $0.prefix(BundleAccount.maximumEntities).map(account) }
    unplacedRows = result.unplacedRows.map(bounded)
    isUsable = result.isUsable
  }

  package var recovered: Int64 { min(entities.reduce(0) { $0 + $1.recovered }, Self.maximumSum) }

  package var doubtful: Int64 { min(entities.reduce(0) { $0 + $1.doubtful }, Self.maximumSum) }

  /// Records lost, as far as known.
  package var lost: Int64 { min(entities.reduce(0) { $0 + $1.lost }, Self.maximumSum) }

  /// Whether it obeys the limits of an uncompromised worker.
  var isPlausible: Bool {
    let pairs = pairs ?? []
    return max(entities.count, pairs.count) <= BundleAccount.maximumEntities && (library?.utf8.count ?? 0) <= 1000
      && (0...Self.maximumNumber).contains(unplacedRows ?? 0)
      && (entities + pairs).allSatisfy { entity in
        entity.name.utf8.count <= 10_000
          && [entity.recovered, entity.doubtful, entity.lost, entity.setAside ?? 0].allSatisfy {
            (0...Self.maximumNumber).contains($0)
          }
      }
  }
}

package enum SalvageChange: String, Sendable, Hashable, Codable, CaseIterable {
  /// Fewer certain records, no records at all, or no longer usable.
  case worse

  /// More certain records in some entities, fewer in others; or usable now, with fewer.
  case mixed

  /// More certain records, or usable now.
  case better

  case same, first

  package init(from before: SalvageCount?, to after: SalvageCount) {
    guard let before else {
      self = .first
      return
    }
    let (hasAny, hadAny) = (after.entities.contains { $0.recovered > 0 }, before.entities.contains { $0.recovered > 0 })
    if hadAny, !hasAny {
      self = .worse
      return
    }
    func certain(_ count: SalvageCount) -> [String: Int64] {
      Dictionary(count.entities.map { ($0.name, $0.recovered - $0.doubtful) }, uniquingKeysWith: +)
    }
    let (old, new) = (certain(before), certain(after))
    let names = Set(old.keys).union(new.keys)
    let hasMore = names.contains { new[$0, default: 0] > old[$0, default: 0] }
    let hasFewer = names.contains { new[$0, default: 0] < old[$0, default: 0] }
    if before.isUsable != after.isUsable {
      self = !after.isUsable ? .worse : hasFewer ? .mixed : .better
    } else if hasMore || hasFewer {
      self = hasMore && hasFewer ? .mixed : hasMore ? .better : .worse
    } else if before.recovered != after.recovered {
      self = after.recovered > before.recovered ? .better : .worse
    } else if before.lost != after.lost {
      self = after.lost < before.lost ? .better : .worse
    } else {
      self = .same
    }
  }
}
