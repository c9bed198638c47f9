/// The routes of a server: which handler answers which method at which address.
///
/// Handlers work on values, so a test calls ``respond(to:)`` without any socket. HEAD is answered by the handler of GET,
/// OPTIONS by the router, another method at a known address with 405 and what is allowed there.
package struct Router: Sendable {
  /// What answers a request.
  package typealias Handler = @Sendable (Request) throws -> Response

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
  ///   - method: the method; GET stands for HEAD too.
  ///   - pattern: the address, with one `{name}` as a segment for each parameter.
  ///   - parameters: what the parameters are, in their order. A route whose count differs fits no address.
  ///   - handler: gets the request and the values.
  package mutating func add<each Value: Sendable>(
    _ method: Method, _ pattern: String, _ parameters: repeat PathParameter<each Value>,
    handler: @escaping @Sendable (Request, repeat each Value) throws -> Response
  ) {
    let segments = pattern.split(separator: "/").map { part -> Segment in
      part.hasPrefix("{") && part.hasSuffix("}") ? .parameter : .literal(String(part))
    }
    entries.append(
      Entry(route: Route(method: method, pattern: pattern), segments: segments) { request, texts in
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
        guard rest.isEmpty else { return nil }
        return try handler(request, repeat each values)
      })
  }

  private struct Misfit: Error {}

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
