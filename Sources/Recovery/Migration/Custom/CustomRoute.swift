internal import PersistentStore

/// One entity mapping of a custom step, with what is known of it before a store is looked at.
struct CustomRoute {
  /// Its place among the step's routes; associations are kept by it.
  let number: Int

  let mapping: EntityMapping

  /// The entity whose records are read; nil for a mapping that only its policy carries out.
  let source: EntityLayout?

  /// The entity whose records are made; nil where a policy decides.
  let destination: EntityLayout?

  /// Makes the policy that carries it out; nil where SQL does.
  let makePolicy: (@Sendable () -> any EntityMigrationPolicy)?

  /// Where its primary keys lie, as a place in `CustomStep.ranges`; nil without a source or a destination.
  var range: Int?

  /// The condition on the row `o`; nil for all records.
  let filter: String?

  /// The columns of attributes with their expressions over the row `o`.
  let columns: [(column: ColumnLayout, sql: String)]

  /// The properties of the source that its expressions read.
  let sourceProperties: Set<String>

  /// Whether SQL alone carries it out, on all records at once.
  var isSetBased: Bool { makePolicy == nil && source != nil && destination != nil }

  /// The condition that chooses the source's records, over the row `o`.
  var condition: String {
    guard let source else { return "0" }
    return "o.Z_ENT = \(source.number)" + (filter.map { " AND \($0)" } ?? "")
  }
}

/// A range of primary keys in a hierarchy of the destination: those of a hierarchy of the source, moved up.
///
/// Where an entity of the source becomes several in one hierarchy, or several hierarchies become one, each has a range of
/// its own, so that keys never collide and the new key is the old one plus a number.
struct KeyRange: Hashable {
  /// The root entity of the destination's hierarchy.
  let destinationRoot: String

  /// The root entity of the source's hierarchy.
  let sourceRoot: String

  /// Which of the routes of one entity into this hierarchy it is for, from 0.
  let turn: Int
}
