package import ManagedObjectModel

/// A model from its entities.
package func model(_ entities: Entity...) -> ManagedObjectModel { ManagedObjectModel(entities: entities) }

/// An entity from its properties.
package func entity(
  _ name: String, _ properties: Property..., id: String? = nil, parent: String? = nil, abstract: Bool = false,
  unique: [[String]] = []
) -> Entity {
  Entity(
    name: name, isAbstract: abstract, parentName: parent, explicitRenamingIdentifier: id, properties: properties,
    uniquenessConstraints: unique)
}

/// An attribute; optional text unless said otherwise.
package func attribute(
  _ name: String, _ type: AttributeType = .string, optional: Bool = true, default value: AttributeValue? = nil,
  id: String? = nil, transient: Bool = false, external: Bool = false, derived: String? = nil,
  userInfo: [String: String] = [:], elements: [Attribute] = []
) -> Property {
  .attribute(
    Attribute(
      traits: PropertyTraits(
        name: name, isOptional: optional, isTransient: transient, explicitRenamingIdentifier: id, userInfo: userInfo),
      type: type, defaultValue: value, allowsExternalBinaryDataStorage: external, derivationExpression: derived,
      compositeElements: elements))
}

/// A leaf of a composite attribute.
package func leaf(_ name: String, _ type: AttributeType = .string, id: String? = nil) -> Attribute {
  Attribute(traits: PropertyTraits(name: name, isOptional: true, explicitRenamingIdentifier: id), type: type)
}

/// A relationship that leads to one record.
package func toOne(
  _ name: String, _ destination: String, inverse: String? = nil, optional: Bool = true, id: String? = nil,
  rule: DeleteRule = .nullify
) -> Property {
  .relationship(
    Relationship(
      traits: PropertyTraits(name: name, isOptional: optional, explicitRenamingIdentifier: id),
      destinationEntityName: destination, inverseName: inverse, deleteRule: rule))
}

/// A relationship that leads to many records.
package func toMany(
  _ name: String, _ destination: String, inverse: String? = nil, optional: Bool = true, id: String? = nil,
  ordered: Bool = false, min: Int = 0, max: Int = 0
) -> Property {
  .relationship(
    Relationship(
      traits: PropertyTraits(name: name, isOptional: optional, explicitRenamingIdentifier: id),
      destinationEntityName: destination, inverseName: inverse, maximumCount: max, minimumCount: min,
      isOrdered: ordered))
}

/// A bundle of versions called V1, V2 and so on, the last one current.
package func bundle(_ models: ManagedObjectModel...) throws -> ModelBundle { try bundle(models) }

/// A bundle of versions called V1, V2 and so on, the last one current.
package func bundle(_ models: [ManagedObjectModel]) throws -> ModelBundle {
  let versions = models.enumerated().map { index, model in
    ModelVersion(name: "V\(index + 1)", model: model, isCurrent: index == models.count - 1)
  }
  struct NoVersions: Error {}
  guard let bundle = ModelBundle(name: "Test", versions: versions) else { throw NoVersions() }
  return bundle
}
