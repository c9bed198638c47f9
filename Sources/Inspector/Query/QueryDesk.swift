import Foundation
import HTTPServer
import Platform

/// Answers SQL queries.
struct QueryDesk: Sendable {
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
    let writer = ExportWriter(rows.columns, format, hasStates: false)
    let exports = exports
    let source = ChunkSource(
      onCancel: { rows.cancel() },
      ended: { _ in
        rows.cancel()
        exports.giveBack(session)
      }, { () -> [UInt8]? in try writer.next(rows) })
    let name = "\(place.store.name)-\(place.side)-query.\(format.rawValue)"
    return Response(headers: ["Content-Type": format.type], body: .chunks(source)).downloaded(as: name)
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
    var target = RequestTarget.store(id, side.description, "query")
    target.query = Query(items)
    return target
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
      guard ContinuousClock.now < end else {
        throw Refusal(.serviceUnavailable, "other queries are still running; try again in a moment")
      }
      Thread.sleep(forTimeInterval: 0.01)
    }
  }

  func giveBack(_ session: Sessions.Session) { _ = running.withLock { $0.remove(session.cookie.text) } }
}
