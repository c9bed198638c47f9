/// What every request must keep to before any handler sees it.
///
/// libmicrohttpd 0.9.75 lets several `Host` and `Content-Length` fields pass, and much else; all of it is looked at here.
package struct RequestRules: Sendable {
  /// The values that `Host` may have, in lower case, with the port where it is not the usual one.
  package var hosts: Set<String>

  /// The most bytes that a body may have.
  package var bodyLimit: Int

  /// The most header fields.
  package var fieldLimit: Int

  /// Whether `Origin: null` is let through where no `Sec-Fetch-Site` comes with it.
  ///
  /// Browsers send that field only to places that they hold for trustworthy (Fetch Metadata, "Set the Sec-Fetch-Site header"): with TLS,
  /// or at the loopback. Elsewhere nothing but the token of a form tells that it is of this server's own pages.
  package var acceptsUnnamedOrigin: Bool

  /// Rules.
  package init(
    hosts: Set<String>, bodyLimit: Int = 1 << 20, fieldLimit: Int = 100, acceptsUnnamedOrigin: Bool = false
  ) {
    self.hosts = hosts
    self.bodyLimit = bodyLimit
    self.fieldLimit = fieldLimit
    self.acceptsUnnamedOrigin = acceptsUnnamedOrigin
  }

  /// The hosts by which this machine calls itself, at a port.
  package static func loopbackHosts(port: UInt16) -> Set<String> {
    Set(["localhost", "127.0.0.1", "[::1]"].flatMap { port == 80 ? [$0, "\($0):80"] : ["\($0):\(port)"] })
  }

  /// Checks what a request says before its body: its line and its header fields.
  ///
  /// - Returns: the method, the target, and how many bytes the body has; nil for a body in chunks.
  package func check(
    method: String, target: String, version: String, headers: HeaderFields
  ) throws(Refusal) -> (method: Method, target: RequestTarget, length: Int?) {
    let checked = try checkHeader(method: method, target: target, version: version, headers: headers)
    try checkLength(checked.length)
    return checked
  }

  /// Checks the length of a body that is to be collected in memory.
  func checkLength(_ length: Int?) throws(Refusal) {
    guard length ?? 0 <= bodyLimit else { throw Refusal(.contentTooLarge, "the body is too large") }
  }

  /// The same as ``check(method:target:version:headers:)`` for a body of any length.
  func checkHeader(
    method: String, target: String, version: String, headers: HeaderFields
  ) throws(Refusal) -> (method: Method, target: RequestTarget, length: Int?) {
    guard version == "HTTP/1.1" || version == "HTTP/1.0" else {
      throw Refusal(.versionNotSupported, "only HTTP/1.1 is spoken here")
    }
    try checkFields(headers)
    try checkHost(headers)
    guard let known = Method(rawValue: method) else { throw Refusal(.notImplemented, "the method is not known") }
    let address = try RequestTarget(target)
    guard !address.isServer || known == .options else { throw Refusal(.badRequest, "the address is none") }
    let length = try bodyLength(known, version: version, headers)
    try checkOrigin(known, headers)
    return (known, address, length)
  }

  /// Checks that everything that was sent is in what was read, to the byte.
  ///
  /// libmicrohttpd ends a value at a NUL, drops fields without a name and joins folded lines without a word; only the size
  /// of the header tells. Every client in use writes a field as its name, a colon, one space and its value.
  func checkSize(
    _ size: Int, method: String, target: String, version: String, headers: HeaderFields
  ) throws(Refusal) {
    let line = method.utf8.count + target.utf8.count + version.utf8.count + 4
    let usual = headers.fields.reduce(line + 2) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
    // The space before an empty value is often left out.
    let least = usual - headers.fields.count { $0.value.isEmpty }
    guard size >= least, size <= usual else {
      throw Refusal(.badRequest, "the header is not written in the usual way")
    }
  }

  /// Fields of which two would contradict each other, or let two readers see two requests.
  private static let single = [
    "host", "content-length", "transfer-encoding", "content-type", "content-encoding", "authorization", "cookie",
    "origin", "referer", "range", "if-range", "expect", "upgrade", "sec-fetch-site", "x-csrf-token",
  ]

  private func checkFields(_ headers: HeaderFields) throws(Refusal) {
    guard headers.fields.count <= fieldLimit else {
      throw Refusal(.headerFieldsTooLarge, "there are too many header fields")
    }
    guard headers.fields.allSatisfy(\.isLegal) else { throw Refusal(.badRequest, "a header field is malformed") }
    for name in Self.single where headers.count(of: name) > 1 {
      throw Refusal(.badRequest, "a header field that may come once comes several times")
    }
  }

  private func checkHost(_ headers: HeaderFields) throws(Refusal) {
    guard let host = headers["Host"], !host.isEmpty else { throw Refusal(.badRequest, "the host is missing") }
    // A browser that was led here by another name sends that name (DNS rebinding).
    guard hosts.contains(host.lowercased()) else {
      throw Refusal(.misdirectedRequest, "this server is not the host that was asked for")
    }
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

  /// What another site's page sends is refused where it could change something (Fetch Metadata; RFC 6454).
  private func checkOrigin(_ method: Method, _ headers: HeaderFields) throws(Refusal) {
    guard !method.isSafe else { return }
    if let site = headers["Sec-Fetch-Site"], site != "same-origin", site != "none" {
      throw Refusal(.forbidden, "the request comes from another site")
    }
    if let origin = headers["Origin"] {
      // A page that does not tell where it is (`Referrer-Policy: no-referrer`) sends its own forms with `Origin: null`
      // (Fetch, "append a request Origin header"); the browser's word for where they come from is then the other field.
      let site = headers["Sec-Fetch-Site"]
      if origin == "null", site == "same-origin" || (site == nil && acceptsUnnamedOrigin) { return }
      let parts = origin.lowercased().split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, parts[0] == "http" || parts[0] == "https", hosts.contains(String(parts[1])) else {
        throw Refusal(.forbidden, "the request comes from another site")
      }
    }
  }
}
