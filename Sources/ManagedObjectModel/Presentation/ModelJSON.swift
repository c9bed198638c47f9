/// A bundle of models as JSON: what `model show --json` prints.
///
/// Keys may be added, never changed. What is not there is null or left out; whatever is false is left out too.
public struct ModelJSON: Codable, Sendable, Hashable {
  /// One version of the model.
  public struct Version: Codable, Sendable, Hashable {
    /// The name.
    public var name: String

    /// Whether it is the current version.
    public var current: Bool

    /// The checksum of the version, in base 64.
    public var checksum: String

    /// The identifiers that the developer gave the version.
    public var identifiers: [String]

    /// The entities by name, in order.
    public var entities: [Entity]

    /// The entities of each configuration.
    public var configurations: [String: [String]]

    /// The fetch requests by name.
    public var fetchRequests: [String: FetchRequest]
  }

  /// An entity with what it declares itself.
  public struct Entity: Codable, Sendable, Hashable {
    /// The name.
    public var name: String

    /// The class the app represents it with.
    public var className: String?

    /// Whether no record is of this entity itself.
    public var abstract: Bool

    /// The entity it inherits from.
    public var parent: String?

    /// What it is matched by across versions, where that is not its name.
    public var renamingIdentifier: String?

    /// The text that changes its version hash.
    public var versionHashModifier: String?

    /// The version hash as 64 hexadecimal digits.
    public var hash: String

    /// The attributes it declares, by name.
    public var attributes: [Attribute]

    /// The relationships it declares, by name.
    public var relationships: [Relationship]

    /// The fetched properties it declares, by name.
    public var fetchedProperties: [FetchedProperty]

    /// The uniqueness constraints it declares, each a list of attributes.
    public var uniquenessConstraints: [[String]]

    /// The indexes it declares.
    public var indexes: [Index]

    /// The text that the developer attached.
    public var userInfo: [String: String]
  }

  /// An attribute.
  public struct Attribute: Codable, Sendable, Hashable {
    /// The name.
    public var name: String

    /// The type, as model sources call it (`Integer 16`).
    public var type: String

    /// Whether a record may lack it.
    public var optional: Bool

    /// Whether it is never stored.
    public var transient: Bool?

    /// The value of new records, as model sources write it.
    public var `default`: String?

    /// The lower bound, of the length for text.
    public var minimum: String?

    /// The upper bound, of the length for text.
    public var maximum: String?

    /// The pattern that text must match.
    public var pattern: String?

    /// The class of the value, where the type does not tell it.
    public var valueClass: String?

    /// The transformer of a transformable attribute.
    public var transformer: String?

    /// Whether large values may lie beside the store.
    public var externalStorage: Bool?

    /// Whether history keeps the value of deleted records.
    public var preservedInHistory: Bool?

    /// The expression it is computed from.
    public var derivation: String?

    /// The leaves of a composite.
    public var elements: [Attribute]?

    /// What it is matched by across versions, where that is not its name.
    public var renamingIdentifier: String?

    /// The text that changes its version hash.
    public var versionHashModifier: String?

    /// The text that the developer attached.
    public var userInfo: [String: String]?
  }

  /// A relationship.
  public struct Relationship: Codable, Sendable, Hashable {
    /// The name.
    public var name: String

    /// The entity it leads to.
    public var destination: String

    /// The relationship that leads back.
    public var inverse: String?

    /// Whether it leads to any number of records.
    public var toMany: Bool

    /// Whether the destinations have an order.
    public var ordered: Bool?

    /// Whether a record may lack it.
    public var optional: Bool

    /// Whether it is never stored.
    public var transient: Bool?

    /// The smallest number of destinations.
    public var minimumCount: Int

    /// The largest number of destinations; 0 for no limit.
    public var maximumCount: Int

    /// `no-action`, `nullify`, `cascade` or `deny`.
    public var deleteRule: String

    /// What it is matched by across versions, where that is not its name.
    public var renamingIdentifier: String?

    /// The text that changes its version hash.
    public var versionHashModifier: String?

    /// The text that the developer attached.
    public var userInfo: [String: String]?
  }

  /// A fetched property.
  public struct FetchedProperty: Codable, Sendable, Hashable {
    /// The name.
    public var name: String

    /// The request whose result is its value.
    public var fetchRequest: FetchRequest?
  }

  /// A fetch request.
  public struct FetchRequest: Codable, Sendable, Hashable {
    /// The entity it fetches.
    public var entity: String

    /// The predicate, in predicate format.
    public var predicate: String?
  }

  /// A fetch index, or a compound index of an older model, which has no name.
  public struct Index: Codable, Sendable, Hashable {
    /// The name.
    public var name: String?

    /// The columns, the most significant first.
    public var elements: [Element]

    /// The filter of a partial index, in predicate format.
    public var predicate: String?

    /// One column of an index.
    public struct Element: Codable, Sendable, Hashable {
      /// The property it indexes.
      public var property: String?

      /// The expression it indexes, where it is not a property.
      public var expression: String?

      /// `binary` or `r-tree`.
      public var kind: String

      /// Whether it is sorted from small to large.
      public var ascending: Bool
    }
  }

  /// A version that could not be read.
  public struct Unreadable: Codable, Sendable, Hashable {
    /// The name.
    public var name: String

    /// The code of the error.
    public var code: String

    /// What is wrong with it.
    public var detail: String
  }

  /// The name of the bundle.
  public var name: String

  /// The versions, oldest first.
  public var versions: [Version]

  /// The versions that could not be read; left out where there are none.
  public var unreadableVersions: [Unreadable]?
}
