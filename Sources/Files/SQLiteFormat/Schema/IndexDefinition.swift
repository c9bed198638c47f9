/// An index as its `CREATE INDEX` statement declares it, read without SQLite.
public struct IndexDefinition: Sendable, Hashable {
  /// The name.
  public var name: String

  /// The name of its table.
  public var tableName: String

  /// Whether it is UNIQUE.
  public var isUnique = false

  /// The columns in their order.
  public var columns: [IndexedColumn]

  /// Whether it has a WHERE clause and so does not hold every row.
  public var isPartial: Bool { condition != nil }

  /// The WHERE clause, tokens separated by one space; nil where there is none.
  public var condition: String?

  /// Reads a `CREATE INDEX` statement; nil where it is none.
  public init?(sql: String) {
    var reader = TokenReader(SQLTokenizer.tokens(of: sql))
    guard reader.takeWord("create") else { return nil }
    isUnique = reader.takeWord("unique")
    guard reader.takeWord("index") else { return nil }
    if reader.takeWord("if") {
      _ = reader.takeWord("not")
      _ = reader.takeWord("exists")
    }
    guard let name = reader.takeQualifiedName(), reader.takeWord("on"), let table = reader.next()?.name,
      let list = reader.takeParenthesized()
    else { return nil }
    self.name = name
    tableName = table
    columns = IndexedColumn.list(list)
    if reader.takeWord("where") { condition = reader.rest.map(\.text).joined(separator: " ") }
  }
}
