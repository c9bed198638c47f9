/// Something about a database that a careful reader would mention: damage, an oddity, or a fact worth knowing.
///
/// It holds numbers only, never a value of a user's record.
public struct Finding: Sendable, Hashable {
  /// How much a finding matters.
  public enum Severity: String, Sendable, Encodable {
    /// Worth knowing, and normal in a healthy store.
    case note

    /// Unusual; nothing is known to be lost by it.
    case warning

    /// Content is missing, contradictory or unreadable.
    case damage
  }

  /// What was found.
  public var kind: Kind

  /// The page it was found on, where it is about a page.
  public var page: UInt32?

  /// The place of the cell in its page's cell pointer array, counted from 0, where it is about a cell.
  public var cell: Int?

  /// The root page of the b-tree that led there.
  public var root: UInt32?

  /// The number that should have been there.
  public var expected: Int64?

  /// The number that was there.
  public var found: Int64?

  /// A finding of the given kind and place.
  public init(
    _ kind: Kind, page: UInt32? = nil, cell: Int? = nil, root: UInt32? = nil, expected: Int64? = nil,
    found: Int64? = nil
  ) {
    self.kind = kind
    self.page = page
    self.cell = cell
    self.root = root
    self.expected = expected
    self.found = found
  }
}

extension Finding: CustomStringConvertible {
  /// The finding on one line, in plain words.
  public var description: String {
    var text = ""
    if let page { text += "page \(page)" }
    if let cell { text += text.isEmpty ? "cell \(cell)" : ", cell \(cell)" }
    if let root, root != page { text += text.isEmpty ? "tree \(root)" : " of tree \(root)" }
    if !text.isEmpty { text += ": " }
    text += kind.words
    switch (expected, found) {
    case (let expected?, let found?): text += " (expected \(expected), found \(found))"
    case (let expected?, nil): text += " (expected \(expected))"
    case (nil, let found?): text += " (\(found))"
    case (nil, nil): break
    }
    return text
  }
}
