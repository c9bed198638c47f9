/// The state of each page of a store, as a compact map and as counts.
public struct PageStates: Sendable, Hashable {
  /// What became of a page.
  public enum State: String, Sendable, Hashable, CaseIterable {
    /// Part of a tree, found from its root.
    case healthy

    /// Belongs to a table by its content; nothing leads to it.
    case orphan

    /// Damaged; what was left of it was carved, or nothing was.
    case damaged

    /// Free, or no longer in use.
    case free

    /// Holds the rest of long values.
    case overflow

    /// A pointer map or the page of the lock bytes.
    case special

    /// Holds rows that fit no table.
    case unplaced

    /// Zeros, or nothing that can be read.
    case unreadable

    /// The letter that stands for it in the map.
    public var letter: Character {
      switch self {
      case .healthy: "h"
      case .orphan: "o"
      case .damaged: "d"
      case .free: "f"
      case .overflow: "v"
      case .special: "s"
      case .unplaced: "u"
      case .unreadable: "x"
      }
    }
  }

  /// The page size in bytes.
  public var pageSize: Int

  /// The number of pages.
  public var total: Int

  /// The number of pages in each state.
  public var counts: [State: Int]

  /// The states in the order of the pages, run by run: a letter and how many pages have it.
  public var map: String
}

extension PageStates {
  /// The longest map that is written, in runs.
  private static let maximumRuns = 100_000

  init(_ harvest: RowHarvest) {
    let crawl = harvest.crawl
    let unplaced = Set(crawl.unplaced)
    pageSize = harvest.reader.pageSize
    total = Int(crawl.map.pageCount)
    counts = [:]
    map = ""
    var run: (state: State, count: Int)?
    var runs = 0
    for page in stride(from: UInt32(1), through: crawl.map.pageCount, by: 1) {
      let state = Self.state(page, crawl, isUnplaced: unplaced.contains(page))
      counts[state, default: 0] += 1
      if run?.state == state {
        run?.count += 1
      } else {
        if let run, runs < Self.maximumRuns { map += "\(run.state.letter)\(run.count)" }
        runs += 1
        run = (state, 1)
      }
    }
    if let run, runs < Self.maximumRuns { map += "\(run.state.letter)\(run.count)" }
  }

  private static func state(_ page: UInt32, _ crawl: Crawl, isUnplaced: Bool) -> State {
    if isUnplaced { return .unplaced }
    switch crawl.map.fate(page) {
    case .tree: return .healthy
    case .placed: return .orphan
    case .damaged: return .damaged
    case .overflow: return .overflow
    case .free, .dead: return .free
    case .special: return .special
    case .unclaimed:
      switch crawl.map.look(page) {
      case .zero, .missing, .unknown: return .unreadable
      case .broken: return .damaged
      case .linked, .tableLeaf, .tableInterior, .indexLeaf, .indexInterior: return .orphan
      }
    }
  }
}
