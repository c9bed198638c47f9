import HTTPServer
import Platform
import SQLiteFormat

struct RecordsPage: InspectorPage {
  let place: RecordPlace
  let collection: RecordCollection
  let query: RecordQuery
  let page: RecordPage
  let states: [RowState: Int64]?

  /// The list as a SQL query; nil if too long.
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
    members.append(.init("values", .object(zip(page.columns, row.values).map { JSON.Value.Member($0.name, $1.json) })))
    return .object(members)
  }

  private static func facet(_ facet: RecordPage.Facet) -> JSON.Value {
    let values: JSON.Value =
      facet.values.map { values in .array(values.map { ["value": $0.value.json, "count": .integer($0.count)] }) }
      ?? .null
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

  /// The columns hidden because a store's expression would compute them.
  private var computed: HTML {
    guard !collection.computedColumns.isEmpty else { return .empty }
    let names = collection.computedColumns.prefix(20).joined(separator: ", ")
    return """
      <p class="soft">Not shown, because the store computes them by expressions, which do not run here: \(names)\
      \(collection.computedColumns.count > 20 ? ", and others" : "").</p>
      """
  }

  private var nothing: HTML {
    let words = query.isNarrowed() ? "Nothing fits." : "There are no records of this kind here."
    let all = HTML.when(
      query != RecordQuery(), "<p><a class=\"button\" href=\"\(place.records(collection.name))\">All records</a></p>")
    return "<div class=\"empty\"><p>\(words)</p>\(all)</div>"
  }

  private var summary: HTML {
    let noun = collection.isEntity ? "record" : "row"
    let total: HTML = page.total.map { HTML(escaping: counted($0, noun)) } ?? "Many \(noun)s"
    guard query.isNarrowed() else { return total }
    if let states = query.states, states.contains(where: { !$0.isLive }) {
      // Rows that aren't records of the store don't count among them.
      let found: HTML = page.matching.map { HTML(escaping: counted($0, "row")) } ?? "Many rows"
      return "\(found); the store has \(total)"
    }
    if let matching = page.matching { return "\(grouped(matching)) of \(total)" }
    let all = query.changed { $0.countsAll = true }
    let least: HTML = page.matchingAtLeast.map { "more than \(grouped($0))" } ?? "some"
    return "\(least) of \(total) · <a href=\"\(target(all))\" rel=\"nofollow\">count them all</a>"
  }

  private var exports: HTML {
    let links = RecordExport.Format.allCases.map { format -> HTML in
      let shown = query.changed { query in
        query.facets = []
        query.steps = []
      }
      let target = place.entities.appending(
        place.opened.store.segment(collection.name), "export", format.rawValue, query: shown.items)
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
    return .pager(first: query.next == nil ? nil : target { _ in }, next: nextTarget, "Next \(query.size)")
  }
}

struct RecordTable {
  let page: RecordsPage

  /// Whether the first column is the key.
  private var hasKey: Bool { page.page.columns.first?.kind == .key }

  private var hasStates: Bool { page.collection.hasStates && page.page.rows.contains { $0.state != .certain } }

  var html: HTML {
    let columns = page.page.columns
    let heads = columns.map { column -> HTML in
      let number: HTML = Self.isNumber(column) ? " class=\"number\"" : ""
      guard !column.isBytes else {
        return "<th scope=\"col\"\(number)>\(column.shownName)<small>\(column.typeName)</small></th>"
      }
      let isSorted = page.query.sort == column.name || page.query.sort == nil && column.kind == .key
      let isDescending = isSorted && page.query.isDescending
      let target = page.target { query in
        query.sort = column.name
        query.isDescending = isSorted && !isDescending
      }
      let order = HTML.when(isSorted, " aria-sort=\"\(isDescending ? "descending" : "ascending")\"")
      let arrow: HTML = isSorted ? " <span aria-hidden=\"true\">\(isDescending ? "↓" : "↑")</span>" : .empty
      return """
        <th scope="col"\(number)\(order)><a href="\(target)">\(column.shownName)\(arrow)</a><small>\(column.typeName)</small></th>
        """
    }.map { TableColumn(head: $0) }
    let state: [TableColumn] = hasStates ? ["State"] : []
    let first = hasKey ? heads[0] : .unnamed("Record")
    var links = RecordLinks(page.place, page.collection)
    let rows = page.page.rows.map { row($0, columns, &links) }
    return .records(page.title, [first] + state + heads.dropFirst(hasKey ? 1 : 0), rows)
  }

  private func row(_ row: RecordPage.Row, _ columns: [RecordColumn], _ links: inout RecordLinks) -> HTML {
    let target = links.record(row.key)
    var cells = zip(columns, row.values).map { column, value -> HTML in
      if value.form == .reference, let destination = value.destination,
        let record = links.record(value.text, in: destination)
      {
        return "<td class=\"reference\"><a href=\"\(record)\">\(destination) \(value.text)</a></td>"
      }
      if value.form == .bytes, value.byteCount ?? 0 > 0 {
        let show = links.view(column.name, of: row.key)
        return "<td><a href=\"\(show)\">\(value.html)</a></td>"
      }
      return value.form == .null && Self.isNumber(column) ? "<td class=\"number\">\(value.html)</td>" : value.cell
    }
    let style: HTML = row.state == .doubtful ? " class=\"doubtful\"" : row.state.isLive ? .empty : " class=\"gone\""
    let state: HTML = hasStates ? "<td>\(row.state.tag)</td>" : .empty
    let first: HTML
    if hasKey {
      let key: HTML = row.values[0].form == .null ? "?" : row.values[0].html
      first = "<td class=\"number\"><a href=\"\(target)\" aria-label=\"Record \(key)\">\(key)</a></td>"
      cells.removeFirst()
    } else {
      first = "<td><a href=\"\(target)\" aria-label=\"Record \(row.key.description)\">Open</a></td>"
    }
    return "<tr\(style)>\(first)\(state)\(cells)</tr>\n"
  }

  private static func isNumber(_ column: RecordColumn) -> Bool {
    ["key", "integer", "real", "decimal", "float", "double"].contains(column.typeName)
  }
}

extension RecordCollection {
  func shownName(of column: String) -> String { columns.first { $0.name == column }?.shownName ?? column }
}

extension RecordColumn {
  /// The property, or Core Data's role for the column.
  var shownName: String {
    switch kind {
    case .key where name == "Z_PK": "key"
    case .entity where name == "Z_ENT": "entity"
    case .key, .entity, .attribute, .toOne, .stored: name
    }
  }

  /// Whether it holds bytes, which can't be sorted or counted.
  var isBytes: Bool { typeName == "binary" || typeName == "transformable" || typeName == "blob" }
}

/// The URLs of many rows, which differ only in the last part.
struct RecordLinks {
  private let place: RecordPlace
  private let collection: RecordCollection
  private let own: HTML
  private var others: [String: HTML?] = [:]
  private var columns: [String: HTML] = [:]

  init(_ place: RecordPlace, _ collection: RecordCollection) {
    self.place = place
    self.collection = collection
    own = "\(place.records(collection.name))/"
  }

  func record(_ key: RecordKey) -> HTML { "\(own)\(key.description)" }

  /// Returns nil if the collection doesn't exist.
  mutating func record(_ key: String, in destination: String) -> HTML? {
    if let known = others[destination] { return known.map { "\($0)\(key)" } }
    let isThere = place.opened.store.collections.contains { $0.name == destination }
    let prefix: HTML? = isThere ? "\(place.records(destination))/" : nil
    others[destination] = prefix
    return prefix.map { "\($0)\(key)" }
  }

  mutating func view(_ column: String, of key: RecordKey) -> HTML {
    let suffix = columns[column] ?? "/values/\(PercentEncoding.encode(collection.segment(column)))/view"
    columns[column] = suffix
    return "\(own)\(key.description)\(suffix)"
  }
}
