import HTTPServer
import Inbox
import StoreCoordination

/// The picture of a store's pages by the report in a bundle, whose store is not here.
struct InboxPageMap: Sendable {
  let runs: [BundleAccount.Run]

  /// The most cells; of more pages, several share one.
  private static let maximumCells = 4000

  /// The drawing, for browsers with and without scripts.
  var html: HTML {
    let all = runs.reduce(0.0) { $0 + Double(max(0, $1.count)) }
    guard all > 0 else { return .empty }
    let share = max(1, all / Double(Self.maximumCells))
    var cells: [PageStates.State] = []
    for run in runs {
      let state = PageStates.State(rawValue: run.state) ?? .unplaced
      // A short run keeps one cell, so that a single damaged page is seen.
      let count = max(1, Int((Double(max(0, run.count)) / share).rounded()))
      cells += Array(repeating: state, count: min(count, Self.maximumCells))
      if cells.count > 2 * Self.maximumCells { break }
    }
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
      <div class="map"><div class="map-still"><svg viewBox="0 0 \(across * 10) \(down * 10)" role="img" \
      aria-label="Map of the pages">\(shapes)</svg></div></div>
      """
  }
}
