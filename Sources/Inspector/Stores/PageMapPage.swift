import HTTPServer
import StoreCoordination

/// The map of a store's pages, on a page of its own.
struct PageMapPage: InspectorPage {
  let store: ListedStore
  let report: PagePart<SalvageReport>

  init(_ store: ListedStore, _ parts: InspectorParts) {
    self.store = store
    report = PagePart { try store.report(parts.surroundings.fileSystem) }
  }

  var title: String { "Pages of \(store.name)" }
  var crumbs: [Crumb] { [.stores, Crumb(store.name, .store(store.id))] }

  func encode(to encoder: any Encoder) throws {
    try report.map { PageMapDrawing.payload($0.pages, store.id) }.encode(to: encoder)
  }

  func content(_ frame: PageFrame) -> HTML {
    let map = report.html { report in
      """
      <p class="soft">\(Words.counted(report.pages.total, "page")) of \(Words.number(report.pages.pageSize)) bytes. Each cell is a \
      page; Enter or a click opens its bytes, N goes to the next damage.</p>
      \(PageMapDrawing(pages: report.pages, store: store.id).html)
      <h2>Tables and indexes</h2>\(owners(report.pages))
      """
    }
    return "<h1>\(title)</h1>\(map)"
  }

  /// How many pages of each state each table has.
  private func owners(_ pages: PageStates) -> HTML {
    var counts: [Int: [PageStates.State: Int64]] = [:]
    for run in pages.runs { counts[run.owner ?? -1, default: [:]][run.state, default: 0] += Int64(run.pages.count) }
    let states = PageStates.State.allCases.filter { (pages.counts[$0] ?? 0) > 0 }
    let rows = counts.sorted { $0.key < $1.key }.map { owner, numbers -> HTML in
      let name = pages.owners.indices.contains(owner) ? printable(pages.owners[owner].words) : "no table's"
      return "<tr><th scope=\"row\">\(name)</th>\(states.map { HTML.number(numbers[$0] ?? 0) })</tr>"
    }
    let heads = states.map { state -> HTML in "<th scope=\"col\" class=\"number\">\(state.rawValue)</th>" }
    return .table("Pages by table", head: "<th scope=\"col\">Table</th>\(heads)", rows)
  }
}

extension ListedStore {
  /// The report of its salvage.
  ///
  /// - Throws: ``Refusal`` 404 where nothing was salvaged; ``SalvageError`` where the report cannot be read.
  func report(_ fileSystem: FileSystem) throws -> SalvageReport {
    guard let salvage else { throw Refusal(.notFound, "nothing was salvaged of this store yet") }
    return try SalvageReport.read(salvage.report, in: fileSystem)
  }
}
