/// Something that a store of the source can hold and one of the destination has no place for.
public struct MigrationLoss: Sendable, Hashable {
  /// What is lost.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// All records of an entity that is gone.
    case removedEntity = "removed-entity"

    /// The values of an attribute that is gone.
    case removedAttribute = "removed-attribute"

    /// The pairs of a relationship that is gone, and its inverse with it.
    case removedRelationship = "removed-relationship"

    /// The values of a property that is not stored any more.
    case becomesTransient = "becomes-transient"

    /// The values of an attribute that is computed from now on.
    case becomesDerived = "becomes-derived"

    /// The order of a relationship's destinations.
    case relationshipOrder = "relationship-order"

    /// The pairs of a relationship that leads to an unrelated entity from now on.
    case unrelatedDestination = "unrelated-destination"

    /// Records that the filter of a mapping leaves out.
    case filteredRecords = "filtered-records"
  }

  /// What is lost.
  public var kind: Kind

  /// The entity of the source whose records lose it.
  public var sourceEntityName: String

  /// The entity that declares the property, which may be an ancestor; the entity itself where all of it is lost.
  public var declaringEntityName: String

  /// The property whose values are lost; nil where all of the record is.
  public var property: PropertyPath?

  /// A loss.
  public init(_ kind: Kind, source: String, declaredBy declaring: String? = nil, property: PropertyPath? = nil) {
    self.kind = kind
    sourceEntityName = source
    declaringEntityName = declaring ?? source
    self.property = property
  }
}
