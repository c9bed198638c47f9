import HTTPServer
import RecordBrowsing
import StoreCoordination

/// The table of a page of records: a column for each property, sorted by clicking on its name.
struct RecordTable {
  let page: RecordsPage

  /// Whether the first column is the key, which then leads to the record.
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
      let order: HTML =
        isSorted ? " aria-sort=\"\(isDescending ? "descending" : "ascending")\"" : .empty
      let arrow: HTML = isSorted ? " <span aria-hidden=\"true\">\(isDescending ? "↓" : "↑")</span>" : .empty
      return """
        <th scope="col"\(number)\(order)><a href="\(target)">\(column.shownName)\(arrow)</a><small>\(column.typeName)</small></th>
        """
    }
    let state: HTML = hasStates ? "<th scope=\"col\">State</th>" : .empty
    let open: HTML = hasKey ? .empty : "<th scope=\"col\"><span class=\"visually-hidden\">Record</span></th>"
    let first: HTML = hasKey ? heads[0] : .empty
    let others = hasKey ? Array(heads.dropFirst()) : heads
    var links = RecordLinks(page.place, page.collection)
    let rows = page.page.rows.map { row($0, columns, &links) }
    return """
      <div class="scroll" tabindex="0" role="region" aria-label="\(page.title)"><table class="records">
      <thead><tr>\(open)\(first)\(state)\(others)</tr></thead><tbody>
      \(rows)</tbody></table></div>
      """
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
  /// What pages call the column of a name.
  func shownName(of column: String) -> String { columns.first { $0.name == column }?.shownName ?? column }
}

extension RecordColumn {
  /// What pages call it: the property, or what Core Data keeps in the column.
  var shownName: String {
    switch kind {
    case .key where name == "Z_PK": "key"
    case .entity where name == "Z_ENT": "entity"
    case .key, .entity, .attribute, .toOne, .stored: name
    }
  }

  /// Whether it holds bytes, by which nothing is sorted or counted.
  var isBytes: Bool { typeName == "binary" || typeName == "transformable" || typeName == "blob" }
}
