/// The place of an item in a list: a page begins behind it, wherever new items have come since.
///
/// Lists are paged by such keys (keyset pagination) and never by an offset, so that the last page takes no longer than the first.
package struct InboxKey: Sendable, Hashable {
  /// The date by which the list is sorted, in RFC 3339.
  package var date: String

  /// What tells items of one date apart.
  package var id: String

  private static let maximumLength = 200

  /// A key of a date and an identifier.
  package init(date: String, id: String) {
    self.date = date
    self.id = id
  }

  /// Reads a page token; nil where it is none.
  package init?(_ text: String) {
    let parts = text.split(separator: "_", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, text.utf8.count <= Self.maximumLength, !parts[0].isEmpty, !parts[1].isEmpty,
      text.utf8.allSatisfy({ $0 > 32 && $0 < 127 })
    else { return nil }
    self.init(date: String(parts[0]), id: String(parts[1]))
  }

  /// The key as a page token, for links.
  package var text: String { "\(date)_\(id)" }
}

/// Which bundles a list has; all where nothing is asked for.
package struct InboxFilter: Sendable, Hashable {
  /// Only those that have this text in them, whatever the case of its letters; all if empty.
  package var words: String

  /// Only those with this damage.
  package var group: String?

  /// Only those that are so far.
  package var state: InboxBundle.State?

  /// Only those of this sender.
  package var sender: String?

  /// A filter.
  package init(
    words: String = "", group: String? = nil, state: InboxBundle.State? = nil, sender: String? = nil
  ) {
    self.words = words
    self.group = group
    self.state = state
    self.sender = sender
  }

  /// Whether an index of groups of three letters can find the words: they have three letters or digits in a row.
  package var hasThreeLetters: Bool {
    var run = 0
    for scalar in words.unicodeScalars {
      run = scalar.properties.isAlphabetic || scalar.properties.numericType != nil ? run + 1 : 0
      if run == 3 { return true }
    }
    return false
  }
}

/// A page of a list, and where the next one begins.
package struct InboxList<Item: Sendable>: Sendable {
  /// The items.
  package var items: [Item]

  /// The key behind which the next page begins; nil where this is the last.
  ///
  /// A page may have few items, or none, and not be the last: words that no index finds are looked for in a bounded number of
  /// bundles at a time.
  package var next: InboxKey?

  /// A page.
  package init(items: [Item], next: InboxKey?) {
    self.items = items
    self.next = next
  }

  /// A page of items of which one more was asked for than it has.
  package init(_ items: [Item], limit: Int, key: (Item) -> InboxKey) {
    let page = Array(items.prefix(max(0, limit)))
    self.init(items: page, next: items.count > page.count ? page.last.map(key) : nil)
  }
}
