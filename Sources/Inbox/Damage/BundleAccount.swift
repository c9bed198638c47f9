package import Salvage

/// A salvage report's summary.
package struct BundleAccount: Sendable, Hashable, Codable {
  package struct Entity: Sendable, Hashable, Codable {
    /// The entity or table.
    package var name: String

    package var recovered: Int64

    package var doubtful: Int64

    package var lost: Int64

    /// Whether the lost count is exact; nil if not recorded by an earlier version.
    package var lostIsExact: Bool?

    /// Intact records outside the salvaged store; nil also if not recorded by an earlier version.
    package var setAside: Int64?
  }

  /// Consecutive pages in one state.
  package struct Run: Sendable, Hashable, Codable {
    package var state: String

    package var count: Int64
  }

  /// The recovery in a few sentences; nil if not recorded by an earlier version.
  package var words: String?

  /// The page map's runs; empty for a very large map.
  package var runs: [Run]

  /// At most ``maximumEntities``.
  package var entities: [Entity]

  /// Many-to-many pairs by table; nil also if not recorded by an earlier version.
  package var pairs: [Entity]?

  /// Rows that fit no table; nil also if not recorded by an earlier version.
  package var unplacedRows: Int64?

  /// The likely causes, a sentence each.
  package var causes: [String]

  /// The most entities, causes and runs.
  package static let maximumEntities = 500
  static let maximumCauses = 20
  package static let maximumRuns = 4000

  /// The cap of each number, so that sums of hostile numbers cannot overflow.
  private static let maximumNumber: Int64 = 1 << 48

  package init(_ report: SalvageReport) {
    func bounded(_ text: String) -> String { String(text.prefix(500)) }
    func number(_ number: Int64) -> Int64 { min(max(0, number), Self.maximumNumber) }
    words = bounded(report.count.words)
    func account(_ entity: SalvageReport.Entity) -> Entity {
      Entity(
        name: bounded(entity.name), recovered: number(entity.recovered), doubtful: number(entity.doubtful),
        lost: number(entity.lost), lostIsExact: entity.isLostExact,
        setAside: entity.setAside > 0 ? number(entity.setAside) : nil)
    }
    entities = report.records.prefix(Self.maximumEntities).map(account)
    pairs = report.pairs.isEmpty ? nil : report.pairs.prefix(Self.maximumEntities).map(account)
    unplacedRows = report.unplacedRows > 0 ? number(report.unplacedRows) : nil
    causes = report.causes.prefix(Self.maximumCauses).map { bounded($0.words) }
    var runs: [Run] = []
    for run in report.pages.runs {
      let state = run.state.rawValue
      if runs.last?.state == state {
        runs[runs.count - 1].count = number(runs[runs.count - 1].count + number(Int64(run.pages.count)))
      } else {
        runs.append(Run(state: state, count: number(Int64(run.pages.count))))
      }
      if runs.count > Self.maximumRuns { break }
    }
    self.runs = runs.count > Self.maximumRuns ? [] : runs
  }
}

extension BundleAccount.Entity {
  package var count: RecoveryCount {
    let isUnknown = lost == 0 && lostIsExact == false
    var count = RecoveryCount(isComplete: lost == 0 && !isUnknown && doubtful == 0 && setAside ?? 0 == 0)
    count.add(
      recovered: recovered, doubtful: doubtful, reasons: [:], setAside: setAside ?? 0, lost: lost,
      isExact: lostIsExact ?? true,
      basis: isUnknown ? .unknown : nil)
    return count
  }
}
