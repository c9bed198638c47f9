/// How many records of an entity, or rows of a table, a store has.
public struct EntityCount: Sendable, Hashable, Codable {
  /// The entity, or the table where no entity is known.
  public var name: String

  /// The table in SQL, such as `ZCAR`.
  public var table: String

  /// How many there are; nil where they were not counted, or where the table cannot be read to its end.
  public var rows: Int64?

  /// A count, or nil where there is none.
  public init(name: String, table: String, rows: Int64? = nil) {
    self.name = name
    self.table = table
    self.rows = rows
  }
}
