import HTTPServer
import Platform
import SQLiteFormat

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
    page.collection.columns.flatMap { column in
      FacetSteps.steps(of: column).map { FacetSteps(column.name, $0) }
    }.filter { !page.query.steps.contains($0) }
  }

  var isEmpty: Bool {
    page.page.facets.isEmpty && page.page.steppedFacets.isEmpty
      && (candidates.isEmpty && steps.isEmpty || page.page.rows.isEmpty)
  }

  var html: HTML {
    let counted = page.page.facets.map(facet) + page.page.steppedFacets.map(stepped)
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
      <aside class="panel facets no-print" aria-label="Counts">\(counted)\(offer("Count the values of", values))\
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
        <li class="step">\(name)<span class="number">\(Words.number(count.count))</span>\
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
        <li><a href="\(target)">\(count.value.html)</a><span class="number">\(Words.number(count.count))</span></li>
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
