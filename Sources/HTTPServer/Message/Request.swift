/// A complete request that passed ``RequestRules``.
package struct Request: Sendable {
  package var method: Method

  package var target: RequestTarget

  package var headers: HeaderFields

  package var body: [UInt8]

  /// The client; nil if unknown or claimed by an untrusted peer.
  package var client: ClientAddress?

  package init(_ method: Method, _ target: RequestTarget, headers: HeaderFields = HeaderFields(), body: [UInt8] = []) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }

  package init(
    _ method: Method, _ address: String, headers: HeaderFields = HeaderFields(), body: [UInt8] = []
  ) throws(Refusal) {
    self.init(method, try RequestTarget(address), headers: headers, body: body)
  }

  package var query: Query { target.query }

  /// The cookies by name; the first of each counts.
  package var cookies: [String: String] { Cookie.parse(headers.all("Cookie")) }
}

/// The supported methods (RFC 9110, section 9); others get 501.
package enum Method: String, Sendable, Hashable, CaseIterable {
  case get = "GET"
  case head = "HEAD"
  case post = "POST"
  case put = "PUT"
  case patch = "PATCH"
  case delete = "DELETE"
  case options = "OPTIONS"

  var isSafe: Bool { self == .get || self == .head || self == .options }

  var allowsBody: Bool { self == .post || self == .put || self == .patch }
}

package struct ClientAddress: Sendable, Hashable, CustomStringConvertible {
  /// The address; an IPv4-mapped one as IPv4.
  package let description: String

  package init?(_ text: String) {
    let mapped = "::ffff:"
    let bare = text.lowercased().hasPrefix(mapped) && text.contains(".") ? String(text.dropFirst(mapped.count)) : text
    guard bare.utf8.count <= 45, let address = SocketAddress(bare, port: 0) else { return nil }
    description = address.text
  }

  package var isLoopback: Bool { description == "::1" || description.hasPrefix("127.") }
}

struct TrustedProxies: Sendable {
  /// The most addresses read from `X-Forwarded-For`.
  private static let longestWay = 32

  let addresses: Set<ClientAddress>

  func contains(_ address: ClientAddress?) -> Bool { address.map(addresses.contains) ?? false }

  /// The client of a request from `peer`.
  ///
  /// Proxies append addresses after the client's own claims, so the last one that is not a proxy's is the client. Nil
  /// if unknown or if an untrusted peer claims to forward, so that its address grants no rights.
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

  /// The fields with the `Host` that the client sent to the proxy.
  func fields(_ headers: HeaderFields, from peer: ClientAddress?) -> HeaderFields {
    guard contains(peer), headers.count(of: "X-Forwarded-Host") == 1, let host = headers["X-Forwarded-Host"] else {
      return headers
    }
    var fields = headers
    fields.set("Host", host)
    return fields
  }
}

/// A cookie hidden from scripts and other sites (RFC 6265bis).
struct Cookie: Sendable, Hashable {
  /// A token, as the value.
  var name: String
  var value: String

  var isSecure = false

  /// The lifetime in seconds; nil for the browser session, 0 to remove it.
  var maximumAge: Int?

  /// The value of `Set-Cookie`.
  var field: String {
    var text = "\(name)=\(value); Path=/; HttpOnly; SameSite=Strict"
    if isSecure { text += "; Secure" }
    if let maximumAge { text += "; Max-Age=\(maximumAge)" }
    return text
  }

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
  var trimmingSpaces: String {
    var rest = self[...]
    while let first = rest.first, first == " " || first == "\t" { rest.removeFirst() }
    while let last = rest.last, last == " " || last == "\t" { rest.removeLast() }
    return String(rest)
  }
}
