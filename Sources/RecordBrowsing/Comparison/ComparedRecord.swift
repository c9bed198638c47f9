/// A record that differs between two stores.
public struct ComparedRecord: Sendable, Hashable {
  /// A property whose values differ.
  public struct Property: Sendable, Hashable {
    /// Its name.
    public var name: String

    /// The value in the first store.
    public var first: PresentedValue

    /// The value in the second store.
    public var second: PresentedValue
  }

  /// The key in the first store; nil where it is not there.
  public var firstKey: RecordKey?

  /// The key in the second store; nil where it is not there.
  public var secondKey: RecordKey?

  /// The name or title of the record; nil where it has none.
  public var label: String?

  /// The properties that differ; none where only one store has the record.
  public var properties: [Property]
}
