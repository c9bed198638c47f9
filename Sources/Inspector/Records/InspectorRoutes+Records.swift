import HTTPServer
import Platform

extension InspectorRoutes {
  mutating func addRecords(_ parts: InspectorParts) {
    let source = RecordSource(parts)
    addRecordLists(source)
    addSingleRecords(source)
    addBytes(source)
    addComparisons(source)
    addQueries(source)
  }

  /// The parameters of lists and exports, apart from conditions.
  private static let queryFields: [DocumentedRoute.Field] = [
    .init("PROPERTY", "The value that a property has."),
    .init(
      "PROPERTY__COMPARISON",
      "Another condition: not, contains, startswith, endswith, gt, gte, lt, lte, isnull or notnull."),
    .init("_search", "Text that one of the text properties contains."),
    .init("_state", "States of rows, with commas between, or all; only where rows have states."),
    .init("_sort", "The property to sort by."), .init("_sort_desc", "The property to sort by, last first."),
    .init("_facet", "A property whose values are counted."), .init("_facet_year", "A date that is counted by year."),
    .init("_facet_month", "A date that is counted by month."),
    .init("_facet_range", "A number that is counted in ranges."),
    .init("_columns", "The properties that are shown, with commas between."),
    .init("_size", "The number of records on a page, up to 1000."),
    .init("_next", "The token of the page, as the page before gave it."),
    .init("_count", "all: counts all that fit, however many there are."),
  ]

  private mutating func addRecordLists(_ source: RecordSource) {
    page("/stores/{id}/{side}/entities", about: "The entities of a version of a store.", .store, .side) {
      request, id, side in
      try source.side(id, side, request).page { EntitiesPage($0) }
    }
    page(
      "/stores/{id}/{side}/entities/{entity}/records", about: "The records of an entity, or the rows of a table.",
      .store, .side, .text, query: Self.queryFields
    ) { request, id, side, entity in
      try source.side(id, side, request).page { place in
        let collection = try place.opened.store.collection(segment: entity)
        return try RecordsPage(place, collection, RecordsRequest(request.query, of: collection).query)
      }
    }
    other(
      "/stores/{id}/{side}/entities/{entity}/export/{format}",
      about: "All records that fit, as csv, json or jsonl, streamed.", type: "text/csv", .store, .side, .text,
      PathParameter { RecordExport.Format(rawValue: $0) }, query: Self.queryFields
    ) { request, id, side, entity, format in
      let place = try source.side(id, side, request).value()
      let collection = try place.opened.store.collection(segment: entity)
      var query = try RecordsRequest(request.query, of: collection).query
      query.next = nil
      return try RecordExport.response(place, collection, query, as: format)
    }
    page(
      "/stores/{id}/{side}/search", about: "Text in all records of a store.", .store, .side,
      query: [.init("q", "What is looked for.")]
    ) { request, id, side in try source.side(id, side, request).page { try SearchPage($0, request.query["q"] ?? "") } }
  }

  private mutating func addSingleRecords(_ source: RecordSource) {
    page(
      "/stores/{id}/{side}/entities/{entity}/records/{key}",
      about: "One record: its values, what it is related to, and where its bytes are.", .store, .side, .text, .text
    ) { request, id, side, entity, key in
      try source.side(id, side, request).page { place in
        let collection = try place.opened.store.collection(segment: entity)
        return try SingleRecordPage(place, collection, RecordKey(key, of: collection), source)
      }
    }
    page(
      "/stores/{id}/{side}/entities/{entity}/records/{key}/related/{relationship}",
      about: "The records that a to-many relationship of a record leads to.", .store, .side, .text, .text, .text,
      query: [.init("_next", "The token of the page, as the page before gave it.")]
    ) { request, id, side, entity, key, relationship in
      try source.side(id, side, request).page { place in
        let collection = try place.opened.store.collection(segment: entity)
        return try RelatedRecordsPage(
          place, collection, RecordKey(key, of: collection), relationship, next: request.query["_next"])
      }
    }
    page(
      "/stores/{id}/{side}/entities/{entity}/records/{key}/values/{property}/view",
      about: "One value of a record, shown by what it looks like.", .store, .side, .text, .text, .text
    ) { request, id, side, entity, key, property in
      try source.side(id, side, request).page {
        try ValuePage($0, entity, key, property, source.parts.surroundings.fileSystem)
      }
    }
    other(
      "/stores/{id}/{side}/entities/{entity}/records/{key}/values/{property}/bytes",
      about: "The bytes of one value of a record: a picture as such, anything else as a download.",
      type: "application/octet-stream", .store, .side, .text, .text, .text
    ) { request, id, side, entity, key, property in
      let place = try source.side(id, side, request).value()
      return try ValuePage(place, entity, key, property, source.parts.surroundings.fileSystem).download(request)
    }
  }

  private mutating func addBytes(_ source: RecordSource) {
    page(
      "/stores/{id}/pages/{page}", about: "The bytes of a page of a store, as they lie in its files.", .store, .integer,
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

  /// Adds the differences between two sides.
  mutating func addComparisons(_ source: RecordSource) {
    page(
      "/stores/{id}/compare", about: "Two versions of a store: which there are, and how the chosen ones differ.",
      .store,
      query: [
        .init("first", "The version that is compared; the one that tells most if empty."),
        .init("second", "The version that it is compared with."),
      ]
    ) { request, id in
      let store = try source.parts.catalogue.store(id)
      return try ComparisonChoicePage(store, source.sideNames(of: store), request.query) { first, second in
        switch try source.sides(id, first, second, request) {
        case .preparing(let page): .preparing(page.progress)
        case .ready(let sides): .ready(StoreComparisonPage(sides))
        }
      }
    }
    page(
      "/stores/{id}/compare/{first}/{second}/entities", about: "How the records of two sides differ, by entity.",
      .store, .side, .side
    ) { request, id, first, second in try Self.sides(source, request, id, first, second) { StoreComparisonPage($0) } }
    page(
      "/stores/{id}/compare/{first}/{second}/entities/{entity}/records",
      about: "The records of an entity that differ between two sides.", .store, .side, .side, .text,
      query: [
        .init("kind", "missing, added or changed."),
        .init("by", "The property that tells records apart; the primary key without it."),
        .init("_next", "Where the page begins, as the page before gave it."),
      ]
    ) { request, id, first, second, entity in
      try Self.sides(source, request, id, first, second) { sides in
        try EntityComparisonPage(sides, sides.name(segment: entity), request.query)
      }
    }
    page(
      "/stores/{id}/compare/{first}/{second}/entities/{entity}/records/{key}",
      about: "A record on two sides, property by property.", .store, .side, .side, .text, .text
    ) { request, id, first, second, entity, key in
      try Self.sides(source, request, id, first, second) { sides in
        try RecordComparisonPage(sides, sides.name(segment: entity), key)
      }
    }
    page(
      "/stores/{id}/compare/{first}/{second}/relationships/{relationship}/pairs",
      about: "The pairs of a many-to-many relationship that differ between two sides.", .store, .side, .side, .text,
      query: [
        .init("kind", "missing, added or changed, which is at another place of an order."),
        .init("_next", "Where the page begins, as the page before gave it."),
      ]
    ) { request, id, first, second, relationship in
      try Self.sides(source, request, id, first, second) { sides in
        try PairComparisonPage(sides, sides.relationship(segment: relationship), request.query)
      }
    }
  }

  /// Returns a page on two sides, or one on their preparation.
  private static func sides(
    _ source: RecordSource, _ request: Request, _ id: StoreID, _ first: SideName, _ second: SideName,
    _ make: (ComparedSides) throws -> any InspectorPage
  ) throws -> any InspectorPage {
    guard first != second else { throw Refusal(.badRequest, "a version is compared with another one") }
    return try source.sides(id, first, second, request).page(make)
  }
}

struct RelatedRecordsPage: InspectorPage {
  let place: RecordPlace
  let collection: RecordCollection
  let key: RecordKey
  let index: Int
  let label: String
  let page: RelatedPage
  let isFirst: Bool

  /// - Parameter relationship: the URL segment.
  /// - Throws: ``Refusal`` 404 for an unknown relationship.
  init(
    _ place: RecordPlace, _ collection: RecordCollection, _ key: RecordKey, _ relationship: String, next: String?
  ) throws {
    let index = try SegmentName.index(of: relationship, in: collection.toMany.map(\.name))
      .orRefuse(.notFound, "there is no such relationship")
    self.place = place
    self.collection = collection
    self.key = key
    self.index = index
    isFirst = next == nil
    label = try place.opened.store.detail(of: key, in: collection).label ?? "\(collection.name) \(key.description)"
    page = try place.opened.store.related(at: index, of: key, in: collection, after: next)
  }

  var title: String { "\(page.relationship.name) of \(label)" }

  var crumbs: [Crumb] { place.crumbs(below: collection) + [Crumb(label, place.record(key, in: collection.name))] }

  private var address: RequestTarget { place.related(at: index, of: key, in: collection) }

  private var nextTarget: RequestTarget? { page.next.map { address.appending(query: [.init("_next", $0)]) } }

  func encode(to encoder: any Encoder) throws {
    try place.encode(to: encoder)
    try encoder.encode([
      "entity": collection.name, "key": key.description, "relationship": page.relationship.name,
      "count": JSON.orNull(page.count), "records": page.references, "next": JSON.orNull(page.next),
      "nextPath": nextTarget?.twin,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let count: HTML = page.count.map { "\(grouped($0)) in all" } ?? "many"
    let items = page.references.map { "<li>\($0.html(at: place))</li>" as HTML }
    let list: HTML = items.isEmpty ? "<p class=\"soft\">None.</p>" : "<ul class=\"links\">\(items)</ul>"
    let first: HTML = isFirst ? .empty : "<a class=\"button\" href=\"\(address)\">First page</a>"
    let next: HTML = nextTarget.map { "<a class=\"button main\" rel=\"next\" href=\"\($0)\">Next</a>" } ?? .empty
    let pager: HTML =
      isFirst && page.next == nil ? .empty : "<nav class=\"pager\" aria-label=\"Pages\">\(first)\(next)</nav>"
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">\(count)</p>\(place.notes(frame))</div></div>
      \(StoreTab.bar(place.store, .records))
      <section class="panel">\(list)\(pager)</section>
      """
  }
}
