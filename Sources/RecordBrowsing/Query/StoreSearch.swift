/// What a search over all collections of a store found.
public struct StoreSearch: Sendable {
  /// The finds in one collection.
  public struct Finds: Sendable {
    /// The collection.
    public var collection: String

    /// The first finds.
    public var records: [Find]

    /// Whether there are more than are listed.
    public var hasMore: Bool

    /// Whether the search ran out of time in this collection.
    public var isCut: Bool
  }

  /// A record that contains what was looked for.
  public struct Find: Sendable, Hashable {
    /// The record.
    public var key: RecordKey

    /// The entity it is of.
    public var entity: String

    /// The property that contains it.
    public var column: String

    /// The text around it, cut.
    public var excerpt: String
  }

  /// The collections in which something was found, or that ran out of time.
  public var finds: [Finds]
}
