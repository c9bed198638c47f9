/// The stored differences of two models, matched by name.
///
/// Unhashed parts (defaults, delete rules, indexes …) are not compared.
public struct ModelDifference: Sendable, Hashable, Codable {
  /// A property of only one model, or with different hashes.
  public struct PropertyDifference: Sendable, Hashable, Codable {
    /// The entity.
    public let entity: String

    /// The property.
    public let property: String

    /// The changes in words (`type: String → Date`); empty if only one model has the property.
    public let changes: [String]
  }

  /// The entities only in the second model.
  public let addedEntities: [String]

  /// The entities only in the first model.
  public let removedEntities: [String]

  /// The common entities with different hashes.
  public let changedEntities: [String]

  /// The properties of common entities only in the second model.
  public let addedProperties: [PropertyDifference]

  /// The properties of common entities only in the first model.
  public let removedProperties: [PropertyDifference]

  /// The common properties with different hashes.
  public let changedProperties: [PropertyDifference]

  /// The changes of common entities in parent, abstractness, modifier and constraints.
  public let entityChanges: [String: [String]]

  /// Compares two models.
  public init(from first: ManagedObjectModel, to second: ManagedObjectModel) {
    let (left, right) = (first.versionHashes(), second.versionHashes())
    let common = Set(left.keys).intersection(right.keys).inCodeUnitOrder()
    addedEntities = right.keys.filter { left[$0] == nil }.inCodeUnitOrder()
    removedEntities = left.keys.filter { right[$0] == nil }.inCodeUnitOrder()
    changedEntities = common.filter { left[$0] != right[$0] }
    var added: [PropertyDifference] = []
    var removed: [PropertyDifference] = []
    var changed: [PropertyDifference] = []
    var entityChanges: [String: [String]] = [:]
    for name in changedEntities {
      guard let old = first.entities[name], let new = second.entities[name] else { continue }
      for property in Set(old.properties.keys).union(new.properties.keys).inCodeUnitOrder() {
        let (before, after) = (old.properties[property], new.properties[property])
        switch (before, after) {
        case (nil, .some): added.append(PropertyDifference(entity: name, property: property, changes: []))
        case (.some, nil): removed.append(PropertyDifference(entity: name, property: property, changes: []))
        case (.some(let before), .some(let after))
        where first.propertyDigest(before, of: name) != second.propertyDigest(after, of: name):
          changed.append(PropertyDifference(entity: name, property: property, changes: Self.changes(before, after)))
        default: break
        }
      }
      let changes = Self.changes(old, new)
      if !changes.isEmpty { entityChanges[name] = changes }
    }
    addedProperties = added
    removedProperties = removed
    changedProperties = changed
    self.entityChanges = entityChanges
  }

  /// Whether hashes agree, so that either model opens the other's stores.
  public var isEmpty: Bool { addedEntities.isEmpty && removedEntities.isEmpty && changedEntities.isEmpty }

  /// The parts only in the first model, as `Car` or `Car.owner`: the losses of its stores.
  public var missingInSecond: [String] { removedEntities + removedProperties.map { "\($0.entity).\($0.property)" } }

  private static func changes(_ old: Entity, _ new: Entity) -> [String] {
    var changes: [String] = []
    note("parent", old.parentName ?? "none", new.parentName ?? "none", &changes)
    note("abstract", yesNo(old.isAbstract), yesNo(new.isAbstract), &changes)
    note("hash modifier", old.versionHashModifier ?? "none", new.versionHashModifier ?? "none", &changes)
    func list(_ entity: Entity) -> String {
      let names = entity.uniquenessConstraints.map { "(" + $0.joined(separator: ", ") + ")" }
      return names.isEmpty ? "none" : names.inCodeUnitOrder().joined(separator: " ")
    }
    note("uniqueness constraints", list(old), list(new), &changes)
    return changes
  }

  private static func changes(_ old: Property, _ new: Property) -> [String] {
    var changes: [String] = []
    note("optional", yesNo(old.traits.isOptional), yesNo(new.traits.isOptional), &changes)
    note("transient", yesNo(old.traits.isTransient), yesNo(new.traits.isTransient), &changes)
    note("read-only", yesNo(old.traits.isReadOnly), yesNo(new.traits.isReadOnly), &changes)
    note("hash modifier", old.traits.versionHashModifier ?? "none", new.traits.versionHashModifier ?? "none", &changes)
    switch (old, new) {
    case (.attribute(let old), .attribute(let new)):
      note("type", old.type.sourceName, new.type.sourceName, &changes)
      note(
        "external storage", yesNo(old.allowsExternalBinaryDataStorage), yesNo(new.allowsExternalBinaryDataStorage),
        &changes)
      note(
        "kept in history", yesNo(old.preservesValueInHistoryOnDeletion), yesNo(new.preservesValueInHistoryOnDeletion),
        &changes)
      note("derivation", old.derivationExpression ?? "none", new.derivationExpression ?? "none", &changes)
    case (.relationship(let old), .relationship(let new)):
      note("destination", old.destinationEntityName, new.destinationEntityName, &changes)
      note("inverse", old.inverseName ?? "none", new.inverseName ?? "none", &changes)
      note("maximum count", String(old.maximumCount), String(new.maximumCount), &changes)
      note("minimum count", String(old.minimumCount), String(new.minimumCount), &changes)
      note("ordered", yesNo(old.isOrdered), yesNo(new.isOrdered), &changes)
    default: note("kind", kind(old), kind(new), &changes)
    }
    return changes
  }

  private static func note(_ what: String, _ old: String, _ new: String, _ changes: inout [String]) {
    if old != new { changes.append("\(what): \(old) → \(new)") }
  }

  private static func yesNo(_ value: Bool) -> String { value ? "yes" : "no" }

  private static func kind(_ property: Property) -> String {
    switch property {
    case .attribute: "attribute"
    case .relationship: "relationship"
    case .fetchedProperty: "fetched property"
    }
  }
}
