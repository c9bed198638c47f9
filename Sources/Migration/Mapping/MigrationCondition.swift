internal import Platform

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

extension MigrationCondition {
  /// The entity and the property it is about, as `Car.color`; the entity alone where it is about whole records.
  public var place: String {
    let property = destinationProperty.map { ".\(printable($0.description))" } ?? ""
    return printable(destinationEntityName) + property
  }

  /// What it means for a store, in one sentence without a full stop.
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
  /// The entity and the property that lose something, as `Car.color`; the entity alone where all its records do.
  public var place: String {
    printable(sourceEntityName) + (property.map { ".\(printable($0.description))" } ?? "")
  }

  /// What is lost, in one sentence without a full stop.
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
  /// The losses without those that an entity has only because one of its ancestors in the list has it too.
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
