import HTTPServer
import Platform
import Salvage

struct DamageByPage: Sendable {
  let report: SalvageReport
  let store: ListedStore

  /// The most rows shown; the map has all.
  private static let maximumRows = 20

  /// The damaged, unreadable or orphan pages.
  private var runs: [PageStates.Run] {
    report.pages.runs.filter { run in
      switch run.state {
      case .damaged, .unreadable, .unplaced: true
      case .healthy, .orphan, .free, .overflow, .special: false
      }
    }
  }

  var html: HTML {
    let runs = runs
    let orphans = report.pages.counts[.orphan] ?? 0
    guard !runs.isEmpty || orphans > 0 else { return .empty }
    let names = TableNames(report)
    var rows = runs.prefix(Self.maximumRows).map { run -> HTML in
      let owner = run.owner.flatMap { report.pages.owners.indices.contains($0) ? report.pages.owners[$0] : nil }
      return """
        <tr><th scope="row">\(pages(run.pages))</th><td><span class="swatch \(run.state.rawValue)" aria-hidden="true"></span> \
        \(run.state.rawValue)</td><td>\(owner.map { printable(names.words($0)) } ?? "–")</td><td class="wrap">\(run.state.meaning)</td></tr>
        """
    }
    if orphans > 0 {
      let first = report.pages.runs.first { $0.state == .orphan }?.pages.lowerBound
      rows.append(
        """
        <tr><th scope="row">\(Words.counted(orphans, "page"))\(first.map { " from \(link($0)) on" } ?? HTML.empty)</th>\
        <td><span class="swatch orphan" aria-hidden="true"></span> orphan</td><td>various</td>\
        <td class="wrap">\(PageStates.State.orphan.meaning)</td></tr>
        """)
    }
    let rest: HTML =
      runs.count > Self.maximumRows
      ? "<p class=\"soft\">And \(Words.counted(runs.count - Self.maximumRows, "more place")); the map shows all.</p>"
      : .empty
    return .panel(
      "Damage by page",
      .table(
        "Damage by page",
        head: """
          <th scope="col">Pages</th><th scope="col">State</th><th scope="col">Belongs to</th><th scope="col">What that means</th>
          """, rows) + rest)
  }

  private func pages(_ pages: ClosedRange<UInt32>) -> HTML {
    pages.count == 1 ? link(pages.lowerBound) : "\(link(pages.lowerBound)) – \(link(pages.upperBound))"
  }

  private func link(_ page: UInt32) -> HTML {
    "<a href=\"\(RequestTarget.store(store.id, "pages", String(page)))\">\(Words.number(page))</a>"
  }
}
