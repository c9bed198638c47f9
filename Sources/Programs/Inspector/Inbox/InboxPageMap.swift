import HTTPServer
import Inbox
import StoreCoordination

/// The picture of a store's pages by the report in a bundle, whose store is not here.
struct InboxPageMap: Sendable {
  let runs: [BundleAccount.Run]

  /// The drawing, for browsers with and without scripts.
  var html: HTML {
    let all = runs.reduce(0.0) { $0 + Double(max(0, $1.count)) }
    guard all > 0 else { return .empty }
    let share = max(1, all / Double(PageMapDrawing.maximumCells))
    var cells: [PageStates.State] = []
    for run in runs {
      let state = PageStates.State(rawValue: run.state) ?? .unplaced
      // A short run keeps one cell, so that a single damaged page is seen.
      let count = max(1, Int((Double(max(0, run.count)) / share).rounded()))
      cells += Array(repeating: state, count: min(count, PageMapDrawing.maximumCells))
      if cells.count > 2 * PageMapDrawing.maximumCells { break }
    }
    let drawing = PageStates.drawing(of: cells.map { PageStates.Cell(state: $0) }, label: "Map of the pages")
    return "<div class=\"map\"><div class=\"map-still\">\(drawing)</div></div>"
  }
}
