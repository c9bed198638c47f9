/// A row of `sqlite_schema`: a table, an index, a view or a trigger.
public struct SchemaEntry: Sendable, Hashable {
  /// What the entry is of.
  public enum Kind: String, Sendable, Hashable {
    /// A table, virtual ones included.
    case table

    /// An index, automatic ones included.
    case index

    case view

    case trigger
  }

  /// What it is.
  public var kind: Kind

  /// Its name.
  public var name: String

  /// The table that it belongs to; its own name for tables and views.
  public var tableName: String

  /// The root page of its b-tree; 0 for views, triggers and virtual tables.
  public var rootPage: UInt32

  /// The statement that makes it; nil for automatic indexes.
  public var sql: String?

  /// The rowid of its row.
  public var rowid: Int64

  /// An entry of the given fields.
  public init(kind: Kind, name: String, tableName: String, rootPage: UInt32, sql: String?, rowid: Int64 = 0) {
    self.kind = kind
    self.name = name
    self.tableName = tableName
    self.rootPage = rootPage
    self.sql = sql
    self.rowid = rowid
  }

  /// The columns of a table, read from its statement; nil for other entries and statements that cannot be read.
  ///
  /// Of a damaged statement the columns are read where it has a b-tree. The name is that of the entry, which stands there twice.
  public var tableDefinition: TableDefinition? {
    guard kind == .table, let sql else { return nil }
    var definition = TableDefinition(sql: sql)
    if definition == nil, rootPage > 0 { definition = TableDefinition(damagedSQL: sql, name: name) }
    if name == tableName { definition?.name = name }
    return definition
  }

  /// The columns of an index, read from its statement; nil for other entries and automatic indexes.
  public var indexDefinition: IndexDefinition? {
    kind == .index ? sql.flatMap { IndexDefinition(sql: $0) } : nil
  }
}

extension SchemaEntry {
  /// The most bytes of one statement that are read: SQLite's own default limit.
  static let maximumSQLLength = 1_000_000

  /// An entry from the record of a row of `sqlite_schema`; nil where it is none.
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
