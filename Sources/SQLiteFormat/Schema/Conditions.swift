/// A partial index's simple condition: NULL tests and integer comparisons, joined by AND.
struct RowCondition: Hashable, Sendable {
  private enum Test: Hashable {
    case isNull, isNotNull
    case compared(String, Int64)
  }

  private struct Term: Hashable {
    let column: Int
    let test: Test
  }

  private let terms: [Term]

  var columns: [Int] { terms.map(\.column) }

  /// Returns nil for a complex clause.
  init?(_ clause: String, of table: TableDefinition) {
    let tokens = SQLTokenizer.tokens(of: clause)
    var terms: [Term] = []
    for part in tokens.split(omittingEmptySubsequences: false, whereSeparator: { $0.isWord("and") }) {
      guard let name = part.first?.name, let column = table.column(named: name),
        let test = Self.test(part.dropFirst()), table.columns[column].generation == nil
      else { return nil }
      if case .compared = test, table.columns[column].affinity == .text { return nil }
      terms.append(Term(column: column, test: test))
    }
    self.terms = terms
  }

  private static func test(_ tokens: ArraySlice<SQLToken>) -> Test? {
    let words = tokens.map { $0.text.lowercased() }
    switch words {
    case ["is", "null"], ["isnull"]: return .isNull
    case ["is", "not", "null"], ["notnull"], ["not", "null"]: return .isNotNull
    default: break
    }
    let signs = words.prefix { ["=", "<", ">", "!"].contains($0) }
    let rest = words.dropFirst(signs.count)
    guard ["=", "==", "<>", "!=", "<", ">", "<=", ">="].contains(signs.joined()), rest.count == 1 || rest.first == "-",
      let number = Int64(["true": "1", "false": "0"][rest.joined(), default: rest.joined()])
    else { return nil }
    return .compared(signs.joined(), number)
  }

  /// Evaluates the condition; nil if undecided.
  ///
  /// - Parameter value: a column's value; nil if unknown.
  func holds(_ value: (Int) -> Value?) -> Bool? {
    var isKnown = true
    for term in terms {
      guard let value = value(term.column) else {
        isKnown = false
        continue
      }
      guard Self.holds(term.test, of: value) else { return false }
    }
    return isKnown ? true : nil
  }

  private static func holds(_ test: Test, of value: Value) -> Bool {
    switch test {
    case .isNull: return value == .null
    case .isNotNull: return value != .null
    case .compared(let sign, let number):
      let order: Int
      switch value {
      case .null: return false
      case .integer(let own): order = own < number ? -1 : own > number ? 1 : 0
      case .real(let own):
        let other = Double(number)
        order = own < other ? -1 : own > other ? 1 : 0
      // Text and blobs sort after all numbers.
      case .text, .blob: order = 1
      }
      return switch sign {
      case "=", "==": order == 0
      case "<>", "!=": order != 0
      case "<": order < 0
      case ">": order > 0
      case "<=": order <= 0
      default: order >= 0
      }
    }
  }
}

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

  private static func names(_ tokens: [SQLToken]?) -> [String] { IndexedColumn.list(tokens ?? []).compactMap(\.name) }

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
