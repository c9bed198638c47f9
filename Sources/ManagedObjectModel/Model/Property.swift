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

  /// The common traits.
  public var traits: PropertyTraits {
    switch self {
    case .attribute(let attribute): attribute.traits
    case .relationship(let relationship): relationship.traits
    case .fetchedProperty(let property): property.traits
    }
  }

  /// The attribute, if it is one.
  public var attribute: Attribute? {
    if case .attribute(let attribute) = self { attribute } else { nil }
  }

  /// The relationship, if it is one.
  public var relationship: Relationship? {
    if case .relationship(let relationship) = self { relationship } else { nil }
  }
}

/// The traits common to all properties.
public struct PropertyTraits: Sendable, Hashable {
  /// The name, unique within the entity and its ancestors.
  public var name: String

  /// Whether the value is optional.
  public var isOptional: Bool

  /// Whether it is never stored.
  public var isTransient: Bool

  /// Whether the app cannot set it, as for derived attributes and fetched properties.
  public var isReadOnly: Bool

  /// Whether an old model requested an index.
  public var isIndexed: Bool

  /// The renaming identifier, if not the name.
  public var explicitRenamingIdentifier: String?

  /// A text that only changes the property's digest.
  public var versionHashModifier: String?

  /// The developer's free text.
  public var userInfo: [String: String]

  /// Whether system search indexes its values.
  public var isIndexedBySpotlight: Bool

  /// Whether search files per record also hold its values (`storedInTruthFile`).
  public var isStoredInExternalRecord: Bool

  /// Whether cloud values are encrypted.
  public var allowsCloudEncryption: Bool

  /// Creates traits.
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

  /// The explicit renaming identifier, else the name.
  public var renamingIdentifier: String { explicitRenamingIdentifier ?? name }
}

/// A fetched property: a one-way relationship by fetch request, neither stored nor hashed.
public struct FetchedProperty: Sendable, Hashable {
  /// The common traits.
  public var traits: PropertyTraits

  /// The request that yields its value.
  public var fetchRequest: FetchRequestTemplate?

  /// Creates a fetched property.
  public init(traits: PropertyTraits, fetchRequest: FetchRequestTemplate?) {
    self.traits = traits
    self.fetchRequest = fetchRequest
  }
}

/// A relationship between entities.
public struct Relationship: Sendable, Hashable {
  /// The common traits.
  public var traits: PropertyTraits

  /// The destination entity.
  public var destinationEntityName: String

  /// The destination's inverse relationship; nil if one-way.
  public var inverseName: String?

  /// The inverse's declaring entity, if named; else the destination or an ancestor.
  public var inverseEntityName: String?

  /// The largest number of destinations; 1 for to-one, 0 for unlimited.
  ///
  /// Models built in code have other values too (-1, 10000), kept because they are hashed.
  public var maximumCount: Int

  /// The smallest number of destinations; 0 if not given, even when mandatory.
  public var minimumCount: Int

  /// Whether destinations are ordered.
  public var isOrdered: Bool

  /// The effect of deletion on destinations.
  public var deleteRule: DeleteRule

  /// Creates a relationship, by default to-one.
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

  /// Whether it is to-many.
  public var isToMany: Bool { maximumCount != 1 }
}

/// The effect of deletion on destinations, with Core Data's raw values.
public enum DeleteRule: Int, Sendable, Hashable {
  case noAction = 0
  case nullify = 1
  case cascade = 2
  case deny = 3
}
