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
