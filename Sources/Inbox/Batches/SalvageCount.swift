package import Lazaret

/// What one salvage of a store gave, small enough to be kept and compared.
package struct SalvageCount: Sendable, Hashable, Codable {
  /// The version of this software that made it; nil where its receipt does not say.
  package var library: String?

  /// The accounts, by name; at most ``BundleAccount/maximumEntities``.
  package var entities: [BundleAccount.Entity]

  /// The pairs of many-to-many relationships, by table; nil for none, or where an earlier version did not note it.
  package var pairs: [BundleAccount.Entity]?

  /// Rows that fit no table; nil for none, or where an earlier version did not note it.
  package var unplacedRows: Int64?

  /// Whether what came out was seen to open.
  package var isUsable: Bool

  /// The most that any number counts here: beyond it, sums of hostile numbers could overflow.
  private static let maximumNumber: Int64 = 1 << 48

  /// The most that any number counts in all, so that the sums of millions of bundles stay in bounds.
  private static let maximumSum: Int64 = 1 << 40

  /// A result of a salvage.
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

  /// Records recovered in all.
  package var recovered: Int64 { min(entities.reduce(0) { $0 + $1.recovered }, Self.maximumSum) }

  /// Those of them that are doubtful.
  package var doubtful: Int64 { min(entities.reduce(0) { $0 + $1.doubtful }, Self.maximumSum) }

  /// Records lost in all, as far as that is known.
  package var lost: Int64 { min(entities.reduce(0) { $0 + $1.lost }, Self.maximumSum) }

  /// Whether it keeps to the limits that a worker keeps to which nothing has taken over.
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

/// How a result of a salvage differs from the one before it.
package enum SalvageChange: String, Sendable, Hashable, Codable, CaseIterable {
  /// It lacks certain records that the other has, has no record where the other has some, or is not usable where the other is.
  case worse

  /// Entities have more certain records, and others fewer; or it is usable where the other is not, with fewer certain records.
  case mixed

  /// It has more certain records, or is usable where the other is not.
  case better

  case same

  /// There is none before it to compare it with.
  case first

  /// How a result differs from an earlier one; nil for none.
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
