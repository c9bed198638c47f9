/// The routes of a server: which handler answers which method at which address.
///
/// Handlers work on values, so a test calls ``respond(to:)`` without any socket. HEAD is answered by the handler of GET,
/// OPTIONS by the router, another method at a known address with 405 and what is allowed there.
package struct Router: Sendable {
  /// One route as it is documented.
  package struct Route: Sendable, Hashable {
    /// The method.
    package var method: Method

    /// The address, with the names of parameters in braces, such as `/stores/{id}`.
    package var pattern: String
  }

  private enum Segment: Sendable {
    case literal(String)
    case parameter
  }

  private struct Entry: Sendable {
    var route: Route
    var segments: [Segment]

    /// What answers; nil where a parameter is not of its type.
    var handler: @Sendable (Request, [String]) throws -> Response?

    /// Who takes the body as it comes; nil where it is collected, or where a parameter is not of its type.
    var intake: (@Sendable (Request, Int64?, [String]) throws -> BodyIntake?)?

    /// The segments that parameters stand for; nil where the path is another.
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

  /// No routes yet.
  package init() {}

  /// All routes, in the order in which they were added.
  package var routes: [Route] { entries.map(\.route) }

  /// Adds a route.
  ///
  /// - Parameters:
  ///   - method: the method; GET stands for HEAD too, where no route for HEAD was added before.
  ///   - pattern: the address, with one `{name}` as a segment for each parameter.
  ///   - parameters: what the parameters are, in their order. A route whose count differs fits no address.
  ///   - handler: gets the request and the values.
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

  /// Adds a route that takes the body of a request as it comes.
  ///
  /// - Parameters:
  ///   - open: gets the request without its body, the length of that where it is known, and the values; says who takes the body, or
  ///     throws what is answered in place of reading it.
  package mutating func addStream<each Value: Sendable>(
    _ method: Method, _ pattern: String, _ parameters: repeat PathParameter<each Value>,
    open: @escaping @Sendable (Request, Int64?, repeat each Value) throws -> BodyIntake
  ) {
    var entry = Entry(route: Route(method: method, pattern: pattern), segments: Self.segments(pattern)) {
      request, texts in
      // Only where the intake was not asked for before, as a test without a server does: the body is one piece.
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
        return consumer.finish()
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

  /// The values that segments stand for; nil where one is not of its type, or their number is another.
  private static func values<each Value: Sendable>(
    _ texts: [String], _ parameters: repeat PathParameter<each Value>
  ) -> (repeat each Value)? {
    var rest = texts[...]
    func value<T>(_ parameter: PathParameter<T>) throws(Misfit) -> T {
      guard let text = rest.popFirst(), let value = parameter.read(text) else { throw Misfit() }
      return value
    }
    let values: (repeat each Value)
    do throws(Misfit) {
      values = (repeat try value(each parameters))
    } catch {
      return nil
    }
    return rest.isEmpty ? values : nil
  }

  private struct Misfit: Error {}

  /// Who takes the body of a request as it comes; nil where no route wants that.
  ///
  /// - Parameters:
  ///   - request: the request without its body.
  ///   - length: how many bytes the body has; nil where the header does not say.
  package func intake(of request: Request, length: Int64?) -> BodyIntake? {
    for entry in entries where entry.route.method == request.method {
      guard let intake = entry.intake, let values = entry.values(of: request.target.segments) else { continue }
      do {
        if let found = try intake(request, length, values) { return found }
      } catch let refusal as Refusal {
        return .refused(refusal.response)
      } catch {
        return .refused(Refusal(.internalServerError, "the request could not be answered").response)
      }
    }
    return nil
  }

  /// Whether a route is for the address and the method of a request.
  package func knows(_ request: Request) -> Bool {
    entries.contains { $0.route.method == request.method && $0.values(of: request.target.segments) != nil }
  }

  /// The answer to a request; errors of handlers become responses.
  package func respond(to request: Request) -> Response {
    do {
      return try answer(to: request)
    } catch let refusal as Refusal {
      return refusal.response
    } catch {
      // What went wrong is for the log, and never for the client.
      return Refusal(.internalServerError, "the request could not be answered").response
    }
  }

  /// The answer to a request, for servers that show errors in a way of their own.
  ///
  /// - Throws: ``Refusal`` 404 and 405 where no route fits, and what the handler throws.
  package func answer(to request: Request) throws -> Response {
    if request.target.isServer {
      guard request.method == .options else { throw Refusal(.badRequest, "the address is none") }
      return Response(.noContent, headers: ["Allow": Method.allCases.map(\.rawValue).joined(separator: ", ")])
    }
    var allowed: Set<Method> = []
    for entry in entries {
      guard let values = entry.values(of: request.target.segments) else { continue }
      allowed.insert(entry.route.method)
      let isAsked =
        entry.route.method == request.method || entry.route.method == .get && request.method == .head
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

/// What takes the body of one request piece by piece, as it comes in, so that it is never in memory as a whole.
///
/// All calls come one after another, from the connection's own thread, which may wait within them.
package protocol BodyConsumer: AnyObject {
  /// Takes the next piece, of at most as many bytes as the connection's buffer has.
  ///
  /// What it throws ends the taking: what is still to come is dropped, and the error is the answer.
  func take(_ bytes: [UInt8]) throws

  /// The answer, once every byte has come.
  func finish() -> Response

  /// Told in place of ``finish()`` where the rest does not come: the connection broke, its client was too slow, or the body
  /// had more bytes than it may.
  func abandon()
}

/// How a request with a body is taken in; decided by its header, before a byte of the body is read.
package enum BodyIntake {
  /// No byte of the body is read; this is the answer, and the connection ends.
  case refused(Response)

  /// The body goes to a consumer, up to a limit in bytes.
  case stream(limit: Int64, any BodyConsumer)
}

/// One variable segment of a route, with the type of its value.
package struct PathParameter<Value: Sendable>: Sendable {
  /// The value that a segment stands for; nil where it is none, and the route does not fit.
  package let read: @Sendable (String) -> Value?

  /// A parameter of any type.
  package init(_ read: @escaping @Sendable (String) -> Value?) { self.read = read }
}

extension PathParameter where Value == String {
  /// Any text of up to 255 bytes.
  package static var text: PathParameter { PathParameter { $0.utf8.count <= 255 ? $0 : nil } }

  /// Letters, digits, `-`, `_` and `.`, as identifiers have them.
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
  /// A whole number, as it is usually written: no sign but a minus, no zeros before it.
  package static var integer: PathParameter {
    PathParameter { text in Int64(text).flatMap { String($0) == text ? $0 : nil } }
  }
}
