internal import Synchronization

/// Who may use the server: the browser that opened the one-time link, by a cookie; and which forms are its own, by a token.
package final class Sessions: Sendable {
  /// One browser that was let in.
  package struct Session: Sendable, Hashable {
    /// What its cookie holds.
    package let cookie: Token

    /// What each of its forms must hold.
    package let form: Token
  }

  private struct Link {
    var token: Token
    var target: RequestTarget?
  }

  private struct State {
    var links: [Link] = []
    var sessions: [Session] = []
  }

  /// The most browsers that are known at a time; the oldest is forgotten.
  private static let capacity = 64

  private let state = Mutex(State())
  private let cookieName: String
  private let isSecure: Bool
  private let makeToken: @Sendable () -> Token

  /// Sessions.
  ///
  /// - Parameters:
  ///   - cookieName: tells servers at different ports of one host apart, because cookies do not.
  ///   - isSecure: whether the server speaks TLS.
  ///   - makeToken: where tokens come from; the system's generator if not given.
  package init(
    cookieName: String, isSecure: Bool = false, makeToken: @escaping @Sendable () -> Token = { Token.random() }
  ) {
    self.cookieName = cookieName
    self.isSecure = isSecure
    self.makeToken = makeToken
  }

  /// A new link token, good for one use.
  ///
  /// - Parameter target: where it leads; where ``open(link:to:)`` says if nil.
  package func makeLink(to target: RequestTarget? = nil) -> Token {
    let token = makeToken()
    state.withLock { state in
      if state.links.count >= Self.capacity { state.links.removeFirst() }
      state.links.append(Link(token: token, target: target))
    }
    return token
  }

  /// Uses up a link: the response sends the browser on, with its cookie.
  ///
  /// - Parameter target: where a link leads that was made without an address.
  /// - Throws: ``Refusal`` 403 where the link was used before, or never was one.
  package func open(link: String, to target: RequestTarget) throws(Refusal) -> Response {
    let session = Session(cookie: makeToken(), form: makeToken())
    let known = state.withLock { state -> Link? in
      guard let index = state.links.firstIndex(where: { $0.token.matches(link) }) else { return nil }
      if state.sessions.count >= Self.capacity { state.sessions.removeFirst() }
      state.sessions.append(session)
      return state.links.remove(at: index)
    }
    guard let known else { throw Refusal(.forbidden, "the link was used already; start again for a new one") }
    return Response.redirect(to: known.target ?? target).setting(
      Cookie(cookieName, session.cookie.text, isSecure: isSecure))
  }

  /// The session of a request.
  ///
  /// - Throws: ``Refusal`` 401 where it has none.
  package func session(of request: Request) throws(Refusal) -> Session {
    let cookie = request.cookies[cookieName]
    guard let session = state.withLock({ state in state.sessions.first { $0.cookie.matches(cookie) } }) else {
      throw Refusal(.unauthorized, "open the link that the server printed")
    }
    return session
  }

  /// Checks that an action comes from a form or a script of this server's own pages.
  ///
  /// - Parameter form: the fields of the body; the token is in `csrf`, or in the header field `X-CSRF-Token`.
  /// - Throws: ``Refusal`` 401 without a session, 403 without its token.
  package func checkAction(_ request: Request, form: FormData) throws(Refusal) {
    let session = try session(of: request)
    guard session.form.matches(request.headers["X-CSRF-Token"] ?? form["csrf"]) else {
      throw Refusal(.forbidden, "the form is not of this session; load the page again")
    }
  }
}
