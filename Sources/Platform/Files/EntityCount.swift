/// The record count of an entity, or the row count of a table.
public struct EntityCount: Sendable, Hashable, Codable {
  /// The entity, or the table if no entity is known.
  public var name: String

  /// The SQL table, such as `ZCAR`.
  public var table: String

  /// The count; nil if not counted or the table is unreadable.
  public var rows: Int64?

  /// Makes a count.
  public init(name: String, table: String, rows: Int64? = nil) {
    self.name = name
    self.table = table
    self.rows = rows
  }
}
