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

  private init(_ text: String, type: String, _ status: Status) {
    self.init(status, headers: ["Content-Type": "\(type); charset=utf-8"], body: .bytes(Array(text.utf8)))
  }

  package static func text(_ text: String, status: Status = .ok) -> Response {
    Response(text, type: "text/plain", status)
  }

  package static func html(_ page: HTML, status: Status = .ok) -> Response {
    Response("<!DOCTYPE html>\n\(page.text)", type: "text/html", status)
  }

  package static func json(_ text: String, status: Status = .ok) -> Response {
    Response(text, type: "application/json", status)
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

  func setting(_ cookie: Cookie) -> Response {
    var copy = self
    copy.headers.add("Set-Cookie", cookie.field)
    return copy
  }

  /// The body, if in memory.
  package var bytes: [UInt8]? {
    guard case .bytes(let bytes) = body else { return nil }
    return bytes
  }

  /// The response's wire format; only for a body in memory.
  var wholeBytes: [UInt8] {
    let body = bytes ?? []
    var text = "HTTP/1.1 \(status.rawValue) \(status.reason)\r\n"
    for field in headers.fields where field.isLegal { text += "\(field.name): \(field.safeValue)\r\n" }
    return Array((text + "Content-Length: \(body.count)\r\n\r\n").utf8) + body
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

/// An HTTP status code (RFC 9110, section 15).
package struct Status: RawRepresentable, Sendable, Hashable {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }

  package static let ok = Status(rawValue: 200)
  package static let created = Status(rawValue: 201)
  package static let accepted = Status(rawValue: 202)
  package static let noContent = Status(rawValue: 204)
  package static let partialContent = Status(rawValue: 206)
  package static let seeOther = Status(rawValue: 303)
  package static let notModified = Status(rawValue: 304)
  package static let badRequest = Status(rawValue: 400)
  package static let unauthorized = Status(rawValue: 401)
  package static let forbidden = Status(rawValue: 403)
  package static let notFound = Status(rawValue: 404)
  package static let methodNotAllowed = Status(rawValue: 405)
  package static let conflict = Status(rawValue: 409)
  package static let gone = Status(rawValue: 410)
  package static let preconditionFailed = Status(rawValue: 412)
  package static let contentTooLarge = Status(rawValue: 413)
  package static let uriTooLong = Status(rawValue: 414)
  package static let unsupportedMediaType = Status(rawValue: 415)
  static let rangeNotSatisfiable = Status(rawValue: 416)
  static let expectationFailed = Status(rawValue: 417)
  static let misdirectedRequest = Status(rawValue: 421)
  package static let unprocessableContent = Status(rawValue: 422)
  package static let locked = Status(rawValue: 423)
  package static let tooManyRequests = Status(rawValue: 429)
  static let headerFieldsTooLarge = Status(rawValue: 431)
  package static let checksumMismatch = Status(rawValue: 460)
  package static let internalServerError = Status(rawValue: 500)
  static let notImplemented = Status(rawValue: 501)
  package static let serviceUnavailable = Status(rawValue: 503)
  static let versionNotSupported = Status(rawValue: 505)
  package static let insufficientStorage = Status(rawValue: 507)

  private static let reasons = [
    200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content", 303: "See Other",
    304: "Not Modified", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 409: "Conflict", 410: "Gone", 412: "Precondition Failed", 413: "Content Too Large",
    414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
    421: "Misdirected Request", 422: "Unprocessable Content", 423: "Locked", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 460: "Checksum Mismatch", 500: "Internal Server Error",
    501: "Not Implemented", 503: "Service Unavailable", 505: "HTTP Version Not Supported", 507: "Insufficient Storage",
  ]

  package var reason: String { Self.reasons[rawValue] ?? "Status \(rawValue)" }
}
