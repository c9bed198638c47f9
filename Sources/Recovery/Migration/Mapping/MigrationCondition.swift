/// Something about a migration that depends on the records of the store: how many there are, and what they hold.
///
/// It is a value on the mapping and not an error, so that a plan can count the records concerned.
public struct MigrationCondition: Sendable, Hashable {
  /// What would have to be counted.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// Records in which an attribute that becomes mandatory, and has no default, is nil.
    case missingAttributeValue = "missing-attribute-value"

    /// Records of an entity that gets a mandatory attribute without a default: all of them.
    case newMandatoryAttribute = "new-mandatory-attribute"

    /// Records in which a relationship that becomes mandatory leads nowhere; where there is no property of the source,
    /// the relationship is new, and its inverse fills it.
    case missingRelationship = "missing-relationship"

    /// Records of an entity that gets a mandatory relationship: all of them.
    case newMandatoryRelationship = "new-mandatory-relationship"

    /// Records with fewer destinations than `limit`.
    case tooFewDestinations = "too-few-destinations"

    /// Records with more destinations than `limit`.
    case tooManyDestinations = "too-many-destinations"

    /// Records that have the same values of `propertyNames`, which become unique; descendants of the entity count too.
    case duplicateValues = "duplicate-values"

    /// Records of an entity that becomes abstract: all of them.
    case recordsOfAbstractEntity = "records-of-abstract-entity"

    /// Records whose number does not fit the new type, or loses its fraction or precision.
    case valueOutOfRange = "value-out-of-range"

    /// Records that several others lead to, where from now on only one can.
    case severalOwners = "several-owners"

    /// Records that the relationship leads to and that are not of the entity it leads to from now on.
    case destinationOfOtherEntity = "destination-of-other-entity"

    /// Pairs that only one of the two relationships had that are each other's inverse from now on.
    case newInverse = "new-inverse"

    /// Records that should get a default of a kind that cannot be read from the model.
    case unreadableDefault = "unreadable-default"
  }

  /// What happens where there are such records.
  public enum Effect: String, Sendable, Hashable, Codable {
    /// The migration fails, and the store stays as it is (Core Data's 134110).
    case fails

    /// The migration goes on, and a value or a pair is lost or altered.
    case loses
  }

  /// What would have to be counted.
  public var kind: Kind

  /// The entity of the source whose records it is about; nil for none.
  public var sourceEntityName: String?

  /// The entity of the destination.
  public var destinationEntityName: String

  /// The property of the source whose values decide; nil where all records count.
  public var sourceProperty: PropertyPath?

  /// The property of the destination; nil where it is about the whole record.
  public var destinationProperty: PropertyPath?

  /// The properties of the destination that become unique together; empty for other conditions.
  public var propertyNames: [String]

  /// The count that the destinations are held against; nil for other conditions.
  public var limit: Int?

  /// A condition.
  public init(
    _ kind: Kind, source: String?, destination: String, sourceProperty: PropertyPath? = nil,
    destinationProperty: PropertyPath? = nil, propertyNames: [String] = [], limit: Int? = nil
  ) {
    self.kind = kind
    sourceEntityName = source
    destinationEntityName = destination
    self.sourceProperty = sourceProperty
    self.destinationProperty = destinationProperty
    self.propertyNames = propertyNames
    self.limit = limit
  }

  /// What happens where there are such records.
  public var effect: Effect {
    switch kind {
    case .missingAttributeValue, .newMandatoryAttribute, .missingRelationship, .newMandatoryRelationship,
      .tooFewDestinations, .tooManyDestinations, .duplicateValues, .recordsOfAbstractEntity:
      .fails
    case .valueOutOfRange, .severalOwners, .destinationOfOtherEntity, .newInverse, .unreadableDefault: .loses
    }
  }
}
