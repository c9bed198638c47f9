/// Something in a model that contradicts itself or leads nowhere.
public struct ModelFinding: Sendable, Hashable {
  /// What was found.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    case emptyName = "empty-name"
    case missingParent = "missing-parent"
    case inheritanceCycle = "inheritance-cycle"
    case missingDestination = "missing-destination"
    case missingInverse = "missing-inverse"

    /// The inverse leads somewhere else, or names another inverse itself.
    case mismatchedInverse = "mismatched-inverse"

    /// A property has the name of an inherited one.
    case overriddenProperty = "overridden-property"

    /// A uniqueness constraint or an index names a property that is not there.
    case missingProperty = "missing-property"

    /// A configuration or a fetch request names an entity that is not there.
    case missingEntity = "missing-entity"

    /// An attribute without a type is to be stored.
    case undefinedType = "undefined-type"

    /// Two entities, or two properties of one entity, would be matched by the same renaming identifier.
    case ambiguousRenamingIdentifier = "ambiguous-renaming-identifier"
  }

  /// What was found.
  public var kind: Kind

  /// The entity it is about, where it is about one.
  public var entityName: String?

  /// The property it is about, where it is about one.
  public var propertyName: String?

  /// What was found, in a plain sentence without a full stop.
  public var detail: String

  /// A finding.
  public init(_ kind: Kind, entity: String? = nil, property: String? = nil, detail: String) {
    self.kind = kind
    entityName = entity
    propertyName = property
    self.detail = detail
  }

  /// Whether a model with this finding cannot be used at all, so that loading refuses it.
  public var isStructural: Bool {
    switch kind {
    case .emptyName, .missingParent, .inheritanceCycle, .missingDestination, .missingInverse: true
    case .mismatchedInverse, .overriddenProperty, .missingProperty, .missingEntity, .undefinedType,
      .ambiguousRenamingIdentifier:
      false
    }
  }
}
