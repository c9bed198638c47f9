import HTTPServer
import Inspector
import StoreFiles
import SystemPackage
import TestSupport

/// A browser without a window: it keeps the cookie and the token, and asks the inspector directly.
struct Browser {
  let inspector: Inspector
  private let cookie: String
  let token: String

  /// Opens the inspector's one-time link.
  init(_ inspector: Inspector) throws {
    self.inspector = inspector
    let link = inspector.sessions.makeLink()
    let opened = inspector.respond(to: try Request(.get, "/open/\(link.text)"))
    cookie = String((opened.headers["Set-Cookie"] ?? "").prefix { $0 != ";" })
    let session = inspector.respond(to: try Request(.get, "/session.json", headers: ["Cookie": cookie]))
    token = session.text.split(separator: "\"").last { $0.count == 64 }.map(String.init) ?? ""
  }

  /// Asks for an address.
  func get(_ address: String) throws -> Response {
    inspector.respond(to: try Request(.get, address, headers: ["Cookie": cookie]))
  }

  /// Sends a form, with its token.
  func post(_ address: String, _ fields: [(String, String)] = [], token: String? = nil) throws -> Response {
    let query = Query((fields + [("csrf", token ?? self.token)]).map { Query.Item($0.0, $0.1) })
    return inspector.respond(
      to: try Request(
        .post, address, headers: ["Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"],
        body: Array(query.text.dropFirst().utf8)))
  }
}

extension Response {
  /// The body as text; empty for a stream.
  var text: String { bytes.map { String(decoding: $0, as: UTF8.self) } ?? "" }
}
