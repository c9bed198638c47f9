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
