public import ManagedObjectModel

/// A version known from stores in the field.
public struct ReleasedVersion: Sendable {
  /// The source of this knowledge.
  public enum Origin: Sendable, Hashable {
    case lock

    case store
  }

  /// The name of the version, or of the store's file.
  public var name: String

  /// The source of this knowledge.
  public var origin: Origin

  /// The version hash of each entity.
  public var hashes: [String: VersionHash]

  /// The store's model, if known.
  public var model: ManagedObjectModel?

  /// Creates a released version.
  public init(
    name: String, origin: Origin, hashes: [String: VersionHash], model: ManagedObjectModel? = nil
  ) {
    self.name = name
    self.origin = origin
    self.hashes = hashes
    self.model = model
  }
}
