internal import SQLiteFormat

extension PageStates {
  /// The states of the pages once all rows have been taken from them.
  init(_ outcome: RowOutcome) {
    let crawl = outcome.crawl
    var unplaced = PageSet()
    for page in crawl.unplaced { _ = unplaced.insert(page) }
    pageSize = outcome.reader.pageSize
    total = Int(crawl.map.pageCount)
    mapped = 0
    counts = [:]
    map = ""
    ownerMap = ""
    owners = crawl.trees.map { tree in
      Owner(
        name: tree.name, table: tree.table.map { crawl.trees[$0].name } ?? tree.name, isIndex: tree.kind == .index)
    }
    var run: (state: State, count: Int)?
    var ownerRun: (owner: Int?, count: Int)?
    var runs = 0
    for page in stride(from: UInt32(1), through: crawl.map.pageCount, by: 1) {
      let state = Self.state(page, outcome, isUnplaced: unplaced.contains(page))
      counts[state, default: 0] += 1
      guard runs < Self.maximumRuns else { continue }
      mapped += 1
      if run?.state == state {
        run?.count += 1
      } else {
        if let run { map += "\(run.state.letter)\(run.count)" }
        runs += 1
        run = (state, 1)
      }
      let owner = crawl.map.owner(page)
      if let now = ownerRun, now.owner == owner {
        ownerRun?.count += 1
      } else {
        if let ownerRun { ownerMap += Self.text(ownerRun) + "," }
        runs += 1
        ownerRun = (owner, 1)
      }
    }
    if let run { map += "\(run.state.letter)\(run.count)" }
    if let ownerRun { ownerMap += Self.text(ownerRun) }
  }

  private static func text(_ run: (owner: Int?, count: Int)) -> String {
    "\(run.owner.map { "\($0)" } ?? "-"):\(run.count)"
  }

  private static func state(_ page: UInt32, _ outcome: RowOutcome, isUnplaced: Bool) -> State {
    if isUnplaced { return .unplaced }
    let crawl = outcome.crawl
    switch crawl.map.fate(page) {
    case .tree: return outcome.wounds.pages[page] == nil ? .healthy : .damaged
    case .placed: return outcome.wounds.pages[page] == nil ? .orphan : .damaged
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
