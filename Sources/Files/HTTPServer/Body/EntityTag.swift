/// A strong entity tag: the same tag, the same bytes (RFC 9110, section 8.8.3).
package struct EntityTag: Sendable, Hashable {
  /// The opaque part, without quotation marks.
  package let value: String

  /// A tag of letters, digits, `-`, `_`, `.`, `+`, `/` and `=`, such as a digest; nil for anything else.
  package init?(_ value: String) {
    guard !value.isEmpty, value.utf8.count <= 200,
      value.utf8.allSatisfy({ HeaderFields.Field.isTokenByte($0) || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "=") }
      )
    else { return nil }
    self.value = value
  }

  /// The tag as it is sent.
  package var field: String { "\"\(value)\"" }

  /// Whether a list of tags, such as that of `If-None-Match`, has this one; weak ones count where that is allowed.
  func isListed(in field: String, weakCounts: Bool) -> Bool {
    field.split(separator: ",").map(\.trimmingSpaces).contains { item in
      item == "*" || item == self.field || weakCounts && item == "W/" + self.field
    }
  }
}
