/// Routes by method and address.
///
/// Handlers work on values: tests call ``respond(to:)`` without a socket. GET routes answer HEAD; the router answers
/// OPTIONS, and other methods at a known address with 405.
package struct Router: Sendable {
  package struct Route: Sendable, Hashable {
    var method: Method

    /// The address with named parameters, such as `/stores/{id}`.
    package var pattern: String
  }

  private enum Segment: Sendable {
    case literal(String)
    case parameter
  }

  private struct Entry: Sendable {
    var route: Route
    var segments: [Segment]

    /// Returns nil if a parameter has the wrong type.
    var handler: @Sendable (Request, [String]) throws -> Response?

    /// Returns nil to collect the body, or for a parameter of the wrong type.
    var intake: (@Sendable (Request, Int64?, [String]) throws -> BodyIntake?)?

    func values(of path: [String]) -> [String]? {
      guard path.count == segments.count else { return nil }
      var values: [String] = []
      for (segment, text) in zip(segments, path) {
        switch segment {
        case .literal(let literal): if literal != text { return nil }
        case .parameter: values.append(text)
        }
      }
      return values
    }
  }

  private var entries: [Entry] = []

  package init() {}

  package var routes: [Route] { entries.map(\.route) }

  /// Adds a route.
  ///
  /// - Parameters:
  ///   - method: GET also serves HEAD, unless a HEAD route was added before.
  ///   - pattern: the address, with a `{name}` segment per parameter.
  ///   - parameters: the types in order; a wrong number matches no address.
  package mutating func add<each Value: Sendable>(
    _ method: Method, _ pattern: String, _ parameters: repeat PathParameter<each Value>,
    handler: @escaping @Sendable (Request, repeat each Value) throws -> Response
  ) {
    entries.append(
      Entry(route: Route(method: method, pattern: pattern), segments: Self.segments(pattern)) { request, texts in
        guard let values = Self.values(texts, repeat each parameters) else { return nil }
        return try handler(request, repeat each values)
      })
  }

  /// Adds a route with a streamed body.
  ///
  /// - Parameters:
  ///   - open: receives the request, the body length if known, and the values; returns the consumer or throws the answer.
  package mutating func addStream<each Value: Sendable>(
    _ method: Method, _ pattern: String, _ parameters: repeat PathParameter<each Value>,
    open: @escaping @Sendable (Request, Int64?, repeat each Value) throws -> BodyIntake
  ) {
    var entry = Entry(route: Route(method: method, pattern: pattern), segments: Self.segments(pattern)) {
      request, texts in
      // Without a server, as in tests, the body is one piece.
      guard let values = Self.values(texts, repeat each parameters) else { return nil }
      switch try open(request, Int64(request.body.count), repeat each values) {
      case .refused(let response): return response
      case .stream(let limit, let consumer):
        guard Int64(request.body.count) <= limit else {
          consumer.abandon()
          throw Refusal(.contentTooLarge, "the body is too large")
        }
        do {
          if !request.body.isEmpty { try consumer.take(request.body) }
        } catch {
          consumer.abandon()
          throw error
        }
        return consumer.answer()
      }
    }
    entry.intake = { request, length, texts in
      guard let values = Self.values(texts, repeat each parameters) else { return nil }
      return try open(request, length, repeat each values)
    }
    entries.append(entry)
  }

  private static func segments(_ pattern: String) -> [Segment] {
    pattern.split(separator: "/").map { part in
      part.hasPrefix("{") && part.hasSuffix("}") ? .parameter : .literal(String(part))
    }
  }

  /// Parses the segments; nil for a wrong type or number.
  private static func values<each Value: Sendable>(
    _ texts: [String], _ parameters: repeat PathParameter<each Value>
  ) -> (repeat each Value)? {
    var rest = texts[...]
    func value<T>(_ parameter: PathParameter<T>) throws(Misfit) -> T {
      guard let text = rest.popFirst(), let value = parameter.read(text) else { throw Misfit() }
      return value
    }
    let values: (repeat each Value)
    do throws(Misfit) { values = (repeat try value(each parameters)) } catch { return nil }
    return rest.isEmpty ? values : nil
  }

  private struct Misfit: Error {}

  /// The intake of a streamed body; nil if no route streams it.
  package func intake(of request: Request, length: Int64?) -> BodyIntake? {
    for entry in entries where entry.route.method == request.method {
      guard let intake = entry.intake, let values = entry.values(of: request.target.segments) else { continue }
      do {
        if let found = try intake(request, length, values) { return found }
      } catch {
        return .refused(Self.response(to: error))
      }
    }
    return nil
  }

  package func knows(_ request: Request) -> Bool {
    entries.contains { $0.route.method == request.method && $0.values(of: request.target.segments) != nil }
  }

  /// Answers a request, turning handler errors into responses.
  package func respond(to request: Request) -> Response {
    do { return try answer(to: request) } catch { return Self.response(to: error) }
  }

  private static func response(to error: any Error) -> Response {
    // Details are for the log, never the client.
    (error as? Refusal ?? Refusal(.internalServerError, "the request could not be answered")).response
  }

  /// Answers a request, for servers with their own error pages.
  ///
  /// - Throws: ``Refusal`` 404 or 405, and the handler's errors.
  package func answer(to request: Request) throws -> Response {
    if request.target.isServer {
      guard request.method == .options else { throw Refusal(.badRequest, "the address is none") }
      return Response(.noContent, headers: ["Allow": Method.allCases.map(\.rawValue).joined(separator: ", ")])
    }
    var allowed: Set<Method> = []
    for entry in entries {
      guard let values = entry.values(of: request.target.segments) else { continue }
      allowed.insert(entry.route.method)
      let isAsked = entry.route.method == request.method || entry.route.method == .get && request.method == .head
      if isAsked, let response = try entry.handler(request, values) { return response }
    }
    guard !allowed.isEmpty else { throw Refusal(.notFound, "there is nothing at this address") }
    if allowed.contains(.get) { allowed.insert(.head) }
    if allowed.contains(request.method) { throw Refusal(.notFound, "there is nothing at this address") }
    allowed.insert(.options)
    let list = Method.allCases.filter(allowed.contains).map(\.rawValue).joined(separator: ", ")
    if request.method == .options { return Response(.noContent, headers: ["Allow": list]) }
    throw Refusal(.methodNotAllowed, "the address does not know this method", headers: ["Allow": list])
  }
}

/// The consumer of a body that is never whole in memory.
///
/// Calls are serial, on the connection's thread, and may wait.
package protocol BodyConsumer: AnyObject {
  /// Consumes a piece, at most the connection's buffer.
  ///
  /// An error is the answer; further pieces are dropped.
  func take(_ bytes: [UInt8]) throws

  /// Returns the answer after the last byte.
  func answer() -> Response

  /// Called instead of ``answer()`` if the connection broke, or the client was too slow or sent too much.
  func abandon()
}

/// The handling of a body, decided by the header.
package enum BodyIntake {
  /// Answers and ends the connection without reading the body.
  case refused(Response)

  /// Streams the body, up to a limit in bytes.
  case stream(limit: Int64, any BodyConsumer)
}

package struct PathParameter<Value: Sendable>: Sendable {
  /// Parses a segment; nil if the route does not match.
  let read: @Sendable (String) -> Value?

  package init(_ read: @escaping @Sendable (String) -> Value?) { self.read = read }
}

extension PathParameter where Value == String {
  /// Any text up to 255 bytes.
  package static var text: PathParameter { PathParameter { $0.utf8.count <= 255 ? $0 : nil } }

  /// An identifier of letters, digits, `-`, `_` and `.`.
  package static var identifier: PathParameter {
    PathParameter { text in
      let isLegal = text.utf8.allSatisfy { byte in
        HeaderFields.Field.isTokenByte(byte) && !"!#$%&'*+^`|~".utf8.contains(byte)
      }
      return isLegal && text.utf8.count <= 128 && !text.hasPrefix(".") ? text : nil
    }
  }
}

extension PathParameter where Value == Int64 {
  /// A canonical integer: no plus sign or leading zeros.
  package static var integer: PathParameter {
    PathParameter { text in Int64(text).flatMap { String($0) == text ? $0 : nil } }
  }
}
