/// What happens to the records of one entity in a step.
public enum EntityWay: String, Sendable, Hashable, Codable, CaseIterable {
  /// The entity is new: it gets an empty table, or none of its own.
  case added

  /// The records stay where they are, byte for byte.
  case unchanged

  /// The records stay where they are; the entity or some of its properties get other names.
  case renamed

  /// The records stay where they are; columns are added for new properties, and filled where there is a default.
  case inPlace = "in-place"

  /// The records are written anew.
  case rebuilt

  /// Expressions or a policy make the new records.
  case custom

  /// The records are deleted with their entity.
  case removed
}
