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
