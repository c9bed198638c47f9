internal import RecoveryKit
internal import SQLiteFormat

/// What speaks for and against the rows that lead to the same overflow pages.
///
/// In: rows that are whole, each with a page that something else leads to as well. Out: which of them belong together, and
/// whose the pages are.
struct RivalEvidence {
  let context: RowContext

  private var reader: PageReader { context.reader }

  /// How certain it is that the pages are a row's.
  enum Standing: Int {
    case contradicted

    case open

    /// The content fits where the row's own part ends.
    case fitting

    /// The pointer maps or a recovery kit say so.
    case proved

    /// Whether another row with this standing is no match for the best one.
    func isBeaten(by best: Standing) -> Bool {
      switch best {
      case .proved: self != .proved
      case .fitting: self == .contradicted
      case .contradicted, .open: false
      }
    }
  }

  /// The rows by the pages that they share; most are alone.
  func groups(of rows: [FoundRow]) throws(SalvageError) -> [[Int]] {
    let places = try places(of: rows)
    var group = Array(rows.indices)
    func top(_ index: Int) -> Int {
      var index = index
      while group[index] != index { index = group[index] }
      return index
    }
    var owners: [UInt32: Int] = [:]
    for index in rows.indices {
      for place in places[index] {
        if let other = owners[place] {
          let (mine, theirs) = (top(index), top(other))
          group[max(mine, theirs)] = min(mine, theirs)
        } else {
          owners[place] = index
        }
      }
    }
    var members: [Int: [Int]] = [:]
    for index in rows.indices { members[top(index), default: []].append(index) }
    return members.sorted { $0.key < $1.key }.map(\.value)
  }

  /// The places of the overflow pages of each row.
  private func places(of rows: [FoundRow]) throws(SalvageError) -> [[UInt32]] {
    var places: [[UInt32]] = []
    for row in rows {
      var payload = [UInt8](repeating: 0, count: row.cell.local)
      if case .whole(let chain) = try context.complete(&payload, of: row.cell) {
        places.append(chain.places)
      } else {
        places.append([])
      }
    }
    return places
  }

  /// The one of several rows whose the pages are; nil where nothing tells.
  func winner(of group: [Int], _ rows: [FoundRow], _ statistics: TextStatistics) throws(SalvageError) -> Int? {
    var standings: [Int: Standing] = [:]
    for index in group { standings[index] = try standing(of: rows[index], statistics) }
    func known(_ index: Int) -> Standing { standings[index] ?? .open }
    guard let best = group.max(by: { known($0).rawValue < known($1).rawValue }) else { return nil }
    let isAlone = group.allSatisfy { $0 == best || known($0).isBeaten(by: known(best)) }
    return isAlone ? best : nil
  }

  private func standing(of row: FoundRow, _ statistics: TextStatistics) throws(SalvageError) -> Standing {
    let cell = row.cell
    if let isOwn = try isMapped(cell.overflow, to: row.page) { return isOwn ? .proved : .contradicted }
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(row.page, into: &buffer) else { return .open }
    if isNoted(row.page, buffer) { return .proved }
    var payload = Array(buffer[cell.payload..<(cell.payload + cell.local)])
    guard case .whole(let chain) = try context.complete(&payload, of: cell),
      RecordText.isValid(payload.span, at: 0, before: payload.count, encoding: reader.layout.encoding)
    else { return .contradicted }
    var isFitting = false
    let perPage = reader.usableSize - 4
    for (page, start) in [(cell.overflow, cell.local), (chain.lastPage, payload.count - chain.usedOnLast)] {
      guard
        let seam = ChainEnd(
          payload.span, page: page, start: start, used: min(perPage, payload.count - start),
          encoding: reader.layout.encoding),
        try reader.read(page, into: &buffer)
      else { continue }
      let judgement = seam.judge(buffer, statistics, traits(isLast: page == chain.lastPage))
      if judgement.isBad { return .contradicted }
      if judgement.isGood { isFitting = true }
    }
    return isFitting ? .fitting : .open
  }

  /// What the ends of chains are like, as far as it counts for one page.
  private func traits(isLast: Bool) -> ChainTraits {
    var traits = ChainTraits(usableSize: reader.usableSize)
    traits.isLastPage = isLast
    return traits
  }

  /// Whether the pointer maps say that a page is the first of a long value whose cell is on another page; nil where there
  /// are none.
  private func isMapped(_ page: UInt32, to leaf: UInt32) throws(SalvageError) -> Bool? {
    guard let entry = try PointerMaps(reader).entry(for: page) else { return nil }
    switch entry.kind {
    case .overflowFirst: return entry.parent == leaf
    case .overflowNext: return false
    case nil, .root?, .free?, .child?: return nil
    }
  }

  /// Whether a recovery kit knows the page just as it is.
  private func isNoted(_ page: UInt32, _ bytes: [UInt8]) -> Bool {
    guard let kit = context.crawl.kit else { return false }
    for table in kit.tables {
      guard let place = table.leaves.firstIndex(of: page), table.sums.indices.contains(place) else { continue }
      return table.sums[place] == RecoveryKit.sum(of: bytes)
    }
    return false
  }
}
