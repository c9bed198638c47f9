/// A managed object model: the entities of one version of an app's data, their properties and their relationships.
///
/// A value without behaviour of its own; it is read from model source, from a compiled model or from the cache inside a
/// store, and knows nothing of SQL.
public struct ManagedObjectModel: Sendable, Hashable {
  /// The entities by name.
  ///
  /// Every `parentName`, `destinationEntityName` and `inverseName` in them has been checked by `validate()`.
  public var entities: [String: Entity]

  /// The identifiers that the developer gave this version, often one empty string.
  public var versionIdentifiers: [String]

  /// The named configurations, each a list of entity names.
  public var configurations: [String: [String]]

  /// The fetch requests stored in the model, by name.
  public var fetchRequests: [String: FetchRequestTemplate]

  /// A model; of entities with the same name the first counts.
  public init(
    entities: [Entity] = [],
    versionIdentifiers: [String] = [],
    configurations: [String: [String]] = [:],
    fetchRequests: [String: FetchRequestTemplate] = [:]
  ) {
    self.entities = Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    self.versionIdentifiers = versionIdentifiers
    self.configurations = configurations
    self.fetchRequests = fetchRequests
  }
}

/// A fetch request that is stored in a model under a name.
public struct FetchRequestTemplate: Sendable, Hashable {
  /// The entity it fetches.
  public var entityName: String

  /// The predicate in predicate format, where it has one that could be read.
  public var predicateFormat: String?

  /// A fetch request.
  public init(entityName: String, predicateFormat: String? = nil) {
    self.entityName = entityName
    self.predicateFormat = predicateFormat
  }
}
