public import ManagedObjectModel
public import Platform

/// The content of `Z_METADATA` in a Core Data store (format section 3.2).
///
/// All property list entries are preserved, including the app's and newer systems'; properties show those Core Data
/// uses.
public struct StoreMetadata: Sendable, Hashable {
  /// The store's identifier, an upper-case UUID if by Core Data.
  public var uuid: String

  /// All property list entries.
  public var entries: [String: PropertyList]

  /// Creates metadata from entries.
  public init(uuid: String, entries: [String: PropertyList]) {
    self.uuid = uuid
    self.entries = entries
  }

  /// The entries' names.
  public enum Key {
    /// The store type.
    public static let storeType = "NSStoreType"

    /// Version hashes by entity name.
    public static let versionHashes = "NSStoreModelVersionHashes"

    /// The hash algorithm's version, 3 in every store.
    public static let versionHashesVersion = "NSStoreModelVersionHashesVersion"

    /// The model version's identifiers.
    public static let versionIdentifiers = "NSStoreModelVersionIdentifiers"

    /// Core Data's version at the last write.
    public static let frameworkVersion = "NSPersistenceFrameworkVersion"

    /// The auto-vacuum mode, as text.
    public static let autoVacuumLevel = "_NSAutoVacuumLevel"

    /// The digest of version hashes (fw 969 and later).
    public static let versionHashesDigest = "NSStoreModelVersionHashesDigest"

    /// The model version's checksum (fw 1321 and later).
    public static let versionChecksum = "NSStoreModelVersionChecksumKey"
  }
}

extension StoreMetadata {
  /// Core Data's version in new stores: macOS 14 and iOS 17, the first with a checksum.
  public static let defaultFrameworkVersion = 1344

  /// Creates a new store's metadata.
  ///
  /// - Parameters:
  ///   - model: the source of hashes, digest and checksum.
  ///   - uuid: the identifier; upper-cased.
  ///   - frameworkVersion: the Core Data version to claim.
  public init(model: ManagedObjectModel, uuid: String, frameworkVersion: Int = defaultFrameworkVersion) {
    self.init(versionHashes: model.versionHashes(), identifiers: model.versionIdentifiers, uuid: uuid)
    entries[Key.frameworkVersion] = .integer(Int64(frameworkVersion))
  }

  /// Creates metadata from entity hashes without a model.
  package init(versionHashes hashes: [String: VersionHash], identifiers: [String], uuid: String) {
    self.init(uuid: uuid.uppercased(), entries: [:])
    entries = [
      Key.storeType: .string("SQLite"), Key.versionHashes: .dictionary(hashes.mapValues { .data($0.bytes) }),
      Key.versionHashesVersion: .integer(3), Key.versionIdentifiers: .array(identifiers.map { .string($0) }),
      Key.frameworkVersion: .integer(Int64(Self.defaultFrameworkVersion)), Key.autoVacuumLevel: .string("2"),
      Key.versionHashesDigest: .string(ManagedObjectModel.versionHashesDigest(of: hashes)),
      Key.versionChecksum: .string(ManagedObjectModel.versionChecksum(of: hashes)),
    ]
  }

  /// The entities' version hashes, without entries other than 32 bytes.
  public var versionHashes: [String: VersionHash] {
    guard let hashes = entries[Key.versionHashes]?.dictionary else { return [:] }
    return hashes.compactMapValues { $0.data.flatMap { VersionHash(bytes: $0) } }
  }

  /// The model version's identifiers.
  public var versionIdentifiers: [String] { entries[Key.versionIdentifiers]?.array?.compactMap(\.string) ?? [] }

  /// Core Data's version at the last write.
  public var frameworkVersion: Int? { entries[Key.frameworkVersion]?.integer.flatMap { Int(exactly: $0) } }

  /// The digest of version hashes; absent before macOS 10.15.
  public var versionHashesDigest: String? { entries[Key.versionHashesDigest]?.string }

  /// The model version's checksum; absent before macOS 14.
  public var versionChecksum: String? { entries[Key.versionChecksum]?.string }

  /// The store type, always `SQLite`.
  public var storeType: String? { entries[Key.storeType]?.string }
}

extension StoreMetadata {
  /// Reads a metadata property list.
  ///
  /// - Throws: `PersistentStoreError.damagedMetadata` unless it is a dictionary.
  public init(uuid: String, propertyList bytes: [UInt8]) throws(PersistentStoreError) {
    let list: PropertyList
    do {
      list = try PropertyList(bytes)
    } catch {
      throw PersistentStoreError(.damagedMetadata, operation: "read the store's metadata", detail: error.detail)
    }
    guard let entries = list.dictionary else {
      throw PersistentStoreError(
        .damagedMetadata, operation: "read the store's metadata", detail: "it is not a dictionary")
    }
    self.init(uuid: uuid, entries: entries)
  }

  /// Returns the binary property list, identical for equal entries.
  public func propertyListBytes() throws(PersistentStoreError) -> [UInt8] {
    do {
      return try PropertyList.dictionary(entries).binaryBytes()
    } catch {
      throw PersistentStoreError(.damagedMetadata, operation: "write the store's metadata", detail: error.detail)
    }
  }
}
