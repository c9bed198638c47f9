/// Where the values of a property are in a store.
public enum PropertyStorage: Sendable, Hashable {
  /// An attribute: one column, or one for each leaf of a composite.
  case attribute(columns: [ColumnLayout])

  /// A to-one relationship: columns of the entity's own table.
  ///
  /// The entity column is there where the destination has sub-entities, the order column where the inverse is ordered.
  case toOne(column: String, entityColumn: String?, orderColumn: String?)

  /// A to-many relationship whose other side is a single column: in the destination's table, that column holds the
  /// primary key of the owner.
  ///
  /// The column is that of the inverse to-one relationship, or a hidden one where there is no inverse.
  case toManyByColumn(table: String, column: String, orderColumn: String?)

  /// A many-to-many relationship: a join table, with the column of this side's records, that of the destination's, and
  /// that of the destination's place where the relationship is ordered.
  case toManyByJoinTable(table: String, ownColumn: String, destinationColumn: String, orderColumn: String?)
}
