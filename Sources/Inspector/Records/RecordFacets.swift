import HTTPServer
import RecordBrowsing
import StoreCoordination

/// How often each value of some properties occurs, as links that narrow the list, and which properties could be counted.
struct RecordFacets {
  let page: RecordsPage

  /// The most properties that are offered for counting.
  private static let offered = 12

  private var candidates: [RecordColumn] {
    page.collection.columns.filter { column in
      !page.query.facets.contains(column.name)
        && ["string", "boolean", "integer", "to-one", "entity", "date", "uri", "text", "any"].contains(column.typeName)
    }
  }

  var isEmpty: Bool { page.page.facets.isEmpty && (candidates.isEmpty || page.page.rows.isEmpty) }

  var html: HTML {
    let counted = page.page.facets.map(facet)
    let more = candidates.prefix(Self.offered).map { column -> HTML in
      "<li><a class=\"tag\" href=\"\(page.target { $0.facets.append(column.name) })\">\(column.name)</a></li>"
    }
    let offer: HTML =
      more.isEmpty ? .empty : "<div><h2>Count the values of</h2><ul class=\"chips\">\(more)</ul></div>"
    return "<aside class=\"panel facets no-print\" aria-label=\"Counts\">\(counted)\(offer)</aside>"
  }

  private func facet(_ facet: RecordPage.Facet) -> HTML {
    let close = page.target { query in query.facets.removeAll { $0 == facet.column } }
    let head: HTML = """
      <h2>\(facet.column) <a class="soft" href="\(close)" aria-label="Do not count \(facet.column)">×</a></h2>
      """
    guard let values = facet.values else {
      return "<div>\(head)<p class=\"soft\">Counting took too long; narrow the list first.</p></div>"
    }
    let items = values.map { count -> HTML in
      let target = page.target { query in
        query.filters.removeAll { $0.column == facet.column }
        query.filters.append(Self.filter(facet.column, count.value))
      }
      return """
        <li><a href="\(target)">\(count.value.html)</a><span class="number">\(Words.number(count.count))</span></li>
        """
    }
    let cut: HTML = facet.isCut ? "<p class=\"soft\">and more</p>" : .empty
    return "<div>\(head)<ul>\(items)</ul>\(cut)</div>"
  }

  private static func filter(_ column: String, _ value: PresentedValue) -> RecordFilter {
    switch value.form {
    case .null: RecordFilter(column, .isNull)
    // The end of a long text was cut off.
    case .text where value.isCut, .uri where value.isCut: RecordFilter(column, .startsWith, value.text)
    case .text where value.text.isEmpty: RecordFilter(column, .lessOrEqual, "")
    case .integer, .real, .decimal, .boolean, .text, .date, .uuid, .uri, .bytes, .file, .reference, .unexpected:
      RecordFilter(column, .exact, value.text)
    }
  }
}
