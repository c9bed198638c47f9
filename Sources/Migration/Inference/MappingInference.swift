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
        from: before.model, to: after.model, hashes: .init(source: before.versionHashes, destination: [:])))
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
      [
        "kind": loss.kind, "entity": loss.sourceEntityName, "property": loss.property?.description, "text": loss.text,
      ]
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
      "fromType": types?.from, "toType": types?.to,
      "replacesNilWithDefault": replacesNilWithDefault ? true : nil,
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
