internal import HTTPServer
import PersistentStore
import Platform

/// The inspector's routes: pages with JSON, actions, and others.
///
/// The JSON has the page's path plus `.json`, so no pattern ends with free text: records of the entity "Car.json" are
/// at `/stores/{id}/entities/{entity}/records`.
struct InspectorRoutes: Sendable {
  private let gate: PageGate
  private var pages = Router()
  private var twins = Router()

  private(set) var documented: [DocumentedRoute] = []

  init(_ gate: PageGate) { self.gate = gate }

  /// Adds a page and its JSON.
  ///
  /// - Parameters:
  ///   - pattern: the path, with a `{name}` segment per parameter.
  ///   - parameters: the types in order.
  ///   - query: the known query parameters.
  ///   - make: makes the page of a request with a session; errors become pages.
  mutating func page<each Value: Sendable>(
    _ pattern: String, about: String, _ parameters: repeat PathParameter<each Value>,
    query: [DocumentedRoute.Field] = [],
    make: @escaping @Sendable (Request, repeat each Value) throws -> any InspectorPage
  ) {
    documented.append(DocumentedRoute(method: .get, pattern: pattern, about: about, kind: .page, fields: query))
    let gate = gate
    pages.add(.get, pattern, repeat each parameters) { (request: Request, values: repeat each Value) in
      try gate.show(request, asJSON: false) { try make(request, repeat each values) }
    }
    twins.add(.get, pattern, repeat each parameters) { (request: Request, values: repeat each Value) in
      try gate.show(request, asJSON: true) { try make(request, repeat each values) }
    }
  }

  /// Adds a page with partial results for a person; its JSON waits for all.
  ///
  /// - Parameters:
  ///   - shown: the page for a person.
  ///   - make: the complete page.
  mutating func page(
    _ pattern: String, about: String, query: [DocumentedRoute.Field] = [],
    shown: @escaping @Sendable (Request) throws -> any InspectorPage,
    make: @escaping @Sendable (Request) throws -> any InspectorPage
  ) {
    documented.append(DocumentedRoute(method: .get, pattern: pattern, about: about, kind: .page, fields: query))
    let gate = gate
    pages.add(.get, pattern) { request in try gate.show(request, asJSON: false) { try shown(request) } }
    twins.add(.get, pattern) { request in try gate.show(request, asJSON: true) { try make(request) } }
  }

  /// Adds a POST action that requires the form token and answers with a redirect or JSON.
  ///
  /// - Parameters:
  ///   - pattern: the path, with a `{name}` segment per parameter.
  ///   - parameters: the types in order.
  ///   - fields: the form fields; others are refused.
  ///   - perform: returns the next page.
  mutating func action<each Value: Sendable>(
    _ pattern: String, about: String, _ parameters: repeat PathParameter<each Value>,
    fields: [DocumentedRoute.Field] = [],
    perform: @escaping @Sendable (Request, FormData, repeat each Value) throws -> ActionAnswer
  ) {
    documented.append(DocumentedRoute(method: .post, pattern: pattern, about: about, kind: .action, fields: fields))
    let known = Set(fields.map(\.name))
    let gate = gate
    pages.add(.post, pattern, repeat each parameters) { (request: Request, values: repeat each Value) in
      let form = try Self.checked(request, gate, known)
      return .redirect(to: try perform(request, form, repeat each values).target)
    }
    twins.add(.post, pattern, repeat each parameters) { (request: Request, values: repeat each Value) in
      let form = try Self.checked(request, gate, known)
      let answer = try perform(request, form, repeat each values)
      return .json(answer.json.text + "\n", status: answer.isDone ? .ok : .accepted)
    }
  }

  private static func checked(_ request: Request, _ gate: PageGate, _ known: Set<String>) throws -> FormData {
    let form = try FormData(request)
    try gate.sessions.checkAction(request, form: form)
    guard gate.options.allowsActions else { throw Refusal(.forbidden, "this inspector only looks") }
    guard form.fields.items.allSatisfy({ $0.name == "csrf" || known.contains($0.name) }), form.files.isEmpty else {
      throw Refusal(.badRequest, "the form has a field that this action does not know")
    }
    return form
  }

  /// Adds another GET with a session, such as a download or stream.
  ///
  /// - Parameters:
  ///   - pattern: the path, with a `{name}` segment per parameter.
  ///   - type: the content type.
  ///   - parameters: the types in order.
  ///   - query: the known query parameters.
  mutating func other<each Value: Sendable>(
    _ pattern: String, about: String, type: String, _ parameters: repeat PathParameter<each Value>,
    query: [DocumentedRoute.Field] = [], make: @escaping @Sendable (Request, repeat each Value) throws -> Response
  ) {
    documented.append(
      DocumentedRoute(method: .get, pattern: pattern, about: about, kind: .other, fields: query, type: type))
    let gate = gate
    pages.add(.get, pattern, repeat each parameters) { (request: Request, values: repeat each Value) in
      _ = try gate.sessions.session(of: request)
      return try make(request, repeat each values)
    }
  }

  /// Adds an action on the session, also if read-only.
  mutating func leave(_ pattern: String, about: String, perform: @escaping @Sendable (Request) throws -> Response) {
    documented.append(
      DocumentedRoute(method: .post, pattern: pattern, about: about, kind: .other, fields: [], type: "text/plain"))
    let gate = gate
    pages.add(.post, pattern) { request in
      try gate.sessions.checkAction(request, form: try FormData(request))
      return try perform(request)
    }
  }

  /// Adds a route without a session.
  mutating func open<each Value: Sendable>(
    _ pattern: String, about: String, type: String, _ parameters: repeat PathParameter<each Value>,
    make: @escaping @Sendable (Request, repeat each Value) throws -> Response
  ) {
    documented.append(
      DocumentedRoute(method: .get, pattern: pattern, about: about, kind: .other, fields: [], type: type, isOpen: true))
    pages.add(.get, pattern, repeat each parameters, handler: make)
  }

  /// Strips `.json` from the path.
  private static func sorted(_ request: Request) -> (request: Request, isTwin: Bool) {
    guard let last = request.target.segments.last, last.hasSuffix(".json"), last != ".json" else {
      return (request, false)
    }
    var request = request
    request.target.segments[request.target.segments.count - 1] = String(last.dropLast(".json".count))
    return (request, true)
  }

  /// Answers a request whose header alone decides; nil if the body counts.
  func respondEarly(to request: Request) -> Response? {
    let (sorted, isTwin) = Self.sorted(request)
    let hasSession = (try? gate.sessions.session(of: request)) != nil
    return hasSession && (isTwin ? twins : pages).knows(sorted) ? nil : respond(to: request)
  }

  func respond(to request: Request) -> Response {
    let (request, isTwin) = Self.sorted(request)
    do {
      return try (isTwin ? twins : pages).answer(to: request)
    } catch {
      return gate.failure(error, request, asJSON: isTwin)
    }
  }

  /// Adds login and logout.
  mutating func addDoor(_ sessions: Sessions, _ work: RunningWork) {
    open("/open/{link}", about: "Turns a one-time link into a session.", type: "text/html", .identifier) {
      request, link in
      // Only a GET uses up a single-use link.
      guard request.method == .get else {
        throw Refusal(.methodNotAllowed, "the link is opened with GET", headers: ["Allow": "GET"])
      }
      return try sessions.open(link: link, to: .to("stores"))
    }
    other("/", about: "Leads to the list of stores.", type: "text/html") { _ in .redirect(to: .to("stores")) }
    page("/session", about: "The token that the forms of this session have.") { request in
      SessionPage(token: try sessions.session(of: request).form.text)
    }
    leave("/session/end", about: "Ends this session: its cookie is no longer valid.") { request in
      work.endEvents(of: try sessions.session(of: request))
      return try sessions.close(
        request, answering: .text("You are logged out. A new link is printed at the next start.\n"))
    }
  }
}

struct SessionPage: InspectorPage {
  let token: String

  var title: String { "This session" }
  var section: PageSection { .api }

  func encode(to encoder: any Encoder) throws { try encoder.encode(["csrf": token]) }

  func content(_ frame: PageFrame) -> HTML {
    """
    <h1>\(title)</h1>
    <p>Scripts that perform actions send this token in the header field <code>X-CSRF-Token</code>, or as the field \
    <code>csrf</code> of a form. It is only good together with the cookie of this session.</p>
    <pre tabindex="0">\(token)</pre>
    <form method="post" action="\(RequestTarget.to("session", "end"))">\
    <input type="hidden" name="csrf" value="\(token)"><button>Log out</button></form>
    """
  }
}

extension InspectorRoutes {
  /// Adds health checks, without a session or store data.
  mutating func addService(_ service: ServiceState) {
    open(
      "/healthz",
      about:
        "Whether the process can do its work: 200 and ok, or 503 and the parts that fail; on a second line what jobs of the inbox wait for.",
      type: "text/plain"
    ) { _ in
      let failures = service.failures()
      let hindrances = service.hindrances()
      let waiting = hindrances.isEmpty ? "" : "waiting: \(hindrances.joined(separator: ", "))\n"
      guard failures.isEmpty else {
        return .text(
          "failing: \(failures.map(\.rawValue).joined(separator: ", "))\n\(waiting)", status: .serviceUnavailable)
      }
      return .text("ok\n\(waiting)")
    }
    open(
      "/metrics",
      about: "What is counted, in Prometheus' text format; for this machine and the addresses that were named.",
      type: "text/plain"
    ) { request in
      guard service.mayRead(request) else { throw Refusal(.notFound, "there is nothing at this address") }
      var response = Response.text(MetricsText(service).text)
      response.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
      return response
    }
  }

  mutating func addModels(_ parts: InspectorParts) {
    page("/models", about: "The models that the inspector was given.") { _ in ModelsPage(models: parts.models) }
    let search = DocumentedRoute.Field(
      "q", "Only entities that have this text in their name, or in that of a property.")
    page(
      "/models/{model}", about: "The versions of a model, and the entities of the current one.", .identifier,
      query: [search]
    ) { request, name in ModelPage(model: try parts.listedModel(name), filter: request.query["q"] ?? "") }
    page(
      "/models/{model}/version", about: "One version of a model: what it changes, and its entities.", .identifier,
      query: [.init("name", "The version; the current one if empty."), search]
    ) { request, name in
      let model = try parts.listedModel(name)
      let version = request.query["name"] ?? model.model.currentVersionName
      return try ModelVersionPage(model: model, name: version, filter: request.query["q"] ?? "")
    }
    page(
      "/stores/{id}/plan", about: "The migration of a store to the current version of a model, step by step.", .store,
      query: [.init("model", "The name of the model; the first that was given if left out.")]
    ) { request, id in
      let store = try parts.catalogue.store(id)
      if store.isOnlyReceipt { try store.requireFiles() }
      return PlanPage(store, try request.query["model"].map { try parts.listedModel($0) }, parts)
    }
  }

  mutating func addQueries(_ source: RecordSource) {
    let desk = QueryController(source)
    let sql = DocumentedRoute.Field("sql", "One SELECT, of at most 4,000 characters; it is run where it is given.")
    page(
      "/stores/{id}/{side}/query", about: "A query in SQL over a side of a store, which only reads.", .store, .side,
      query: [
        sql, .init("_size", "The number of rows on a page, up to 1000."),
        .init("_offset", "How many rows are passed over, up to 1000000."),
      ]
    ) { request, id, side in try source.side(id, side, request).page { try desk.page($0, request) } }
    other(
      "/stores/{id}/{side}/query/export/{format}", about: "All rows of a query, as csv, json or jsonl, streamed.",
      type: "text/csv", .store, .side, PathParameter { RecordExport.Format(rawValue: $0) }, query: [sql]
    ) { request, id, side, format in try desk.export(source.side(id, side, request).value(), request, as: format) }
    let name = DocumentedRoute.Field("name", "The name of the saved query.", isRequired: true)
    action(
      "/stores/{id}/{side}/query/save", about: "Saves a query under a name, in place of one of that name.", .store,
      .side, fields: [name, .init("sql", "The query.", isRequired: true)]
    ) { _, form, id, side in
      let (sql, name) = (form["sql"] ?? "", form["name"] ?? "")
      try desk.saved.save(name, sql)
      return .done(RecordPlace.query(id, side, [.init("sql", sql)]))
    }
    action("/stores/{id}/{side}/query/delete", about: "Deletes a saved query.", .store, .side, fields: [name]) {
      _, form, id, side in
      try desk.saved.remove(form["name"] ?? "")
      return .done(RecordPlace.query(id, side))
    }
  }

  mutating func addStores(_ parts: InspectorParts) {
    page(
      "/stores", about: "The quarantined stores of the home, the live ones beside them, and the backups; newest first.",
      query: [.init("q", "Only stores whose name, reason or model has this text in it.")],
      shown: { request in StoresPage(parts, filter: request.query["q"] ?? "", patience: StoresPage.patience) },
      make: { request in StoresPage(parts, filter: request.query["q"] ?? "") })
    let look = DocumentedRoute.Field(
      "look", "\"yes\" to look at every page of a large store; a small one is looked at in any case.")
    page(
      "/stores/{id}", about: "One store: its damage, its entities, its receipt, and what happened to it.", .store,
      query: [look]
    ) { request, id in
      let store = try parts.catalogue.store(id)
      let isAsked = request.query["look"] == "yes"
      switch store.kind {
      case .quarantined(let stored, _): return QuarantinedStorePage(store, stored, parts, isAsked: isAsked)
      case .live(let files): return LiveStorePage(store, files, parts, isAsked: isAsked)
      case .backup(let backup, let place): return BackupPage(store, backup, place, parts)
      }
    }
    page("/stores/{id}/map", about: "The state of each page of a store, and whose it is.", .store, query: [look]) {
      request, id in
      let store = try parts.catalogue.store(id)
      try store.requireFiles()
      return PageMapPage(store, parts, isAsked: request.query["look"] == "yes")
    }
    page("/stores/{id}/losses", about: "What of a store is lost, in the words of its owner.", .store, query: [look]) {
      request, id in
      let store = try parts.catalogue.store(id)
      if store.isOnlyReceipt { try store.requireFiles() }
      return LossesPage(store, parts, isAsked: request.query["look"] == "yes")
    }
    page("/work", about: "What is running, and what has ended since the inspector began.") { _ in
      WorkPage(jobs: parts.work.jobs)
    }
    other(
      "/events", about: "How far running work is, as it happens (server-sent events).", type: "text/event-stream"
    ) { request in
      parts.work.events(for: try parts.sessions.session(of: request))
    }
  }
}

/// The running jobs and those ended since startup.
struct WorkPage: InspectorPage {
  let jobs: [RunningWork.Job]

  var title: String { "Running work" }
  var section: PageSection { .work }

  func encode(to encoder: any Encoder) throws { try encoder.encode(["jobs": jobs]) }

  func content(_ frame: PageFrame) -> HTML {
    let running = jobs.filter(\.isRunning)
    let ended = jobs.filter { !$0.isRunning }
    let now: HTML =
      running.isEmpty
      ? """
      <div class="empty"><p>Nothing is running. Salvages, backups, proofs and restores that are begun here show how far \
      they are, and can be ended; they go on while you look at other pages.</p></div>
      """ : HTML.empty + running.reduce(into: HTML.empty) { $0 += $1.html(frame) }
    let before = HTML.when(
      !ended.isEmpty,
      "<h2>Ended</h2>"
        + ended.reduce(into: HTML.empty) { html, job in
          html += job.html(frame)
          if let time = job.ended { html += "<p class=\"soft\">\(Words.time(time, now: frame.now))</p>" }
        })
    return "<div data-events=\"\(frame.events)\"><h1>\(title)</h1>\(now)\(before)</div>"
  }
}
