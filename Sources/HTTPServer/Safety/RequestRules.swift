/// The checks of every request before its handler.
///
/// libmicrohttpd 0.9.75 accepts repeated `Host` and `Content-Length` fields, among others.
package struct RequestRules: Sendable {
  /// The accepted `Host` values in lower case, with any non-default port.
  var hosts: Set<String>

  /// In bytes.
  var bodyLimit: Int

  var fieldLimit: Int

  /// Accepts `Origin: null` without `Sec-Fetch-Site`.
  ///
  /// Browsers send that field only to TLS or loopback origins (Fetch Metadata, "Set the Sec-Fetch-Site header").
  /// Elsewhere only the form's token proves that it is of this server's pages.
  var acceptsUnnamedOrigin: Bool

  package init(
    hosts: Set<String>, bodyLimit: Int = 1 << 20, fieldLimit: Int = 100, acceptsUnnamedOrigin: Bool = false
  ) {
    self.hosts = hosts
    self.bodyLimit = bodyLimit
    self.fieldLimit = fieldLimit
    self.acceptsUnnamedOrigin = acceptsUnnamedOrigin
  }

  package static func loopbackHosts(port: UInt16) -> Set<String> {
    Set(["localhost", "127.0.0.1", "[::1]"].flatMap { port == 80 ? [$0, "\($0):80"] : ["\($0):\(port)"] })
  }

  /// Checks the request line and fields.
  ///
  /// - Returns: the method, target and body length; nil for a chunked body.
  package func check(
    method: String, target: String, version: String, headers: HeaderFields
  ) throws(Refusal) -> (method: Method, target: RequestTarget, length: Int?) {
    let checked = try checkHeader(method: method, target: target, version: version, headers: headers)
    try checkLength(checked.length)
    return checked
  }

  func checkLength(_ length: Int?) throws(Refusal) {
    guard length ?? 0 <= bodyLimit else { throw Refusal(.contentTooLarge, "the body is too large") }
  }

  /// Like ``check(method:target:version:headers:)``, without limit on the body.
  func checkHeader(
    method: String, target: String, version: String, headers: HeaderFields
  ) throws(Refusal) -> (method: Method, target: RequestTarget, length: Int?) {
    try Refusal.unless(
      version == "HTTP/1.1" || version == "HTTP/1.0", .versionNotSupported, "only HTTP/1.1 is spoken here")
    try checkFields(headers)
    try checkHost(headers)
    guard let known = Method(rawValue: method) else { throw Refusal(.notImplemented, "the method is not known") }
    let address = try RequestTarget(target)
    guard !address.isServer || known == .options else { throw Refusal(.badRequest, "the address is none") }
    let length = try bodyLength(known, version: version, headers)
    try checkOrigin(known, headers)
    return (known, address, length)
  }

  /// Checks that the parsed header accounts for every byte.
  ///
  /// libmicrohttpd silently ends values at NUL, drops nameless fields and joins folded lines; only the header's size
  /// reveals it. All common clients write name, colon, space and value.
  func checkSize(_ size: Int, method: String, target: String, version: String, headers: HeaderFields) throws(Refusal) {
    let line = method.utf8.count + target.utf8.count + version.utf8.count + 4
    let usual = headers.fields.reduce(line + 2) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
    // Many clients omit the space before an empty value.
    let least = usual - headers.fields.count { $0.value.isEmpty }
    try Refusal.unless(size >= least && size <= usual, .badRequest, "the header is not written in the usual way")
  }

  /// Fields that must not repeat: contradictions, or request smuggling.
  private static let single = [
    "host", "content-length", "transfer-encoding", "content-type", "content-encoding", "authorization", "cookie",
    "origin", "referer", "range", "if-range", "expect", "upgrade", "sec-fetch-site", "x-csrf-token",
  ]

  private func checkFields(_ headers: HeaderFields) throws(Refusal) {
    try Refusal.unless(headers.fields.count <= fieldLimit, .headerFieldsTooLarge, "there are too many header fields")
    guard headers.fields.allSatisfy(\.isLegal) else { throw Refusal(.badRequest, "a header field is malformed") }
    for name in Self.single where headers.count(of: name) > 1 {
      throw Refusal(.badRequest, "a header field that may come once comes several times")
    }
  }

  private func checkHost(_ headers: HeaderFields) throws(Refusal) {
    guard let host = headers["Host"], !host.isEmpty else { throw Refusal(.badRequest, "the host is missing") }
    // A browser lured by DNS rebinding sends the attacker's host name.
    try Refusal.unless(
      hosts.contains(host.lowercased()), .misdirectedRequest, "this server is not the host that was asked for")
  }

  private func bodyLength(_ method: Method, version: String, _ headers: HeaderFields) throws(Refusal) -> Int? {
    if headers["Content-Encoding"].map({ $0.lowercased() != "identity" }) == true {
      throw Refusal(.unsupportedMediaType, "packed bodies are not read")
    }
    if let expected = headers["Expect"], expected.lowercased() != "100-continue" {
      throw Refusal(.expectationFailed, "what is expected is not known")
    }
    if let coding = headers["Transfer-Encoding"] {
      guard headers["Content-Length"] == nil else { throw Refusal(.badRequest, "the length is said in two ways") }
      guard version == "HTTP/1.1" else { throw Refusal(.badRequest, "HTTP/1.0 knows no chunks") }
      guard coding.lowercased() == "chunked" else { throw Refusal(.notImplemented, "the coding is not known") }
      guard method.allowsBody else { throw Refusal(.badRequest, "the method has no body") }
      return nil
    }
    guard let text = headers["Content-Length"] else { return 0 }
    guard !text.isEmpty, text.utf8.count <= 19, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
      throw Refusal(.badRequest, "the length is no number")
    }
    guard let length = Int(text) else { throw Refusal(.contentTooLarge, "the body is too large") }
    guard length == 0 || method.allowsBody else { throw Refusal(.badRequest, "the method has no body") }
    return length
  }

  /// Refuses changes from other sites' pages (Fetch Metadata; RFC 6454).
  private func checkOrigin(_ method: Method, _ headers: HeaderFields) throws(Refusal) {
    guard !method.isSafe else { return }
    if let site = headers["Sec-Fetch-Site"], site != "same-origin", site != "none" {
      throw Refusal(.forbidden, "the request comes from another site")
    }
    if let origin = headers["Origin"] {
      // With `Referrer-Policy: no-referrer` own forms have `Origin: null` (Fetch, "append a request Origin header");
      // `Sec-Fetch-Site` then states the origin.
      let site = headers["Sec-Fetch-Site"]
      if origin == "null", site == "same-origin" || (site == nil && acceptsUnnamedOrigin) { return }
      let parts = origin.lowercased().split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, parts[0] == "http" || parts[0] == "https", hosts.contains(String(parts[1])) else {
        throw Refusal(.forbidden, "the request comes from another site")
      }
    }
  }
}
