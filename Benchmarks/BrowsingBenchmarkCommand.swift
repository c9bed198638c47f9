import ArgumentParser
import Inspector
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage

/// Measures looking at the records of a large store.
struct BrowsingBenchmarkCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "records", abstract: "Measures looking at the records of a large store.")

  @Argument(help: "The store; it is only read, and no log may lie beside it.")
  var store: String

  @Option(help: "Its model.")
  var model: String

  @Option(help: "The entity; the one with the most records if none is given.")
  var entity: String?

  @Option(help: "How many pages are read.")
  var pages = 2_000

  func run() throws {
    guard case .coreData(let bundle) = try AppModel.load(FilePath(model)) else {
      throw ValidationError("Give a model with --model.")
    }
    let opened = ContinuousClock.now
    let browsed = try BrowsedStore(FilePath(store), model: bundle.current.model)
    print("opened in \(ContinuousClock.now - opened)")
    let sizes = try browsed.collections.map { (collection: $0, count: try browsed.count(of: $0) ?? 0) }
    guard
      let chosen = try entity.map({ (try browsed.collection($0), Int64(0)) }).map({ $0.0 })
        ?? sizes.max(by: { $0.count < $1.count })?.collection
    else { throw ValidationError("The store has no records.") }
    print("\(chosen.name): \(try browsed.count(of: chosen) ?? 0) records, pages of 100")
    try measurePages(browsed, chosen)
    for column in chosen.columns where column.typeName == "string" {
      var query = RecordQuery()
      query.filters = [RecordFilter(column.name, .contains, "a")]
      try measure("filter \(column.name) contains a, first page", browsed, chosen, query)
      query.filters = [RecordFilter(column.name, .contains, "no record has this")]
      try measure("filter \(column.name) contains nothing", browsed, chosen, query)
      query.filters = [RecordFilter(column.name, .contains, "a")]
      try measureStream("stream of \(column.name) contains a", browsed, chosen, query)
      query.filters = []
      query.sort = column.name
      try measure("sort by \(column.name), first page", browsed, chosen, query)
      query.sort = nil
      query.facets = [column.name]
      try measure("facet of \(column.name)", browsed, chosen, query)
    }
    let begun = ContinuousClock.now
    let finds = try browsed.search("no record has this")
    print("search of the store: \(ContinuousClock.now - begun), \(finds.finds.count { $0.isCut }) cut")
  }

  /// Walks through the pages from the first on.
  private func measurePages(_ browsed: BrowsedStore, _ collection: RecordCollection) throws {
    var query = RecordQuery()
    var times: [Duration] = []
    for _ in 0..<max(1, pages) {
      let begun = ContinuousClock.now
      let page = try browsed.page(of: collection, query)
      times.append(ContinuousClock.now - begun)
      guard let next = page.next else { break }
      query.next = next
    }
    let sorted = times.sorted()
    print(
      "\(times.count) pages: first \(times[0]), last \(times[times.count - 1]), median \(sorted[sorted.count / 2]), "
        + "99 % under \(sorted[sorted.count * 99 / 100])")
  }

  /// Reads all that fits as an export does.
  private func measureStream(
    _ what: String, _ browsed: BrowsedStore, _ collection: RecordCollection, _ query: RecordQuery
  ) throws {
    let begun = ContinuousClock.now
    let stream = try browsed.stream(collection, query)
    var first: Duration?
    var count = 0
    while let rows = try stream.next() {
      if first == nil { first = ContinuousClock.now - begun }
      count += rows.count
    }
    print("\(what): first rows after \(first ?? .zero), \(count) rows in \(ContinuousClock.now - begun)")
  }

  private func measure(
    _ what: String, _ browsed: BrowsedStore, _ collection: RecordCollection, _ query: RecordQuery
  ) throws {
    let begun = ContinuousClock.now
    let page = try browsed.page(of: collection, query)
    let matching = page.matching.map { "\($0) match" } ?? "not counted in time"
    print("\(what): \(ContinuousClock.now - begun), \(page.rows.count) rows, \(matching)")
  }
}
