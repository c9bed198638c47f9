/// A property of an entity: an attribute, a relationship or a fetched property.
public enum Property: Sendable, Hashable {
  case attribute(Attribute)
  case relationship(Relationship)
  case fetchedProperty(FetchedProperty)

  /// The name, unique within the entity and its ancestors.
  public var name: String {
    switch self {
    case .attribute(let attribute): attribute.traits.name
    case .relationship(let relationship): relationship.traits.name
    case .fetchedProperty(let property): property.traits.name
    }
  }

  /// What all kinds of properties have in common.
  public var traits: PropertyTraits {
    switch self {
    case .attribute(let attribute): attribute.traits
    case .relationship(let relationship): relationship.traits
    case .fetchedProperty(let property): property.traits
    }
  }

  /// The attribute, where it is one.
  public var attribute: Attribute? {
    if case .attribute(let attribute) = self { attribute } else { nil }
  }

  /// The relationship, where it is one.
  public var relationship: Relationship? {
    if case .relationship(let relationship) = self { relationship } else { nil }
  }
}

/// What all kinds of properties have in common.
public struct PropertyTraits: Sendable, Hashable {
  /// The name, unique within the entity and its ancestors.
  public var name: String

  /// Whether a record may lack it.
  public var isOptional: Bool

  /// Whether it is never stored.
  public var isTransient: Bool

  /// Whether the app cannot set it, as derived attributes and fetched properties.
  public var isReadOnly: Bool

  /// Whether models from before fetch indexes asked for an index on it.
  public var isIndexed: Bool

  /// The identifier it is matched by across versions, where it is not its name.
  public var explicitRenamingIdentifier: String?

  /// Text that changes the property's part of the version hash and nothing else.
  public var versionHashModifier: String?

  /// Free text that the developer attached.
  public var userInfo: [String: String]

  /// Whether the system's search index gets its values.
  public var isIndexedBySpotlight: Bool

  /// Whether its values are also kept in a file per record, for search (`storedInTruthFile`).
  public var isStoredInExternalRecord: Bool

  /// Whether its values are encrypted in the cloud.
  public var allowsCloudEncryption: Bool

  /// Traits; whatever is left out is false or not there.
  public init(
    name: String,
    isOptional: Bool = false,
    isTransient: Bool = false,
    isReadOnly: Bool = false,
    isIndexed: Bool = false,
    explicitRenamingIdentifier: String? = nil,
    versionHashModifier: String? = nil,
    userInfo: [String: String] = [:],
    isIndexedBySpotlight: Bool = false,
    isStoredInExternalRecord: Bool = false,
    allowsCloudEncryption: Bool = false
  ) {
    self.name = name
    self.isOptional = isOptional
    self.isTransient = isTransient
    self.isReadOnly = isReadOnly
    self.isIndexed = isIndexed
    self.explicitRenamingIdentifier = explicitRenamingIdentifier
    self.versionHashModifier = versionHashModifier
    self.userInfo = userInfo
    self.isIndexedBySpotlight = isIndexedBySpotlight
    self.isStoredInExternalRecord = isStoredInExternalRecord
    self.allowsCloudEncryption = allowsCloudEncryption
  }

  /// The identifier it is matched by across versions: the explicit one, else its name.
  public var renamingIdentifier: String { explicitRenamingIdentifier ?? name }
}

/// A fetched property: a weak, one-way relationship that is a fetch request; never stored, never hashed.
public struct FetchedProperty: Sendable, Hashable {
  /// What all kinds of properties have in common.
  public var traits: PropertyTraits

  /// The request whose result is its value.
  public var fetchRequest: FetchRequestTemplate?

  /// A fetched property.
  public init(traits: PropertyTraits, fetchRequest: FetchRequestTemplate?) {
    self.traits = traits
    self.fetchRequest = fetchRequest
  }
}

/// A relationship from one entity to another.
public struct Relationship: Sendable, Hashable {
  /// What all kinds of properties have in common.
  public var traits: PropertyTraits

  /// The entity it leads to.
  public var destinationEntityName: String

  /// The relationship of the destination that leads back; nil for a one-way relationship.
  public var inverseName: String?

  /// The entity that declares the inverse, where it is named; else the destination (or an ancestor of it).
  public var inverseEntityName: String?

  /// The largest number of destinations; 1 for a to-one relationship, 0 for no limit.
  ///
  /// Models built in code hold other numbers too (-1, 10000); it is kept as it is, because it is hashed.
  public var maximumCount: Int

  /// The smallest number of destinations; 0 also where it is mandatory and the model gives none.
  public var minimumCount: Int

  /// Whether the destinations have an order.
  public var isOrdered: Bool

  /// What becomes of the destinations when a record is deleted.
  public var deleteRule: DeleteRule

  /// A relationship; to-one and optional in its counts unless said otherwise.
  public init(
    traits: PropertyTraits,
    destinationEntityName: String,
    inverseName: String? = nil,
    inverseEntityName: String? = nil,
    maximumCount: Int = 1,
    minimumCount: Int = 0,
    isOrdered: Bool = false,
    deleteRule: DeleteRule = .nullify
  ) {
    self.traits = traits
    self.destinationEntityName = destinationEntityName
    self.inverseName = inverseName
    self.inverseEntityName = inverseEntityName
    self.maximumCount = maximumCount
    self.minimumCount = minimumCount
    self.isOrdered = isOrdered
    self.deleteRule = deleteRule
  }

  /// The name, unique within the entity and its ancestors.
  public var name: String { traits.name }

  /// Whether it leads to any number of records.
  public var isToMany: Bool { maximumCount != 1 }
}

/// What becomes of the destination when a record is deleted; raw values are Core Data's own numbers.
public enum DeleteRule: Int, Sendable, Hashable {
  case noAction = 0
  case nullify = 1
  case cascade = 2
  case deny = 3
}
