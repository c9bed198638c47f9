/// The version hashes of a bundle as JSON: what `model hashes --json` prints.
///
/// `{"versions":[{"name":"V2","current":true,"checksum":"<base64>","entities":{"Car":"<64 hex digits>"}}]}`; keys may
/// be added, never changed.
public struct ModelHashesJSON: Codable, Sendable, Hashable {
  /// The hashes of one version.
  public struct Version: Codable, Sendable, Hashable {
    /// The name of the version.
    public var name: String

    /// Whether it is the current version.
    public var current: Bool

    /// The checksum of the version, in base 64.
    public var checksum: String

    /// The version hash of each entity as 64 hexadecimal digits.
    public var entities: [String: String]

    /// The entities whose hash cannot be told, in order; left out where there are none.
    ///
    /// The checksum is empty where there are any.
    public var incomplete: [String]?
  }

  /// The versions, oldest first.
  public var versions: [Version]

  /// The hashes of every version of a bundle.
  ///
  /// - Parameter incomplete: the entities of a version whose hash cannot be told; none unless given.
  public init(_ bundle: ModelBundle, incomplete: (String) -> Set<String> = { _ in [] }) {
    versions = bundle.versions.map { version in
      let missing = incomplete(version.name)
      return Version(
        name: version.name, current: version.isCurrent, checksum: missing.isEmpty ? version.checksum : "",
        entities: version.versionHashes.filter { !missing.contains($0.key) }.mapValues(\.hex),
        incomplete: missing.isEmpty ? nil : missing.sorted(by: precedesByCodeUnit))
    }
  }
}
