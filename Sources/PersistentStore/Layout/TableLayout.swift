public import ManagedObjectModel

/// An entity's numbers and table in a store.
public struct EntityLayout: Sendable, Hashable {
  /// The entity's name.
  public let name: String

  /// Its number in `Z_ENT`, from 1.
  public let number: Int

  /// The parent's name; nil for a root.
  public let parentName: String?

  /// The parent's number (`Z_SUPER`); 0 for a root.
  public let parentNumber: Int

  /// The root of its hierarchy, which shares its table.
  public let rootName: String

  /// The last descendant's number; its own without descendants.
  public internal(set) var lastDescendantNumber: Int

  /// The table of its records.
  public internal(set) var tableName: String

  /// Whether it has sub-entities.
  public var hasSubentities: Bool { lastDescendantNumber > number }

  /// Whether it is a hierarchy's root.
  public var isRoot: Bool { parentNumber == 0 }

  /// The numbers of the entity and its descendants.
  ///
  /// Depth-first numbering (format section 3.3) makes them one range.
  public var numbers: ClosedRange<Int> { number...max(number, lastDescendantNumber) }
}

/// A hierarchy's table, shared by the root entity and its descendants.
public struct TableLayout: Sendable, Hashable {
  /// The name: `Z` and the upper-cased root entity.
  public let name: String

  /// The hierarchy's root entity.
  public let rootEntityName: String

  /// The columns in a fresh table's order (format section 3.5).
  ///
  /// Columns are always addressed by name.
  public let columns: [ColumnLayout]

  /// The `CREATE` statement in Core Data's form.
  public var statement: String {
    let list = columns.map { column in
      "\(column.sqlName) \(column.type.rawValue)\(column.role == .primaryKey ? " PRIMARY KEY" : "")"
    }
    return "CREATE TABLE \(SQLText.identifier(name)) ( \(list.joined(separator: ", ")) )"
  }

  /// Returns a column by name, ignoring ASCII case as SQLite does.
  public func column(named name: String) -> ColumnLayout? {
    let key = NameAllocator.key(name)
    return columns.first { NameAllocator.key($0.name) == key }
  }
}

/// A join table with the record pairs of a many-to-many relationship (format section 3.6).
public struct JoinTableLayout: Sendable, Hashable {
  /// The name: `Z_`, a number and the upper-cased relationship.
  public let name: String

  /// The naming relationship.
  public let relationship: PropertyKey

  /// The inverse, possibly the same relationship.
  public let inverse: PropertyKey

  /// The column of the naming side's primary key.
  public let sourceColumn: String

  /// The column of the destination's primary key; `REFLEXIVE` for a self-inverse relationship.
  public let destinationColumn: String

  /// The source's position in an ordered inverse.
  public let sourceOrderColumn: String?

  /// The destination's position in an ordered relationship.
  public let destinationOrderColumn: String?

  /// Whether the relationship is its own inverse; both directions are rows then (unverified).
  public var isReflexive: Bool { relationship == inverse }

  /// The integer columns in a fresh table's order.
  public var columns: [String] {
    [sourceColumn, destinationColumn] + [sourceOrderColumn, destinationOrderColumn].compactMap(\.self)
  }

  /// The `CREATE` statement in Core Data's form.
  public var statement: String {
    let list = columns.map { "\(SQLText.identifier($0)) INTEGER" }.joined(separator: ", ")
    let key = [sourceColumn, destinationColumn].map(SQLText.identifier).joined(separator: ", ")
    return "CREATE TABLE \(SQLText.identifier(name)) ( \(list), PRIMARY KEY (\(key)) )"
  }
}

/// Unique names, ignoring ASCII case: a taken name gets the suffix 1, 2, … (format section 3.5, collision rule).
struct NameAllocator {
  private var taken: Set<[UInt8]> = []
  private var nextSuffixes: [[UInt8]: Int] = [:]

  init(reserving names: [String] = []) { for name in names { taken.insert(Self.key(name)) } }

  mutating func allocate(_ name: String) -> String {
    let key = Self.key(name)
    guard !taken.insert(key).inserted else { return name }
    var suffix = nextSuffixes[key] ?? 1
    while true {
      let candidate = "\(name)\(suffix)"
      suffix &+= 1
      if taken.insert(Self.key(candidate)).inserted {
        nextSuffixes[key] = suffix
        return candidate
      }
    }
  }

  static func key(_ name: String) -> [UInt8] {
    name.utf8.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) ? $0 &- 32 : $0 }
  }
}

// MARK: Columns

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

// MARK: Indexes and triggers

/// An index (format section 3.8), named as by Core Data since macOS 10.13.
public struct IndexLayout: Sendable, Hashable {
  /// The purpose of an index.
  public enum Purpose: Sendable, Hashable {
    /// A to-one relationship's inverse lookup.
    case toOne(PropertyKey)

    /// Separation of a hierarchy's entities.
    case entityNumber

    /// A join table's inverse lookup.
    case joinTable

    /// A fetch index, or an attribute marked as indexed in an older model.
    case fetch(entityName: String, indexName: String)

    case uniqueness(entityName: String, properties: [String])
  }

  /// The name, unique among tables and indexes.
  public let name: String

  /// The indexed table.
  public let tableName: String

  /// Whether values are unique.
  public let isUnique: Bool

  /// The indexed columns, in order.
  public let columns: [IndexLayoutColumn]

  /// A partial index's condition, as SQL.
  public let condition: String?

  /// The index's purpose.
  public let purpose: Purpose

  /// The `CREATE` statement in Core Data's form.
  public var statement: String {
    let list = columns.map { column in
      SQLText.identifier(column.name) + (column.isAscending.map { " COLLATE BINARY \($0 ? "ASC" : "DESC")" } ?? "")
    }
    return "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(SQLText.identifier(name)) ON \(SQLText.identifier(tableName)) "
      + "(\(list.joined(separator: ", ")))" + (condition.map { " WHERE \($0)" } ?? "")
  }
}

/// An indexed column.
public struct IndexLayoutColumn: Sendable, Hashable {
  /// The column's name.
  public let name: String

  /// The explicit direction; nil for relationship indexes.
  public let isAscending: Bool?
}

/// An R-tree index: a virtual table for an entity's table (format section 3.8).
public struct SpatialIndexLayout: Sendable, Hashable {
  /// The virtual table's name.
  public let name: String

  /// The declaring entity.
  public let entityName: String

  /// The entity's table.
  public let tableName: String

  /// The indexed columns, one per dimension.
  public let columns: [String]

  /// The `CREATE` statement.
  public var statement: String {
    let bounds = columns.flatMap { column in
      ["\(SQLText.identifier(column + "_MIN")) FLOAT", "\(SQLText.identifier(column + "_MAX")) FLOAT"]
    }
    return "CREATE VIRTUAL TABLE \(SQLText.identifier(name)) USING RTREE "
      + "(Z_PK INTEGER PRIMARY KEY, \(bounds.joined(separator: ", ")))"
  }
}

/// A trigger that maintains a derived attribute or R-tree index (format section 3.9).
public struct TriggerLayout: Sendable, Hashable {
  /// The name, unique among triggers.
  public let name: String

  /// The watched table.
  public let tableName: String

  /// The `CREATE` statement.
  public let statement: String

  /// The derived attribute; nil for R-tree triggers.
  public let derivedAttribute: PropertyKey?
}
