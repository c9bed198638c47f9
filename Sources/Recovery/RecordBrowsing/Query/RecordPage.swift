/// A page of records.
package struct RecordPage: Sendable {
  /// A record on a page.
  package struct Row: Sendable, Hashable {
    /// What tells it from the others.
    package var key: RecordKey

    /// The entity it is of; the name of the collection where that is a table.
    package var entity: String

    /// The values in the order of the page's columns.
    package var values: [PresentedValue]

    /// How far it is to be believed; certain in stores that were not salvaged.
    package var state: RowState = .certain
  }

  /// The number of records of each value of a property.
  package struct Facet: Sendable, Hashable {
    /// The property.
    package var column: String

    /// The most frequent values; nil where counting took too long.
    package var values: [Count]?

    /// Whether there are more values.
    package var isCut: Bool

    /// A value and how many records have it.
    package struct Count: Sendable, Hashable {
      /// The value.
      package var value: PresentedValue

      /// The number of records that fit the query and have it.
      package var count: Int64
    }
  }

  /// The columns that are shown.
  package var columns: [RecordColumn]

  /// The records.
  package var rows: [Row]

  /// The token of the next page; nil on the last.
  package var next: String?

  /// The number of records in the collection, whatever the query; nil where counting took too long.
  package var total: Int64?

  /// The number of records that fit the query; nil where counting took too long.
  package var matching: Int64?

  /// How many records fit at least, where counting was stopped because there are many.
  package var matchingAtLeast: Int64?

  /// The facets that were asked for.
  package var facets: [Facet]

  /// The facets in steps that were asked for.
  package var steppedFacets: [SteppedFacet] = []
}
