import Platform

/// A decoded path and query.
///
/// Paths name routes, never files; dot segments are refused all the same.
package struct RequestTarget: Sendable, Hashable {
  static let maximumLength = 8192

  /// The decoded segments; empty for the root, and a trailing slash is ignored.
  package var segments: [String]

  package var query: Query

  /// Whether it is the `*` of `OPTIONS *`.
  package var isServer = false

  package init(segments: [String], query: Query = Query()) {
    self.segments = segments
    self.query = query
  }

  /// Parses the origin form (RFC 9112, section 3.2.1).
  ///
  /// - Throws: ``Refusal`` for bad encodings; empty or dot segments; slashes, backslashes and control characters in
  ///   segments; and targets over ``maximumLength``.
  package init(_ text: String) throws(Refusal) {
    guard text.utf8.count <= Self.maximumLength else { throw Refusal(.uriTooLong, "the address is too long") }
    if text == "*" {
      self.init(segments: [])
      isServer = true
      return
    }
    try Refusal.unless(text.utf8.first == UInt8(ascii: "/"), .badRequest, "the address does not begin with a slash")
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"\"#<>\\^`{|}".utf8.contains($0) }) else {
      throw Refusal(.badRequest, "the address has characters that must be encoded")
    }
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var segments: [String] = []
    var pieces = parts[0].dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    if pieces.last?.isEmpty == true { pieces.removeLast() }
    for piece in pieces { segments.append(try Self.segment(piece)) }
    self.init(segments: segments, query: parts.count > 1 ? try Query(parts[1]) : Query())
  }

  private static func segment(_ text: Substring) throws(Refusal) -> String {
    let segment = try PercentEncoding.decode(text).orRefuse(.badRequest, "the address is not well encoded")
    try Refusal.unless(
      !segment.isEmpty && segment != "." && segment != "..", .badRequest, "the address has an empty or a dot segment")
    guard segment.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F && $0 != "/" && $0 != "\\" }) else {
      throw Refusal(.badRequest, "a segment of the address has characters that none may have")
    }
    return segment
  }

  package var path: String { "/" + segments.map { PercentEncoding.encode($0) }.joined(separator: "/") }
}

extension RequestTarget: Encodable {
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(path + query.text)
  }
}

/// A refusal, which never repeats request data.
package struct Refusal: Error, Sendable, Hashable {
  package var status: Status

  /// The reason, as a half-sentence.
  package var words: String

  /// Further fields, such as `Allow`.
  package var headers = HeaderFields()

  package init(_ status: Status, _ words: String, headers: HeaderFields = HeaderFields()) {
    self.status = status
    self.words = words
    self.headers = headers
  }

  var response: Response {
    var response = Response.text("\(status.rawValue) \(status.reason): \(words).\n", status: status)
    for field in headers.fields { response.headers.add(field.name, field.value) }
    return response
  }

  /// Refuses what does not meet a condition.
  package static func unless(_ isMet: Bool, _ status: Status, _ words: @autoclosure () -> String) throws(Refusal) {
    guard isMet else { throw Refusal(status, words()) }
  }
}

extension Optional {
  /// The value; its absence is a refusal.
  package func orRefuse(_ status: Status, _ words: @autoclosure () -> String) throws(Refusal) -> Wrapped {
    guard let self else { throw Refusal(status, words()) }
    return self
  }
}

/// Ordered pairs of a query or form (WHATWG URL, `application/x-www-form-urlencoded`).
package struct Query: Sendable, Hashable {
  static let maximumCount = 200

  package struct Item: Sendable, Hashable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  package var items: [Item]

  package init(_ items: [Item] = []) { self.items = items }

  /// Parses a query without its question mark.
  ///
  /// - Throws: ``Refusal`` for bad encoding, control characters or too many pairs.
  init(_ text: Substring) throws(Refusal) {
    items = []
    for piece in text.split(separator: "&", omittingEmptySubsequences: true) {
      guard items.count < Self.maximumCount else { throw Refusal(.badRequest, "there are too many parameters") }
      let parts = piece.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = PercentEncoding.decode(parts[0], plusIsSpace: true),
        let value = PercentEncoding.decode(parts.count > 1 ? parts[1] : "", plusIsSpace: true)
      else { throw Refusal(.badRequest, "a parameter is not well encoded") }
      guard !name.isEmpty, !(name + value).unicodeScalars.contains("\u{0}") else {
        throw Refusal(.badRequest, "a parameter has no name, or a NUL in it")
      }
      items.append(Item(name, value))
    }
  }

  package subscript(name: String) -> String? { items.first { $0.name == name }?.value }

  package func all(_ name: String) -> [String] { items.filter { $0.name == name }.map(\.value) }

  /// The encoded query with its question mark, or empty.
  package var text: String {
    guard !items.isEmpty else { return "" }
    return "?"
      + items.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
  }
}
