package import Platform

extension ModelBundle {
  /// Returns the output of `model show --json`.
  ///
  /// Keys may be added, never changed. Missing values are null or omitted; false ones are omitted.
  package func payload(_ versions: [ModelVersion]? = nil) -> JSON.Object {
    ["name": name, "versions": (versions ?? self.versions).map(\.payload), "unreadableVersions": unreadablePayload]
  }

  private var unreadablePayload: [JSON.Object]? {
    let unreadable = unreadableVersions.map { version -> JSON.Object in
      ["name": version.name, "code": version.error.code, "detail": version.error.detail]
    }
    return unreadable.isEmpty ? nil : unreadable
  }

  /// Returns the output of `model hashes --json`.
  package func hashesPayload() -> JSON.Object {
    let versions = versions.map { version -> JSON.Object in
      [
        "name": version.name, "current": version.isCurrent, "checksum": version.checksum,
        "entities": version.versionHashes.mapValues(\.hex),
        "incomplete": version.isComplete ? nil : version.incompleteEntities.inCodeUnitOrder(),
      ]
    }
    return ["versions": versions, "unreadableVersions": unreadablePayload]
  }
}

extension ModelVersion {
  fileprivate var payload: JSON.Object {
    let entities = model.entities.inCodeUnitOrder().map(\.value)
    return [
      "name": name, "current": isCurrent, "checksum": checksum, "identifiers": model.versionIdentifiers,
      "entities": entities.map { JSON.Object($0.payload, ["hash": versionHashes[$0.name]?.hex ?? ""]) },
      "configurations": model.configurations, "fetchRequests": model.fetchRequests.mapValues(\.payload),
    ]
  }
}

extension Entity {
  fileprivate var payload: JSON.Object {
    let sorted = properties.inCodeUnitOrder().map(\.value)
    let fetched = sorted.compactMap { property -> JSON.Object? in
      guard case .fetchedProperty(let fetched) = property else { return nil }
      return ["name": fetched.traits.name, "fetchRequest": fetched.fetchRequest?.payload]
    }
    let compound = compoundIndexes.map { names -> JSON.Object in
      let elements = names.map { name -> JSON.Object in ["property": name, "kind": "binary", "ascending": true] }
      return ["elements": elements]
    }
    return [
      "name": name, "className": className, "abstract": isAbstract, "parent": parentName,
      "renamingIdentifier": explicitRenamingIdentifier, "versionHashModifier": versionHashModifier,
      "attributes": sorted.compactMap(\.attribute).map(\.payload),
      "relationships": sorted.compactMap(\.relationship).map(\.payload), "fetchedProperties": fetched,
      "uniquenessConstraints": uniquenessConstraints, "indexes": fetchIndexes.map(\.payload) + compound,
      "userInfo": userInfo,
    ]
  }
}

extension PropertyTraits {
  fileprivate var payload: JSON.Object {
    [
      "name": name, "optional": isOptional, "transient": isTransient ? true : nil,
      "renamingIdentifier": explicitRenamingIdentifier, "versionHashModifier": versionHashModifier,
      "userInfo": userInfo.isEmpty ? nil : userInfo,
    ]
  }
}

extension Attribute {
  fileprivate var payload: JSON.Object {
    JSON.Object(
      traits.payload,
      [
        "type": type.sourceName, "default": defaultValue?.plainText, "minimum": minimumValue, "maximum": maximumValue,
        "pattern": regularExpression, "valueClass": valueClassName == type.valueClassName ? nil : valueClassName,
        "transformer": valueTransformerName, "externalStorage": allowsExternalBinaryDataStorage ? true : nil,
        "preservedInHistory": preservesValueInHistoryOnDeletion ? true : nil, "derivation": derivationExpression,
        "elements": compositeElements.isEmpty ? nil : compositeElements.map(\.payload),
      ])
  }
}

extension Relationship {
  fileprivate var payload: JSON.Object {
    JSON.Object(
      traits.payload,
      [
        "destination": destinationEntityName, "inverse": inverseName, "toMany": isToMany,
        "ordered": isOrdered ? true : nil, "minimumCount": minimumCount, "maximumCount": maximumCount,
        "deleteRule": deleteRule.word,
      ])
  }
}

extension FetchRequestTemplate {
  fileprivate var payload: JSON.Object { ["entity": entityName, "predicate": predicateFormat] }
}

extension FetchIndex {
  fileprivate var payload: JSON.Object {
    let elements = elements.map { element -> JSON.Object in
      [
        "property": element.propertyName, "expression": element.expression,
        "kind": element.kind == .rTree ? "r-tree" : "binary", "ascending": element.isAscending,
      ]
    }
    return ["name": name, "elements": elements, "predicate": partialIndexPredicate]
  }
}

extension DeleteRule {
  /// One of `no-action`, `nullify`, `cascade` and `deny`.
  var word: String {
    switch self {
    case .noAction: "no-action"
    case .nullify: "nullify"
    case .cascade: "cascade"
    case .deny: "deny"
    }
  }
}
