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
  }

  /// The versions, oldest first.
  public var versions: [Version]

  /// The hashes of every version of a bundle.
  public init(_ bundle: ModelBundle) {
    versions = bundle.versions.map { version in
      Version(
        name: version.name, current: version.isCurrent, checksum: version.checksum,
        entities: version.versionHashes.mapValues(\.hex))
    }
  }
}
