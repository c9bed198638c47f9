/// A record that differs between two stores.
package struct ComparedRecord: Sendable, Hashable {
  /// A property whose values differ.
  package struct Property: Sendable, Hashable {
    /// Its name.
    package var name: String

    /// The value in the first store; nil where it has no such property.
    package var first: PresentedValue?

    /// The value in the second store; nil where it has no such property.
    package var second: PresentedValue?
  }

  /// The key in the first store; nil where it is not there.
  package var firstKey: RecordKey?

  /// The key in the second store; nil where it is not there.
  package var secondKey: RecordKey?

  /// The name or title of the record; nil where it has none.
  package var label: String?

  /// The properties that differ; none where only one store has the record.
  package var properties: [Property]
}
