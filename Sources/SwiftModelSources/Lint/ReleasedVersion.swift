public import ManagedObjectModel

/// A version that stores in the field have, by what is known of it.
public struct ReleasedVersion: Sendable {
  /// Where it is known from.
  public enum Origin: Sendable, Hashable {
    case lock

    case store
  }

  /// The name of the version, or of the store's file.
  public var name: String

  /// Where it is known from.
  public var origin: Origin

  /// The version hash of each entity.
  public var hashes: [String: VersionHash]

  /// The model that the store carries; nil where it is not known.
  public var model: ManagedObjectModel?

  /// A released version.
  public init(
    name: String, origin: Origin, hashes: [String: VersionHash], model: ManagedObjectModel? = nil
  ) {
    self.name = name
    self.origin = origin
    self.hashes = hashes
    self.model = model
  }
}
