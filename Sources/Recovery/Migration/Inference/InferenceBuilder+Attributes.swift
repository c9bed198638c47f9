internal import ManagedObjectModel
internal import StoreFiles

extension InferenceBuilder {
  /// What becomes of an attribute of both (section 5.3); where it is refused, the mapping is of no use.
  mutating func mapAttribute(
    _ origin: StoredProperty, _ old: Attribute, _ property: StoredProperty, _ new: Attribute, _ pair: Pair
  ) -> PropertyMapping {
    if new.isDerived {
      if !old.isDerived, !pair.source.isAbstract {
        losses.append(
          MigrationLoss(
            .becomesDerived, source: pair.source.name, declaredBy: origin.declaringEntityName, property: origin.path))
      }
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
        conditions.append(condition(.missingAttributeValue, origin, property, pair))
      }
    }
    if case .convert(_, let from, let to) = value, !from.converts(losslesslyTo: to), pair.hasRecords {
      conditions.append(condition(.valueOutOfRange, origin, property, pair))
    }
    return mapping
  }

  func condition(
    _ kind: MigrationCondition.Kind, _ origin: StoredProperty, _ property: StoredProperty, _ pair: Pair,
    limit: Int? = nil
  ) -> MigrationCondition {
    MigrationCondition(
      kind, source: pair.source.name, destination: pair.destination.name, sourceProperty: origin.path,
      destinationProperty: property.path, limit: limit)
  }

  private mutating func value(
    _ origin: StoredProperty, _ old: Attribute, _ property: StoredProperty, _ new: Attribute, _ pair: Pair
  ) -> PropertyMapping.Value? {
    guard areCompatible(old, new, origin.isMarked || property.isMarked) else {
      refuse(
        MigrationRefusal(
          .incompatibleTypes, entity: pair.destination.name, property: property.path,
          reason: "Source and destination attribute types are incompatible",
          detail: """
            attribute \(Self.place(pair, origin, property)) changes its type from \(old.type.sourceName) to \
            \(new.type.sourceName)
            """,
          wayRound: """
            Keep the attribute and add a new one under another name, convert the values in a custom step, and remove \
            the old one in the version after it; or give a mapping with an expression for it.
            """),
        source: origin, destination: property)
      return nil
    }
    switch (origin.isMarked, property.isMarked) {
    case (true, false):
      refuse(
        MigrationRefusal(
          .externalStorageOff, entity: pair.destination.name, property: property.path,
          reason: "Unable to use inferred mapping to move external reference into store.",
          detail: "attribute \(Self.place(pair, origin, property)) had external storage and no longer has",
          wayRound: """
            Leave external storage on; or add a new attribute without it and move the values over in a custom step.
            """),
        source: origin, destination: property)
      return nil
    case (false, true): return .externalize(origin.path)
    case (true, true), (false, false): break
    }
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
  /// Whether the developer allows the bytes of a transformable attribute to be taken as binary data, or the reverse.
  var allowsTypeTransformation: Bool {
    guard let value = traits.userInfo["NSMigrationAllowTypeTransformation"] else { return false }
    return !["no", "false", "0"].contains(value.lowercased())
  }
}

extension AttributeType {
  /// Whether it is of the family inside which Core Data converts (section 5.3).
  var isNumeric: Bool {
    switch self {
    case .integer16, .integer32, .integer64, .decimal, .double, .float, .boolean: true
    case .undefined, .string, .date, .binary, .uuid, .uri, .transformable, .objectID, .composite: false
    }
  }

  /// Whether every number of this type is one of the other type too.
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
