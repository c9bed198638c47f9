package import Salvage

/// What the salvage report within a bundle says, small enough to be kept and shown: the pages and the records.
package struct BundleAccount: Sendable, Hashable, Codable {
  /// The records of an entity.
  package struct Entity: Sendable, Hashable, Codable {
    /// The entity, or the table.
    package var name: String

    /// Records recovered.
    package var recovered: Int64

    /// Those of them that are doubtful.
    package var doubtful: Int64

    /// Records lost.
    package var lost: Int64

    /// Whether the number of lost records is exact, and no estimate; nil where an earlier version did not note it.
    package var lostIsExact: Bool?

    /// Records that were found whole and are not in the salvaged store; nil where there are none, or an earlier version did not
    /// note it.
    package var setAside: Int64?
  }

  /// Pages in one state, one behind the other.
  package struct Run: Sendable, Hashable, Codable {
    /// The word of the state.
    package var state: String

    /// How many pages.
    package var count: Int64
  }

  /// What was recovered, in a few sentences; nil where an earlier version did not note it.
  package var words: String?

  /// The runs of the map; of a map of very many, none.
  package var runs: [Run]

  /// The entities; at most ``maximumEntities``.
  package var entities: [Entity]

  /// The pairs of many-to-many relationships, by table; nil for none, or where an earlier version did not note it.
  package var pairs: [Entity]?

  /// Rows that fit no table; nil for none, or where an earlier version did not note it.
  package var unplacedRows: Int64?

  /// What most likely happened, a sentence each.
  package var causes: [String]

  /// The most entities, causes and runs that are kept.
  package static let maximumEntities = 500
  package static let maximumCauses = 20
  package static let maximumRuns = 4000

  /// The most that any number of a report counts here: beyond it, sums of hostile numbers could overflow.
  private static let maximumNumber: Int64 = 1 << 48

  /// What a report says.
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
  /// The numbers as pages show them.
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
