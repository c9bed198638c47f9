public import ManagedObjectModel

/// A column of a store's table: its name, its declared type and what is in it.
public struct ColumnLayout: Sendable, Hashable {
  /// The name, as the table declares it.
  public let name: String

  /// The type that the table declares.
  public let type: ColumnType

  /// What it holds.
  public let role: ColumnRole

  /// The name as it stands in SQL, quoted where it must be.
  public var sqlName: String { SQLText.identifier(name) }
}

/// The declared type of a column (format section 1.2).
public enum ColumnType: String, Sendable, Hashable {
  case integer = "INTEGER"
  case float = "FLOAT"
  case timestamp = "TIMESTAMP"
  case decimal = "DECIMAL"
  case varchar = "VARCHAR"
  case blob = "BLOB"

  /// The declared type for attributes of that type; nil for composites, which have one column for each leaf.
  ///
  /// Undefined and object-identifier attributes are `BLOB`: Core Data stores neither, so this is our choice (unverified).
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

/// What a column of an entity's table holds (format section 3.5).
public enum ColumnRole: Sendable, Hashable {
  /// `Z_PK`: the primary key, shared by a hierarchy.
  case primaryKey

  /// `Z_ENT`: the number of the record's own entity.
  case entityNumber

  /// `Z_OPT`: how often the record was saved, from 1.
  case saveCount

  /// The value of an attribute.
  case attribute(PropertyKey, type: AttributeType)

  /// The value of one leaf of a composite attribute; the path leads from the attribute's own elements to the leaf.
  case compositeLeaf(PropertyKey, path: [String], type: AttributeType)

  /// The primary key of a to-one relationship's destination.
  case toOne(PropertyKey)

  /// `Z<n>_…`: the entity number of a to-one relationship's destination, where that has sub-entities.
  case toOneEntity(PropertyKey)

  /// `Z_FOK_…`: the record's place in the ordered to-many relationship that is the inverse of this to-one.
  case toOneOrder(PropertyKey)

  /// `Z<n>…`: the primary key of the record that owns this one through a to-many relationship without an inverse, which
  /// is declared by the other entity.
  case owner(PropertyKey)

  /// `Z_FOK_<n>…`: the record's place among those of its owner, where that relationship is ordered (unverified).
  case ownerOrder(PropertyKey)

  /// The property whose data it is; nil for the three columns that every table has.
  public var property: PropertyKey? {
    switch self {
    case .primaryKey, .entityNumber, .saveCount: nil
    case .attribute(let key, _), .compositeLeaf(let key, _, _), .toOne(let key), .toOneEntity(let key),
      .toOneOrder(let key), .owner(let key), .ownerOrder(let key):
      key
    }
  }
}

/// A property, named by the entity that declares it.
public struct PropertyKey: Sendable, Hashable, CustomStringConvertible {
  /// The entity that declares the property.
  public let entityName: String

  /// The name of the property.
  public let name: String

  /// Names a property of an entity.
  public init(entityName: String, name: String) {
    self.entityName = entityName
    self.name = name
  }

  /// Entity and property, joined by a point.
  public var description: String { "\(entityName).\(name)" }
}
