internal import Platform

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

  /// How long links and sessions are good for.
  package struct Lifetimes: Sendable {
    /// A link that is not used.
    package var link: Duration

    /// A session in which nothing is asked for.
    package var idle: Duration

    /// A session, whatever is asked for in it.
    package var session: Duration

    /// Lifetimes.
    package init(
      link: Duration = .seconds(3600), idle: Duration = .seconds(12 * 3600), session: Duration = .seconds(7 * 86_400)
    ) {
      self.link = link
      self.idle = idle
      self.session = session
    }
  }

  /// The most browsers that are known at a time; the oldest is forgotten.
  private static let capacity = 64

  private let state = Mutex(State())
  private let cookieName: String
  private let isSecure: Bool
  private let makeToken: @Sendable () -> Token
  private let lifetimes: Lifetimes
  private let now: @Sendable () -> ContinuousClock.Instant

  /// Sessions.
  ///
  /// - Parameters:
  ///   - cookieName: tells servers at different ports of one host apart, because cookies do not.
  ///   - isSecure: whether the server speaks TLS.
  ///   - lifetimes: how long links and sessions are good for.
  ///   - now: the clock by which they end.
  ///   - makeToken: where tokens come from; the system's generator if not given.
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

  /// A new link token, good for one use.
  ///
  /// - Parameter target: where it leads; where ``open(link:to:)`` says if nil.
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

  /// Uses up a link: the response sends the browser on, with its cookie.
  ///
  /// - Parameter target: where a link leads that was made without an address.
  /// - Throws: ``Refusal`` 403 where the link was used before, is too old, or never was one.
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
      Cookie(cookieName, session.cookie.text, isSecure: isSecure))
  }

  /// The session of a request.
  ///
  /// - Throws: ``Refusal`` 401 where it has none.
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

  /// Ends the session of a request, and takes its cookie from the browser.
  ///
  /// - Parameter response: what is answered.
  /// - Throws: ``Refusal`` 401 where it has none.
  package func close(_ request: Request, answering response: Response) throws(Refusal) -> Response {
    let session = try session(of: request)
    state.withLock { state in state.sessions.removeAll { $0.session == session } }
    var cookie = Cookie(cookieName, "", isSecure: isSecure)
    cookie.maximumAge = 0
    return response.setting(cookie)
  }

  private func end(_ state: inout State, at now: ContinuousClock.Instant) {
    state.links.removeAll { $0.made + lifetimes.link <= now }
    state.sessions.removeAll { $0.used + lifetimes.idle <= now || $0.begun + lifetimes.session <= now }
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

/// 256 random bits as text for links, cookies and forms.
package struct Token: Sendable, Hashable {
  /// 64 hexadecimal digits.
  package let text: String

  /// A token from the system's generator, which is made for secrets.
  package static func random() -> Token {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// A token from a generator; only the system's keeps a secret.
  package static func random(using generator: inout some RandomNumberGenerator) -> Token {
    let words = (0..<4).map { _ in UInt64.random(in: .min ... .max, using: &generator) }
    return Token(
      text: words.map { word in
        let digits = String(word, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
      }.joined())
  }

  /// Whether a text is this token; how long that takes does not tell where they differ.
  package func matches(_ other: String?) -> Bool {
    let (own, others) = (Array(text.utf8), Array((other ?? "").utf8))
    guard own.count == others.count else { return false }
    var difference: UInt8 = 0
    for index in own.indices { difference |= own[index] ^ others[index] }
    return difference == 0
  }
}
