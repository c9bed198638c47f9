import HTTPServer

extension InspectorRoutes {
  /// The way in: the link that is printed, and the first page.
  mutating func addDoor(_ sessions: Sessions) {
    open("/open/{link}", about: "Turns a one-time link into a session.", type: "text/html", .identifier) {
      request, link in
      // A link is used up by opening it, and not by looking whether it is there.
      guard request.method == .get else {
        throw Refusal(.methodNotAllowed, "the link is opened with GET", headers: ["Allow": "GET"])
      }
      return try sessions.open(link: link, to: .to("stores"))
    }
    other("/", about: "Leads to the list of stores.", type: "text/html") { _ in .redirect(to: .to("stores")) }
    page("/session", about: "The token that the forms of this session have.") { request in
      SessionPage(token: try sessions.session(of: request).form.text)
    }
  }
}

/// The token for scripts that perform actions.
struct SessionPage: InspectorPage {
  let token: String

  var title: String { "This session" }
  var section: PageSection { .api }
  var json: JSONText { ["csrf": .string(token)] }

  func content(_ frame: PageFrame) -> HTML {
    """
    <h1>\(title)</h1>
    <p>Scripts that perform actions send this token in the header field <code>X-CSRF-Token</code>, or as the field \
    <code>csrf</code> of a form. It is only good together with the cookie of this session.</p>
    <pre tabindex="0">\(token)</pre>
    """
  }
}
