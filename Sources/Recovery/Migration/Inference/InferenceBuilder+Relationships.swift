internal import ManagedObjectModel

extension InferenceBuilder {
  /// What becomes of a relationship of both (section 5.3).
  mutating func mapRelationship(
    _ origin: StoredProperty, _ old: Relationship, _ property: StoredProperty, _ new: Relationship, _ pair: Pair
  ) -> PropertyMapping {
    if old.isToMany, !new.isToMany {
      refuse(
        MigrationRefusal(
          .toManyToOne, entity: pair.destination.name, property: property.path,
          reason: "Can not map from a to-many to a to-one relationship",
          detail: """
            relationship \(Self.place(pair, origin, property)) leads to many records and is to lead to one
            """,
          wayRound: """
            Add a to-one relationship under another name, choose the record in a custom step, and remove the old \
            relationship in the version after it.
            """),
        source: origin, destination: property)
      return PropertyMapping(property.path, .relationship(origin.path.name))
    }
    let fit = destinationFit(old.destinationEntityName, new.destinationEntityName)
    guard fit != .none else {
      if !pair.source.isAbstract {
        losses.append(
          MigrationLoss(
            .unrelatedDestination, source: pair.source.name, declaredBy: origin.declaringEntityName,
            property: origin.path))
      }
      if pair.hasRecords, new.needsDestination {
        var mandatory = condition(.newMandatoryRelationship, origin, property, pair)
        mandatory.sourceProperty = nil
        conditions.append(mandatory)
      }
      return PropertyMapping(property.path, .null)
    }
    if !pair.source.isAbstract, old.isOrdered, !new.isOrdered {
      losses.append(
        MigrationLoss(
          .relationshipOrder, source: pair.source.name, declaredBy: origin.declaringEntityName, property: origin.path))
    }
    if pair.hasRecords {
      if fit == .some { conditions.append(condition(.destinationOfOtherEntity, origin, property, pair)) }
      addCountConditions(origin, old, property, new, pair)
      addInverseConditions(origin, old, property, new, pair)
    }
    return PropertyMapping(property.path, .relationship(origin.path.name))
  }

  private mutating func addCountConditions(
    _ origin: StoredProperty, _ old: Relationship, _ property: StoredProperty, _ new: Relationship, _ pair: Pair
  ) {
    if !old.needsDestination, new.needsDestination {
      conditions.append(condition(.missingRelationship, origin, property, pair))
    }
    guard new.isToMany else { return }
    if new.minimumCount > 1, new.minimumCount > old.minimumCount {
      conditions.append(condition(.tooFewDestinations, origin, property, pair, limit: new.minimumCount))
    }
    let hadLimit = old.maximumCount > 0 && old.maximumCount <= new.maximumCount
    if new.maximumCount > 0, !hadLimit {
      conditions.append(condition(.tooManyDestinations, origin, property, pair, limit: new.maximumCount))
    }
  }

  private mutating func addInverseConditions(
    _ origin: StoredProperty, _ old: Relationship, _ property: StoredProperty, _ new: Relationship, _ pair: Pair
  ) {
    let before = source.inverse(of: old)
    let after = destination.inverse(of: new)
    // A to-many without an inverse is a column of the destination, so that each record has one owner (section 3.5).
    let hadSeveralOwners = before?.relationship.isToMany ?? !old.isToMany
    let hasOneOwner = after.map { !$0.relationship.isToMany } ?? new.isToMany
    if hadSeveralOwners, hasOneOwner { conditions.append(condition(.severalOwners, origin, property, pair)) }
    // Two relationships that were not each other's inverse and become so: the pairs of both count.
    if let after, after.key != property.key, let inverseOrigin = relationshipSources[after.key],
      inverseOrigin != before?.key
    {
      conditions.append(condition(.newInverse, origin, property, pair))
    }
    // One that becomes its own inverse and was not: the record that is led to leads back from now on.
    if let after, after.key == property.key, before?.key != origin.key {
      conditions.append(condition(.newInverse, origin, property, pair))
    }
  }

  enum Fit {
    case all, some, none
  }

  /// How much of what a relationship led to is of the entity that it leads to from now on.
  ///
  /// Records of entities that are gone do not count: that they are lost is said of their entity.
  private mutating func destinationFit(_ old: String, _ new: String) -> Fit {
    let images = imagePlaces(of: old)
    guard images.hasFamily else { return .all }
    guard let range = destination.ranges[new] else { return .none }
    let fitting =
      Self.count(of: images.places, below: range.upperBound + 1)
      - Self.count(
        of: images.places, below: range.lowerBound)
    if fitting == 0 { return .none }
    return fitting == images.places.count ? .all : .some
  }

  private mutating func imagePlaces(of name: String) -> (places: [Int], hasFamily: Bool) {
    if let known = familyImages[name] { return known }
    let concrete = source.family(of: name).filter { source.entity($0)?.isAbstract == false }
    let places = concrete.compactMap { images[$0].flatMap { destination.ranges[$0]?.lowerBound } }.sorted()
    let result = (places, !concrete.isEmpty)
    familyImages[name] = result
    return result
  }

  /// How many of the sorted numbers are smaller than a limit.
  private static func count(of sorted: [Int], below limit: Int) -> Int {
    var (low, high) = (0, sorted.count)
    while low < high {
      let middle = (low + high) / 2
      if sorted[middle] < limit { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension Relationship {
  /// Whether a record without a destination is invalid.
  ///
  /// A mandatory relationship to many may be empty unless it has a minimum count: Core Data's own migrations give records
  /// such a relationship without any destination.
  var needsDestination: Bool { !traits.isOptional && (!isToMany || minimumCount > 0) }
}
