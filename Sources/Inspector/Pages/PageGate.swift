internal import HTTPServer
import Lazaret
import Platform
import SQLiteFormat
import SystemPackage

/// A failure in displayable words, never with a record's values.
package struct Problem: Error, Hashable {
  var status: Status

  /// The stable code, as in the command line.
  package var code: String

  var title: String

  var detail: String

  /// The remedy as a sentence.
  var hint: String?

  var headers = HeaderFields()

  init(_ status: Status, code: String, title: String, detail: String, hint: String? = nil) {
    self.status = status
    self.code = code
    self.title = title
    self.detail = detail
    self.hint = hint
  }

  init(_ error: any Error) {
    switch error {
    case let error as Refusal:
      self.init(
        error.status, code: "refused", title: Self.title(error.status), detail: sentence(error.words),
        hint: Self.hint(error))
      headers = error.headers
    case let error as any ReportableError:
      self.init(
        Self.status(error), code: error.code, title: sentence("it was not possible to \(error.operation)"),
        detail: sentence(printable(error.detail)), hint: printable(error.hint))
    default:
      // Errors from outside this project may contain user values.
      self.init(
        .internalServerError, code: "unforeseen-error", title: "Something went wrong that was not foreseen.",
        detail: "An error of the kind \(printable("\(type(of: error))")) came up.",
        hint: "Please report this, with what you did.")
    }
  }

  private static func title(_ status: Status) -> String {
    switch status {
    case .unauthorized: "This page needs the link that was printed"
    case .forbidden: "This is not allowed"
    case .notFound: "There is nothing here"
    case .methodNotAllowed: "This address does not do that"
    default: status.reason
    }
  }

  private static func hint(_ refusal: Refusal) -> String? {
    if refusal == StoreCatalogue.noSuchStore {
      return "The store may have been released or discarded. Go back to the list of stores."
    }
    guard refusal.status == .unauthorized else { return nil }
    return "Run lazaret serve again, and open the link that it prints: each is good for one browser, once."
  }

  private static func status(_ error: any ReportableError) -> Status {
    if error.isEnvironmental { return .serviceUnavailable }
    switch error.code {
    case "not-in-quarantine", "evidence-missing", "not-in-inbox", "no-such-backup", "unknown-entity",
      "unknown-property", "unknown-record", "file-not-found":
      return .notFound
    case "bad-query": return .badRequest
    case "inbox-not-now", "locked", "in-use", "place-taken", "ambiguous-id", "evidence-changed": return .conflict
    default: return .unprocessableContent
    }
  }

  var note: HTML {
    let hint: HTML = hint.map { "<p class=\"soft\">\($0)</p>" } ?? .empty
    return "<div class=\"note bad\"><p><strong>\(title)</strong> \(detail)</p>\(hint)</div>"
  }

  /// The problem as JSON (RFC 9457).
  var json: JSON.Value {
    .members(
      ("status", .integer(Int64(status.rawValue))), ("code", .string(code)), ("title", .string(title)),
      ("detail", .string(detail)), ("hint", hint.map { .string($0) }))
  }
}

extension Problem: Encodable {
  package func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}

/// Adds a capital and a full stop.
func sentence(_ words: String) -> String {
  let text = words.prefix(1).uppercased() + words.dropFirst()
  return text.hasSuffix(".") || text.hasSuffix("!") || text.hasSuffix("?") ? text : text + "."
}

/// Checks each request's session.
struct PageGate: Sendable {
  let sessions: Sessions
  let work: RunningWork
  let options: InspectorOptions
  let now: @Sendable () -> Timestamp

  func frame(_ request: Request, _ session: Sessions.Session?) -> PageFrame {
    PageFrame(
      formToken: session?.form.text, now: now(), allowsActions: options.allowsActions, hasInbox: options.inbox != nil,
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
