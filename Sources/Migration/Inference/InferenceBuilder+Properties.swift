internal import ManagedObjectModel
internal import Platform

extension InferenceBuilder {
  /// Maps a matched relationship (section 5.3).
  mutating func mapRelationship(
    _ origin: StoredProperty, _ old: Relationship, _ property: StoredProperty, _ new: Relationship, _ pair: Pair
  ) -> PropertyMapping {
    if old.isToMany, !new.isToMany {
      refuse(
        .toManyToOne, entity: pair.destination.name, origin, property,
        reason: "Can not map from a to-many to a to-one relationship",
        detail: "relationship \(Self.place(pair, origin, property)) leads to many records and is to lead to one",
        wayRound: "Add a to-one relationship under another name, choose the record in a custom step, and remove the "
          + "old relationship in the version after it.")
      return PropertyMapping(property.path, .relationship(origin.path.name))
    }
    let fit = destinationFit(old.destinationEntityName, new.destinationEntityName)
    guard fit != .none else {
      if !pair.source.isAbstract { losses.append(loss(.unrelatedDestination, of: origin, pair)) }
      if pair.hasRecords, new.needsDestination { addCondition(.newMandatoryRelationship, nil, property, pair) }
      return PropertyMapping(property.path, .null)
    }
    if !pair.source.isAbstract, old.isOrdered, !new.isOrdered {
      losses.append(loss(.relationshipOrder, of: origin, pair))
    }
    if pair.hasRecords {
      if fit == .some { addCondition(.destinationOfOtherEntity, origin, property, pair) }
      addCountConditions(origin, old, property, new, pair)
      addInverseConditions(origin, old, property, new, pair)
    }
    return PropertyMapping(property.path, .relationship(origin.path.name))
  }

  private mutating func addCountConditions(
    _ origin: StoredProperty, _ old: Relationship, _ property: StoredProperty, _ new: Relationship, _ pair: Pair
  ) {
    if !old.needsDestination, new.needsDestination { addCondition(.missingRelationship, origin, property, pair) }
    guard new.isToMany else { return }
    if new.minimumCount > 1, new.minimumCount > old.minimumCount {
      addCondition(.tooFewDestinations, origin, property, pair, limit: new.minimumCount)
    }
    let hadLimit = old.maximumCount > 0 && old.maximumCount <= new.maximumCount
    if new.maximumCount > 0, !hadLimit {
      addCondition(.tooManyDestinations, origin, property, pair, limit: new.maximumCount)
    }
  }

  private mutating func addInverseConditions(
    _ origin: StoredProperty, _ old: Relationship, _ property: StoredProperty, _ new: Relationship, _ pair: Pair
  ) {
    let before = source.inverse(of: old)
    let after = destination.inverse(of: new)
    // A to-many without an inverse is a column of the destination: one owner per record (section 3.5).
    let hadSeveralOwners = before?.relationship.isToMany ?? !old.isToMany
    let hasOneOwner = after.map { !$0.relationship.isToMany } ?? new.isToMany
    if hadSeveralOwners, hasOneOwner { addCondition(.severalOwners, origin, property, pair) }
    // Newly inverse relationships: both sides' pairs count.
    if let after, after.key != property.key, let inverseOrigin = relationshipSources[after.key],
      inverseOrigin != before?.key
    {
      addCondition(.newInverse, origin, property, pair)
    }
    // Newly its own inverse: targets now lead back.
    if let after, after.key == property.key, before?.key != origin.key {
      addCondition(.newInverse, origin, property, pair)
    }
  }

  enum Fit {
    case all, some, none
  }

  /// The share of a relationship's targets that belong to its new destination entity.
  ///
  /// Records of removed entities do not count; their entity reports that loss.
  private mutating func destinationFit(_ old: String, _ new: String) -> Fit {
    let images = imagePlaces(of: old)
    guard images.hasFamily else { return .all }
    guard let range = destination.ranges[new] else { return .none }
    func count(below limit: Int) -> Int { images.places.partitioningIndex { $0 >= limit } }
    let fitting = count(below: range.upperBound + 1) - count(below: range.lowerBound)
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
}

extension Relationship {
  /// Whether an empty relationship is invalid.
  ///
  /// Core Data leaves mandatory to-many ones empty, unless there is a minimum count.
  var needsDestination: Bool { !traits.isOptional && (!isToMany || minimumCount > 0) }
}

extension InferenceBuilder {
  /// Maps an attribute (section 5.3); unusable after a refusal.
  mutating func mapAttribute(
    _ origin: StoredProperty, _ old: Attribute, _ property: StoredProperty, _ new: Attribute, _ pair: Pair
  ) -> PropertyMapping {
    if new.isDerived {
      if !old.isDerived, !pair.source.isAbstract { losses.append(loss(.becomesDerived, of: origin, pair)) }
      return PropertyMapping(property.path, .recompute)
    }
    guard let value = value(origin, old, property, new, pair) else {
      return PropertyMapping(property.path, .copy(origin.path))
    }
    var mapping = PropertyMapping(property.path, value)
    if origin.isOptional, !property.isOptional {
      if new.hasReadableDefault {
        mapping.replacesNilWithDefault = true
      } else if pair.hasRecords {
        addCondition(.missingAttributeValue, origin, property, pair)
      }
    }
    if case .convert(_, let from, let to) = value, !from.converts(losslesslyTo: to), pair.hasRecords {
      addCondition(.valueOutOfRange, origin, property, pair)
    }
    return mapping
  }

  mutating func addCondition(
    _ kind: MigrationCondition.Kind, _ origin: StoredProperty?, _ property: StoredProperty, _ pair: Pair,
    limit: Int? = nil
  ) {
    conditions.append(
      MigrationCondition(
        kind, source: pair.source.name, destination: pair.destination.name, sourceProperty: origin?.path,
        destinationProperty: property.path, limit: limit))
  }

  private mutating func value(
    _ origin: StoredProperty, _ old: Attribute, _ property: StoredProperty, _ new: Attribute, _ pair: Pair
  ) -> PropertyMapping.Value? {
    guard areCompatible(old, new, origin.isMarked || property.isMarked) else {
      refuse(
        .incompatibleTypes, entity: pair.destination.name, origin, property,
        reason: "Source and destination attribute types are incompatible",
        detail: "attribute \(Self.place(pair, origin, property)) changes its type from \(old.type.sourceName) to "
          + "\(new.type.sourceName)",
        wayRound: "Keep the attribute and add a new one under another name, convert the values in a custom step, "
          + "and remove the old one in the version after it; or give a mapping with an expression for it.")
      return nil
    }
    if origin.isMarked, !property.isMarked {
      refuse(
        .externalStorageOff, entity: pair.destination.name, origin, property,
        reason: "Unable to use inferred mapping to move external reference into store.",
        detail: "attribute \(Self.place(pair, origin, property)) had external storage and no longer has",
        wayRound: "Leave external storage on; or add a new attribute without it and move the values over in a "
          + "custom step.")
      return nil
    }
    if property.isMarked, !origin.isMarked { return .externalize(origin.path) }
    guard old.type != new.type, old.type.isNumeric, new.type.isNumeric else { return .copy(origin.path) }
    return .convert(origin.path, from: old.type, to: new.type)
  }

  private func areCompatible(_ old: Attribute, _ new: Attribute, _ isMarked: Bool) -> Bool {
    guard old.type != .undefined, new.type != .undefined else { return false }
    if old.type == new.type || (old.type.isNumeric && new.type.isNumeric) { return true }
    let isBytes = [old.type, new.type].allSatisfy { $0 == .binary || $0 == .transformable }
    return isBytes && !isMarked && new.allowsTypeTransformation
  }

  /// `Car.color`, or `Auto.paint (Car.color)` where a name has changed.
  static func place(_ pair: Pair, _ origin: StoredProperty, _ property: StoredProperty) -> String {
    let before = "\(printable(pair.source.name)).\(printable(origin.path.description))"
    let after = "\(printable(pair.destination.name)).\(printable(property.path.description))"
    return before == after ? after : "\(after) (before: \(before))"
  }
}

extension Attribute {
  /// Whether the developer allows transformable bytes as binary data, or the reverse.
  var allowsTypeTransformation: Bool {
    guard let value = traits.userInfo["NSMigrationAllowTypeTransformation"] else { return false }
    return !["no", "false", "0"].contains(value.lowercased())
  }
}

extension AttributeType {
  /// Whether it is of the family Core Data converts within (section 5.3).
  var isNumeric: Bool {
    switch self {
    case .integer16, .integer32, .integer64, .decimal, .double, .float, .boolean: true
    case .undefined, .string, .date, .binary, .uuid, .uri, .transformable, .objectID, .composite: false
    }
  }

  /// Whether the other type holds all its numbers.
  func converts(losslesslyTo other: AttributeType) -> Bool {
    if self == other { return true }
    switch (self, other) {
    case (.boolean, _): return other.isNumeric
    case (.integer16, .integer32), (.integer16, .integer64), (.integer32, .integer64): return true
    case (.integer16, .float), (.integer16, .double), (.integer32, .double): return true
    case (.integer16, .decimal), (.integer32, .decimal), (.integer64, .decimal): return true
    case (.float, .double), (.float, .decimal), (.double, .decimal): return true
    default: return false
    }
  }
}
