/// A page of records.
public struct RecordPage: Sendable {
  /// A record on a page.
  public struct Row: Sendable, Hashable {
    /// What tells it from the others.
    public var key: RecordKey

    /// The entity it is of; the name of the collection where that is a table.
    public var entity: String

    /// The values in the order of the page's columns.
    public var values: [PresentedValue]

    /// How far it is to be believed; certain in stores that were not salvaged.
    public var state: RowState = .certain
  }

  /// The number of records of each value of a property.
  public struct Facet: Sendable, Hashable {
    /// The property.
    public var column: String

    /// The most frequent values; nil where counting took too long.
    public var values: [Count]?

    /// Whether there are more values.
    public var isCut: Bool

    /// A value and how many records have it.
    public struct Count: Sendable, Hashable {
      /// The value.
      public var value: PresentedValue

      /// The number of records that fit the query and have it.
      public var count: Int64
    }
  }

  /// The columns that are shown.
  public var columns: [RecordColumn]

  /// The records.
  public var rows: [Row]

  /// The token of the next page; nil on the last.
  public var next: String?

  /// The number of records in the collection, whatever the query; nil where counting took too long.
  public var total: Int64?

  /// The number of records that fit the query; nil where counting took too long.
  public var matching: Int64?

  /// How many records fit at least, where counting was stopped because there are many.
  public var matchingAtLeast: Int64?

  /// The facets that were asked for.
  public var facets: [Facet]
}
