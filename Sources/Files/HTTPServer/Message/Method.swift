/// The methods of HTTP that the server knows (RFC 9110, section 9); any other is answered with 501.
package enum Method: String, Sendable, Hashable, CaseIterable {
  case get = "GET"
  case head = "HEAD"
  case post = "POST"
  case put = "PUT"
  case patch = "PATCH"
  case delete = "DELETE"
  case options = "OPTIONS"
}

extension Method {
  /// Whether it must not change anything.
  package var isSafe: Bool { self == .get || self == .head || self == .options }

  /// Whether a request with it may have a body.
  package var allowsBody: Bool { self == .post || self == .put || self == .patch }
}
