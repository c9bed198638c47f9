/// A column of an index or of a key.
public struct IndexedColumn: Sendable, Hashable {
  /// The column's name; nil where an expression is indexed.
  public var name: String?

  /// The collation's name, where one is given.
  public var collation: String?

  /// Whether it is in descending order.
  public var isDescending = false

  /// A column in ascending order.
  public init(name: String? = nil, collation: String? = nil) {
    self.name = name
    self.collation = collation
  }

  /// The columns of a list between parentheses.
  static func list(_ tokens: [SQLToken]) -> [IndexedColumn] {
    tokens.splitAtCommas.map { part in
      var rest = part
      var column = IndexedColumn()
      while let last = rest.last {
        if rest.count > 1, last.isWord("autoincrement") {
          // Only a key may have it, which is then the rowid.
          rest.removeLast()
        } else if rest.count > 1, last.isWord("asc") || last.isWord("desc") {
          column.isDescending = last.isWord("desc")
          rest.removeLast()
        } else if rest.count > 2, rest[rest.count - 2].isWord("collate") {
          column.collation = last.name
          rest.removeLast(2)
        } else if rest.count > 2, last.isSymbol(")"), rest.first?.isSymbol("(") == true {
          // A name in parentheses is a column; anything else stays an expression.
          rest = Array(rest.dropFirst().dropLast())
        } else {
          break
        }
      }
      column.name = rest.count == 1 ? rest[0].name : nil
      return column
    }
  }
}
