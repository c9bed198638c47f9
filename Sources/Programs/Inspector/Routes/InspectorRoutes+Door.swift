import HTTPServer
import StoreFiles

extension InspectorRoutes {
  /// The way in and out: the link that is printed, the first page, and the end of a session.
  mutating func addDoor(_ sessions: Sessions, _ work: RunningWork) {
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
    leave("/session/end", about: "Ends this session: its cookie is no longer valid.") { request in
      work.endEvents(of: try sessions.session(of: request))
      return try sessions.close(
        request, answering: .text("You are logged out. A new link is printed at the next start.\n"))
    }
  }
}

/// The token for scripts that perform actions.
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
