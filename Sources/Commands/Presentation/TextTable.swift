/// A table of text for a terminal: columns as wide as they need, numbers to the right.
struct TextTable {
  private var rows: [[String]]
  private let numeric: Set<Int>

  init(_ header: [String], numericColumns numeric: Set<Int> = []) {
    rows = [header]
    self.numeric = numeric
  }

  mutating func append(_ row: [String]) { rows.append(row) }

  /// The lines, each indented.
  func text(indent: String = "  ") -> String {
    let count = rows.map(\.count).max() ?? 0
    let widths = (0..<count).map { column in rows.map { $0.count > column ? $0[column].count : 0 }.max() ?? 0 }
    return rows.map { row in
      let cells = row.enumerated().map { column, cell in
        let padding = String(repeating: " ", count: widths[column] - cell.count)
        return numeric.contains(column) ? padding + cell : cell + padding
      }
      var line = indent + cells.joined(separator: "  ")
      while line.last == " " { line.removeLast() }
      return line + "\n"
    }.joined()
  }
}
