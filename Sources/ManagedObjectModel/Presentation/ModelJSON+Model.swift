internal import StoreFiles

extension ModelJSON {
  /// The JSON of a bundle, or of some of its versions.
  public init(_ bundle: ModelBundle, versions: [ModelVersion]? = nil) {
    name = bundle.name
    self.versions = (versions ?? bundle.versions).map { Version($0) }
    let unreadable = bundle.unreadableVersions.map {
      Unreadable(name: $0.name, code: $0.error.code, detail: $0.error.detail)
    }
    unreadableVersions = unreadable.isEmpty ? nil : unreadable
  }
}

extension ModelJSON.Version {
  init(_ version: ModelVersion) {
    let model = version.model
    name = version.name
    current = version.isCurrent
    checksum = version.checksum
    identifiers = model.versionIdentifiers
    entities = model.entities.values.sorted { precedesByCodeUnit($0.name, $1.name) }
      .map { ModelJSON.Entity($0, hash: version.versionHashes[$0.name]) }
    configurations = model.configurations
    fetchRequests = model.fetchRequests.mapValues { ModelJSON.FetchRequest($0) }
  }
}

extension ModelJSON.Entity {
  fileprivate init(_ entity: Entity, hash: VersionHash?) {
    name = entity.name
    className = entity.className
    abstract = entity.isAbstract
    parent = entity.parentName
    renamingIdentifier = entity.explicitRenamingIdentifier
    versionHashModifier = entity.versionHashModifier
    self.hash = hash?.hex ?? ""
    let sorted = entity.properties.values.sorted { precedesByCodeUnit($0.name, $1.name) }
    attributes = sorted.compactMap(\.attribute).map { ModelJSON.Attribute($0) }
    relationships = sorted.compactMap(\.relationship).map { ModelJSON.Relationship($0) }
    fetchedProperties = sorted.compactMap { property in
      guard case .fetchedProperty(let fetched) = property else { return nil }
      return ModelJSON.FetchedProperty(
        name: fetched.traits.name, fetchRequest: fetched.fetchRequest.map { ModelJSON.FetchRequest($0) })
    }
    uniquenessConstraints = entity.uniquenessConstraints
    indexes =
      entity.fetchIndexes.map { ModelJSON.Index($0) }
      + entity.compoundIndexes.map { names in
        ModelJSON.Index(
          name: nil,
          elements: names.map {
            ModelJSON.Index.Element(property: $0, expression: nil, kind: "binary", ascending: true)
          }, predicate: nil)
      }
    userInfo = entity.userInfo
  }
}

extension ModelJSON.Attribute {
  fileprivate init(_ attribute: Attribute) {
    name = attribute.name
    type = attribute.type.sourceName
    optional = attribute.traits.isOptional
    transient = attribute.traits.isTransient ? true : nil
    `default` = attribute.defaultValue?.plainText
    minimum = attribute.minimumValue
    maximum = attribute.maximumValue
    pattern = attribute.regularExpression
    valueClass = attribute.valueClassName == attribute.type.valueClassName ? nil : attribute.valueClassName
    transformer = attribute.valueTransformerName
    externalStorage = attribute.allowsExternalBinaryDataStorage ? true : nil
    preservedInHistory = attribute.preservesValueInHistoryOnDeletion ? true : nil
    derivation = attribute.derivationExpression
    elements =
      attribute.compositeElements.isEmpty ? nil : attribute.compositeElements.map { ModelJSON.Attribute($0) }
    renamingIdentifier = attribute.traits.explicitRenamingIdentifier
    versionHashModifier = attribute.traits.versionHashModifier
    userInfo = attribute.traits.userInfo.isEmpty ? nil : attribute.traits.userInfo
  }
}

extension ModelJSON.Relationship {
  fileprivate init(_ relationship: Relationship) {
    name = relationship.name
    destination = relationship.destinationEntityName
    inverse = relationship.inverseName
    toMany = relationship.isToMany
    ordered = relationship.isOrdered ? true : nil
    optional = relationship.traits.isOptional
    transient = relationship.traits.isTransient ? true : nil
    minimumCount = relationship.minimumCount
    maximumCount = relationship.maximumCount
    deleteRule = relationship.deleteRule.word
    renamingIdentifier = relationship.traits.explicitRenamingIdentifier
    versionHashModifier = relationship.traits.versionHashModifier
    userInfo = relationship.traits.userInfo.isEmpty ? nil : relationship.traits.userInfo
  }
}

extension ModelJSON.FetchRequest {
  fileprivate init(_ request: FetchRequestTemplate) {
    entity = request.entityName
    predicate = request.predicateFormat
  }
}

extension ModelJSON.Index {
  fileprivate init(_ index: FetchIndex) {
    name = index.name
    predicate = index.partialIndexPredicate
    elements = index.elements.map {
      Element(
        property: $0.propertyName, expression: $0.expression, kind: $0.kind == .rTree ? "r-tree" : "binary",
        ascending: $0.isAscending)
    }
  }
}

extension DeleteRule {
  /// The rule as one word: `no-action`, `nullify`, `cascade` or `deny`.
  package var word: String {
    switch self {
    case .noAction: "no-action"
    case .nullify: "nullify"
    case .cascade: "cascade"
    case .deny: "deny"
    }
  }
}
