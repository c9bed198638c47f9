import StoreFiles

/// One version of an app's model.
public struct ModelVersion: Sendable, Hashable {
  /// The name of the version: that of its file or folder, without extension.
  public let name: String

  /// The model of this version.
  public let model: ManagedObjectModel

  /// Whether the bundle names it as the current version.
  public private(set) var isCurrent: Bool

  /// The version hash of each entity, computed from the model; none of an entity that is not known whole.
  public private(set) var versionHashes: [String: VersionHash]

  /// The entities that are not known whole, so that they have no hash.
  public private(set) var incompleteEntities: Set<String> = []

  /// Whether the whole version is known, so that it has a checksum.
  public private(set) var isComplete = true

  /// The hashes that a compiled bundle's `VersionInfo.plist` has for the version, where it has any.
  public let storedHashes: [String: VersionHash]?

  /// The checksum that a compiled bundle's `VersionInfo.plist` has for the version, where it has one.
  public let storedChecksum: String?

  /// A version; its hashes are computed here, once.
  public init(
    name: String, model: ManagedObjectModel, isCurrent: Bool, storedHashes: [String: VersionHash]? = nil,
    storedChecksum: String? = nil
  ) {
    self.name = name
    self.model = model
    self.isCurrent = isCurrent
    versionHashes = model.versionHashes()
    self.storedHashes = storedHashes
    self.storedChecksum = storedChecksum
  }

  /// The same version in a bundle whose current one has a certain name.
  func named(current: String) -> ModelVersion {
    var version = self
    version.isCurrent = name == current
    return version
  }

  /// The same version, of which not everything could be read.
  package func incomplete(_ entities: Set<String>) -> ModelVersion {
    var version = self
    version.isComplete = false
    version.incompleteEntities = entities
    for name in entities { version.versionHashes[name] = nil }
    return version
  }

  /// The checksum of the version, as stores keep it (base 64); empty for one that is not known whole.
  public var checksum: String { isComplete ? ManagedObjectModel.versionChecksum(of: versionHashes) : "" }

  /// The names of entities whose computed hash is not the one that the bundle has stored, in order.
  ///
  /// Always empty, unless the bundle was put together from files of different versions.
  public var mismatchedEntityNames: [String] {
    guard let storedHashes else { return [] }
    return Set(storedHashes.keys).union(versionHashes.keys)
      .filter { storedHashes[$0] != versionHashes[$0] }.inCodeUnitOrder()
  }
}
