import HTTPServer
import StoreCoordination

extension InspectorRoutes {
  /// Queries in SQL over a side of a store: the page, its result as a download, and those that are saved.
  mutating func addQueries(_ source: RecordSource) {
    let desk = QueryDesk(source)
    let sql = DocumentedRoute.Field("sql", "One SELECT, of at most 4,000 characters; it is run where it is given.")
    page(
      "/stores/{id}/{side}/query", about: "A query in SQL over a side of a store, which only reads.", .store, .side,
      query: [
        sql, .init("_size", "The number of rows on a page, up to 1000."),
        .init("_offset", "How many rows are passed over, up to 1000000."),
      ]
    ) { request, id, side in
      switch try source.side(id, side, request) {
      case .ready(let place): return try desk.page(place, request)
      case .preparing(let page): return page
      }
    }
    other(
      "/stores/{id}/{side}/query/export/{format}", about: "All rows of a query, as csv, json or jsonl, streamed.",
      type: "text/csv", .store, .side, PathParameter { RecordExport.Format(rawValue: $0) }, query: [sql]
    ) { request, id, side, format in
      guard case .ready(let place) = try source.side(id, side, request) else {
        throw Refusal(.serviceUnavailable, "the records are still being read; try again in a moment")
      }
      return try desk.export(place, request, as: format)
    }
    let name = DocumentedRoute.Field("name", "The name of the saved query.", isRequired: true)
    action(
      "/stores/{id}/{side}/query/save", about: "Saves a query under a name, in place of one of that name.", .store,
      .side,
      fields: [name, .init("sql", "The query.", isRequired: true)]
    ) { _, form, id, side in
      let (sql, name) = (form["sql"] ?? "", form["name"] ?? "")
      try desk.saved.save(name, sql)
      return .done(RecordPlace.query(id, side, [.init("sql", sql)]))
    }
    action(
      "/stores/{id}/{side}/query/delete", about: "Deletes a saved query.", .store, .side, fields: [name]
    ) { _, form, id, side in
      try desk.saved.remove(form["name"] ?? "")
      return .done(RecordPlace.query(id, side))
    }
  }
}
