import HTTPServer
import RecordBrowsing
import StoreCoordination

/// All records that one relationship of a record leads to, page by page.
struct RelatedRecordsPage: InspectorPage {
  let place: RecordPlace
  let collection: RecordCollection
  let key: RecordKey
  let index: Int
  let label: String
  let page: RelatedPage
  let isFirst: Bool

  /// - Parameter relationship: the segment of the address.
  /// - Throws: ``Refusal`` 404 where the record has no such relationship.
  init(
    _ place: RecordPlace, _ collection: RecordCollection, _ key: RecordKey, _ relationship: String, next: String?
  ) throws {
    guard let index = SegmentName.index(of: relationship, in: collection.toMany.map(\.name)) else {
      throw Refusal(.notFound, "there is no such relationship")
    }
    self.place = place
    self.collection = collection
    self.key = key
    self.index = index
    isFirst = next == nil
    label = try place.opened.store.detail(of: key, in: collection).label ?? "\(collection.name) \(key.description)"
    page = try place.opened.store.related(at: index, of: key, in: collection, after: next)
  }

  var title: String { "\(page.relationship.name) of \(label)" }

  var crumbs: [Crumb] {
    place.crumbs + [
      Crumb("Records", place.entities), Crumb(collection.name, place.records(collection.name)),
      Crumb(label, place.record(key, in: collection.name)),
    ]
  }

  private var address: RequestTarget { place.related(at: index, of: key, in: collection) }

  private var nextTarget: RequestTarget? {
    page.next.map { next in
      var target = address
      target.query = Query([.init("_next", next)])
      return target
    }
  }

  func encode(to encoder: any Encoder) throws {
    try place.encode(to: encoder)
    try encoder.encode([
      "entity": collection.name, "key": key.description, "relationship": page.relationship.name,
      "count": JSON.orNull(page.count), "records": page.references, "next": JSON.orNull(page.next),
      "nextPath": nextTarget?.twin,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let count: HTML = page.count.map { "\(Words.number($0)) in all" } ?? "many"
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
