import HTTPServer
import Platform
import SQLiteFormat
import Salvage

/// A store's page map, for a script and without.
struct PageMapDrawing: Sendable {
  let report: SalvageReport
  let store: StoreID

  private var pages: PageStates { report.pages }

  /// The most cells without scripts; a shared cell shows the worst state.
  static let maximumCells = 4000

  /// The number of table colours; smaller tables share the last.
  static let colours = 10

  var payload: JSON.Object {
    let counts = PageStates.State.allCases.map { ($0.rawValue, pages.counts[$0] ?? 0) }
    let (names, colours) = (TableNames(report), colourByOwner)
    return [
      "pageSize": pages.pageSize, "pages": pages.total, "mapped": pages.mapped,
      "href": RequestTarget.store(store, "pages").path + "/{page}",
      "counts": Dictionary(uniqueKeysWithValues: counts), "tables": pages.owners.map { printable($0.words) },
      "names": pages.owners.map { printable(names.words($0)) }, "colours": colours,
      "runs": pages.runs.map { run -> JSON.Value in
        [
          .string(String(run.state.letter)), .integer(Int64(run.owner ?? -1)), .integer(Int64(run.pages.count)),
        ]
      },
    ]
  }

  /// The colours; indexes use their table's, and the largest tables have their own.
  private var colourByOwner: [Int] {
    var sizes: [String: Int] = [:]
    for run in pages.runs {
      if let owner = run.owner, pages.owners.indices.contains(owner) {
        sizes[pages.owners[owner].table, default: 0] += run.pages.count
      }
    }
    let tables = sizes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(\.key)
    let colours = tables.enumerated().reduce(into: [String: Int]()) {
      $0[$1.element] = min($1.offset, Self.colours - 1)
    }
    return pages.owners.map { colours[$0.table] ?? Self.colours - 1 }
  }

  var html: HTML {
    """
    <div class="map" data-map="\(RequestTarget.store(store, "map").twin)">
    <div class="map-still">\(drawing)</div>
    <div class="row no-print"><button data-zoom="2" hidden aria-label="Enlarge">+</button>\
    <button data-zoom="0.5" hidden aria-label="Shrink">−</button>\
    <button data-colour hidden>Colour by state</button></div>
    \(tableKey)\(legend)
    </div>
    """
  }

  /// The tables with colours; a script makes them filter buttons.
  private var tableKey: HTML {
    let names = TableNames(report)
    let colours = colourByOwner
    var tables: [(colour: Int, names: [String], pages: Int)] = (0..<Self.colours).map { ($0, [], 0) }
    var seen: Set<String> = []
    for (place, owner) in pages.owners.enumerated() where seen.insert(owner.table).inserted {
      tables[colours[place]].names.append(printable(names.table(owner.table)))
    }
    for run in pages.runs {
      if let owner = run.owner, colours.indices.contains(owner) { tables[colours[owner]].pages += run.pages.count }
    }
    let items = tables.filter { $0.pages > 0 }.map { table -> HTML in
      let words = table.names.count > 2 ? "\(table.names.count) smaller tables" : table.names.joined(separator: ", ")
      return """
        <li data-table-colour="\(table.colour)"><span class="swatch table-\(table.colour)" aria-hidden="true"></span>\(words) \
        <span class="soft">\(Words.number(table.pages))</span></li>
        """
    }
    return items.isEmpty ? .empty : "<ul class=\"legend tables\" aria-label=\"Tables\">\(items)</ul>"
  }

  private var legend: HTML {
    let items = PageStates.State.allCases.compactMap { state -> HTML? in
      guard let count = pages.counts[state], count > 0 else { return nil }
      return """
        <li title="\(state.meaning)" data-state="\(String(state.letter))"><span class="swatch \(state.rawValue)" aria-hidden="true"></span>\
        \(state.rawValue) <span class="soft">\(Words.number(count))</span></li>
        """
    }
    return "<ul class=\"legend states\" aria-label=\"States of pages\">\(items)</ul>"
  }

  /// The pages, coloured by table, or by state if damaged.
  private var drawing: HTML {
    let share = max(1, (pages.mapped + Self.maximumCells - 1) / Self.maximumCells)
    let cells = cells(of: share)
    guard !cells.isEmpty else { return "<p class=\"soft\">The report has no map of the pages.</p>" }
    let words = PageStates.State.allCases.compactMap { state in
      pages.counts[state].map { "\(Words.number($0)) \(state.rawValue)" }
    }.joined(separator: ", ")
    return PageStates.drawing(of: cells, label: "Map of \(Words.number(pages.total)) pages: \(words)")
  }

  private func cells(of share: Int) -> [PageStates.Cell] {
    let colours = colourByOwner
    var cells: [PageStates.Cell] = []
    var filled = 0
    for run in pages.runs {
      let cell = PageStates.Cell(
        state: run.state, colour: run.owner.flatMap { colours.indices.contains($0) ? colours[$0] : nil })
      var left = run.pages.count
      while left > 0 {
        if filled == 0 { cells.append(cell) }
        let step = min(left, share - filled)
        if cell.state.weight > cells[cells.count - 1].state.weight { cells[cells.count - 1] = cell }
        filled = (filled + step) % share
        left -= step
      }
    }
    return cells
  }
}

extension PageStates.Owner {
  var words: String { isIndex ? "\(name) (index of \(table))" : name }
}

extension PageStates {
  struct Cell: Hashable {
    var state: State
    var colour: Int?

    /// The CSS class, by table if undamaged, else by state.
    fileprivate var style: String {
      switch state {
      case .healthy, .overflow, .orphan: colour.map { "table-\($0)" } ?? state.rawValue
      case .damaged, .free, .special, .unplaced, .unreadable: state.rawValue
      }
    }
  }

  /// Draws cells, merging equal ones to rectangles.
  static func drawing(of cells: [Cell], label: String) -> HTML {
    let across = min(cells.count, max(16, Int(Double(cells.count * 4).squareRoot().rounded(.up))))
    let down = (cells.count + across - 1) / across
    var shapes = HTML.empty
    var start = 0
    while start < cells.count {
      var end = start + 1
      while end < cells.count, end % across != 0, cells[end] == cells[start] { end += 1 }
      shapes += """
        <rect class="\(cells[start].style)" x="\(start % across * 10)" y="\(start / across * 10)" \
        width="\((end - start) * 10 - 1)" height="9"/>
        """
      start = end
    }
    return """
      <svg viewBox="0 0 \(across * 10) \(down * 10)" role="img" aria-label="\(label)">\(shapes)</svg>
      """
  }
}

extension PageStates.State {
  var meaning: String {
    switch self {
    case .healthy: "part of its table, found from its root"
    case .orphan: "nothing led to it; placed by its content"
    case .damaged: "damaged; what was left of it was read"
    case .free: "free, or no longer in use"
    case .overflow: "holds the rest of long values"
    case .special: "a pointer map, or the page of the locks"
    case .unplaced: "holds rows that fit no table"
    case .unreadable: "zeros, or nothing that can be read"
    }
  }

  /// The severity; shared cells show the worst.
  fileprivate var weight: Int {
    switch self {
    case .free: 0
    case .special: 1
    case .healthy: 2
    case .overflow: 3
    case .orphan: 4
    case .unplaced: 5
    case .damaged: 6
    case .unreadable: 7
    }
  }
}
