/// A request, wholly read and checked by ``RequestRules``.
package struct Request: Sendable {
  /// What is to be done.
  package var method: Method

  /// To what.
  package var target: RequestTarget

  /// The header fields.
  package var headers: HeaderFields

  /// The whole body.
  package var body: [UInt8]

  /// Where it comes from; nil where that is not known, or only by the word of a program that is not trusted with it.
  package var client: ClientAddress?

  /// A request from its parts; for handlers and their tests.
  package init(
    _ method: Method, _ target: RequestTarget, headers: HeaderFields = HeaderFields(), body: [UInt8] = []
  ) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }

  /// A request for an address, as a test writes it.
  package init(
    _ method: Method, _ address: String, headers: HeaderFields = HeaderFields(), body: [UInt8] = []
  ) throws(Refusal) {
    self.init(method, try RequestTarget(address), headers: headers, body: body)
  }

  /// The names and values of the query.
  package var query: Query { target.query }

  /// The cookies by name; the first of each counts.
  package var cookies: [String: String] { Cookie.parse(headers.all("Cookie")) }
}
