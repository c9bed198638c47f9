/// One step of a migration: from one version of a model to another.
public struct MigrationStep: Sendable, Hashable {
  /// The name of the version it starts from; nil for a model that is in no bundle, known from a store's cache.
  public let sourceName: String?

  /// The name of the version it leads to.
  public let destinationName: String

  /// The mapping: a custom one where one was given, else an inferred one.
  public let mapping: MappingModel

  /// Custom mappings between the same versions that were given as well and not chosen, in the order of their names.
  public let alternatives: [MappingModel]

  /// A step.
  public init(
    from sourceName: String?, to destinationName: String, mapping: MappingModel, alternatives: [MappingModel] = []
  ) {
    self.sourceName = sourceName
    self.destinationName = destinationName
    self.mapping = mapping
    self.alternatives = alternatives
  }

  /// The step in words, such as `V1 → V2`.
  public var name: String { Self.name(from: sourceName, to: destinationName) }

  /// The name of a step between two versions.
  static func name(from source: String?, to destination: String) -> String {
    "\(source ?? "the store's model") → \(destination)"
  }
}
