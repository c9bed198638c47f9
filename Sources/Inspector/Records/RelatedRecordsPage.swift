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

  var json: JSONText {
    var members = place.members
    members.append(.init("entity", .string(collection.name)))
    members.append(.init("key", .string(key.description)))
    members.append(.init("relationship", .string(page.relationship.name)))
    members.append(.init("count", page.count.map { .integer($0) } ?? .null))
    members.append(.init("records", .array(page.references.map(\.json))))
    members.append(.init("next", page.next.map { .string($0) } ?? .null))
    if let next = nextTarget { members.append(.init("nextPath", .string(next.twin.path + next.twin.query.text))) }
    return .object(members)
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
