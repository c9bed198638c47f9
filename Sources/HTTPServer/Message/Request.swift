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

/// The numeric address that a request comes from.
package struct ClientAddress: Sendable, Hashable, CustomStringConvertible {
  /// The address as the system writes it; of IPv4 also where it came as one of IPv6.
  package let description: String

  /// Reads an address; nil where it is not a numeric one of IPv4 or IPv6.
  package init?(_ text: String) {
    let mapped = "::ffff:"
    let bare = text.lowercased().hasPrefix(mapped) && text.contains(".") ? String(text.dropFirst(mapped.count)) : text
    guard bare.utf8.count <= 45, let address = SocketAddress(bare, port: 0) else { return nil }
    description = address.text
  }

  /// Whether it is this machine's own.
  package var isLoopback: Bool { description == "::1" || description.hasPrefix("127.") }
}

/// The proxies in front of a server, whose word counts on where a request comes from and which host it asked for.
struct TrustedProxies: Sendable {
  /// The most addresses of one request that are looked at.
  private static let longestWay = 32

  let addresses: Set<ClientAddress>

  /// Whether an address is that of a proxy.
  func contains(_ address: ClientAddress?) -> Bool { address.map(addresses.contains) ?? false }

  /// The client of a request that came from an address.
  ///
  /// Each proxy on the way appends where it got the request from, and what stands before that is what a client wrote. So the last
  /// address that is no proxy's is the client. Nil where it is not known, which is also where an address that is no proxy's says that it
  /// passes a request on: nothing may be allowed to it for its own address.
  func client(at peer: ClientAddress?, _ headers: HeaderFields) -> ClientAddress? {
    let isPassedOn = ["X-Forwarded-For", "X-Forwarded-Host", "Forwarded"].contains { headers[$0] != nil }
    guard isPassedOn else { return contains(peer) ? nil : peer }
    guard contains(peer) else { return nil }
    let way = headers.all("X-Forwarded-For").flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
    for text in way.suffix(Self.longestWay).reversed() {
      guard let address = ClientAddress(text.filter { $0 != " " && $0 != "\t" }) else { return nil }
      if !addresses.contains(address) { return address }
    }
    return nil
  }

  /// The fields of a request as the client sent them: the host that it asked a proxy for stands in place of the one that the proxy
  /// asked for.
  func fields(_ headers: HeaderFields, from peer: ClientAddress?) -> HeaderFields {
    guard contains(peer), headers.count(of: "X-Forwarded-Host") == 1, let host = headers["X-Forwarded-Host"] else {
      return headers
    }
    var fields = headers
    fields.set("Host", host)
    return fields
  }
}

/// A cookie of this server: never readable by scripts, never sent by other sites (RFC 6265bis).
package struct Cookie: Sendable, Hashable {
  package var name: String
  package var value: String

  /// Whether it is only sent over TLS.
  package var isSecure: Bool

  /// For how many seconds it is kept; nil until the browser ends, 0 to remove it.
  package var maximumAge: Int?

  /// A cookie; name and value must be tokens.
  package init(_ name: String, _ value: String, isSecure: Bool = false, maximumAge: Int? = nil) {
    self.name = name
    self.value = value
    self.isSecure = isSecure
    self.maximumAge = maximumAge
  }

  /// The value of `Set-Cookie`.
  package var field: String {
    var text = "\(name)=\(value); Path=/; HttpOnly; SameSite=Strict"
    if isSecure { text += "; Secure" }
    if let maximumAge { text += "; Max-Age=\(maximumAge)" }
    return text
  }

  /// The cookies of a request.
  static func parse(_ values: [String]) -> [String: String] {
    var cookies: [String: String] = [:]
    for pair in values.flatMap({ $0.split(separator: ";") }) {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { continue }
      let name = parts[0].trimmingSpaces
      guard !name.isEmpty, cookies[name] == nil else { continue }
      cookies[name] = parts[1].trimmingSpaces
    }
    return cookies
  }
}

extension StringProtocol {
  /// The text without spaces and tabs around it.
  var trimmingSpaces: String {
    var rest = self[...]
    while let first = rest.first, first == " " || first == "\t" { rest.removeFirst() }
    while let last = rest.last, last == " " || last == "\t" { rest.removeLast() }
    return String(rest)
  }
}
