/// How the records of an entity differ between two stores.
package struct EntityComparison: Sendable, Hashable {
  /// The entity, or the table.
  package var name: String

  /// The number of records in the first store; nil where it has no such entity.
  package var first: Int64?

  /// The number of records in the second store; nil where it has no such entity.
  package var second: Int64?

  /// How many records differ in each way; nil where comparing took too long, or one store has no such entity.
  package var counts: [RecordDifference: Int64]?

  /// The properties that the first store alone has.
  package var firstOnly: [String] = []

  /// The properties that the second store alone has.
  package var secondOnly: [String] = []

  /// Whether nothing differs, as far as was compared.
  package var isSame: Bool {
    firstOnly.isEmpty && secondOnly.isEmpty && counts.map { $0.values.allSatisfy { $0 == 0 } } ?? false
  }
}
