import Foundation
import HTTPServer
import Platform
import SQLiteFormat
import SystemPackage

/// Answers SQL queries.
struct QueryController: Sendable {
  let source: RecordSource
  let saved: SavedQueries
  private let turns = QueryTurns(most: 2, patience: .seconds(6))
  private let exports = QueryTurns(most: 2, patience: .zero)

  init(_ source: RecordSource) {
    self.source = source
    saved = SavedQueries(home: source.parts.home, surroundings: source.parts.surroundings)
  }

  func page(_ place: RecordPlace, _ request: Request) throws -> QueryPage {
    var query = try StoreQuery(request.query["sql"] ?? "")
    try query.show(size: request.query["_size"], offset: request.query["_offset"])
    let store = place.opened.store
    var result: PagePart<QueryResult>?
    if query.isThere, Self.isOwn(request) {
      let session = try source.parts.sessions.session(of: request)
      result = PagePart {
        try turns.take(session)
        defer { turns.giveBack(session) }
        return try store.run(query)
      }
    }
    return QueryPage(
      place: place, query: query, result: result, sources: PagePart { try store.querySources() },
      saved: PagePart { try saved.all() })
  }

  /// Streams all rows of a query as a download.
  func export(_ place: RecordPlace, _ request: Request, as format: RecordExport.Format) throws -> Response {
    let query = try StoreQuery(request.query["sql"] ?? "")
    guard query.isThere else { throw Refusal(.badRequest, "there is no query") }
    guard Self.isOwn(request) else { throw Refusal(.forbidden, "the request comes from another site") }
    let session = try source.parts.sessions.session(of: request)
    try exports.take(session)
    let rows: RowStream
    do {
      rows = try place.opened.store.stream(query)
    } catch {
      exports.giveBack(session)
      throw error
    }
    return RecordExport.response(rows, of: place, named: "query", as: format, hasStates: false) { [exports] in
      exports.giveBack(session)
    }
  }

  /// Whether this server's page or the user asks: links from other sites don't run a query.
  ///
  /// Browsers send no cookie from there (SameSite); this is a second defence.
  private static func isOwn(_ request: Request) -> Bool {
    guard let site = request.headers["Sec-Fetch-Site"] else { return true }
    return site == "same-origin" || site == "none"
  }
}

extension StoreQuery {
  var isThere: Bool { sql.contains { !$0.isWhitespace } }

  var items: [Query.Item] {
    [Query.Item("sql", sql)] + (size == RecordQuery.usualSize ? [] : [Query.Item("_size", String(size))])
  }
}

extension RecordPlace {
  func query(_ items: [Query.Item] = []) -> RequestTarget { Self.query(store.id, side, items) }

  static func query(_ id: StoreID, _ side: SideName, _ items: [Query.Item] = []) -> RequestTarget {
    .store(id, side.description, "query", query: items)
  }
}

/// Allows one running query per session and a few in all, so that no link or script keeps the server busy.
final class QueryTurns: Sendable {
  private let most: Int
  private let patience: Duration
  private let running = Mutex<Set<String>>([])

  /// - Parameters:
  ///   - most: the concurrent queries of all sessions.
  ///   - patience: the time to wait.
  init(most: Int, patience: Duration) {
    self.most = most
    self.patience = patience
  }

  /// Takes a turn, which must be given back.
  ///
  /// - Throws: ``Refusal`` 503 on timeout.
  func take(_ session: Sessions.Session) throws {
    let name = session.cookie.text
    let end = ContinuousClock.now + patience
    while true {
      let isTaken = running.withLock { running in
        guard running.count < most, !running.contains(name) else { return false }
        running.insert(name)
        return true
      }
      if isTaken { return }
      try Refusal.unless(
        ContinuousClock.now < end, .serviceUnavailable, "other queries are still running; try again in a moment")
      Thread.sleep(forTimeInterval: 0.01)
    }
  }

  func giveBack(_ session: Sessions.Session) { _ = running.withLock { $0.remove(session.cookie.text) } }
}

/// A SQL query on a side of a store.
struct QueryPage: InspectorPage {
  let place: RecordPlace
  let query: StoreQuery

  /// The result, if the query was run.
  let result: PagePart<QueryResult>?

  let sources: PagePart<[QuerySource]>
  let saved: PagePart<[SavedQuery]>

  var title: String { "Query" }
  var crumbs: [Crumb] { place.crumbs + [Crumb("Records", place.entities)] }
  var scripts: [String] { ["query.js"] }

  func target(offset: Int) -> RequestTarget {
    place.query(query.items + (offset > 0 ? [Query.Item("_offset", String(offset))] : []))
  }

  /// The next page's first row.
  private func next(_ result: QueryResult) -> Int? {
    let next = result.offset + result.rows.count
    return result.hasMore && next <= StoreQuery.furthest ? next : nil
  }

  private func export(_ format: RecordExport.Format) -> RequestTarget {
    place.query().appending("export", format.rawValue, query: [.init("sql", query.sql)])
  }

  // MARK: JSON

  func encode(to encoder: any Encoder) throws {
    try place.encode(to: encoder)
    guard query.isThere else {
      try encoder.encode([
        "sources": sources, "functions": QueryFunctions.names.sorted(),
        "saved": saved.map { saved in
          saved.map { one -> JSON.Object in
            ["name": one.name, "sql": one.sql, "saved": one.saved, "path": place.query([.init("sql", one.sql)])]
          }
        },
      ])
      return
    }
    try encoder.encode([
      "sql": query.sql,
      "result": result.map { part in
        part.map { result -> JSON.Object in
          [
            "columns": result.columns, "rows": result.rows.map { JSON.Value.array($0.map(\.json)) },
            "offset": result.offset, "hasMore": result.hasMore, "seconds": Self.seconds(result.time),
            "nextPath": next(result).map { target(offset: $0).twin },
          ]
        }
      },
    ])
  }

  private static func seconds(_ time: Duration) -> Double {
    Double(time.components.seconds) + Double(time.components.attoseconds / 1_000_000_000_000) / 1e6
  }

  // MARK: HTML

  func content(_ frame: PageFrame) -> HTML {
    """
    <div class="head"><div><h1>\(title)</h1><p class="soft">One <code>SELECT</code> over \(place.side.phrase). It only reads, \
    and has 5 seconds.</p>\(place.notes(frame))</div></div>
    \(place.tabs(.query) { RecordPlace.query(place.store.id, $0, query.isThere ? query.items : []) })
    <div class="columns counted"><div>\(form)\(answer)\(save(frame))</div>
    <aside class="panel facets no-print" aria-label="What can be selected from">\(SourceList(page: self).html)\(savedList(frame))</aside></div>
    """
  }

  private var form: HTML {
    let sizes = [20, 100, 500, 1000].map { HTML.option(String($0), grouped($0), isChosen: $0 == query.size) }
    // HTML drops a newline directly after the tag.
    return """
      <form class="query no-print" method="get" action="\(place.query())">
      <label><span>SQL</span><textarea name="sql" rows="6" maxlength="\(StoreQuery.longest)" spellcheck="false" autocomplete="off" \
      autocapitalize="off" data-query>\n\(query.sql)</textarea></label>
      <p class="row"><button class="main">Run</button>\
      <label class="inline">Rows on a page <select name="_size">\(sizes)</select></label>\
      <span class="soft" data-query-key hidden>Ctrl+Enter runs it</span></p></form>
      """
  }

  // MARK: The result

  private var answer: HTML {
    guard query.isThere else {
      return """
        <p class="soft">Entities and properties have the names of the model, tables and columns their own. Dates of Core Data are \
        numbers of seconds since 2001; <code>core_data_date(x)</code> shows them. What a query gives can be exported, saved, and \
        linked to.</p>
        """
    }
    guard let result else {
      return .note(
        .warn, "<p>The link to this query comes from another site, so it was not run. Look at it, then run it.</p>")
    }
    return result.html { shown($0) }
  }

  private func shown(_ result: QueryResult) -> HTML {
    let links = RecordExport.Format.allCases.map { format -> HTML in
      "<a class=\"button\" href=\"\(export(format))\" download>\(format.title)</a>"
    }
    let list: HTML = result.rows.isEmpty ? "<div class=\"empty\"><p>No rows.</p></div>" : table(result)
    return """
      <div class="head result"><p role="status">\(count(result)) <span class="soft">· \(Self.words(result.time))</span></p>
      <div class="row no-print" role="group" aria-label="Export all rows"><a href="\(target(offset: result.offset))">Link to this result</a>\
      \(links)</div></div>
      \(list)\(pager(result))
      """
  }

  private func count(_ result: QueryResult) -> HTML {
    guard !result.rows.isEmpty else { return "No rows" }
    guard result.offset > 0 || result.hasMore else { return HTML(escaping: counted(result.rows.count, "row")) }
    let last = result.offset + result.rows.count
    let end: HTML = result.hasMore ? ", and there are more" : ", which is the last"
    return "Rows \(grouped(result.offset + 1)) to \(grouped(last))\(end)"
  }

  private static func words(_ time: Duration) -> String {
    let seconds = Self.seconds(time)
    let value = seconds < 1 ? seconds * 1000 : seconds
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10) \(seconds < 1 ? "ms" : "s")"
  }

  private func table(_ result: QueryResult) -> HTML {
    let columns = result.columns.indices.map { index in
      let isNumber = result.rows.allSatisfy { $0[index].isNumber || $0[index].form == .null }
      return isNumber ? TableColumn.number(result.columns[index]) : TableColumn(result.columns[index])
    }
    return .records("Result", columns, result.rows.map { row -> HTML in "<tr>\(row.map(\.cell))</tr>\n" })
  }

  private func pager(_ result: QueryResult) -> HTML {
    guard result.offset > 0 || result.hasMore else { return .empty }
    return .pager(
      first: result.offset == 0 ? nil : target(offset: 0), next: next(result).map { target(offset: $0) },
      "Next \(query.size)", end: result.hasMore ? "Export it to have the rest." : "That was the last page.")
  }

  // MARK: What was saved

  private func save(_ frame: PageFrame) -> HTML {
    guard query.isThere, frame.allowsActions else { return .empty }
    return frame.form(
      .store(place.store.id, place.side.description, "query", "save"), style: "row no-print saving",
      """
      <input type="hidden" name="sql" value="\(query.sql)"><label><span>Save this query as</span>\
      <input type="text" name="name" maxlength="\(SavedQueries.longestName)" required autocomplete="off"></label><button>Save</button>
      """)
  }

  private func savedList(_ frame: PageFrame) -> HTML {
    saved.html { saved in
      guard !saved.isEmpty else { return .empty }
      let items = saved.map { one -> HTML in
        let delete: HTML =
          frame.allowsActions
          ? frame.form(
            .store(place.store.id, place.side.description, "query", "delete"), style: "inline",
            """
            <input type="hidden" name="name" value="\(one.name)"><button class="plain" aria-label="Delete \(one.name)">×</button>
            """) : .empty
        return "<li><a href=\"\(place.query([.init("sql", one.sql)]))\" rel=\"nofollow\">\(one.name)</a>\(delete)</li>"
      }
      return "<div><h2>Saved queries</h2><ul>\(items)</ul></div>"
    }
  }
}

struct SourceList {
  let page: QueryPage

  /// The most listed columns; the JSON has all.
  private static let mostColumns = 1200

  var html: HTML { "\(page.sources.html { list($0) })\(functions)" }

  private func list(_ sources: [QuerySource]) -> HTML {
    var left = Self.mostColumns
    let shown = sources.prefix { source in
      left -= source.columns.count + 1
      return left >= 0
    }
    let more = HTML.when(
      shown.count < sources.count,
      "<p class=\"soft\">and \(grouped(sources.count - shown.count)) more, which queries can read too</p>")
    let entities = shown.filter { $0.table != nil }
    let tables = shown.filter { $0.table == nil }
    return "\(group("Entities", entities))\(group("Tables", tables))\(more)"
  }

  private func group(_ heading: String, _ sources: [QuerySource]) -> HTML {
    guard !sources.isEmpty else { return .empty }
    return "<div class=\"sources\"><h2>\(heading)</h2>\(sources.map(item))</div>"
  }

  private func item(_ source: QuerySource) -> HTML {
    let columns = source.columns.map { column -> HTML in
      let stored: HTML = column.stored.map { " <small class=\"soft\">\($0)</small>" } ?? .empty
      let type: HTML = column.isComputed ? "computed, not readable" : HTML(escaping: column.type)
      return "<li><span><code>\(column.name)</code>\(stored)</span><small class=\"soft\">\(type)</small></li>"
    }
    let table: HTML = source.table.map { " <small class=\"soft\">\($0)</small>" } ?? .empty
    let target = page.place.query([.init("sql", source.selection)])
    return """
      <details><summary><code>\(source.name)</code>\(table)</summary><ul>\(columns)</ul>
      <p><a href="\(target)" rel="nofollow" aria-label="Select from \(source.name)">Select from it</a></p></details>
      """
  }

  private var functions: HTML {
    """
    <details><summary>Functions and limits</summary><p>A query reads tables of the file and calls these functions: \
    <code>\(QueryFunctions.names.sorted().joined(separator: ", "))</code>.</p>
    <p>A date of Core Data is a number of seconds since 2001: <code>core_data_date(x)</code> shows it, and \
    <code>uuid_text(x)</code> a UUID.</p>
    <p>Nothing that the store declares runs: its views, virtual tables and computed columns cannot be read. An export has at most a \
    million rows, 256 MB and a minute; what is larger ends as a download that failed.</p></details>
    """
  }
}

extension QuerySource: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "name": name, "table": table,
      "columns": columns.map { column -> JSON.Object in
        [
          "name": column.name, "type": column.type, "stored": column.stored,
          "isComputed": column.isComputed ? true : nil,
        ]
      },
    ])
  }
}

struct SavedQuery: Sendable, Hashable, Codable {
  var name: String

  var sql: String

  /// The time of saving in RFC 3339.
  var saved: String
}

/// A home's saved queries, in one file readable by its owner only, since a query may name the sought data.
struct SavedQueries: Sendable {
  private struct Content: Codable {
    var format = 1
    var queries: [SavedQuery] = []
  }

  static let longestName = 100

  static let most = 200

  private let folder: FilePath
  private let surroundings: Surroundings
  private var file: FilePath { folder.appending("queries.json") }
  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// The queries of a home; creates no file yet.
  init(home: FilePath, surroundings: Surroundings) {
    folder = home.appending(".lazaret-queries")
    self.surroundings = surroundings
  }

  /// - Throws: `FileError`; ``Refusal`` if the file isn't of this version.
  func all() throws -> [SavedQuery] {
    guard try fileSystem.status(of: file) != nil else { return [] }
    let bytes = try fileSystem.contents(of: file, limit: 16 << 20)
    let content: Content
    do { content = try JSONDecoder().decode(Content.self, from: Data(bytes)) } catch { throw unreadable }
    guard content.format == 1 else { throw unreadable }
    return content.queries.sorted { $0.name < $1.name }
  }

  private var unreadable: Refusal {
    Refusal(.conflict, "the file of saved queries in the home cannot be read; move it away to begin a new one")
  }

  /// Saves a query, replacing one of the same name.
  func save(_ name: String, _ sql: String) throws {
    let name = name.trimmingCharacters(in: .whitespacesAndNewlines)
    guard !name.isEmpty, name.count <= Self.longestName else {
      throw Refusal(.badRequest, "a name has from 1 to \(Self.longestName) characters")
    }
    try Refusal.unless(
      !sql.trimmingCharacters(in: .whitespacesAndNewlines).isEmpty, .badRequest, "there is no query to save")
    let sql = try StoreQuery(sql).sql
    try change { queries in
      queries.removeAll { $0.name == name }
      try Refusal.unless(
        queries.count < Self.most, .conflict, "\(Self.most) queries are saved already; delete one first")
      queries.append(SavedQuery(name: name, sql: sql, saved: surroundings.now().rfc3339))
    }
  }

  func remove(_ name: String) throws {
    try change { queries in
      try Refusal.unless(queries.contains(where: { $0.name == name }), .notFound, "no query of that name is saved")
      queries.removeAll { $0.name == name }
    }
  }

  private func change(_ change: (inout [SavedQuery]) throws -> Void) throws {
    try fileSystem.makeDirectory(folder)
    let lock = try FolderLock(folder, in: fileSystem)
    var content = Content(queries: try all())
    try change(&content.queries)
    let bytes = try JSON.bytes(of: content, to: "save the query", at: file)
    try fileSystem.writeAtomically(bytes, to: file, replacing: true)
    lock.release()
  }
}
