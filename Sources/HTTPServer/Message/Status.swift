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
}

extension Status {
  package var reason: String {
    switch rawValue {
    case 200: "OK"
    case 201: "Created"
    case 202: "Accepted"
    case 204: "No Content"
    case 206: "Partial Content"
    case 303: "See Other"
    case 304: "Not Modified"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 409: "Conflict"
    case 410: "Gone"
    case 412: "Precondition Failed"
    case 413: "Content Too Large"
    case 414: "URI Too Long"
    case 415: "Unsupported Media Type"
    case 416: "Range Not Satisfiable"
    case 417: "Expectation Failed"
    case 421: "Misdirected Request"
    case 422: "Unprocessable Content"
    case 423: "Locked"
    case 429: "Too Many Requests"
    case 431: "Request Header Fields Too Large"
    case 460: "Checksum Mismatch"
    case 500: "Internal Server Error"
    case 501: "Not Implemented"
    case 503: "Service Unavailable"
    case 505: "HTTP Version Not Supported"
    case 507: "Insufficient Storage"
    default: "Status \(rawValue)"
    }
  }
}
