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
