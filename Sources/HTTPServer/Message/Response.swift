/// An answer: status, header fields and a body.
package struct Response: Sendable {
  /// What follows the header.
  package enum Body: Sendable {
    case bytes([UInt8])

    /// Bytes that are read where they are wanted, of a known number.
    case ranges(any RangeReadable)

    /// Chunks as they come, of an unknown number; an error breaks the connection, so that the client sees the cut.
    case chunks(ChunkSource)
  }

  package var status: Status
  package var headers: HeaderFields
  package var body: Body

  /// A response from its parts.
  package init(_ status: Status = .ok, headers: HeaderFields = HeaderFields(), body: Body = .bytes([])) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Plain text.
  package static func text(_ text: String, status: Status = .ok) -> Response {
    Response(status, headers: ["Content-Type": "text/plain; charset=utf-8"], body: .bytes(Array(text.utf8)))
  }

  /// A page.
  package static func html(_ page: HTML, status: Status = .ok) -> Response {
    Response(
      status, headers: ["Content-Type": "text/html; charset=utf-8"],
      body: .bytes(Array("<!DOCTYPE html>\n\(page.text)".utf8)))
  }

  /// JSON, as its text.
  package static func json(_ text: String, status: Status = .ok) -> Response {
    Response(status, headers: ["Content-Type": "application/json; charset=utf-8"], body: .bytes(Array(text.utf8)))
  }

  /// Sends the browser elsewhere on this server, with a GET.
  package static func redirect(to target: RequestTarget) -> Response {
    Response(.seeOther, headers: ["Location": target.path + target.query.text])
  }

  /// The response with a file name for the browser to keep it under.
  package func downloaded(as name: String) -> Response {
    var copy = self
    copy.headers.set("Content-Disposition", ContentDisposition.attachment(name))
    return copy
  }

  /// The response with a cookie.
  package func setting(_ cookie: Cookie) -> Response {
    var copy = self
    copy.headers.add("Set-Cookie", cookie.field)
    return copy
  }

  /// The response without its body, as for HEAD in tests; the server itself leaves out bodies.
  package var bytes: [UInt8]? {
    guard case .bytes(let bytes) = body else { return nil }
    return bytes
  }
}

extension Response {
  /// The response as it is on the wire, with the length of its body; only for one whose body is in memory.
  var wholeBytes: [UInt8] {
    let body = bytes ?? []
    var text = "HTTP/1.1 \(status.rawValue) \(status.reason)\r\n"
    for field in headers.fields where field.isLegal { text += "\(field.name): \(field.safeValue)\r\n" }
    return Array((text + "Content-Length: \(body.count)\r\n\r\n").utf8) + body
  }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
  /// Fields from a literal.
  package init(dictionaryLiteral elements: (String, String)...) {
    self.init()
    for (name, value) in elements { add(name, value) }
  }
}

/// The name that a browser keeps a download under (RFC 6266).
enum ContentDisposition {
  /// The field for an attachment: a plain name for all clients, the exact one for those that know RFC 8187.
  static func attachment(_ name: String) -> String {
    // The last part only, no hidden file, nothing that is special anywhere.
    let scalars = name.unicodeScalars.map { scalar -> Character in
      let isSpecial =
        scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || "/\\:*?\"<>|".unicodeScalars.contains(scalar)
        || (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
      return isSpecial ? "_" : Character(scalar)
    }
    var safe = String(scalars.prefix(150))
    if safe.hasPrefix(".") || safe.isEmpty { safe = "_" + safe.dropFirst() }
    let plain = String(safe.unicodeScalars.map { $0.isASCII && $0 != "%" && $0 != "'" ? Character($0) : "_" })
    return "attachment; filename=\"\(plain)\"; filename*=UTF-8''\(PercentEncoding.encode(safe))"
  }
}
