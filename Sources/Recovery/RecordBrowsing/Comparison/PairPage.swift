/// A page of pairs that differ between two stores.
package struct PairPage: Sendable {
  /// The pairs.
  package var pairs: [ComparedPair]

  /// Where the next page begins; nil on the last.
  package var next: String?

  /// A page of pairs.
  package init(pairs: [ComparedPair], next: String?) {
    self.pairs = pairs
    self.next = next
  }
}
