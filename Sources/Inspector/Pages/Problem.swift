package import HTTPServer
import Platform
import SQLiteFormat

/// Something that went wrong, in words that may be shown: never a value of a record.
package struct Problem: Sendable, Hashable {
  /// The status that a request with this problem is answered with.
  package var status: Status

  /// A stable word, as the command line has it.
  package var code: String

  /// What is the matter, in a few words.
  package var title: String

  /// What went wrong, as a sentence.
  package var detail: String

  /// What can be done, as a sentence; nil where there is nothing to say.
  package var hint: String?

  /// Header fields that go with the status.
  package var headers = HeaderFields()

  /// A problem by its words.
  package init(_ status: Status, code: String, title: String, detail: String, hint: String? = nil) {
    self.status = status
    self.code = code
    self.title = title
    self.detail = detail
    self.hint = hint
  }

  /// What an error says.
  package init(_ error: any Error) {
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
      // Words of an error that no module of this project made may hold a user's values.
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

  /// A note for the place of what could not be shown.
  package var note: HTML {
    let hint: HTML = hint.map { "<p class=\"soft\">\($0)</p>" } ?? .empty
    return "<div class=\"note bad\"><p><strong>\(title)</strong> \(detail)</p>\(hint)</div>"
  }

  /// The problem for programs (RFC 9457).
  var json: JSON.Value {
    .members(
      ("status", .integer(Int64(status.rawValue))), ("code", .string(code)), ("title", .string(title)),
      ("detail", .string(detail)), ("hint", hint.map { .string($0) }))
  }
}

extension Problem: Encodable {
  /// Writes the problem for programs.
  package func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}

/// A half-sentence as a sentence: with a capital, and a full stop at its end.
func sentence(_ words: String) -> String {
  let text = words.prefix(1).uppercased() + words.dropFirst()
  return text.hasSuffix(".") || text.hasSuffix("!") || text.hasSuffix("?") ? text : text + "."
}
