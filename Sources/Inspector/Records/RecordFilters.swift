import HTTPServer
import ManagedObjectModel
import Platform
import SQLiteFormat

/// A record list's filters: removable chips, and a form.
struct RecordFilters {
  let page: RecordsPage

  private var query: RecordQuery { page.query }
  private var collection: RecordCollection { page.collection }

  var html: HTML { "\(states)\(chips)\(form)\(chooser)" }

  private var states: HTML {
    guard let counts = page.states, counts.keys.contains(where: { $0 != .certain }) else { return .empty }
    func link(_ words: HTML, _ states: Set<RowState>?) -> HTML {
      .choice(words, page.target { $0.states = states }, isCurrent: query.states == states)
    }
    var items = [link("records of the store", nil)]
    for state in RowState.allCases {
      guard let count = counts[state], count > 0 else { continue }
      items.append(link("\(state.words) \(grouped(count))", [state]))
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
        """)
    }
    for (index, filter) in query.filters.enumerated() {
      let value: HTML = filter.comparison.takesValue ? " “\(filter.value)”" : .empty
      chip(
        "\(collection.shownName(of: filter.column)) \(filter.comparison.words)\(value)",
        page.target { $0.filters.remove(at: index) })
    }
    if let search = query.search { chip("text “\(search)”", page.target { $0.search = nil }) }
    if let sort = query.sort {
      chip(
        "sorted by \(collection.shownName(of: sort))\(query.isDescending ? ", last first" : "")",
        page.target { query in
          query.sort = nil
          query.isDescending = false
        })
    }
    return items.isEmpty ? .empty : "<ul class=\"chips\" aria-label=\"What is shown\">\(items)</ul>"
  }

  /// Fields that preserve the current query.
  private func kept(_ query: RecordQuery) -> [HTML] {
    query.items.map { "<input type=\"hidden\" name=\"\($0.name)\" value=\"\($0.value)\">" }
  }

  /// The form: search text, a line per condition, and an empty one.
  ///
  /// Scripts add lines; otherwise each submission does.
  private var form: HTML {
    let editable = Array(query.filters.prefix(RecordsRequest.fields - 1))
    let rest = query.changed { query in
      query.search = nil
      query.filters.removeFirst(editable.count)
    }
    let texts = collection.columns.contains { $0.typeName == "string" || $0.typeName == "uri" || !collection.isEntity }
    let search = HTML.when(
      texts,
      """
      <p class="row"><label><span>Text</span><input type="search" name="_search" value="\(query.search ?? "")" autocomplete="off"></label></p>
      """)
    let lines = editable.enumerated().map { line($0 + 1, $1) } + [line(editable.count + 1, nil)]
    return """
      <form class="filter no-print" method="get" action="\(page.place.records(collection.name))" role="search" \
      data-conditions="\(RecordsRequest.fields)">\(kept(rest))\(search)
      \(lines)<p class="row"><button>Show</button><button type="button" class="plain" data-condition-add hidden>Add a condition</button></p></form>
      """
  }

  private func line(_ number: Int, _ filter: RecordFilter?) -> HTML {
    let columns = collection.columns.filter { !$0.isBytes || $0.name == filter?.column }.map {
      HTML.option($0.name, $0.shownName, isChosen: $0.name == filter?.column)
    }
    let comparisons = RecordFilter.Comparison.allCases.map {
      HTML.option($0.rawValue, $0.words, isChosen: $0 == filter?.comparison)
    }
    return """
      <div class="row condition" role="group" aria-label="Condition \(number)" data-condition>
      <label><span>Property</span><select name="_column\(number)"><option value="">–</option>\(columns)</select></label>
      <label><span>Condition</span><select name="_is\(number)">\(comparisons)</select></label>
      <label><span>Value</span><input type="text" name="_value\(number)" value="\(filter?.value ?? "")" autocomplete="off"></label>
      <button type="button" class="plain" data-condition-remove hidden aria-label="Take condition \(number) away">×</button></div>
      """
  }

  private var chooser: HTML {
    guard collection.columns.count > 1 else { return .empty }
    let shown = Set(page.page.columns.map(\.name))
    let boxes = collection.columns.map { column -> HTML in
      let isShown: HTML = shown.contains(column.name) ? " checked" : .empty
      return """
        <label class="check"><input type="checkbox" name="_show" value="\(column.name)"\(isShown)> \(column.shownName)</label>
        """
    }
    return """
      <details class="no-print"><summary>Columns (\(shown.count) of \(collection.columns.count))</summary>
      <form method="get" action="\(page.place.records(collection.name))">\(kept(query.changed { $0.columns = nil }))
      <fieldset class="checks"><legend>Columns</legend>\(boxes)</fieldset><p><button>Show these</button></p></form></details>
      """
  }
}

/// A record list's query from URL parameters, or from the form without scripts.
struct RecordsRequest: Sendable {
  let query: RecordQuery

  /// The number of form lines, each with `_column1`, `_is1`, `_value1`.
  static let fields = 12

  /// - Throws: `bad-query` and `unknown-property`.
  init(_ query: Query, of collection: RecordCollection) throws {
    var parameters: [(name: String, value: String)] = []
    var shown: [String] = []
    for item in query.items {
      if item.name == "_show" {
        shown.append(item.value)
      } else if !Self.isField(item.name) {
        parameters.append((item.name, item.value))
      }
    }
    for number in 1...Self.fields {
      guard let column = query["_column\(number)"], !column.isEmpty else { continue }
      let comparison = query["_is\(number)"] ?? RecordFilter.Comparison.exact.rawValue
      let name = comparison == RecordFilter.Comparison.exact.rawValue ? column : "\(column)__\(comparison)"
      parameters.append((name, query["_value\(number)"] ?? ""))
    }
    var result = try RecordQuery(parameters, of: collection)
    if !shown.isEmpty {
      let all = collection.columns.map(\.name)
      let wanted = Set(shown)
      result.columns = wanted.count == all.count ? nil : all.filter(wanted.contains)
      if result.columns?.isEmpty == true { result.columns = nil }
    }
    self.query = result
  }

  private static func isField(_ name: String) -> Bool {
    ["_column", "_is", "_value"].contains { prefix in
      guard name.hasPrefix(prefix), let number = Int(name.dropFirst(prefix.count)) else { return false }
      return (1...fields).contains(number)
    }
  }
}

extension RecordQuery {
  var items: [Query.Item] { parameters.map { Query.Item($0.name, $0.value) } }

  /// Changes the query and returns to its first page.
  func changed(_ change: (inout RecordQuery) -> Void) -> RecordQuery {
    var copy = self
    copy.next = nil
    copy.countsAll = false
    change(&copy)
    return copy
  }
}

extension RecordFilter.Comparison {
  var words: String {
    switch self {
    case .exact: "is"
    case .not: "is not"
    case .contains: "contains"
    case .startsWith: "begins with"
    case .endsWith: "ends with"
    case .greater: "is after, greater than"
    case .greaterOrEqual: "is at least"
    case .less: "is before, less than"
    case .lessOrEqual: "is at most"
    case .isNull: "is null"
    case .isNotNull: "is not null"
    }
  }
}

/// Value counts as links that narrow the list.
struct RecordFacets {
  let page: RecordsPage

  private static let offered = 12

  private var candidates: [RecordColumn] {
    page.collection.columns.filter { column in
      !page.query.facets.contains(column.name)
        && ["string", "boolean", "integer", "to-one", "entity", "date", "uri", "text", "any"].contains(column.typeName)
    }
  }

  private var steps: [FacetSteps] {
    page.collection.columns.flatMap { column in FacetSteps.steps(of: column).map { FacetSteps(column.name, $0) } }
      .filter { !page.query.steps.contains($0) }
  }

  var isEmpty: Bool {
    page.page.facets.isEmpty && page.page.steppedFacets.isEmpty
      && (candidates.isEmpty && steps.isEmpty || page.page.rows.isEmpty)
  }

  var html: HTML {
    let counts = page.page.facets.map(facet) + page.page.steppedFacets.map(stepped)
    let values = candidates.prefix(Self.offered).map { column -> HTML in
      "<li><a class=\"tag\" href=\"\(page.target { $0.facets.append(column.name) })\">\(column.shownName)</a></li>"
    }
    let spans = steps.prefix(Self.offered).map { steps -> HTML in
      let target = page.target { $0.steps.append(steps) }
      return "<li><a class=\"tag\" href=\"\(target)\">\(steps.column) \(steps.step.words)</a></li>"
    }
    func offer(_ heading: String, _ items: [HTML]) -> HTML {
      items.isEmpty ? .empty : "<div><h2>\(heading)</h2><ul class=\"chips\">\(items)</ul></div>"
    }
    return """
      <aside class="panel facets no-print" aria-label="Counts">\(counts)\(offer("Count the values of", values))\
      \(offer("Count dates and numbers", spans))</aside>
      """
  }

  /// Links to each step's records, with bars for their share.
  private func stepped(_ facet: SteppedFacet) -> HTML {
    let steps = facet.steps
    let close = page.target { query in query.steps.removeAll { $0 == steps } }
    let most = max(1, (facet.counts ?? []).reduce(0) { max($0, $1.count) })
    let items = facet.counts?.map { count -> HTML in
      let target = page.target { query in
        query.filters.removeAll { $0.column == steps.column }
        query.filters += count.filters(steps)
      }
      // Equal numbers that aren't whole form no range.
      let name: HTML =
        count.filters(steps).isEmpty ? "<span>\(count.words)</span>" : "<a href=\"\(target)\">\(count.words)</a>"
      let width = Int(Double(count.count) / Double(most) * 100)
      return """
        <li class="step">\(name)<span class="number">\(grouped(count.count))</span>\
        <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width="\(max(1, width))" height="4"/></svg></li>
        """
    }
    let list = items.map { $0.isEmpty ? "<p class=\"soft\">No values.</p>" : "<ul>\($0)</ul>" as HTML }
    return group("\(steps.column) \(steps.step.words)", close: close, list, isCut: facet.isCut)
  }

  /// - Parameters:
  ///   - close: the page without these counts.
  ///   - list: nil if counting took too long.
  private func group(_ name: String, close: RequestTarget, _ list: HTML?, isCut: Bool) -> HTML {
    let cut: HTML = isCut ? "<p class=\"soft\">and more</p>" : .empty
    let counts = list.map { $0 + cut } ?? "<p class=\"soft\">Counting took too long; narrow the list first.</p>"
    return """
      <div><h2>\(name) <a class="soft" href="\(close)" aria-label="Do not count \(name)">×</a></h2>\(counts)</div>
      """
  }

  private func facet(_ facet: RecordPage.Facet) -> HTML {
    let close = page.target { query in query.facets.removeAll { $0 == facet.column } }
    let items = facet.values?.map { count -> HTML in
      let target = page.target { query in
        query.filters.removeAll { $0.column == facet.column }
        query.filters.append(Self.filter(facet.column, count.value))
      }
      return """
        <li><a href="\(target)">\(count.value.html)</a><span class="number">\(grouped(count.count))</span></li>
        """
    }
    return group(
      page.collection.shownName(of: facet.column), close: close, items.map { "<ul>\($0)</ul>" as HTML },
      isCut: facet.isCut)
  }

  private static func filter(_ column: String, _ value: PresentedValue) -> RecordFilter {
    switch value.form {
    case .null: RecordFilter(column, .isNull)
    case .text where value.isCut, .uri where value.isCut: RecordFilter(column, .startsWith, value.text)
    case .text where value.text.isEmpty: RecordFilter(column, .lessOrEqual, "")
    case .integer, .real, .decimal, .boolean, .text, .date, .uuid, .uri, .bytes, .file, .reference, .unexpected:
      RecordFilter(column, .exact, value.text)
    }
  }
}

extension FacetSteps.Step {
  var words: String {
    switch self {
    case .year: "by year"
    case .month: "by month"
    case .range: "in ranges"
    }
  }
}

extension SteppedFacet.Count {
  var words: String {
    func last(_ end: String) -> String { isWhole ? Int64(end).map { String($0 - 1) } ?? end : end }
    switch (first, end) {
    case (let first?, let end?):
      guard isWhole else { return "\(first) to below \(end)" }
      return first == last(end) ? first : "\(first) to \(last(end))"
    case (let first?, nil): return isYearOrMonth ? first : "\(first) and more"
    case (nil, let end?): return isWhole ? "up to \(last(end))" : "below \(end)"
    case (nil, nil): return "all numbers"
    }
  }

  var json: JSON.Value {
    isYearOrMonth
      ? .members(("value", first.map { .string($0) }), ("count", .integer(count)))
      : .members(("from", first.map { .string($0) }), ("below", end.map { .string($0) }), ("count", .integer(count)))
  }
}
