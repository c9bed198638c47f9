public import ManagedObjectModel
public import Platform

/// What Core Data would infer between two models: the mapping, and every reason why there is none.
///
/// The rules are those of sections 5.2 and 5.3 of the format. No store is needed and none is touched.
public struct MappingInference: Sendable {
  /// The mapping; where there are refusals it is what it would be without them, good for showing and nothing else.
  public let mapping: MappingModel

  /// Every reason why the mapping cannot be carried out, by entity and property; empty where it can.
  public let refusals: [MigrationRefusal]

  /// The renames that only the versions between tell.
  public let carriedRenames: [CarriedRename]

  /// Infers the mapping from one model to another.
  ///
  /// - Parameters:
  ///   - between: the versions between, oldest first. A rename from version to version is carried on through them where source
  ///     and destination would otherwise both stay without a counterpart; nothing else of them counts.
  ///   - later: the versions after the destination: an identifier that one of them explains is no rename of this step.
  ///   - acceptsLosses: whether entities and properties of one name whose renaming identifiers disagree are removed and
  ///     added anew, as Core Data does; else they are refused.
  public init(
    from source: ManagedObjectModel, to destination: ManagedObjectModel, through between: [ManagedObjectModel] = [],
    before later: [ManagedObjectModel] = [], acceptsLosses: Bool = false
  ) {
    self.init(
      InferenceBuilder(
        from: source, to: destination, through: between, before: later,
        disagreement: acceptsLosses ? .remove : .refuse, carrying: between.isEmpty ? .nothing : .all))
  }

  /// Infers the mapping between two models whose version hashes are known already, or not.
  init(_ prepared: InferenceBuilder) {
    var builder = prepared
    builder.build()
    // Where a carried rename is in the way, direct inference wins; renames of entities are the first to be given up.
    for carrying in [InferenceBuilder.Carrying.properties, .nothing]
    where !builder.carried.isEmpty && !builder.refusals.isEmpty {
      var other = prepared
      other.carrying = carrying
      other.build()
      if other.refusals.count < builder.refusals.count { builder = other }
    }
    mapping = MappingModel(
      inferredBy: builder, source: builder.source.model, destination: builder.destination.model)
    carriedRenames = builder.carried
    refusals = builder.refusals.ordered { first, second in
      if first.entityName != second.entityName { return precedesByCodeUnit(first.entityName, second.entityName) }
      return precedesByCodeUnit(first.property?.description ?? "", second.property?.description ?? "")
    }
  }

  /// Infers the mapping between two versions as if their hashes differed, since entities of equal ones go on as themselves.
  package init(disregardingHashesFrom before: ModelVersion, to after: ModelVersion) {
    self.init(
      InferenceBuilder(
        from: before.model, to: after.model, hashes: .init(source: before.versionHashes, destination: [:])))
  }

  /// The mapping, where it can be carried out.
  ///
  /// - Throws: `MigrationError.Kind.notInferable` with all refusals (Core Data's 134190 below a 134140).
  public func accepted() throws(MigrationError) -> MappingModel {
    guard refusals.isEmpty else { throw MigrationError(refusals: refusals) }
    return mapping
  }
}

extension MappingModel {
  /// The mapping that follows from two models and the renaming identifiers in them.
  ///
  /// - Throws: `MigrationError.Kind.notInferable`; its `refusals` are all reasons, not only the first.
  public static func inferred(
    from source: ManagedObjectModel, to destination: ManagedObjectModel
  ) throws(MigrationError) -> MappingModel {
    try MappingInference(from: source, to: destination).accepted()
  }
}

extension MappingInference {
  /// What `model diff --json` prints of the mapping between two versions.
  ///
  /// Keys may be added, never changed.
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
