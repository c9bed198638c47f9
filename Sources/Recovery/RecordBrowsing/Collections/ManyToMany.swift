/// A many-to-many relationship of a store, with the join table that its pairs are in.
///
/// The side whose entity and name come first in the alphabet is the first, whichever of them the join table is named after:
/// that may differ between two versions of a model.
package struct ManyToMany: Sendable, Hashable {
  /// One of its two sides.
  package struct Side: Sendable, Hashable {
    /// The entity that declares the relationship.
    package var entity: String

    /// The relationship.
    package var relationship: String

    /// The column with the primary key of that entity's record, as SQL.
    var keySQL: String

    /// The column with the place of the other side's record in the relationship, as SQL; nil where it has no order.
    var orderSQL: String?

    /// Its name, such as `Ship.ports`.
    package var name: String { "\(entity).\(relationship)" }
  }

  /// The side that comes first in the alphabet.
  package var first: Side

  /// The other; the same relationship where that is its own inverse.
  package var second: Side

  /// The join table, as SQL.
  var tableSQL: String

  /// Its name: those of both sides, such as `Port.ships-Ship.ports`, or the one name where it is its own inverse.
  package var name: String { first.name == second.name ? first.name : "\(first.name)-\(second.name)" }

  init(_ one: Side, _ other: Side, tableSQL: String) {
    let isInOrder = (one.entity, one.relationship) <= (other.entity, other.relationship)
    (first, second) = isInOrder ? (one, other) : (other, one)
    self.tableSQL = tableSQL
  }
}
