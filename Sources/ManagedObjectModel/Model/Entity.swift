/// An entity of a managed object model.
public struct Entity: Sendable, Hashable {
  /// The name, unique within the model.
  public var name: String

  /// The class the app represents it with; no matter for the data.
  public var className: String?

  /// Whether no record is of this entity itself, only of its sub-entities.
  public var isAbstract: Bool

  /// The entity it inherits its properties from.
  public var parentName: String?

  /// The identifier it is matched by across versions, where it is not its name.
  public var explicitRenamingIdentifier: String?

  /// Text that changes the entity's version hash and nothing else.
  public var versionHashModifier: String?

  /// The properties it declares itself (inherited ones are in `ManagedObjectModel.properties(of:)`), by name.
  public var properties: [String: Property]

  /// The uniqueness constraints it declares, each a list of attribute names.
  public var uniquenessConstraints: [[String]]

  /// The fetch indexes it declares.
  public var fetchIndexes: [FetchIndex]

  /// The compound indexes of models from before fetch indexes, each a list of property names.
  public var compoundIndexes: [[String]]

  /// Free text that the developer attached.
  public var userInfo: [String: String]

  /// An entity; of properties with the same name the first counts.
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

  /// The identifier it is matched by across versions: the explicit one, else its name.
  public var renamingIdentifier: String { explicitRenamingIdentifier ?? name }
}

/// A fetch index of an entity.
public struct FetchIndex: Sendable, Hashable {
  /// The name, unique within the entity.
  public var name: String

  /// The columns, the most significant first.
  public var elements: [FetchIndexElement]

  /// The filter of a partial index, in predicate format.
  public var partialIndexPredicate: String?

  /// A fetch index.
  public init(name: String, elements: [FetchIndexElement], partialIndexPredicate: String? = nil) {
    self.name = name
    self.elements = elements
    self.partialIndexPredicate = partialIndexPredicate
  }
}

/// One column of a fetch index.
public struct FetchIndexElement: Sendable, Hashable {
  /// The kind of index; raw values are Core Data's own numbers (that of the R-tree is unverified).
  public enum Kind: Int, Sendable, Hashable {
    case binary = 0
    case rTree = 1
  }

  /// The property it indexes; nil for an expression.
  public var propertyName: String?

  /// The expression it indexes, in expression format, where it is not a property.
  public var expression: String?

  /// The kind of index it is part of.
  public var kind: Kind

  /// Whether it is sorted from small to large.
  public var isAscending: Bool

  /// A column of an index.
  public init(propertyName: String?, expression: String? = nil, kind: Kind = .binary, isAscending: Bool = true) {
    self.propertyName = propertyName
    self.expression = expression
    self.kind = kind
    self.isAscending = isAscending
  }
}
