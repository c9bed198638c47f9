import HTTPServer
import Lazaret
import Platform
import SystemPackage

/// Checks each request's session.
struct PageGate: Sendable {
  let sessions: Sessions
  let work: RunningWork
  let options: InspectorOptions
  let now: @Sendable () -> Timestamp

  func frame(_ request: Request, _ session: Sessions.Session?) -> PageFrame {
    PageFrame(
      formToken: session?.form.text, now: now(), allowsActions: options.allowsActions,
      hasInbox: options.inbox != nil,
      running: session == nil ? [] : work.jobs, endings: work.endings, target: request.target,
      home: session == nil ? "" : printable(options.home.string))
  }

  /// - Throws: ``Refusal`` 401 without a session.
  func show(_ request: Request, asJSON: Bool, _ make: () throws -> any InspectorPage) throws -> Response {
    let session = try sessions.session(of: request)
    let page = try make()
    guard asJSON else {
      return .html(Layout(page: page, frame: frame(request, session), digest: Self.digest(of: page)).document)
    }
    let text = try JSON.shown(page, .line, withinPages: true)
    var response = Response.json(text)
    if page.mayAge { response.headers.set(Self.digestField, Self.digest(of: text)) }
    return response
  }

  /// The header field by which an open page is found outdated.
  private static let digestField = "Lazaret-Digest"

  private static func digest(of text: String) -> String { FileDigest(of: Array(text.utf8)).hexadecimal }

  /// Returns an aging page's JSON digest; nil if encoding fails, which the JSON's own URL reports.
  private static func digest(of page: any InspectorPage) -> String? {
    guard page.mayAge, let text = try? JSON.shown(page, .line, withinPages: true) else { return nil }
    return digest(of: text)
  }

  func failure(_ error: any Error, _ request: Request, asJSON: Bool) -> Response {
    let problem = Problem(error)
    var response: Response
    if asJSON {
      response = .json(problem.json.text + "\n", status: problem.status)
      response.headers.set("Content-Type", "application/problem+json; charset=utf-8")
    } else {
      // Without a session, the page reveals no contents.
      let session = try? sessions.session(of: request)
      response = .html(
        Layout(page: ProblemPage(problem: problem), frame: frame(request, session)).document, status: problem.status)
    }
    for field in problem.headers.fields { response.headers.add(field.name, field.value) }
    return response
  }
}

struct ProblemPage: InspectorPage {
  let problem: Problem

  var title: String { problem.title }

  func encode(to encoder: any Encoder) throws { try problem.encode(to: encoder) }

  func content(_ frame: PageFrame) -> HTML {
    let hint: HTML = problem.hint.map { "<p>\($0)</p>" } ?? .empty
    let way: HTML =
      problem.status == .unauthorized
      ? .empty : "<p><a class=\"button\" href=\"\(RequestTarget.to("stores"))\">All stores</a></p>"
    return """
      <div class="empty"><h1>\(title)</h1><p>\(problem.detail)</p>\(hint)\
      <p class="soft">\(problem.status.rawValue) · <code>\(problem.code)</code></p>\(way)</div>
      """
  }
}
