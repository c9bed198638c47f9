/// A relationship from one entity to another.
public struct Relationship: Sendable, Hashable {
  /// What all kinds of properties have in common.
  public var traits: PropertyTraits

  /// The entity it leads to.
  public var destinationEntityName: String

  /// The relationship of the destination that leads back; nil for a one-way relationship.
  public var inverseName: String?

  /// The entity that declares the inverse, where it is named; else the destination (or an ancestor of it).
  public var inverseEntityName: String?

  /// The largest number of destinations; 1 for a to-one relationship, 0 for no limit.
  ///
  /// Models built in code hold other numbers too (-1, 10000); it is kept as it is, because it is hashed.
  public var maximumCount: Int

  /// The smallest number of destinations; 0 also where it is mandatory and the model gives none.
  public var minimumCount: Int

  /// Whether the destinations have an order.
  public var isOrdered: Bool

  /// What becomes of the destinations when a record is deleted.
  public var deleteRule: DeleteRule

  /// A relationship; to-one and optional in its counts unless said otherwise.
  public init(
    traits: PropertyTraits,
    destinationEntityName: String,
    inverseName: String? = nil,
    inverseEntityName: String? = nil,
    maximumCount: Int = 1,
    minimumCount: Int = 0,
    isOrdered: Bool = false,
    deleteRule: DeleteRule = .nullify
  ) {
    self.traits = traits
    self.destinationEntityName = destinationEntityName
    self.inverseName = inverseName
    self.inverseEntityName = inverseEntityName
    self.maximumCount = maximumCount
    self.minimumCount = minimumCount
    self.isOrdered = isOrdered
    self.deleteRule = deleteRule
  }

  /// The name, unique within the entity and its ancestors.
  public var name: String { traits.name }

  /// Whether it leads to any number of records.
  public var isToMany: Bool { maximumCount != 1 }
}

/// What becomes of the destination when a record is deleted; raw values are Core Data's own numbers.
public enum DeleteRule: Int, Sendable, Hashable {
  case noAction = 0
  case nullify = 1
  case cascade = 2
  case deny = 3
}
