import Platform

package struct Response: Sendable {
  package enum Body: Sendable {
    case bytes([UInt8])

    /// Bytes read on demand.
    case ranges(any RangeReadable)

    /// Chunks of unknown total length; an error breaks the connection.
    case chunks(ChunkSource)
  }

  package var status: Status
  package var headers: HeaderFields
  package var body: Body

  package init(_ status: Status = .ok, headers: HeaderFields = HeaderFields(), body: Body = .bytes([])) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  package static func text(_ text: String, status: Status = .ok) -> Response {
    Response(status, headers: ["Content-Type": "text/plain; charset=utf-8"], body: .bytes(Array(text.utf8)))
  }

  package static func html(_ page: HTML, status: Status = .ok) -> Response {
    Response(
      status, headers: ["Content-Type": "text/html; charset=utf-8"],
      body: .bytes(Array("<!DOCTYPE html>\n\(page.text)".utf8)))
  }

  package static func json(_ text: String, status: Status = .ok) -> Response {
    Response(status, headers: ["Content-Type": "application/json; charset=utf-8"], body: .bytes(Array(text.utf8)))
  }

  /// Redirects the browser within this server, as GET.
  package static func redirect(to target: RequestTarget) -> Response {
    Response(.seeOther, headers: ["Location": target.path + target.query.text])
  }

  package func downloaded(as name: String) -> Response {
    var copy = self
    copy.headers.set("Content-Disposition", ContentDisposition.attachment(name))
    return copy
  }

  package func setting(_ cookie: Cookie) -> Response {
    var copy = self
    copy.headers.add("Set-Cookie", cookie.field)
    return copy
  }

  /// The body, if in memory.
  package var bytes: [UInt8]? {
    guard case .bytes(let bytes) = body else { return nil }
    return bytes
  }
}

extension Response {
  /// The response's wire format; only for a body in memory.
  var wholeBytes: [UInt8] {
    let body = bytes ?? []
    var text = "HTTP/1.1 \(status.rawValue) \(status.reason)\r\n"
    for field in headers.fields where field.isLegal { text += "\(field.name): \(field.safeValue)\r\n" }
    return Array((text + "Content-Length: \(body.count)\r\n\r\n").utf8) + body
  }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
  package init(dictionaryLiteral elements: (String, String)...) {
    self.init()
    for (name, value) in elements { add(name, value) }
  }
}

/// A download's file name (RFC 6266).
enum ContentDisposition {
  /// The field with a plain name for all clients and an exact one (RFC 8187).
  static func attachment(_ name: String) -> String {
    // The last component, not hidden, no special characters.
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
