internal import StoreFiles

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
