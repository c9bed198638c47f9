public import ManagedObjectModel

/// One version of a model that sources declare.
public struct SourceVersion: Sendable {
  /// The version; entities that are not complete lack what could not be resolved.
  public var version: ModelVersion

  /// Where the schema, or the list of types, stands.
  public var place: SourcePlace?

  /// The whole name of its `VersionedSchema`; nil for the types that the app itself lists.
  public var schemaName: String?

  /// Whether a migration plan lists it.
  public var isPlanned: Bool

  /// The names of entities whose hash cannot be told.
  public var incompleteEntities: Set<String>

  /// Where the class of each entity is declared.
  public var classes: [String: SourcePlace]

  /// The whole name of the class of each entity.
  public var classNames: [String: String]

  /// Whether every entity is complete, and the list of types could be followed.
  public var isComplete: Bool

  /// The name.
  public var name: String { version.name }
}

/// A stage of a migration plan.
public struct SourceStage: Sendable, Hashable {
  /// The version it leads from.
  public var source: String

  /// The version it leads to.
  public var destination: String

  /// Whether it runs code of the app.
  public var isCustom: Bool

  /// Where it is declared.
  public var place: SourcePlace
}
