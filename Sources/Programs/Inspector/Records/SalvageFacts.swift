import RecoveryKit
import StoreCoordination

/// What the report of a salvage tells of the records of the salvaged store, which holds no marks itself.
struct SalvageFacts: Sendable, Hashable {
  /// How many records of an entity or a table are doubtful, where some are.
  var doubtful: [String: Int64]

  /// Records that were set aside.
  var recordsSetAside: Int64

  /// Pairs of many-to-many relationships that were set aside.
  var pairsSetAside: Int64

  init(_ report: SalvageReport) {
    let doubts = report.entities.filter { $0.doubtful > 0 }.map { ($0.name, $0.doubtful) }
    doubtful = Dictionary(doubts, uniquingKeysWith: +)
    recordsSetAside = report.count.setAside
    pairsSetAside = report.count.pairs.setAside
  }

  /// How many of what one version alone has were set aside.
  func setAside(_ count: Int64, arePairs: Bool) -> Int64 { min(count, arePairs ? pairsSetAside : recordsSetAside) }
}
