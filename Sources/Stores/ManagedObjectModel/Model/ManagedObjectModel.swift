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

extension ManagedObjectModel {
  /// The entity of that name.
  public func entity(named name: String) -> Entity? { entities[name] }

  /// The entity and its ancestors, itself first, root last.
  ///
  /// Ends where a parent is missing or comes up a second time, so that it ends on any model.
  public func lineage(of name: String) -> [Entity] {
    var result: [Entity] = []
    var seen: Set<String> = []
    var next: String? = name
    while let current = next, let entity = entities[current], seen.insert(current).inserted {
      result.append(entity)
      next = entity.parentName
    }
    return result
  }

  /// The root of the entity's hierarchy; its own name where it has no parent.
  public func rootName(of name: String) -> String { lineage(of: name).last?.name ?? name }

  /// The names of the entities that inherit from this one directly, in no particular order.
  public func childNames(of name: String) -> [String] {
    entities.values.filter { $0.parentName == name }.map(\.name)
  }

  /// The names of all entities that inherit from this one, itself left out, in no particular order.
  public func descendantNames(of name: String) -> Set<String> {
    var result: Set<String> = []
    var waiting = childNames(of: name)
    while let next = waiting.popLast() {
      guard next != name, result.insert(next).inserted else { continue }
      waiting += childNames(of: next)
    }
    return result
  }

  /// All properties of an entity, inherited ones included; a property declared nearer to the entity wins.
  public func properties(of name: String) -> [String: InheritedProperty] {
    var result: [String: InheritedProperty] = [:]
    for ancestor in lineage(of: name).reversed() {
      for (name, property) in ancestor.properties {
        result[name] = InheritedProperty(property: property, declaringEntityName: ancestor.name)
      }
    }
    return result
  }
}

/// A property together with the entity that declares it.
public struct InheritedProperty: Sendable, Hashable {
  /// The property.
  public var property: Property

  /// The entity that declares it.
  public var declaringEntityName: String
}
