/// What a request is for: the segments of its path, decoded, and its query.
///
/// A path is a name for routes and never one of a file. What could be mistaken for a way out is refused all the same.
package struct RequestTarget: Sendable, Hashable {
  /// The longest target that is read, in bytes.
  package static let maximumLength = 8192

  /// The segments between slashes, none for the root; a slash at the end does not count.
  package var segments: [String]

  /// The names and values behind the question mark.
  package var query: Query

  /// Whether it is the `*` of `OPTIONS *`.
  package var isServer = false

  /// A target from its parts.
  package init(segments: [String], query: Query = Query()) {
    self.segments = segments
    self.query = query
  }

  /// Reads the target of a request line, in origin form (RFC 9112, section 3.2.1).
  ///
  /// - Throws: ``Refusal`` for any other form, bytes that must be encoded, encodings that are none, dot segments, slashes,
  ///   backslashes and control characters in segments, empty segments, and more than ``maximumLength``.
  package init(_ text: String) throws(Refusal) {
    guard text.utf8.count <= Self.maximumLength else { throw Refusal(.uriTooLong, "the address is too long") }
    if text == "*" {
      self.init(segments: [])
      isServer = true
      return
    }
    guard text.utf8.first == UInt8(ascii: "/") else {
      throw Refusal(.badRequest, "the address does not begin with a slash")
    }
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
    guard let segment = PercentEncoding.decode(text) else {
      throw Refusal(.badRequest, "the address is not well encoded")
    }
    guard !segment.isEmpty, segment != ".", segment != ".." else {
      throw Refusal(.badRequest, "the address has an empty or a dot segment")
    }
    guard segment.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F && $0 != "/" && $0 != "\\" }) else {
      throw Refusal(.badRequest, "a segment of the address has characters that none may have")
    }
    return segment
  }

  /// The path as it is written in a link.
  package var path: String { "/" + segments.map { PercentEncoding.encode($0) }.joined(separator: "/") }
}

extension RequestTarget: Encodable {
  /// Writes the address as text.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(path + query.text)
  }
}

/// A request that is not answered as it wishes, with the status and words for the client.
///
/// The words never repeat what the request said.
package struct Refusal: Error, Sendable, Hashable {
  /// The status.
  package var status: Status

  /// Why, in a half-sentence.
  package var words: String

  /// Header fields that go with the status, such as `Allow`.
  package var headers = HeaderFields()

  /// A refusal.
  package init(_ status: Status, _ words: String, headers: HeaderFields = HeaderFields()) {
    self.status = status
    self.words = words
    self.headers = headers
  }

  /// The response that says so.
  package var response: Response {
    var response = Response.text("\(status.rawValue) \(status.reason): \(words).\n", status: status)
    for field in headers.fields { response.headers.add(field.name, field.value) }
    return response
  }
}

/// Names and values of a query or of a form, in their order (WHATWG URL, `application/x-www-form-urlencoded`).
package struct Query: Sendable, Hashable {
  /// The most pairs that are read.
  package static let maximumCount = 200

  /// One name with its value.
  package struct Item: Sendable, Hashable {
    package var name: String
    package var value: String

    /// A name with its value.
    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// All pairs.
  package var items: [Item]

  /// A query of pairs.
  package init(_ items: [Item] = []) { self.items = items }

  /// Reads a query from behind its question mark.
  ///
  /// - Throws: ``Refusal`` where it is not well encoded, has control characters or too many pairs.
  package init(_ text: Substring) throws(Refusal) {
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

  /// The value of the first pair of a name.
  package subscript(name: String) -> String? { items.first { $0.name == name }?.value }

  /// The values of all pairs of a name.
  package func all(_ name: String) -> [String] { items.filter { $0.name == name }.map(\.value) }

  /// The query as it is written in a link, with its question mark; empty for none.
  package var text: String {
    guard !items.isEmpty else { return "" }
    return "?"
      + items.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
  }
}
