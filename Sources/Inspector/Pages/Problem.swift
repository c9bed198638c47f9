internal import HTTPServer
import Platform
import SQLiteFormat

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
