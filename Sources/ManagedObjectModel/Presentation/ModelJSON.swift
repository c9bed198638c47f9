/// A bundle of models as JSON: what `model show --json` prints.
///
/// Keys may be added, never changed. What is not there is null or left out; whatever is false is left out too.
public struct ModelJSON: Codable, Sendable, Hashable {
  /// One version of the model.
  public struct Version: Codable, Sendable, Hashable {
    public var name: String
    public var current: Bool

    /// The checksum of the version, in base 64.
    public var checksum: String
    public var identifiers: [String]
    public var entities: [Entity]
    public var configurations: [String: [String]]
    public var fetchRequests: [String: FetchRequest]
  }

  /// An entity with what it declares itself.
  public struct Entity: Codable, Sendable, Hashable {
    public var name: String
    public var className: String?
    public var abstract: Bool
    public var parent: String?
    public var renamingIdentifier: String?
    public var versionHashModifier: String?

    /// The version hash as 64 hexadecimal digits.
    public var hash: String
    public var attributes: [Attribute]
    public var relationships: [Relationship]
    public var fetchedProperties: [FetchedProperty]
    public var uniquenessConstraints: [[String]]
    public var indexes: [Index]
    public var userInfo: [String: String]
  }

  /// An attribute.
  public struct Attribute: Codable, Sendable, Hashable {
    public var name: String
    public var type: String
    public var optional: Bool
    public var transient: Bool?
    public var `default`: String?
    public var minimum: String?
    public var maximum: String?
    public var pattern: String?
    public var valueClass: String?
    public var transformer: String?
    public var externalStorage: Bool?
    public var preservedInHistory: Bool?
    public var derivation: String?
    public var elements: [Attribute]?
    public var renamingIdentifier: String?
    public var versionHashModifier: String?
    public var userInfo: [String: String]?
  }

  /// A relationship.
  public struct Relationship: Codable, Sendable, Hashable {
    public var name: String
    public var destination: String
    public var inverse: String?
    public var toMany: Bool
    public var ordered: Bool?
    public var optional: Bool
    public var transient: Bool?
    public var minimumCount: Int
    public var maximumCount: Int

    /// `no-action`, `nullify`, `cascade` or `deny`.
    public var deleteRule: String
    public var renamingIdentifier: String?
    public var versionHashModifier: String?
    public var userInfo: [String: String]?
  }

  /// A fetched property.
  public struct FetchedProperty: Codable, Sendable, Hashable {
    public var name: String
    public var fetchRequest: FetchRequest?
  }

  /// A fetch request.
  public struct FetchRequest: Codable, Sendable, Hashable {
    public var entity: String
    public var predicate: String?
  }

  /// A fetch index, or a compound index of an older model, which has no name.
  public struct Index: Codable, Sendable, Hashable {
    public var name: String?
    public var elements: [Element]
    public var predicate: String?

    /// One column of an index.
    public struct Element: Codable, Sendable, Hashable {
      public var property: String?
      public var expression: String?

      /// `binary` or `r-tree`.
      public var kind: String
      public var ascending: Bool
    }
  }

  /// A version that could not be read.
  public struct Unreadable: Codable, Sendable, Hashable {
    public var name: String
    public var code: String
    public var detail: String
  }

  public var name: String
  public var versions: [Version]

  /// The versions that could not be read; left out where there are none.
  public var unreadableVersions: [Unreadable]?
}
