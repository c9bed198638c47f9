import HTTPServer
import Lazaret
import Platform
import SystemPackage

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
    guard asJSON else {
      return .html(Layout(page: page, frame: frame(request, session), digest: Self.digest(of: page)).document)
    }
    let text = try JSON.shown(page, .line, withinPages: true)
    var response = Response.json(text)
    if page.mayAge { response.headers.set(Self.digestField, Self.digest(of: text)) }
    return response
  }

  /// The field with the digest of a twin, by which a page that was left open is known to be old.
  private static let digestField = "Lazaret-Digest"

  private static func digest(of text: String) -> String { FileDigest(of: Array(text.utf8)).hexadecimal }

  /// The digest of the twin of a page that may age; nil for any other, and where it has no twin that can be written, which
  /// the address of the twin tells.
  private static func digest(of page: any InspectorPage) -> String? {
    guard page.mayAge else { return nil }
    do {
      return digest(of: try JSON.shown(page, .line, withinPages: true))
    } catch {
      return nil
    }
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

/// The page of a request that could not be answered as it wished.
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
