/// A table's foreign keys and the columns in its expressions.
package struct TableConditions: Sendable, Hashable {
  package struct Target: Sendable, Hashable {
    package var table: String

    /// The column; nil for the primary key.
    package var column: String?
  }

  package private(set) var targets: [String: Target] = [:]

  /// The lower-case words of CHECK constraints and generated columns.
  package private(set) var words: Set<String> = []

  package init(sql: String) {
    var reader = TokenReader(SQLTokenizer.tokens(of: sql))
    while let token = reader.peek, !token.isSymbol("(") { _ = reader.next() }
    for item in (reader.takeParenthesized() ?? []).splitAtCommas { read(item) }
  }

  private mutating func read(_ item: [SQLToken]) {
    var reader = TokenReader(item)
    var referring = [reader.peek?.name].compactMap(\.self)
    while let token = reader.next() {
      if token.isWord("foreign") {
        _ = reader.takeWord("key")
        referring = Self.names(reader.takeParenthesized())
      } else if token.isWord("references"), let table = reader.next()?.name {
        let columns = Self.names(reader.takeParenthesized())
        for (place, name) in referring.enumerated() {
          let column = columns.indices.contains(place) ? columns[place] : nil
          targets[name.lowercased()] = Target(table: table, column: column)
        }
      } else if token.isWord("check") || token.isWord("as") {
        for token in reader.takeParenthesized() ?? [] {
          if let name = token.name { words.insert(name.lowercased()) }
        }
      }
    }
  }

  private static func names(_ tokens: [SQLToken]?) -> [String] {
    IndexedColumn.list(tokens ?? []).compactMap(\.name)
  }

  /// Returns the lower-case words of an index with a condition or expressions.
  package static func words(ofIndex sql: String) -> Set<String> {
    guard let definition = IndexDefinition(sql: sql),
      definition.isPartial || definition.columns.contains(where: { $0.name == nil })
    else { return [] }
    var reader = TokenReader(SQLTokenizer.tokens(of: sql))
    var words: Set<String> = []
    while let token = reader.next() {
      if let name = token.name { words.insert(name.lowercased()) }
    }
    return words
  }
}
