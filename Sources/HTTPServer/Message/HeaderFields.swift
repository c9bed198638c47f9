/// Ordered fields, with names compared without case (RFC 9110, section 5).
package struct HeaderFields: Sendable, Hashable {
  package struct Field: Sendable, Hashable {
    package var name: String

    /// The value, trimmed.
    package var value: String
  }

  package private(set) var fields: [Field] = []

  package init() {}

  package subscript(name: String) -> String? {
    let name = name.lowercased()
    return fields.first { $0.name.lowercased() == name }?.value
  }

  package func all(_ name: String) -> [String] {
    let name = name.lowercased()
    return fields.filter { $0.name.lowercased() == name }.map(\.value)
  }

  package func count(of name: String) -> Int { all(name).count }

  package mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

  /// Replaces all fields of that name.
  package mutating func set(_ name: String, _ value: String) {
    let lowercased = name.lowercased()
    fields.removeAll { $0.name.lowercased() == lowercased }
    add(name, value)
  }
}

extension HeaderFields.Field {
  /// A token name, and no control characters in the value (RFC 9110, sections 5.1 and 5.5).
  package var isLegal: Bool {
    !name.isEmpty && name.utf8.allSatisfy(Self.isTokenByte)
      && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
  }

  static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  /// The value with line breaks and non-ASCII as question marks.
  ///
  /// A last defence: types that encode them put record values into headers.
  var safeValue: String {
    String(decoding: value.utf8.map { $0 >= 0x20 && $0 < 0x7F || $0 == 0x09 ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
  }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
  package init(dictionaryLiteral elements: (String, String)...) {
    self.init()
    for (name, value) in elements { add(name, value) }
  }
}

/// The header fields of every response.
enum SecurityHeaders {
  /// Own files only: no inline scripts, no framing, forms to this server only.
  static let policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; font-src 'self'; "
    + "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

  static func added(to response: Response) -> Response {
    var copy = response
    copy.headers.set("Content-Security-Policy", policy)
    copy.headers.set("X-Content-Type-Options", "nosniff")
    copy.headers.set("Referrer-Policy", "no-referrer")
    copy.headers.set("X-Frame-Options", "DENY")
    copy.headers.set("Cross-Origin-Opener-Policy", "same-origin")
    copy.headers.set("Cross-Origin-Resource-Policy", "same-origin")
    copy.headers.set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
    if copy.headers["Cache-Control"] == nil { copy.headers.set("Cache-Control", "no-store") }
    return copy
  }
}
