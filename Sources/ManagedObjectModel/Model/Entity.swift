/// An entity of a managed object model.
public struct Entity: Sendable, Hashable {
  /// The name, unique within the model.
  public var name: String

  /// The app's class, irrelevant to stored data.
  public var className: String?

  /// Whether only sub-entities have records.
  public var isAbstract: Bool

  /// The parent entity.
  public var parentName: String?

  /// The renaming identifier, if not the name.
  public var explicitRenamingIdentifier: String?

  /// A text that only changes the version hash.
  public var versionHashModifier: String?

  /// The declared properties by name; `ManagedObjectModel.properties(of:)` adds inherited ones.
  public var properties: [String: Property]

  /// The declared uniqueness constraints, as lists of attribute names.
  public var uniquenessConstraints: [[String]]

  /// The declared fetch indexes.
  public var fetchIndexes: [FetchIndex]

  /// The compound indexes of old models, as lists of property names.
  public var compoundIndexes: [[String]]

  /// The developer's free text.
  public var userInfo: [String: String]

  /// Creates an entity; the first of equally named properties counts.
  public init(
    name: String, className: String? = nil, isAbstract: Bool = false, parentName: String? = nil,
    explicitRenamingIdentifier: String? = nil, versionHashModifier: String? = nil, properties: [Property] = [],
    uniquenessConstraints: [[String]] = [], fetchIndexes: [FetchIndex] = [], compoundIndexes: [[String]] = [],
    userInfo: [String: String] = [:]
  ) {
    self.name = name
    self.className = className
    self.isAbstract = isAbstract
    self.parentName = parentName
    self.explicitRenamingIdentifier = explicitRenamingIdentifier
    self.versionHashModifier = versionHashModifier
    self.properties = Dictionary(properties.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    self.uniquenessConstraints = uniquenessConstraints
    self.fetchIndexes = fetchIndexes
    self.compoundIndexes = compoundIndexes
    self.userInfo = userInfo
  }

  /// The explicit renaming identifier, else the name.
  public var renamingIdentifier: String { explicitRenamingIdentifier ?? name }
}

/// A fetch index of an entity.
public struct FetchIndex: Sendable, Hashable {
  /// The name, unique within the entity.
  public var name: String

  /// The columns, most significant first.
  public var elements: [FetchIndexElement]

  /// The filter of a partial index, in predicate format.
  public var partialIndexPredicate: String?

  /// Creates a fetch index.
  public init(name: String, elements: [FetchIndexElement], partialIndexPredicate: String? = nil) {
    self.name = name
    self.elements = elements
    self.partialIndexPredicate = partialIndexPredicate
  }
}

/// A column of a fetch index.
public struct FetchIndexElement: Sendable, Hashable {
  /// The kind of index, with Core Data's raw values (the R-tree's is unverified).
  public enum Kind: Int, Sendable, Hashable {
    case binary = 0
    case rTree = 1
  }

  /// The indexed property; nil for an expression.
  public var propertyName: String?

  /// The indexed expression, in expression format.
  public var expression: String?

  /// The kind of index.
  public var kind: Kind

  /// Whether the order is ascending.
  public var isAscending: Bool

  /// Creates an index column.
  public init(propertyName: String?, expression: String? = nil, kind: Kind = .binary, isAscending: Bool = true) {
    self.propertyName = propertyName
    self.expression = expression
    self.kind = kind
    self.isAscending = isAscending
  }
}

extension String {
  /// The text; nil if it is empty.
  var nonEmpty: String? { isEmpty ? nil : self }

  /// The text as a renaming identifier; nil if it is empty or the name.
  func identifier(besides name: String) -> String? { isEmpty || self == name ? nil : self }
}

// MARK: Properties

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
  public var attribute: Attribute? { if case .attribute(let attribute) = self { attribute } else { nil } }

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
    name: String, isOptional: Bool = false, isTransient: Bool = false, isReadOnly: Bool = false,
    isIndexed: Bool = false, explicitRenamingIdentifier: String? = nil, versionHashModifier: String? = nil,
    userInfo: [String: String] = [:], isIndexedBySpotlight: Bool = false, isStoredInExternalRecord: Bool = false,
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
    traits: PropertyTraits, destinationEntityName: String, inverseName: String? = nil, inverseEntityName: String? = nil,
    maximumCount: Int = 1, minimumCount: Int = 0, isOrdered: Bool = false, deleteRule: DeleteRule = .nullify
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
