/// A request before it is signed.
package struct HTTPRequest: Sendable {
  /// The method.
  package var method: Method

  /// The host, with the port where it is not the usual one.
  package var authority: String

  /// The path from its slash on, encoded.
  package var path: String

  /// The names and values of the query, not encoded.
  package var query: [(name: String, value: String)] = []

  /// The fields, with names in lower case; the host and those of the signature are not among them.
  package var fields: [(name: String, value: String)] = []

  /// The body.
  package var body: ArraySlice<UInt8> = []

  /// A request.
  package init(
    method: Method, authority: String, path: String, query: [(name: String, value: String)] = [],
    fields: [(name: String, value: String)] = [], body: ArraySlice<UInt8> = []
  ) {
    self.method = method
    self.authority = authority
    self.path = path
    self.query = query
    self.fields = fields
    self.body = body
  }

  /// The methods that are used.
  package enum Method: String, Sendable {
    case get = "GET"
    case head = "HEAD"
    case put = "PUT"
    case post = "POST"
    case delete = "DELETE"
  }

  /// The query as it is sent and signed: encoded, and sorted by the bytes of names and values.
  package var encodedQuery: String {
    query
      .map { (PercentEncoding.encode($0.name), PercentEncoding.encode($0.value)) }
      .sorted { Array($0.0.utf8).lexicographicallyPrecedes($1.0.utf8) || $0.0 == $1.0 && $0.1 < $1.1 }
      .map { "\($0.0)=\($0.1)" }
      .joined(separator: "&")
  }
}
