/// What a search over all collections of a store found.
package struct StoreSearch: Sendable {
  /// The finds in one collection.
  package struct Finds: Sendable {
    /// The collection.
    package var collection: String

    /// The first finds.
    package var records: [Find]

    /// Whether there are more than are listed.
    package var hasMore: Bool

    /// Whether the search ran out of time in this collection.
    package var isCut: Bool
  }

  /// A record that contains what was looked for.
  package struct Find: Sendable, Hashable {
    /// The record.
    package var key: RecordKey

    /// The entity it is of.
    package var entity: String

    /// The property that contains it.
    package var column: String

    /// The text around it, cut.
    package var excerpt: String
  }

  /// The collections in which something was found, or that ran out of time.
  package var finds: [Finds]
}
