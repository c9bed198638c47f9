internal import Foundation
public import ManagedObjectModel
public import Platform
public import SystemPackage

/// The version hashes of the versions that have been released, so that a later edit of one is noticed.
///
/// A JSON file that is kept in version control beside the model:
/// `{"format":1,"order":["V1"],"versions":{"V1":{"checksum":"<base64>","entities":{"Car":"<64 hex digits>"}}}}`; a version
/// of Swift sources has its `declaration` too.
public struct ModelLock: Sendable, Hashable, Codable {
  /// The hashes of one version.
  public struct Version: Sendable, Hashable, Codable {
    /// The checksum of the version, in base 64.
    public var checksum: String

    /// The version hash of each entity as 64 hexadecimal digits.
    public var entities: [String: String]

    /// The version as a `VersionedSchema` in Swift, which it can be frozen from later; nil for models of another kind.
    public var declaration: String?

    /// The hashes of a version, and its declaration where it is kept.
    public init(_ version: ModelVersion, declaration: String? = nil) {
      checksum = version.checksum
      entities = version.versionHashes.mapValues(\.hex)
      self.declaration = declaration
    }
  }

  /// The number of the file's format; 1.
  public var format: Int

  /// The versions in the order in which they were released, oldest first; nil in files of earlier versions of this software.
  public var order: [String]?

  /// The versions by name.
  public var versions: [String: Version]

  /// The hashes of every version of a bundle as it is now.
  ///
  /// - Parameters:
  ///   - earlier: the lock that it takes the place of, whose order stands; new versions come after it.
  ///   - declaration: a version as a schema in Swift; nil for one that is kept without.
  public init(
    _ bundle: ModelBundle, after earlier: ModelLock? = nil, declaration: (ModelVersion) -> String? = { _ in nil }
  ) {
    format = 1
    if bundle.order.isGiven {
      order = bundle.versions.map(\.name)
    } else {
      let drafts = Self.drafts(in: bundle).map(\.name)
      let names = bundle.versions(upTo: bundle.current).map(\.name).filter { !drafts.contains($0) }
      let known = (earlier?.order ?? []).filter { name in bundle.versions.contains { $0.name == name } }
      order = known + names.filter { !known.contains($0) }
    }
    versions = Dictionary(
      bundle.versions.map { ($0.name, Version($0, declaration: declaration($0))) },
      uniquingKeysWith: { first, _ in first })
  }

  /// The versions that are taken for drafts, and left out of the order: nothing but their names tells where they belong, these
  /// come after the current one's, and they have what it lacks.
  public static func drafts(in bundle: ModelBundle) -> [ModelVersion] {
    guard !bundle.order.isGiven else { return [] }
    return bundle.versions.filter { version in
      bundle.order.relation(version.name, to: bundle.current.name) == nil
        && bundle.order.comes(version.name, after: bundle.current.name)
        && !version.model.surplus(over: [bundle.current.model]).isEmpty
    }
  }

  /// Whether a version is in the lock and has not been edited since.
  public func holds(_ version: ModelVersion) -> Bool { versions[version.name]?.entities == Version(version).entities }

  /// A bundle with its versions in the order in which they were released, the current one last where it is not among them.
  ///
  /// The versions that the lock lacks are drafts: nothing leads through them.
  ///
  /// - Parameters:
  ///   - target: the version that a migration leads to; the current one if not given.
  ///   - path: the lock file, for the error.
  /// - Throws: `model-lock-invalid` where the lock tells no order.
  public func ordered(_ bundle: ModelBundle, to target: String? = nil, path: FilePath? = nil) throws -> ModelBundle {
    guard let order else {
      throw MigrationError(
        .lockInvalid, operation: "read the lock file", path: path,
        detail: "it does not say which version came first",
        hint:
          "Write it anew with: lazaret model lint --lock <file> --write-lock, with --versions where names do not tell.")
    }
    var names = order.filter { bundle.version(named: $0) != nil }
    for name in [bundle.current.name, target ?? bundle.current.name] where !names.contains(name) { names.append(name) }
    return try bundle.ordered(names, to: target)
  }

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
    do throws(FileError) {
      let bytes = try JSON.bytes(of: self, to: "write the lock file", at: path)
      // It describes models and no records, and lies among the sources of an app.
      try fileSystem.writeAtomically(bytes, to: path, replacing: true, permissions: .init(rawValue: 0o644))
    } catch {
      throw MigrationError(error)
    }
  }
}
