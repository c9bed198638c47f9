/// A partial index's simple condition: NULL tests and integer comparisons, joined by AND.
struct RowCondition: Hashable, Sendable {
  private enum Test: Hashable {
    case isNull
    case isNotNull
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
