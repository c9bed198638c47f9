public import ManagedObjectModel
public import Platform

/// The metadata of a Core Data store: what `Z_METADATA` holds (format section 3.2).
///
/// Every entry of the property list is kept as it is, those of the app and of newer systems included; the properties here
/// are views of the entries that Core Data itself uses.
public struct StoreMetadata: Sendable, Hashable {
  /// The store's identifier, an upper-case UUID in every store that Core Data wrote.
  public var uuid: String

  /// All entries of the property list.
  public var entries: [String: PropertyList]

  /// Takes the entries as they are.
  public init(uuid: String, entries: [String: PropertyList]) {
    self.uuid = uuid
    self.entries = entries
  }

  /// The names of the entries.
  public enum Key {
    /// The type of store.
    public static let storeType = "NSStoreType"

    /// The version hashes of the entities, by entity name.
    public static let versionHashes = "NSStoreModelVersionHashes"

    /// The version of the hashes' algorithm, 3 in every store.
    public static let versionHashesVersion = "NSStoreModelVersionHashesVersion"

    /// The identifiers of the model version.
    public static let versionIdentifiers = "NSStoreModelVersionIdentifiers"

    /// The version of Core Data that wrote the store last.
    public static let frameworkVersion = "NSPersistenceFrameworkVersion"

    /// The auto-vacuum mode, as text.
    public static let autoVacuumLevel = "_NSAutoVacuumLevel"

    /// The digest of the version hashes (fw 969 and later).
    public static let versionHashesDigest = "NSStoreModelVersionHashesDigest"

    /// The checksum of the model version (fw 1321 and later).
    public static let versionChecksum = "NSStoreModelVersionChecksumKey"
  }
}

extension StoreMetadata {
  /// The version of Core Data that new stores name: that of macOS 14 and iOS 17, the first that writes a checksum.
  public static let defaultFrameworkVersion = 1344

  /// The metadata of a new store.
  ///
  /// - Parameters:
  ///   - model: the model the store is created for; hashes, digest and checksum are computed from it.
  ///   - uuid: the store's identifier; letters are made upper-case.
  ///   - frameworkVersion: the version of Core Data that the store says it was written by.
  public init(model: ManagedObjectModel, uuid: String, frameworkVersion: Int = defaultFrameworkVersion) {
    self.init(versionHashes: model.versionHashes(), identifiers: model.versionIdentifiers, uuid: uuid)
    entries[Key.frameworkVersion] = .integer(Int64(frameworkVersion))
  }

  /// The metadata of a store whose model is not at hand, as far as the hashes of its entities tell.
  package init(versionHashes hashes: [String: VersionHash], identifiers: [String], uuid: String) {
    self.init(uuid: uuid.uppercased(), entries: [:])
    entries = [
      Key.storeType: .string("SQLite"),
      Key.versionHashes: .dictionary(hashes.mapValues { .data($0.bytes) }),
      Key.versionHashesVersion: .integer(3),
      Key.versionIdentifiers: .array(identifiers.map { .string($0) }),
      Key.frameworkVersion: .integer(Int64(Self.defaultFrameworkVersion)),
      Key.autoVacuumLevel: .string("2"),
      Key.versionHashesDigest: .string(ManagedObjectModel.versionHashesDigest(of: hashes)),
      Key.versionChecksum: .string(ManagedObjectModel.versionChecksum(of: hashes)),
    ]
  }

  /// The version hashes of the entities the store was written with.
  ///
  /// Entries that are not 32 bytes are left out; `entries` still has them.
  public var versionHashes: [String: VersionHash] {
    guard let hashes = entries[Key.versionHashes]?.dictionary else { return [:] }
    return hashes.compactMapValues { $0.data.flatMap { VersionHash(bytes: $0) } }
  }

  /// The identifiers of the model version the store was written with.
  public var versionIdentifiers: [String] {
    entries[Key.versionIdentifiers]?.array?.compactMap(\.string) ?? []
  }

  /// The version of Core Data that wrote the store last.
  public var frameworkVersion: Int? { entries[Key.frameworkVersion]?.integer.flatMap { Int(exactly: $0) } }

  /// The digest of the version hashes; stores from before macOS 10.15 have none.
  public var versionHashesDigest: String? { entries[Key.versionHashesDigest]?.string }

  /// The checksum of the model version; stores from before macOS 14 have none.
  public var versionChecksum: String? { entries[Key.versionChecksum]?.string }

  /// The type of store, `SQLite` in every store there is.
  public var storeType: String? { entries[Key.storeType]?.string }
}

extension StoreMetadata {
  /// Reads the property list of a store's metadata.
  ///
  /// - Throws: `PersistentStoreError.damagedMetadata` where it is not a property list or not a dictionary.
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

  /// The binary property list that a store holds; the same entries always give the same bytes.
  public func propertyListBytes() throws(PersistentStoreError) -> [UInt8] {
    do {
      return try PropertyList.dictionary(entries).binaryBytes()
    } catch {
      throw PersistentStoreError(.damagedMetadata, operation: "write the store's metadata", detail: error.detail)
    }
  }
}
