import HTTPServer
import Platform
import Salvage

struct PageMapPage: InspectorPage {
  let store: ListedStore
  let look: PagePart<DamageLook>

  init(_ store: ListedStore, _ parts: InspectorParts, isAsked: Bool = false) {
    self.store = store
    look = PagePart { try parts.damage(of: store, isAsked: isAsked) }
  }

  var title: String { "Pages of \(store.name)" }
  var crumbs: [Crumb] { [.stores, Crumb(store.name, .store(store.id))] }
  var scripts: [String] { look.value?.isPreparing == true ? ["records.js"] : [] }

  func encode(to encoder: any Encoder) throws {
    guard let report = look.value?.report else {
      return try look.map { DamagePayload(look: $0, store: store) }.encode(to: encoder)
    }
    try PageMapDrawing(report: report, store: store.id).payload.encode(to: encoder)
  }

  func content(_ frame: PageFrame) -> HTML {
    let map = look.html { look in
      if let waiting = look.waiting(.store(store.id, "map")) { return .panel("Pages", waiting) }
      guard let report = look.report else { return .empty }
      return """
        <p class="soft">\(Words.counted(report.pages.total, "page")) of \(Words.number(report.pages.pageSize)) bytes. Each cell is a \
        page; Enter or a click opens its bytes, N goes to the next damage.</p>\(look.asOf(frame.now))
        \(PageMapDrawing(report: report, store: store.id).html)
        \(DamageByPage(report: report, store: store).html)
        <h2>Tables and indexes</h2>\(owners(report))
        """
    }
    return "<h1>\(title)</h1>\(StoreTab.bar(store, .map, isDamaged: isDamaged))\(map)"
  }

  private var isDamaged: Bool {
    guard let report = look.value?.report else { return false }
    return !report.isComplete
      || report.pages.counts.contains { state, count in
        count > 0 && (state == .damaged || state == .unreadable || state == .unplaced || state == .orphan)
      }
  }

  private func owners(_ report: SalvageReport) -> HTML {
    let (pages, names) = (report.pages, TableNames(report))
    var counts: [Int: [PageStates.State: Int64]] = [:]
    for run in pages.runs { counts[run.owner ?? -1, default: [:]][run.state, default: 0] += Int64(run.pages.count) }
    let states = PageStates.State.allCases.filter { (pages.counts[$0] ?? 0) > 0 }
    let rows = counts.sorted { $0.key < $1.key }.map { owner, numbers -> HTML in
      let name = pages.owners.indices.contains(owner) ? printable(names.words(pages.owners[owner])) : "no table's"
      return "<tr><th scope=\"row\" class=\"wrap\">\(name)</th>\(states.map { HTML.number(numbers[$0] ?? 0) })</tr>"
    }
    let heads = states.map { state -> HTML in "<th scope=\"col\" class=\"number\">\(state.rawValue)</th>" }
    return .table("Pages by table", head: "<th scope=\"col\">Table</th>\(heads)", rows)
  }
}
