/// The mapping models of a file or folder that fit the versions of a model, and what is wrong with the others.
public struct LoadedMappingModels: Sendable {
  /// The mapping models that can be used.
  ///
  /// Of several that lead from the same version to the same version, the first is the one that loses the fewest
  /// entities, else the one that needs the fewest policies, else the first by path.
  public var mappings: [MappingModel] = []

  /// Why each of the other files gives no mapping: `mapping-stale`, `expression-unsupported` or `mapping-invalid`, with
  /// the file's path.
  public var notes: [MigrationError] = []
}
