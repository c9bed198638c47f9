/// A position in a list, after which a page begins.
///
/// Keyset pagination instead of offsets: the last page takes no longer than the first, and new items do not shift it.
package struct InboxKey: Sendable, Hashable {
  /// The sort date, in RFC 3339.
  package var date: String

  /// Orders items of equal date.
  package var id: String

  private static let maximumLength = 200

  package init(date: String, id: String) {
    self.date = date
    self.id = id
  }

  package init?(_ text: String) {
    let parts = text.split(separator: "_", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, text.utf8.count <= Self.maximumLength, !parts[0].isEmpty, !parts[1].isEmpty,
      text.utf8.allSatisfy({ $0 > 32 && $0 < 127 })
    else { return nil }
    self.init(date: String(parts[0]), id: String(parts[1]))
  }

  package var text: String { "\(date)_\(id)" }
}

package struct InboxFilter: Sendable, Hashable {
  /// The searched text, ignoring case; empty for all.
  package var words: String

  package var group: String?

  package var state: InboxBundle.State?

  package var sender: String?

  package init(
    words: String = "", group: String? = nil, state: InboxBundle.State? = nil, sender: String? = nil
  ) {
    self.words = words
    self.group = group
    self.state = state
    self.sender = sender
  }

  /// Whether a trigram index can serve: it needs three letters or digits in a row.
  var hasThreeLetters: Bool {
    var run = 0
    for scalar in words.unicodeScalars {
      run = scalar.properties.isAlphabetic || scalar.properties.numericType != nil ? run + 1 : 0
      if run == 3 { return true }
    }
    return false
  }
}

package struct InboxList<Item: Sendable>: Sendable {
  package var items: [Item]

  /// The next page's key; nil on the last.
  ///
  /// A page may be short or empty without being the last: searches without index cover a bounded number of bundles at a
  /// time.
  package var next: InboxKey?

  package init(items: [Item], next: InboxKey?) {
    self.items = items
    self.next = next
  }

  /// Creates a page from up to `limit` + 1 items.
  package init(_ items: [Item], limit: Int, key: (Item) -> InboxKey) {
    let page = Array(items.prefix(max(0, limit)))
    self.init(items: page, next: items.count > page.count ? page.last.map(key) : nil)
  }
}
