import StoreFiles

/// One version of an app's model.
public struct ModelVersion: Sendable, Hashable {
  /// The name of the version: that of its file or folder, without extension.
  public let name: String

  /// The model of this version.
  public let model: ManagedObjectModel

  /// Whether the bundle names it as the current version.
  public let isCurrent: Bool

  /// The version hash of each entity, computed from the model.
  public let versionHashes: [String: VersionHash]

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

  /// The checksum of the version, as stores keep it (base 64).
  public var checksum: String { ManagedObjectModel.versionChecksum(of: versionHashes) }

  /// The names of entities whose computed hash is not the one that the bundle has stored, in order.
  ///
  /// Always empty, unless the bundle was put together from files of different versions.
  public var mismatchedEntityNames: [String] {
    guard let storedHashes else { return [] }
    return Set(storedHashes.keys).union(versionHashes.keys)
      .filter { storedHashes[$0] != versionHashes[$0] }.inCodeUnitOrder()
  }
}
