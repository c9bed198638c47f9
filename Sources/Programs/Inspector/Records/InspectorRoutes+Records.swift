import HTTPServer
import RecordBrowsing
import StoreCoordination

extension InspectorRoutes {
  /// The records of stores: lists, single records, values, bytes, searches and comparisons.
  mutating func addRecords(_ parts: InspectorParts) {
    let source = RecordSource(parts)
    addRecordLists(source)
    addSingleRecords(source)
    addBytes(source)
    addComparisons(source)
    addQueries(source)
  }

  /// The parameters of the query that record lists and exports know, besides a property's name for each condition.
  private static let queryFields: [DocumentedRoute.Field] = [
    .init("PROPERTY", "The value that a property has."),
    .init(
      "PROPERTY__COMPARISON",
      "Another condition: not, contains, startswith, endswith, gt, gte, lt, lte, isnull or notnull."),
    .init("_search", "Text that one of the text properties contains."),
    .init("_state", "States of rows, with commas between, or all; only where rows have states."),
    .init("_sort", "The property to sort by."),
    .init("_sort_desc", "The property to sort by, last first."),
    .init("_facet", "A property whose values are counted."),
    .init("_facet_year", "A date that is counted by year."), .init("_facet_month", "A date that is counted by month."),
    .init("_facet_range", "A number that is counted in ranges."),
    .init("_columns", "The properties that are shown, with commas between."),
    .init("_size", "The number of records on a page, up to 1000."),
    .init("_next", "The token of the page, as the page before gave it."),
    .init("_count", "all: counts all that fit, however many there are."),
  ]

  private mutating func addRecordLists(_ source: RecordSource) {
    page("/stores/{id}/{side}/entities", about: "The entities of a version of a store.", .store, .side) {
      request, id, side in
      switch try source.side(id, side, request) {
      case .ready(let place): EntitiesPage(place)
      case .preparing(let page): page
      }
    }
    page(
      "/stores/{id}/{side}/entities/{entity}/records", about: "The records of an entity, or the rows of a table.",
      .store, .side, .text, query: Self.queryFields
    ) { request, id, side, entity in
      switch try source.side(id, side, request) {
      case .ready(let place):
        let collection = try place.opened.store.collection(segment: entity)
        return try RecordsPage(place, collection, RecordsRequest(request.query, of: collection).query)
      case .preparing(let page): return page
      }
    }
    other(
      "/stores/{id}/{side}/entities/{entity}/export/{format}",
      about: "All records that fit, as csv, json or jsonl, streamed.", type: "text/csv", .store, .side, .text,
      PathParameter { RecordExport.Format(rawValue: $0) }, query: Self.queryFields
    ) { request, id, side, entity, format in
      guard case .ready(let place) = try source.side(id, side, request) else {
        throw Refusal(.serviceUnavailable, "the records are still being read; try again in a moment")
      }
      let collection = try place.opened.store.collection(segment: entity)
      var query = try RecordsRequest(request.query, of: collection).query
      query.next = nil
      return try RecordExport.response(place, collection, query, as: format)
    }
    page(
      "/stores/{id}/{side}/search", about: "Text in all records of a store.", .store, .side,
      query: [.init("q", "What is looked for.")]
    ) { request, id, side in
      switch try source.side(id, side, request) {
      case .ready(let place): return try SearchPage(place, request.query["q"] ?? "")
      case .preparing(let page): return page
      }
    }
  }

  private mutating func addSingleRecords(_ source: RecordSource) {
    page(
      "/stores/{id}/{side}/entities/{entity}/records/{key}",
      about: "One record: its values, what it is related to, and where its bytes are.", .store, .side, .text, .text
    ) { request, id, side, entity, key in
      switch try source.side(id, side, request) {
      case .ready(let place):
        let collection = try place.opened.store.collection(segment: entity)
        return try SingleRecordPage(place, collection, RecordKey(key, of: collection), source)
      case .preparing(let page): return page
      }
    }
    page(
      "/stores/{id}/{side}/entities/{entity}/records/{key}/related/{relationship}",
      about: "The records that a to-many relationship of a record leads to.", .store, .side, .text, .text, .text,
      query: [.init("_next", "The token of the page, as the page before gave it.")]
    ) { request, id, side, entity, key, relationship in
      switch try source.side(id, side, request) {
      case .ready(let place):
        let collection = try place.opened.store.collection(segment: entity)
        return try RelatedRecordsPage(
          place, collection, RecordKey(key, of: collection), relationship, next: request.query["_next"])
      case .preparing(let page): return page
      }
    }
    page(
      "/stores/{id}/{side}/entities/{entity}/records/{key}/values/{property}/view",
      about: "One value of a record, shown by what it looks like.", .store, .side, .text, .text, .text
    ) { request, id, side, entity, key, property in
      switch try source.side(id, side, request) {
      case .ready(let place): return try ValuePage(place, entity, key, property, source.parts.surroundings.fileSystem)
      case .preparing(let page): return page
      }
    }
    other(
      "/stores/{id}/{side}/entities/{entity}/records/{key}/values/{property}/bytes",
      about: "The bytes of one value of a record: a picture as such, anything else as a download.",
      type: "application/octet-stream", .store, .side, .text, .text, .text
    ) { request, id, side, entity, key, property in
      guard case .ready(let place) = try source.side(id, side, request) else {
        throw Refusal(.serviceUnavailable, "the records are still being read; try again in a moment")
      }
      return try ValuePage(place, entity, key, property, source.parts.surroundings.fileSystem).download(request)
    }
  }

  private mutating func addBytes(_ source: RecordSource) {
    page(
      "/stores/{id}/pages/{page}", about: "The bytes of a page of a store, as they lie in its files.", .store,
      .integer,
      query: [
        .init("image", "current, main or frame-N: which image of the page."),
        .init("cell", "The cell that is marked, from 0."), .init("row", "The rowid of the cell that is marked."),
      ]
    ) { request, id, number in
      let store = try source.store(id).store
      return try BytesPage(store, number, request.query, try source.pages(of: store)) { page in
        try source.names(onPage: page, of: store)
      }
    }
  }
}
