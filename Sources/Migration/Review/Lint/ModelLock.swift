internal import Foundation
public import ManagedObjectModel
public import Platform
public import SystemPackage

/// The version hashes of released versions, to detect later edits.
///
/// A JSON file in version control next to the model:
/// `{"format":1,"order":["V1"],"versions":{"V1":{"checksum":"<base64>","entities":{"Car":"<64 hex digits>"}}}}`;
/// versions of Swift sources also have a `declaration`.
public struct ModelLock: Sendable, Hashable, Codable {
  /// The hashes of a version.
  public struct Version: Sendable, Hashable, Codable {
    /// The version checksum in base 64.
    public var checksum: String

    /// The entities' version hashes as 64 hexadecimal digits.
    public var entities: [String: String]

    /// The `VersionedSchema` in Swift to freeze it from; nil for other models.
    public var declaration: String?

    /// Makes a version's hashes.
    public init(_ version: ModelVersion, declaration: String? = nil) {
      checksum = version.checksum
      entities = version.versionHashes.mapValues(\.hex)
      self.declaration = declaration
    }
  }

  /// The format number, 1.
  public var format: Int

  /// The release order, oldest first; nil in older files.
  public var order: [String]?

  /// The versions by name.
  public var versions: [String: Version]

  /// Makes the hashes of a bundle's versions.
  ///
  /// - Parameters:
  ///   - earlier: The previous lock; new versions follow its order.
  ///   - declaration: Returns a version as a Swift schema, or nil.
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

  /// Returns the presumed drafts, left out of the order: ordered by name only, after the current version, with things
  /// it lacks.
  public static func drafts(in bundle: ModelBundle) -> [ModelVersion] {
    guard !bundle.order.isGiven else { return [] }
    return bundle.versions.filter { version in
      bundle.order.relation(version.name, to: bundle.current.name) == nil
        && bundle.order.comes(version.name, after: bundle.current.name)
        && !version.model.surplus(over: [bundle.current.model]).isEmpty
    }
  }

  /// Whether a version is locked and unedited.
  public func holds(_ version: ModelVersion) -> Bool { versions[version.name]?.entities == Version(version).entities }

  package static let writeAnew = "Write it anew, with the order of the versions where names do not tell."

  /// Returns the bundle in release order, an unlocked current version last.
  ///
  /// Unlocked versions are drafts and on no path.
  ///
  /// - Parameters:
  ///   - target: The migration's target; the current version by default.
  ///   - path: The lock file, for the error.
  /// - Throws: `model-lock-invalid` if the lock has no order.
  public func ordered(_ bundle: ModelBundle, to target: String? = nil, path: FilePath? = nil) throws -> ModelBundle {
    guard let order else {
      throw MigrationError(
        .lockInvalid, operation: "read the lock file", path: path,
        detail: "it does not say which version came first", hint: Self.writeAnew)
    }
    var names = order.filter { bundle.version(named: $0) != nil }
    for name in [bundle.current.name, target ?? bundle.current.name] where !names.contains(name) { names.append(name) }
    return try bundle.ordered(names, to: target)
  }

  /// Reads a lock file; nil if it does not exist.
  ///
  /// - Throws: `FileError`, or `MigrationError`: `lockInvalid`.
  public static func read(_ path: FilePath, fileSystem: FileSystem = FileSystem()) throws -> ModelLock? {
    guard try fileSystem.status(of: path) != nil else { return nil }
    let bytes = try fileSystem.contents(of: path, limit: 64 << 20)
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

  /// Writes the lock file atomically; equal bundles give equal bytes.
  ///
  /// - Throws: `FileError`.
  public func write(to path: FilePath, fileSystem: FileSystem = FileSystem()) throws {
    let bytes = try JSON.bytes(of: self, to: "write the lock file", at: path)
    // It describes models without records and belongs to an app's sources.
    try fileSystem.writeAtomically(bytes, to: path, replacing: true, permissions: .init(rawValue: 0o644))
  }
}
