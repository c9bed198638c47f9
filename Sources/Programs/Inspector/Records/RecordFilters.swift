import HTTPServer
import RecordBrowsing
import StoreCoordination

/// What a record list is narrowed by: conditions as chips that can be taken away, and a form for more.
struct RecordFilters {
  let page: RecordsPage

  private var query: RecordQuery { page.query }
  private var collection: RecordCollection { page.collection }

  var html: HTML { "\(states)\(chips)\(form)\(chooser)" }

  /// The states that rows are in, each with its number.
  private var states: HTML {
    guard let counts = page.states, counts.keys.contains(where: { $0 != .certain }) else { return .empty }
    func link(_ words: HTML, _ states: Set<RowState>?) -> HTML {
      let current: HTML = query.states == states ? " aria-current=\"true\"" : ""
      let style: HTML = query.states == states ? "tag accent" : "tag"
      return "<li><a class=\"\(style)\" href=\"\(page.target { $0.states = states })\"\(current)>\(words)</a></li>"
    }
    var items = [link("records of the store", nil)]
    for state in RowState.allCases {
      guard let count = counts[state], count > 0 else { continue }
      items.append(link("\(state.words) \(Words.number(count))", [state]))
    }
    items.append(link("everything", Set(RowState.allCases)))
    return "<nav aria-label=\"States\"><ul class=\"chips\">\(items)</ul></nav>"
  }

  private var chips: HTML {
    var items: [HTML] = []
    func chip(_ words: HTML, _ target: RequestTarget) {
      items.append(
        """
        <li><a class="tag accent" href="\(target)">\(words) <span aria-hidden="true">×</span>\
        <span class="visually-hidden">, take away</span></a></li>
        """
      )
    }
    for (index, filter) in query.filters.enumerated() {
      let value: HTML = filter.comparison.takesValue ? " “\(filter.value)”" : .empty
      chip("\(filter.column) \(filter.comparison.words)\(value)", page.target { $0.filters.remove(at: index) })
    }
    if let search = query.search { chip("text “\(search)”", page.target { $0.search = nil }) }
    if let sort = query.sort {
      chip(
        "sorted by \(sort)\(query.isDescending ? ", last first" : "")",
        page.target { query in
          query.sort = nil
          query.isDescending = false
        })
    }
    return items.isEmpty ? .empty : "<ul class=\"chips\" aria-label=\"What is shown\">\(items)</ul>"
  }

  /// The fields of a form that keep what the query says already.
  private func kept(_ query: RecordQuery) -> [HTML] {
    query.items.map { "<input type=\"hidden\" name=\"\($0.name)\" value=\"\($0.value)\">" }
  }

  private var form: HTML {
    let columns = collection.columns.filter { !$0.isBytes }.map { column -> HTML in
      "<option>\(column.name)</option>"
    }
    let comparisons = RecordFilter.Comparison.allCases.map { comparison -> HTML in
      "<option value=\"\(comparison.rawValue)\">\(comparison.words)</option>"
    }
    let rest = query.changed { $0.search = nil }
    let texts = collection.columns.contains { $0.typeName == "string" || $0.typeName == "uri" || !collection.isEntity }
    let search: HTML =
      !texts
      ? .empty
      : """
      <label><span>Text</span><input type="search" name="_search" value="\(query.search ?? "")" autocomplete="off"></label>
      """
    return """
      <form class="row filter no-print" method="get" action="\(page.place.records(collection.name))" role="search">
      \(kept(rest))\(search)
      <label><span>Property</span><select name="_column1"><option value="">–</option>\(columns)</select></label>
      <label><span>Condition</span><select name="_is1">\(comparisons)</select></label>
      <label><span>Value</span><input type="text" name="_value1" autocomplete="off"></label>
      <button>Show</button></form>
      """
  }

  private var chooser: HTML {
    guard collection.columns.count > 1 else { return .empty }
    let shown = Set(page.page.columns.map(\.name))
    let boxes = collection.columns.map { column -> HTML in
      let isShown: HTML = shown.contains(column.name) ? " checked" : .empty
      return """
        <label class="check"><input type="checkbox" name="_show" value="\(column.name)"\(isShown)> \(column.name)</label>
        """
    }
    return """
      <details class="no-print"><summary>Columns (\(shown.count) of \(collection.columns.count))</summary>
      <form method="get" action="\(page.place.records(collection.name))">\(kept(query.changed { $0.columns = nil }))
      <fieldset class="checks"><legend>Columns</legend>\(boxes)</fieldset><p><button>Show these</button></p></form></details>
      """
  }
}
