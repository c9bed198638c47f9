public import ManagedObjectModel

/// A column of a store's table.
public struct ColumnLayout: Sendable, Hashable {
  /// The declared name.
  public let name: String

  /// The declared type.
  public let type: ColumnType

  /// The content of the column.
  public let role: ColumnRole

  /// The name in SQL, quoted if necessary.
  public var sqlName: String { SQLText.identifier(name) }
}

/// A declared column type (format section 1.2).
public enum ColumnType: String, Sendable, Hashable {
  case integer = "INTEGER"
  case float = "FLOAT"
  case timestamp = "TIMESTAMP"
  case decimal = "DECIMAL"
  case varchar = "VARCHAR"
  case blob = "BLOB"

  /// Returns the declared type of an attribute type; nil for composites, which have a column per leaf.
  ///
  /// Undefined and object-identifier attributes are `BLOB` by our choice: Core Data stores neither (unverified).
  public init?(_ type: AttributeType) {
    switch type {
    case .integer16, .integer32, .integer64, .boolean: self = .integer
    case .double, .float: self = .float
    case .date: self = .timestamp
    case .decimal: self = .decimal
    case .string, .uri: self = .varchar
    case .binary, .uuid, .transformable, .undefined, .objectID: self = .blob
    case .composite: return nil
    }
  }
}

/// The content of an entity table's column (format section 3.5).
public enum ColumnRole: Sendable, Hashable {
  /// `Z_PK`: the primary key, unique in the hierarchy.
  case primaryKey

  /// `Z_ENT`: the number of the record's entity.
  case entityNumber

  /// `Z_OPT`: the save count, from 1.
  case saveCount

  case attribute(PropertyKey, type: AttributeType)

  /// A composite attribute's leaf; the path excludes the attribute.
  case compositeLeaf(PropertyKey, path: [String], type: AttributeType)

  /// A to-one destination's primary key.
  case toOne(PropertyKey)

  /// `Z<n>_…`: a to-one destination's entity number, if it has sub-entities.
  case toOneEntity(PropertyKey)

  /// `Z_FOK_…`: the position in the ordered to-many inverse of this to-one relationship.
  case toOneOrder(PropertyKey)

  /// `Z<n>…`: the primary key of the owner through another entity's to-many relationship without an inverse.
  case owner(PropertyKey)

  /// `Z_FOK_<n>…`: the position in such a relationship, if ordered (unverified).
  case ownerOrder(PropertyKey)

  /// The stored property; nil for the three columns of every table.
  public var property: PropertyKey? {
    switch self {
    case .primaryKey, .entityNumber, .saveCount: nil
    case .attribute(let key, _), .compositeLeaf(let key, _, _), .toOne(let key), .toOneEntity(let key),
      .toOneOrder(let key), .owner(let key), .ownerOrder(let key):
      key
    }
  }
}

/// A property with its declaring entity.
public struct PropertyKey: Sendable, Hashable, CustomStringConvertible {
  /// The declaring entity.
  public let entityName: String

  /// The property's name.
  public let name: String

  /// Creates a key.
  public init(entityName: String, name: String) {
    self.entityName = entityName
    self.name = name
  }

  /// Entity and property, joined by a period.
  public var description: String { "\(entityName).\(name)" }
}
