import HTTPServer
import StoreCoordination

/// What every request passes on its way to a page: the check of its session, and the frame it is shown in.
struct PageGate: Sendable {
  let sessions: Sessions
  let work: RunningWork
  let home: FilePath
  let allowsActions: Bool
  let hasInbox: Bool
  let now: @Sendable () -> Timestamp

  /// The frame for a request; its forms only where it has a session.
  func frame(_ request: Request, _ session: Sessions.Session?) -> PageFrame {
    PageFrame(
      formToken: session?.form.text, now: now(), allowsActions: allowsActions, hasInbox: hasInbox,
      running: session == nil ? [] : work.jobs, endings: work.endings, target: request.target,
      home: session == nil ? "" : printable(home.string))
  }

  /// The answer with a page, as it is or as JSON.
  ///
  /// - Throws: ``Refusal`` 401 without a session.
  func show(_ request: Request, asJSON: Bool, _ make: () throws -> any InspectorPage) throws -> Response {
    let session = try sessions.session(of: request)
    let page = try make()
    if asJSON { return .json(try JSON.shown(page, .line, withinPages: true)) }
    return .html(Layout(page: page, frame: frame(request, session)).document)
  }

  /// The answer to a request that failed.
  func failure(_ error: any Error, _ request: Request, asJSON: Bool) -> Response {
    let problem = Problem(error)
    var response: Response
    if asJSON {
      response = .json(problem.json.text + "\n", status: problem.status)
      response.headers.set("Content-Type", "application/problem+json; charset=utf-8")
    } else {
      // Without a session the page tells nothing of what is here.
      let session = try? sessions.session(of: request)
      response = .html(
        Layout(page: ProblemPage(problem: problem), frame: frame(request, session)).document, status: problem.status)
    }
    for field in problem.headers.fields { response.headers.add(field.name, field.value) }
    return response
  }
}
