internal import RecoveryKit
internal import SQLiteFormat

/// A row that is whole with pages to which something else leads too.
struct RivalRow {
  var row: BrokenRow

  /// The places of its overflow pages.
  var places: [UInt32] = []

  /// What speaks for the row and against it.
  var evidence = Evidence.open

  /// How certain it is that the pages are the row's.
  enum Evidence: Int {
    /// Something contradicts it.
    case contradicted

    /// Nothing tells.
    case open

    /// The content fits where the row's own part ends.
    case fitting

    /// The pointer maps or a recovery kit say so.
    case proved
  }
}

extension RowHarvest {
  private static let disputed = "other rows lead to the pages of its long value too, and nothing tells whose they are"

  /// Decides whose the pages are that several rows lead to, and writes those rows.
  ///
  /// A row with no rival among the rows that are whole is written as any other: what else led to its pages is a page that is
  /// no longer in use, or a row of another length. Of several the one is live that fits, where all others do not.
  func settleRivals() throws(SalvageError) {
    guard !rivals.isEmpty else { return }
    var rows = rivals
    rivals = []
    try followAgain(&rows)
    let groups = groups(of: rows)
    var statistics: TextStatistics?
    chains.isDecided = true
    defer { chains.isDecided = false }
    for group in groups {
      if group.count > 1 {
        if statistics == nil { statistics = try learnTexts() }
        for index in group { rows[index].evidence = try evidence(of: rows[index], statistics) }
      }
      let best = group.max { rows[$0].evidence.rawValue < rows[$1].evidence.rawValue }
      let winner = best.flatMap { best in
        group.allSatisfy { $0 == best || Self.isBeaten(rows[$0].evidence, by: rows[best].evidence) } ? best : nil
      }
      // The one whose the pages are goes first, so that the others find them taken.
      for index in group.sorted(by: { ($0 == winner ? 0 : 1, $0) < ($1 == winner ? 0 : 1, $1) }) {
        if group.count > 1 {
          remark = index == winner ? "other rows lead to the pages of its long value too; they fit this one" : nil
          doubt = index == winner ? nil : Self.disputed
        }
        try writeAgain(rows[index].row)
        (remark, doubt) = (nil, nil)
      }
    }
  }

  private static func isBeaten(_ evidence: RivalRow.Evidence, by best: RivalRow.Evidence) -> Bool {
    switch best {
    case .proved: evidence != .proved
    case .fitting: evidence == .contradicted
    case .contradicted, .open: false
    }
  }

  /// Writes a row whose page is read anew.
  func writeAgain(_ row: BrokenRow) throws(SalvageError) {
    var buffer = reader.makeBuffer()
    var payload: [UInt8] = []
    guard try reader.readPlace(row.page, into: &buffer) else { return }
    try writeLate(row, buffer.span, &payload)
  }

  /// Notes the pages of each row.
  private func followAgain(_ rows: inout [RivalRow]) throws(SalvageError) {
    for index in rows.indices {
      var payload = [UInt8](repeating: 0, count: rows[index].row.cell.local)
      let outcome = try chains.follow(
        from: rows[index].row.cell.overflow, length: rows[index].row.cell.length, into: &payload, map: &crawl.map,
        owner: nil)
      if case .whole = outcome { rows[index].places = chains.places }
    }
  }

  /// The rows by the pages that they share; most are alone.
  private func groups(of rows: [RivalRow]) -> [[Int]] {
    var group = Array(rows.indices)
    func top(_ index: Int) -> Int {
      var index = index
      while group[index] != index { index = group[index] }
      return index
    }
    var owners: [UInt32: Int] = [:]
    for index in rows.indices {
      for place in rows[index].places {
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

  private func evidence(of rival: RivalRow, _ statistics: TextStatistics?) throws(SalvageError) -> RivalRow.Evidence {
    let cell = rival.row.cell
    if let isOwn = try isMapped(cell.overflow, to: rival.row.page) { return isOwn ? .proved : .contradicted }
    var buffer = reader.makeBuffer()
    guard let statistics, try reader.readPlace(rival.row.page, into: &buffer) else { return .open }
    if isNoted(rival.row.page, buffer) { return .proved }
    var payload = Array(buffer[cell.payload..<(cell.payload + cell.local)])
    let outcome = try chains.follow(
      from: cell.overflow, length: cell.length, into: &payload, map: &crawl.map, owner: nil)
    guard case .whole = outcome,
      RecordText.isValid(payload.span, at: 0, before: payload.count, encoding: reader.layout.encoding)
    else { return .contradicted }
    let end = chains.end
    var isFitting = false
    let perPage = reader.usableSize - 4
    for (page, start) in [(cell.overflow, cell.local), (end.page, payload.count - end.used)] {
      guard
        let seam = ChainEnd(
          payload.span, page: page, start: start, used: min(perPage, payload.count - start),
          encoding: reader.layout.encoding),
        try reader.read(page, into: &buffer)
      else { continue }
      let judgement = seam.judge(buffer, statistics, traits(isLast: page == end.page))
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
    default: return nil
    }
  }

  /// Whether a recovery kit knows the page just as it is.
  private func isNoted(_ page: UInt32, _ bytes: [UInt8]) -> Bool {
    guard let kit = crawl.kit else { return false }
    for table in kit.tables {
      guard let place = table.leaves.firstIndex(of: page), table.sums.indices.contains(place) else { continue }
      return table.sums[place] == RecoveryKit.sum(of: bytes)
    }
    return false
  }
}
