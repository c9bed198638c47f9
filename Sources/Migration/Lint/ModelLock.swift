internal import Foundation
public import ManagedObjectModel
public import StoreFiles
public import SystemPackage

/// The version hashes of the versions that have been released, so that a later edit of one is noticed.
///
/// A JSON file that is kept in version control beside the model:
/// `{"format":1,"versions":{"V1":{"checksum":"<base64>","entities":{"Car":"<64 hex digits>"}}}}`.
public struct ModelLock: Sendable, Hashable, Codable {
  /// The hashes of one version.
  public struct Version: Sendable, Hashable, Codable {
    /// The checksum of the version, in base 64.
    public var checksum: String

    /// The version hash of each entity as 64 hexadecimal digits.
    public var entities: [String: String]

    /// The hashes of a version.
    public init(_ version: ModelVersion) {
      checksum = version.checksum
      entities = version.versionHashes.mapValues(\.hex)
    }
  }

  /// The number of the file's format; 1.
  public var format: Int

  /// The versions by name.
  public var versions: [String: Version]

  /// The hashes of every version of a bundle as it is now.
  public init(_ bundle: ModelBundle) {
    format = 1
    versions = Dictionary(
      bundle.versions.map { ($0.name, Version($0)) }, uniquingKeysWith: { first, _ in first })
  }

  /// Whether a version is in the lock and has not been edited since.
  public func holds(_ version: ModelVersion) -> Bool { versions[version.name]?.entities == Version(version).entities }

  /// Reads a lock file; nil where there is none.
  ///
  /// - Throws: `MigrationError`: `file` where it cannot be read, `lockInvalid` where it is something else.
  public static func read(
    _ path: FilePath, fileSystem: FileSystem = FileSystem()
  ) throws(MigrationError) -> ModelLock? {
    let bytes: [UInt8]
    do throws(FileError) {
      guard try fileSystem.status(of: path) != nil else { return nil }
      bytes = try fileSystem.contents(of: path, limit: 64 << 20)
    } catch {
      throw MigrationError(error)
    }
    let lock: ModelLock
    do {
      lock = try JSONDecoder().decode(ModelLock.self, from: Data(bytes))
    } catch {
      throw MigrationError(
        .lockInvalid, operation: "read the lock file", path: path, detail: "it is no lock file of version hashes")
    }
    guard lock.format == 1 else {
      throw MigrationError(
        .lockInvalid, operation: "read the lock file", path: path,
        detail: "it is of format \(lock.format), and only format 1 is known")
    }
    return lock
  }

  /// Writes the lock file, whole or not at all; the same bundle gives the same bytes.
  ///
  /// - Throws: `MigrationError.Kind.file` where it cannot be written.
  public func write(to path: FilePath, fileSystem: FileSystem = FileSystem()) throws(MigrationError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let bytes: [UInt8]
    do {
      bytes = Array(try encoder.encode(self)) + [UInt8(ascii: "\n")]
    } catch {
      throw MigrationError(
        .lockInvalid, operation: "write the lock file", path: path, detail: "the hashes cannot be written as JSON")
    }
    do throws(FileError) {
      try fileSystem.writeAtomically(bytes, to: path, replacing: true)
    } catch {
      throw MigrationError(error)
    }
  }
}
