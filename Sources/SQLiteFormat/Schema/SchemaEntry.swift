/// A row of `sqlite_schema`: a table, index, view or trigger.
public struct SchemaEntry: Sendable, Hashable {
  /// The kind of an entry.
  public enum Kind: String, Sendable, Hashable {
    case table

    case index

    case view

    case trigger
  }

  /// The kind.
  public var kind: Kind

  /// The name.
  public var name: String

  /// The table that it belongs to; its own name for tables and views.
  public var tableName: String

  /// The b-tree's root page; 0 for views, triggers and virtual tables.
  public var rootPage: UInt32

  /// The creating statement; nil for automatic indexes.
  public var sql: String?

  /// The rowid.
  public var rowid: Int64

  /// Creates an entry.
  public init(kind: Kind, name: String, tableName: String, rootPage: UInt32, sql: String?, rowid: Int64 = 0) {
    self.kind = kind
    self.name = name
    self.tableName = tableName
    self.rootPage = rootPage
    self.sql = sql
    self.rowid = rowid
  }

  /// The table's definition, if readable.
  ///
  /// A damaged statement is read if the table has a b-tree, with the entry's name.
  public var tableDefinition: TableDefinition? {
    guard kind == .table, let sql else { return nil }
    var definition = TableDefinition(sql: sql)
    if definition == nil, rootPage > 0 { definition = TableDefinition(damagedSQL: sql, name: name) }
    if name == tableName { definition?.name = name }
    return definition
  }

  /// The index's definition; nil for automatic indexes.
  public var indexDefinition: IndexDefinition? {
    kind == .index ? sql.flatMap { IndexDefinition(sql: $0) } : nil
  }
}

extension SchemaEntry {
  /// SQLite's default limit.
  static let maximumSQLLength = 1_000_000

  /// Reads a row of `sqlite_schema`; nil if invalid.
  public init?(_ record: Record, rowid: Int64) {
    let values = record.values
    guard values.count >= 5, let kind = values[0].string.flatMap(Kind.init(rawValue:)), let name = values[1].string,
      let tableName = values[2].string
    else { return nil }
    let root: UInt32
    switch values[3] {
    case .integer(let page) where page >= 0 && page <= Int64(UInt32.max): root = UInt32(page)
    case .null: root = 0
    case .integer, .real, .text, .blob: return nil
    }
    switch values[4] {
    case .text(let text) where text.bytes.count <= SchemaEntry.maximumSQLLength:
      self.init(kind: kind, name: name, tableName: tableName, rootPage: root, sql: text.string, rowid: rowid)
    case .null:
      self.init(kind: kind, name: name, tableName: tableName, rootPage: root, sql: nil, rowid: rowid)
    case .integer, .real, .text, .blob: return nil
    }
  }
}
