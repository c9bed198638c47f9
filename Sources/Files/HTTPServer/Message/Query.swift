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
