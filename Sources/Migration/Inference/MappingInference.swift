public import ManagedObjectModel
package import Platform

/// The mapping Core Data would infer between two models, and every reason against it.
///
/// It follows sections 5.2 and 5.3 of the format and needs no store.
public struct MappingInference: Sendable {
  /// The mapping; after refusals, for display only.
  public let mapping: MappingModel

  /// Every reason against the mapping, by entity and property.
  public let refusals: [MigrationRefusal]

  /// The renames only intermediate versions show.
  public var carriedRenames: [CarriedRename] { mapping.carriedRenames }

  /// Infers the mapping from one model to another.
  ///
  /// - Parameters:
  ///   - between: The intermediate versions, oldest first; they only carry renames of things that otherwise lack a
  ///     counterpart.
  ///   - later: The versions after the destination; an identifier one of them explains is no rename of this step.
  ///   - acceptsLosses: Whether same-named entities and properties with different renaming identifiers are removed and
  ///     added, as in Core Data; otherwise they are refused.
  public init(
    from source: ManagedObjectModel, to destination: ManagedObjectModel, through between: [ManagedObjectModel] = [],
    before later: [ManagedObjectModel] = [], acceptsLosses: Bool = false
  ) {
    self.init(
      InferenceBuilder(
        from: source, to: destination, through: between, before: later,
        disagreement: acceptsLosses ? .remove : .refuse, carrying: between.isEmpty ? .nothing : .all))
  }

  init(_ prepared: InferenceBuilder) {
    var builder = prepared
    builder.build()
    // Where a carried rename is in the way, direct inference wins; give up entity renames first.
    for carrying in [InferenceBuilder.Carrying.properties, .nothing]
    where !builder.carried.isEmpty && !builder.refusals.isEmpty {
      var other = prepared
      other.carrying = carrying
      other.build()
      if other.refusals.count < builder.refusals.count { builder = other }
    }
    mapping = MappingModel(inferredBy: builder)
    refusals = builder.refusals.ordered { first, second in
      if first.entityName != second.entityName { return precedesByCodeUnit(first.entityName, second.entityName) }
      return precedesByCodeUnit(first.property?.description ?? "", second.property?.description ?? "")
    }
  }

  /// Infers without hashes; equal ones would keep every entity.
  init(disregardingHashesFrom before: ModelVersion, to after: ModelVersion) {
    self.init(
      InferenceBuilder(
        from: before.model, to: after.model, hashes: (before.versionHashes, [:])))
  }

  /// The mapping, unless refused.
  ///
  /// - Throws: `MigrationError.Kind.notInferable` with all refusals (Core Data's 134190 below a 134140).
  public func accepted() throws -> MappingModel {
    guard refusals.isEmpty else { throw MigrationError(refusals: refusals) }
    return mapping
  }
}

extension MappingModel {
  /// Infers the mapping from two models and their renaming identifiers.
  ///
  /// - Throws: `MigrationError.Kind.notInferable` with all refusals.
  public static func inferred(
    from source: ManagedObjectModel, to destination: ManagedObjectModel
  ) throws -> MappingModel {
    try MappingInference(from: source, to: destination).accepted()
  }
}

extension MappingInference {
  /// The `model diff --json` output for two versions; keys may be added, never changed.
  package func payload(from source: String, to destination: String) -> JSON.Object {
    let losses = mapping.losses.map { loss -> JSON.Object in
      ["kind": loss.kind, "entity": loss.sourceEntityName, "property": loss.property?.description, "text": loss.text]
    }
    let conditions = mapping.conditions.map { condition -> JSON.Object in
      [
        "kind": condition.kind, "effect": condition.effect, "entity": condition.destinationEntityName,
        "property": condition.destinationProperty?.description, "text": condition.text,
      ]
    }
    return [
      "from": source, "to": destination, "inferable": refusals.isEmpty,
      "entities": mapping.entityMappings.map(\.payload), "losses": losses, "conditions": conditions,
      "refusals": refusals.map(\.payload),
    ]
  }
}

extension EntityMapping {
  fileprivate var payload: JSON.Object {
    [
      "kind": "\(kind)", "source": sourceEntityName, "destination": destinationEntityName,
      "properties": propertyMappings.map(\.payload),
    ]
  }
}

extension PropertyMapping {
  fileprivate var payload: JSON.Object {
    var types: (from: String, to: String)?
    if case .convert(_, let from, let to) = value { types = (from.sourceName, to.sourceName) }
    return [
      "destination": destination.description, "value": value.word, "source": source?.description,
      "fromType": types?.from, "toType": types?.to, "replacesNilWithDefault": replacesNilWithDefault ? true : nil,
    ]
  }
}

extension MigrationRefusal {
  fileprivate var payload: JSON.Object {
    [
      "kind": kind.rawValue, "coreDataCode": coreDataCode, "entity": entityName, "property": property?.description,
      "reason": reason, "detail": detail, "wayRound": wayRound,
    ]
  }
}

/// A rename found only through intermediate versions.
///
/// If V2 renames `a` to `b`, and V3 gives `b` as the former name of `c`, the models V1 and V3 alone don't show that `a`
/// became `c`.
public struct CarriedRename: Sendable, Hashable {
  /// The source entity.
  public var sourceEntityName: String

  /// The destination entity.
  public var destinationEntityName: String

  /// The source property; nil for the entity itself.
  public var sourceProperty: PropertyPath?

  /// The destination property.
  public var destinationProperty: PropertyPath?

  /// The rename, such as `Car.a → Car.c`.
  public var text: String {
    func place(_ entity: String, _ property: PropertyPath?) -> String { entity + (property.map { ".\($0)" } ?? "") }
    return place(sourceEntityName, sourceProperty) + " → " + place(destinationEntityName, destinationProperty)
  }
}

struct RenameChain {
  private struct Named {
    let name: String
    let identifier: String

    let former: String?

    init(_ entity: Entity) {
      name = entity.name
      identifier = entity.renamingIdentifier
      former = entity.explicitRenamingIdentifier
    }

    init(_ property: Property) {
      name = property.name
      identifier = property.traits.renamingIdentifier
      former = property.traits.explicitRenamingIdentifier
    }
  }

  /// The models, oldest first, source and destination included.
  let models: [ManagedObjectModel]

  /// The entity's names; nil if removed on the way.
  func names(of entity: String) -> [String]? {
    var names = [entity]
    for (model, next) in zip(models, models.dropFirst()) {
      guard let name = names.last, let found = model.entities[name] else { return nil }
      let heir = Self.heir(
        of: Named(found), among: model.entities.values.map { Named($0) }, in: next.entities.values.map { Named($0) })
      guard let heir else { return nil }
      names.append(heir)
    }
    return names
  }

  /// The property's last name; nil if removed or of another kind.
  func destinationName(of property: String, entities: [String]) -> String? {
    var current = property
    for (index, (model, next)) in zip(models, models.dropFirst()).enumerated() {
      let before = model.properties(of: entities[index])
      let after = next.properties(of: entities[index + 1])
      guard let found = before[current]?.property else { return nil }
      let isRelationship = found.relationship != nil
      func candidates(_ properties: [String: InheritedProperty]) -> [Named] {
        properties.values.map(\.property)
          .filter { ($0.attribute != nil || $0.relationship != nil) && ($0.relationship != nil) == isRelationship }
          .map { Named($0) }
      }
      let heir = Self.heir(of: Named(found), among: candidates(before), in: candidates(after))
      guard let heir else { return nil }
      current = heir
    }
    return current
  }

  /// The next name: by identifier, else by former name, else unchanged.
  private static func heir(of one: Named, among siblings: [Named], in next: [Named]) -> String? {
    let same = next.filter { $0.identifier == one.identifier }
    if !same.isEmpty { return same.count == 1 ? same[0].name : nil }
    // A sibling with this name as its identifier is the heir instead.
    guard !siblings.contains(where: { $0.identifier == one.name }) else { return nil }
    let naming = next.filter { $0.former == one.name }
    guard naming.isEmpty else { return naming.count == 1 ? naming[0].name : nil }
    // Dropping an identifier later is no rename.
    return one.former == nil ? nil : next.first { $0.name == one.name && $0.former == nil }?.name
  }
}
