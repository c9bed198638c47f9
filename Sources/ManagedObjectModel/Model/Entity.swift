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
    name: String,
    className: String? = nil,
    isAbstract: Bool = false,
    parentName: String? = nil,
    explicitRenamingIdentifier: String? = nil,
    versionHashModifier: String? = nil,
    properties: [Property] = [],
    uniquenessConstraints: [[String]] = [],
    fetchIndexes: [FetchIndex] = [],
    compoundIndexes: [[String]] = [],
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
