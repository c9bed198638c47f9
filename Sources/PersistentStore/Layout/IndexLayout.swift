/// An index of a store (format section 3.8), under the name that Core Data of macOS 10.13 and later gives it.
public struct IndexLayout: Sendable, Hashable {
  /// Why there is an index.
  public enum Purpose: Sendable, Hashable {
    /// Following a to-one relationship back.
    case toOne(PropertyKey)

    /// Telling the entities of a hierarchy apart.
    case entityNumber

    /// Following a join table back.
    case joinTable

    /// A fetch index of the model, or an attribute that an older model calls indexed.
    case fetch(entityName: String, indexName: String)

    /// A uniqueness constraint of the model.
    case uniqueness(entityName: String, properties: [String])
  }

  /// The name, unique among the store's tables and indexes.
  public let name: String

  /// The table it indexes.
  public let tableName: String

  /// Whether it allows each value once.
  public let isUnique: Bool

  /// The indexed columns, in order.
  public let columns: [IndexedColumn]

  /// The condition of a partial index, as SQL.
  public let condition: String?

  /// Why it is there.
  public let purpose: Purpose

  /// The statement that creates it, as Core Data writes it.
  public var statement: String {
    let list = columns.map { column in
      SQLText.identifier(column.name) + (column.isAscending.map { " COLLATE BINARY \($0 ? "ASC" : "DESC")" } ?? "")
    }
    return "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(SQLText.identifier(name)) ON \(SQLText.identifier(tableName)) "
      + "(\(list.joined(separator: ", ")))" + (condition.map { " WHERE \($0)" } ?? "")
  }
}

/// A column of an index.
public struct IndexedColumn: Sendable, Hashable {
  /// The name of the column.
  public let name: String

  /// The direction, where the statement says one; nil in indexes of relationships, which say none.
  public let isAscending: Bool?
}

/// An R-tree index: a virtual table beside the entity's own (format section 3.8).
public struct SpatialIndexLayout: Sendable, Hashable {
  /// The name of the virtual table.
  public let name: String

  /// The entity that declares the index.
  public let entityName: String

  /// The table of the entity.
  public let tableName: String

  /// The indexed columns of the entity's table, one for each dimension.
  public let columns: [String]

  /// The statement that creates it.
  public var statement: String {
    let bounds = columns.flatMap { column in
      ["\(SQLText.identifier(column + "_MIN")) FLOAT", "\(SQLText.identifier(column + "_MAX")) FLOAT"]
    }
    return "CREATE VIRTUAL TABLE \(SQLText.identifier(name)) USING RTREE "
      + "(Z_PK INTEGER PRIMARY KEY, \(bounds.joined(separator: ", ")))"
  }
}

/// A trigger of a store: one that keeps a derived attribute or an R-tree index up to date (format section 3.9).
public struct TriggerLayout: Sendable, Hashable {
  /// The name, unique among the store's triggers.
  public let name: String

  /// The table whose changes set it off.
  public let tableName: String

  /// The statement that creates it.
  public let statement: String

  /// The derived attribute it computes; nil for the triggers of R-tree indexes.
  public let derivedAttribute: PropertyKey?
}
