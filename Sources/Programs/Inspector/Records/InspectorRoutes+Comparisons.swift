import HTTPServer
import RecordBrowsing
import StoreCoordination

extension InspectorRoutes {
  /// The differences between two sides of a store: of all entities, of one, of a record.
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
        try Self.result(source, request, id, first, second)
      }
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

  /// How two sides differ, once both can be had.
  private static func result(
    _ source: RecordSource, _ request: Request, _ id: StoreID, _ first: SideName, _ second: SideName
  ) throws -> ComparisonChoicePage.Result {
    let one = try source.side(id, first, request)
    let other = try source.side(id, second, request)
    switch (one, other) {
    case (.preparing(let page), _), (_, .preparing(let page)): return .preparing(page.progress)
    case (.ready(let one), .ready(let other)):
      let sides = ComparedSides(first: one, second: other, comparison: try source.comparison(one, other))
      return .ready(StoreComparisonPage(sides))
    }
  }

  /// A page about two sides, or the one that says that they are being made.
  private static func sides(
    _ source: RecordSource, _ request: Request, _ id: StoreID, _ first: SideName, _ second: SideName,
    _ make: (ComparedSides) throws -> any InspectorPage
  ) throws -> any InspectorPage {
    guard first != second else { throw Refusal(.badRequest, "a version is compared with another one") }
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
