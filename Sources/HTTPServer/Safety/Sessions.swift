internal import Platform

/// Sessions: a single-use link lets a browser in, a cookie identifies it, a token marks its forms.
package final class Sessions: Sendable {
  package struct Session: Sendable, Hashable {
    package let cookie: Token

    package let form: Token
  }

  private struct Link {
    var token: Token
    var target: RequestTarget?
    var made: ContinuousClock.Instant
  }

  private struct Known {
    var session: Session
    var begun: ContinuousClock.Instant
    var used: ContinuousClock.Instant
  }

  private struct State {
    var links: [Link] = []
    var sessions: [Known] = []
  }

  package struct Lifetimes: Sendable {
    /// The lifetime of an unused link.
    var link: Duration

    /// The lifetime of a session without requests.
    var idle: Duration

    /// The lifetime of any session.
    var session: Duration

    package init(
      link: Duration = .seconds(3600), idle: Duration = .seconds(12 * 3600), session: Duration = .seconds(7 * 86_400)
    ) {
      self.link = link
      self.idle = idle
      self.session = session
    }
  }

  private static let capacity = 64

  private let state = Mutex(State())
  private let cookieName: String
  private let isSecure: Bool
  private let makeToken: @Sendable () -> Token
  private let lifetimes: Lifetimes
  private let now: @Sendable () -> ContinuousClock.Instant

  /// Creates an empty set.
  ///
  /// - Parameters:
  ///   - cookieName: distinguishes servers at different ports of one host, since cookies ignore ports.
  ///   - isSecure: whether the server uses TLS.
  package init(
    cookieName: String, isSecure: Bool = false, lifetimes: Lifetimes = Lifetimes(),
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    makeToken: @escaping @Sendable () -> Token = { Token.random() }
  ) {
    self.lifetimes = lifetimes
    self.now = now
    self.cookieName = cookieName
    self.isSecure = isSecure
    self.makeToken = makeToken
  }

  /// Creates a single-use link token.
  ///
  /// - Parameter target: the destination; nil for that of ``open(link:to:)``.
  package func makeLink(to target: RequestTarget? = nil) -> Token {
    let token = makeToken()
    let now = now()
    state.withLock { state in
      end(&state, at: now)
      if state.links.count >= Self.capacity { state.links.removeFirst() }
      state.links.append(Link(token: token, target: target, made: now))
    }
    return token
  }

  /// Consumes a link and sets the cookie.
  ///
  /// - Throws: ``Refusal`` 403 if used, expired or unknown.
  package func open(link: String, to target: RequestTarget) throws(Refusal) -> Response {
    let session = Session(cookie: makeToken(), form: makeToken())
    let now = now()
    let known = state.withLock { state -> Link? in
      end(&state, at: now)
      guard let index = state.links.firstIndex(where: { $0.token.matches(link) }) else { return nil }
      if state.sessions.count >= Self.capacity { state.sessions.removeFirst() }
      state.sessions.append(Known(session: session, begun: now, used: now))
      return state.links.remove(at: index)
    }
    guard let known else {
      throw Refusal(.forbidden, "the link was used already, or is too old; start again for a new one")
    }
    return Response.redirect(to: known.target ?? target).setting(
      Cookie(name: cookieName, value: session.cookie.text, isSecure: isSecure))
  }

  /// Returns a request's session.
  ///
  /// - Throws: ``Refusal`` 401 without one.
  package func session(of request: Request) throws(Refusal) -> Session {
    let cookie = request.cookies[cookieName]
    let now = now()
    let session = state.withLock { state -> Session? in
      end(&state, at: now)
      guard let index = state.sessions.firstIndex(where: { $0.session.cookie.matches(cookie) }) else { return nil }
      state.sessions[index].used = now
      return state.sessions[index].session
    }
    guard let session else { throw Refusal(.unauthorized, "open the link that the server printed") }
    return session
  }

  /// Ends a session and removes its cookie.
  ///
  /// - Throws: ``Refusal`` 401 without one.
  package func close(_ request: Request, answering response: Response) throws(Refusal) -> Response {
    let session = try session(of: request)
    state.withLock { state in state.sessions.removeAll { $0.session == session } }
    return response.setting(Cookie(name: cookieName, value: "", isSecure: isSecure, maximumAge: 0))
  }

  private func end(_ state: inout State, at now: ContinuousClock.Instant) {
    state.links.removeAll { $0.made + lifetimes.link <= now }
    state.sessions.removeAll { $0.used + lifetimes.idle <= now || $0.begun + lifetimes.session <= now }
  }

  /// Checks that an action comes from this server's own pages.
  ///
  /// - Parameter form: the body's fields; the token is `csrf` or the header field `X-CSRF-Token`.
  /// - Throws: ``Refusal`` 401 without a session, 403 without its token.
  package func checkAction(_ request: Request, form: FormData) throws(Refusal) {
    let session = try session(of: request)
    guard session.form.matches(request.headers["X-CSRF-Token"] ?? form["csrf"]) else {
      throw Refusal(.forbidden, "the form is not of this session; load the page again")
    }
  }
}

/// 256 random bits in hexadecimal.
package struct Token: Sendable, Hashable {
  package let text: String

  /// Creates a token with the system's cryptographic generator.
  package static func random() -> Token {
    Token(text: (0..<32).map { _ in UInt8.random(in: .min ... .max) }.hexadecimal)
  }

  /// Compares in constant time.
  func matches(_ other: String?) -> Bool {
    let (own, others) = (Array(text.utf8), Array((other ?? "").utf8))
    guard own.count == others.count else { return false }
    var difference: UInt8 = 0
    for index in own.indices { difference |= own[index] ^ others[index] }
    return difference == 0
  }
}
