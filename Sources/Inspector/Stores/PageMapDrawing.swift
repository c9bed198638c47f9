import HTTPServer
import StoreCoordination

/// The picture of a store's pages: as data for the script that draws it, and as a drawing for browsers without scripts.
struct PageMapDrawing: Sendable {
  let pages: PageStates
  let store: StoreID

  /// The most cells of the drawing without scripts; of more pages, several share a cell and the worst state shows.
  static let maximumCells = 4000

  /// The data of the script, also the twin of the page.
  static func payload(_ pages: PageStates, _ store: StoreID) -> JSON.Object {
    let counts = PageStates.State.allCases.map { ($0.rawValue, pages.counts[$0] ?? 0) }
    return [
      "pageSize": pages.pageSize, "pages": pages.total, "mapped": pages.mapped,
      "href": RequestTarget.store(store, "pages").path + "/{page}",
      "counts": Dictionary(uniqueKeysWithValues: counts), "tables": pages.owners.map { printable($0.words) },
      "runs": pages.runs.map { run -> JSON.Value in
        [
          .string(String(run.state.letter)), .integer(Int64(run.owner ?? -1)), .integer(Int64(run.pages.count)),
        ]
      },
    ]
  }

  /// The map with its legend.
  var html: HTML {
    """
    <div class="map" data-map="\(RequestTarget.store(store, "map").twin)">
    <div class="map-still">\(drawing)</div>
    <div class="row no-print"><button data-zoom="2" hidden aria-label="Enlarge">+</button>\
    <button data-zoom="0.5" hidden aria-label="Shrink">−</button>\
    <button data-colour hidden>Colour by table</button></div>
    \(legend)
    </div>
    """
  }

  private var legend: HTML {
    let items = PageStates.State.allCases.compactMap { state -> HTML? in
      guard let count = pages.counts[state], count > 0 else { return nil }
      return """
        <li title="\(state.meaning)"><span class="swatch \(state.rawValue)" aria-hidden="true"></span>\(state.rawValue) \
        <span class="soft">\(Words.number(count))</span></li>
        """
    }
    return "<ul class=\"legend\">\(items)</ul>"
  }

  /// The drawing of the pages that the report has.
  private var drawing: HTML {
    let share = max(1, (pages.mapped + Self.maximumCells - 1) / Self.maximumCells)
    let cells = cells(of: share)
    guard !cells.isEmpty else { return "<p class=\"soft\">The report has no map of the pages.</p>" }
    let words = PageStates.State.allCases.compactMap { state in
      pages.counts[state].map { "\(Words.number($0)) \(state.rawValue)" }
    }.joined(separator: ", ")
    return PageStates.State.drawing(of: cells, label: "Map of \(Words.number(pages.total)) pages: \(words)")
  }

  private func cells(of share: Int) -> [PageStates.State] {
    var cells: [PageStates.State] = []
    var filled = 0
    for run in pages.runs {
      var left = run.pages.count
      while left > 0 {
        if filled == 0 { cells.append(run.state) }
        let step = min(left, share - filled)
        if run.state.weight > cells[cells.count - 1].weight { cells[cells.count - 1] = run.state }
        filled = (filled + step) % share
        left -= step
      }
    }
    return cells
  }
}

extension PageStates.Owner {
  /// The table, or the index and its table.
  var words: String { isIndex ? "\(name) (index of \(table))" : name }
}

extension PageStates.State {
  /// A drawing of cells with their states, row by row: rectangles of those in the same state.
  static func drawing(of cells: [PageStates.State], label: String) -> HTML {
    let across = min(cells.count, max(16, Int(Double(cells.count * 4).squareRoot().rounded(.up))))
    let down = (cells.count + across - 1) / across
    var shapes = HTML.empty
    var start = 0
    while start < cells.count {
      var end = start + 1
      while end < cells.count, end % across != 0, cells[end] == cells[start] { end += 1 }
      shapes += """
        <rect class="\(cells[start].rawValue)" x="\(start % across * 10)" y="\(start / across * 10)" \
        width="\((end - start) * 10 - 1)" height="9"/>
        """
      start = end
    }
    return """
      <svg viewBox="0 0 \(across * 10) \(down * 10)" role="img" aria-label="\(label)">\(shapes)</svg>
      """
  }

  /// What it means, in a few words.
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

  /// How bad it is: the worst of several pages is what their cell shows.
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
