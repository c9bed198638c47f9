import HTTPServer
import RecordBrowsing
import StoreCoordination

extension InspectorRoutes {
  /// The differences between two sides of a store: of all entities, of one, of a record.
  mutating func addComparisons(_ source: RecordSource) {
    page("/stores/{id}/compare", about: "The sides of a store that can be compared.", .store) { _, id in
      let store = try source.parts.catalogue.store(id)
      return ComparisonChoicePage(store: store, sides: try source.sideNames(of: store))
    }
    page(
      "/stores/{id}/compare/{first}/{second}/entities", about: "How the records of two sides differ, by entity.",
      .store, .side, .side
    ) { request, id, first, second in
      try Self.sides(source, request, id, first, second) { StoreComparisonPage($0) }
    }
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
  }

  /// A page about two sides, or the one that says that they are being made.
  private static func sides(
    _ source: RecordSource, _ request: Request, _ id: StoreID, _ first: SideName, _ second: SideName,
    _ make: (ComparedSides) throws -> any InspectorPage
  ) throws -> any InspectorPage {
    guard first != second else { throw Refusal(.badRequest, "a side is compared with another one") }
    // Both are begun before either is waited for.
    let one = try source.side(id, first, request)
    let other = try source.side(id, second, request)
    switch (one, other) {
    case (.preparing(let page), _), (_, .preparing(let page)): return page
    case (.ready(let one), .ready(let other)):
      return try make(ComparedSides(first: one, second: other, comparison: source.comparison(one, other)))
    }
  }
}
