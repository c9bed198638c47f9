internal import ManagedObjectModel
package import Migration
package import StoreFiles

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
