import HTTPServer
import RecordBrowsing
import StoreCoordination

/// The records of an entity, or the rows of a table, a page at a time.
struct RecordsPage: InspectorPage {
  let place: RecordPlace
  let collection: RecordCollection
  let query: RecordQuery
  let page: RecordPage
  let states: [RowState: Int64]?

  /// The list as a query in SQL; nil where it is too long for one.
  let selection: StoreQuery?

  init(_ place: RecordPlace, _ collection: RecordCollection, _ query: RecordQuery) throws {
    self.place = place
    self.collection = collection
    self.query = query
    page = try place.opened.store.page(of: collection, query)
    selection = try place.opened.store.selection(of: collection, query)
    states = collection.hasStates ? try place.opened.store.states(of: collection) : nil
  }

  var title: String { collection.title ?? collection.name }
  var crumbs: [Crumb] { place.crumbs + [Crumb("Records", place.entities)] }
  var scripts: [String] { ["filters.js"] }

  /// The list with another query.
  func target(_ query: RecordQuery) -> RequestTarget { place.records(collection.name, query.items) }

  func target(_ change: (inout RecordQuery) -> Void) -> RequestTarget { target(query.changed(change)) }

  // MARK: JSON

  func encode(to encoder: any Encoder) throws {
    try place.encode(to: encoder)
    try encoder.encode([
      "entity": collection.name, "columns": page.columns.map { ["name": $0.name, "type": $0.typeName] },
      "rows": page.rows.map(row), "total": JSON.orNull(page.total), "matching": JSON.orNull(page.matching),
      "matchingAtLeast": page.matchingAtLeast, "states": states?.byName,
      "doubtful": place.salvage?.doubtful[collection.name],
      "computedColumns": collection.computedColumns.isEmpty ? nil : collection.computedColumns,
      "facets": page.facets.map(Self.facet) + page.steppedFacets.map(Self.stepped), "next": JSON.orNull(page.next),
      "nextPath": nextTarget?.twin, "queryPath": selection.map { place.query($0.items) },
    ])
  }

  private func row(_ row: RecordPage.Row) -> JSON.Value {
    var members: [JSON.Value.Member] = [
      .init("key", .string(row.key.description)), .init("entity", .string(row.entity)),
    ]
    if collection.hasStates { members.append(.init("state", .string(row.state.rawValue))) }
    members.append(
      .init("values", .object(zip(page.columns, row.values).map { JSON.Value.Member($0.name, $1.json) })))
    return .object(members)
  }

  private static func facet(_ facet: RecordPage.Facet) -> JSON.Value {
    let values: JSON.Value =
      facet.values.map { values in
        .array(values.map { ["value": $0.value.json, "count": .integer($0.count)] })
      } ?? .null
    return ["column": .string(facet.column), "values": values, "isCut": .boolean(facet.isCut)]
  }

  private static func stepped(_ facet: SteppedFacet) -> JSON.Value {
    [
      "column": .string(facet.steps.column), "by": .string(facet.steps.step.rawValue),
      "values": facet.counts.map { .array($0.map(\.json)) } ?? .null, "isCut": .boolean(facet.isCut),
    ]
  }

  var nextTarget: RequestTarget? {
    page.next.map { next in
      var query = query
      query.next = next
      return target(query)
    }
  }

  // MARK: HTML

  func content(_ frame: PageFrame) -> HTML {
    let facets = RecordFacets(page: self)
    let list: HTML = page.rows.isEmpty ? nothing : RecordTable(page: self).html
    let whole: HTML =
      facets.isEmpty
      ? "\(list)\(pager)" : "<div class=\"columns counted\"><div>\(list)\(pager)</div>\(facets.html)</div>"
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">\(summary)</p>\(place.notes(frame))\(computed)</div>\(exports)</div>
      \(place.tabs { place.records(collection.name, on: $0) })
      \(place.doubts(of: collection))\(RecordFilters(page: self).html)
      \(whole)
      """
  }

  /// The columns that are not shown, since an expression of the store would run for them.
  private var computed: HTML {
    guard !collection.computedColumns.isEmpty else { return .empty }
    let names = collection.computedColumns.prefix(20).joined(separator: ", ")
    return """
      <p class="soft">Not shown, because the store computes them by expressions, which do not run here: \(names)\
      \(collection.computedColumns.count > 20 ? ", and others" : "").</p>
      """
  }

  private var nothing: HTML {
    let words =
      query.isNarrowed() ? "Nothing fits." : "There are no records of this kind here."
    let all: HTML =
      query == RecordQuery()
      ? .empty : "<p><a class=\"button\" href=\"\(place.records(collection.name))\">All records</a></p>"
    return "<div class=\"empty\"><p>\(words)</p>\(all)</div>"
  }

  private var summary: HTML {
    let noun = collection.isEntity ? "record" : "row"
    let total: HTML = page.total.map { HTML(escaping: Words.counted($0, noun)) } ?? "Many \(noun)s"
    guard query.isNarrowed() else { return total }
    if let states = query.states, states.contains(where: { !$0.isLive }) {
      // Rows that are no records of the store are not some of them.
      let found: HTML = page.matching.map { HTML(escaping: Words.counted($0, "row")) } ?? "Many rows"
      return "\(found); the store has \(total)"
    }
    if let matching = page.matching {
      return "\(Words.number(matching)) of \(total)"
    }
    let all = query.changed { $0.countsAll = true }
    let least: HTML = page.matchingAtLeast.map { "more than \(Words.number($0))" } ?? "some"
    return "\(least) of \(total) · <a href=\"\(target(all))\" rel=\"nofollow\">count them all</a>"
  }

  private var exports: HTML {
    let links = RecordExport.Format.allCases.map { format -> HTML in
      var target = place.entities.appending(place.opened.store.segment(collection.name), "export", format.rawValue)
      target.query = Query(
        query.changed { query in
          query.facets = []
          query.steps = []
        }.items)
      return "<a class=\"button\" href=\"\(target)\" download>\(format.title)</a>"
    }
    let edit: HTML =
      selection.map { "<a href=\"\(place.query($0.items))\" rel=\"nofollow\">View and edit SQL</a>" } ?? .empty
    return """
      <div class="row no-print" role="group" aria-label="Export what is shown">\(edit)<a href="\(target(query))">Link to this list</a>\
      \(links)</div>
      """
  }

  private var pager: HTML {
    guard query.next != nil || page.next != nil else { return .empty }
    let first: HTML =
      query.next == nil
      ? "<span></span>" : "<a class=\"button\" href=\"\(target { _ in })\">First page</a>"
    let next: HTML =
      nextTarget.map { "<a class=\"button main\" rel=\"next\" href=\"\($0)\">Next \(query.size)</a>" }
      ?? "<span class=\"soft\">That was the last page.</span>"
    return "<nav class=\"pager\" aria-label=\"Pages\">\(first)\(next)</nav>"
  }
}
