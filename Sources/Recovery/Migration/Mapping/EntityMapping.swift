/// What becomes of the records of one entity: the mapping from an entity of the source to one of the destination.
///
/// It is about the records of that very entity; those of its sub-entities have mappings of their own.
public struct EntityMapping: Sendable, Hashable {
  /// The kind of mapping; raw values are Core Data's own numbers (format section 2.3).
  public enum Kind: Int, Sendable, Hashable, CaseIterable {
    /// Not said; read from mapping models that leave it open.
    case undefined = 0

    /// Carried out by a policy or by expressions.
    case custom = 1

    /// The entity is new: there are no records.
    case add = 2

    /// The entity is gone: its records are deleted.
    case remove = 3

    /// The version hashes are equal: the records stay as they are.
    case copy = 4

    /// The entity has changed: its records are rewritten.
    case transform = 5
  }

  /// The name, unique within the mapping model, such as `IEM_Transform_Car`.
  public var name: String

  /// The kind of mapping.
  public var kind: Kind

  /// The entity whose records are read; nil where the entity is new.
  public var sourceEntityName: String?

  /// The entity whose records are made; nil where the entity is gone.
  public var destinationEntityName: String?

  /// One mapping for each property that the destination stores, inherited ones included, in the order of their names.
  public var propertyMappings: [PropertyMapping]

  /// The class of the policy that carries it out, where there is one.
  public var policyClassName: String?

  /// Which of the source's records are meant; nil for all.
  public var sourceFilter: MappingExpression?

  /// Free text for custom steps.
  public var userInfo: [String: String]

  /// Maps one entity.
  public init(
    name: String, kind: Kind, source: String?, destination: String?, propertyMappings: [PropertyMapping] = [],
    policyClassName: String? = nil, sourceFilter: MappingExpression? = nil, userInfo: [String: String] = [:]
  ) {
    self.name = name
    self.kind = kind
    sourceEntityName = source
    destinationEntityName = destination
    self.propertyMappings = propertyMappings
    self.policyClassName = policyClassName
    self.sourceFilter = sourceFilter
    self.userInfo = userInfo
  }

  /// The mapping of a property of the destination.
  public func propertyMapping(of destination: PropertyPath) -> PropertyMapping? {
    propertyMappings.first { $0.destination == destination }
  }

  /// Whether the records keep their entity's name and every property its name and value.
  public var isIdentity: Bool {
    switch kind {
    case .copy, .transform: sourceEntityName == destinationEntityName && propertyMappings.allSatisfy(\.isIdentity)
    case .undefined, .custom, .add, .remove: false
    }
  }
}
