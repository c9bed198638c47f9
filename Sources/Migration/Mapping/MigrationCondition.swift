internal import Platform

/// A condition on a store's records that decides about a migration.
///
/// It is part of the mapping rather than an error, so that a plan can count records.
public struct MigrationCondition: Sendable, Hashable {
  /// The records to count.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// Nil values of an attribute that becomes mandatory without a default.
    case missingAttributeValue = "missing-attribute-value"

    /// All records of the entity, for lack of a default.
    case newMandatoryAttribute = "new-mandatory-attribute"

    /// Empty relationships that become mandatory; without a source property, a new relationship filled by its inverse.
    case missingRelationship = "missing-relationship"

    /// All records of the entity.
    case newMandatoryRelationship = "new-mandatory-relationship"

    case tooFewDestinations = "too-few-destinations"

    case tooManyDestinations = "too-many-destinations"

    /// Equal values of `propertyNames`, which become unique across the entity and its descendants.
    case duplicateValues = "duplicate-values"

    /// All records of the entity.
    case recordsOfAbstractEntity = "records-of-abstract-entity"

    /// Numbers outside the new type, or that lose fraction or precision.
    case valueOutOfRange = "value-out-of-range"

    /// Records with several owners, where only one stays possible.
    case severalOwners = "several-owners"

    /// Destinations outside the relationship's new entity.
    case destinationOfOtherEntity = "destination-of-other-entity"

    /// Pairs that only one of two newly inverse relationships had.
    case newInverse = "new-inverse"

    /// Records due a default that can't be read from the model.
    case unreadableDefault = "unreadable-default"
  }

  /// The effect of such records.
  public enum Effect: String, Sendable, Hashable, Codable {
    /// The migration fails, and the store is unchanged (Core Data's 134110).
    case fails

    /// The migration continues; a value or pair is lost or altered.
    case loses
  }

  /// The records to count.
  public var kind: Kind

  /// The source entity, if any.
  public var sourceEntityName: String?

  /// The destination entity.
  public var destinationEntityName: String

  /// The deciding source property; nil if all records count.
  public var sourceProperty: PropertyPath?

  /// The destination property; nil for the whole record.
  public var destinationProperty: PropertyPath?

  /// The destination properties that become unique together; otherwise empty.
  public var propertyNames: [String]

  /// The limit of destinations, if any.
  public var limit: Int?

  /// Makes a condition.
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

  /// The effect of such records.
  public var effect: Effect {
    switch kind {
    case .missingAttributeValue, .newMandatoryAttribute, .missingRelationship, .newMandatoryRelationship,
      .tooFewDestinations, .tooManyDestinations, .duplicateValues, .recordsOfAbstractEntity:
      .fails
    case .valueOutOfRange, .severalOwners, .destinationOfOtherEntity, .newInverse, .unreadableDefault: .loses
    }
  }
}

extension MigrationCondition {
  /// The place, as `Car.color` or `Car`.
  public var place: String {
    let property = destinationProperty.map { ".\(printable($0.description))" } ?? ""
    return printable(destinationEntityName) + property
  }

  /// The meaning, as a sentence without a full stop.
  public var text: String {
    switch kind {
    case .missingAttributeValue:
      "\(place) becomes mandatory and has no default: a record without a value makes the migration fail"
    case .newMandatoryAttribute:
      "\(place) is new, mandatory and has no default: the migration fails where there are records of the entity"
    case .missingRelationship:
      "\(place) becomes mandatory: a record that it leads nowhere for makes the migration fail"
    case .newMandatoryRelationship:
      "\(place) is new and mandatory: the migration fails where there are records of the entity"
    case .tooFewDestinations:
      "\(place) must lead to at least \(limit ?? 0) records: a record with fewer makes the migration fail"
    case .tooManyDestinations:
      "\(place) must lead to at most \(limit ?? 0) records: a record with more makes the migration fail"
    case .duplicateValues:
      """
      \(place) must be unique in \(propertyNames.map(printable).joined(separator: ", ")) from now on: records with the \
      same values make the migration fail
      """
    case .recordsOfAbstractEntity:
      "\(place) becomes abstract: a record of the entity itself makes the migration fail"
    case .valueOutOfRange:
      "\(place) changes its type: a number that the new type cannot hold is altered"
    case .severalOwners:
      "\(place) may lead to a record from only one place from now on: of several, one is kept"
    case .destinationOfOtherEntity:
      "\(place) leads to another entity from now on: pairs with records that are not of it are cut"
    case .newInverse:
      "\(place) has another inverse from now on: the pairs that either of them had are joined"
    case .unreadableDefault:
      "\(place) has a default of a kind that only the app can make: existing records get nil"
    }
  }
}

extension MigrationLoss {
  /// The place, as `Car.color` or `Car`.
  public var place: String { printable(sourceEntityName) + (property.map { ".\(printable($0.description))" } ?? "") }

  /// The loss, as a sentence without a full stop.
  public var text: String {
    switch kind {
    case .removedEntity: "\(place) is removed: all its records are deleted"
    case .removedAttribute: "\(place) is removed: its values are deleted"
    case .removedRelationship: "\(place) is removed: what it connects is no longer connected"
    case .becomesTransient: "\(place) is not stored any more: its values are deleted"
    case .becomesDerived: "\(place) is computed from now on: its values are replaced"
    case .relationshipOrder: "\(place) loses the order of its records"
    case .filteredRecords: "\(place): records are left out by the filter of the mapping"
    case .unrelatedDestination: "\(place) leads to an unrelated entity from now on: what it connects is cut"
    }
  }
}

extension Sequence<MigrationLoss> {
  /// Returns the losses except those an ancestor in the list has too.
  package func withoutInherited() -> [MigrationLoss] {
    let all = Array(self)
    let declared = Set(all.filter { $0.sourceEntityName == $0.declaringEntityName })
    return all.filter { loss in
      guard loss.sourceEntityName != loss.declaringEntityName else { return true }
      return !declared.contains(
        MigrationLoss(loss.kind, source: loss.declaringEntityName, property: loss.property))
    }
  }
}

/// Data of the source that the destination can't hold.
public struct MigrationLoss: Sendable, Hashable {
  /// The kind of loss.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    case removedEntity = "removed-entity"

    case removedAttribute = "removed-attribute"

    /// A removed relationship's pairs, with its inverse's.
    case removedRelationship = "removed-relationship"

    /// Values of a property no longer stored.
    case becomesTransient = "becomes-transient"

    /// Values of a newly computed attribute.
    case becomesDerived = "becomes-derived"

    case relationshipOrder = "relationship-order"

    /// Pairs of a relationship that now leads to an unrelated entity.
    case unrelatedDestination = "unrelated-destination"

    case filteredRecords = "filtered-records"
  }

  /// The kind of loss.
  public var kind: Kind

  /// The source entity.
  public var sourceEntityName: String

  /// The entity that declares the property, possibly an ancestor; else the entity itself.
  public var declaringEntityName: String

  /// The lost property; nil for the whole record.
  public var property: PropertyPath?

  /// Makes a loss.
  public init(_ kind: Kind, source: String, declaredBy declaring: String? = nil, property: PropertyPath? = nil) {
    self.kind = kind
    sourceEntityName = source
    declaringEntityName = declaring ?? source
    self.property = property
  }
}
