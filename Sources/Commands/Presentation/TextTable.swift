import Foundation
import Platform

/// A table of text for people: columns as wide as they need, numbers to the right; on a terminal no wider than it is.
struct TextTable {
  /// The tints of the columns of a salvage's account: doubtful, and lost.
  static let accountTints: [Int: Tint] = [2: .doubtful, 3: .bad]

  private let header: [String]
  private var rows: [[String]] = []
  private let numeric: Set<Int>

  /// The columns whose numbers are shown in a tint where they are not zero.
  private let tints: [Int: Tint]

  /// The columns that are shortened in the middle where the table is too wide, the first ones first; such as paths.
  private let shrinking: [Int]

  /// Whether the last column is broken into lines where the table is too wide; for reasons, of which no word may be missing.
  private let wrapsLast: Bool

  /// Rows of nothing but zeros that were left out.
  private var leftOut = 0

  /// What a row is about, in words for several of them; nil where no row is ever left out.
  private let rowsWithoutNumbers: String?

  /// - Parameters:
  ///   - zeros: what rows of nothing but zeros are about, such as `entities without records`; they are left out unless all are wanted.
  init(
    _ header: [String], numericColumns numeric: Set<Int> = [], tints: [Int: Tint] = [:], shrinking: [Int] = [],
    wrapsLast: Bool = false, leavingOut zeros: String? = nil
  ) {
    self.header = header
    self.numeric = numeric
    self.tints = tints
    self.shrinking = shrinking
    self.wrapsLast = wrapsLast
    rowsWithoutNumbers = TextStyle.current.showsZeros ? nil : zeros
  }

  mutating func append(_ row: [String]) {
    if rowsWithoutNumbers != nil, numeric.allSatisfy({ !row.indices.contains($0) || ["0", ""].contains(row[$0]) }) {
      leftOut += 1
    } else {
      rows.append(row)
    }
  }

  /// The lines, each indented, and one on the rows that were left out.
  func text(indent: String = "  ") -> String {
    let lines = rows.isEmpty && leftOut > 0 ? "" : body(indent)
    return lines + Self.note(leftOut, rowsWithoutNumbers ?? "", indent: indent)
  }

  /// The line on rows that were left out; empty where none was.
  static func note(_ count: Int, _ words: String, indent: String = "  ") -> String {
    let words = count == 1 ? ofOne(words) : words
    return count > 0 ? indent + tinted("not shown: \(grouped(count)) \(words); --all shows all", .faint) + "\n" : ""
  }

  /// Words for several of what is left out, as they are for one of it.
  private static func ofOne(_ words: String) -> String {
    for (several, one) in [("entities ", "entity "), ("tables ", "table ")] where words.hasPrefix(several) {
      return one + words.dropFirst(several.count)
    }
    return words
  }

  private func body(_ indent: String) -> String {
    var rows = rows.map { row in row.map { TextStyle.current.shortened($0) } }
    let width = Terminal.standardOutput.width.map { $0 - indent.count }
    fit(&rows, into: width)
    if wrapsLast, let width { rows = wrapped(rows, into: width) }
    let widths = Self.widths([header] + rows)
    var lines = line(header, widths, indent) { cell, _ in tinted(cell, .strong) }
    for row in rows {
      lines += line(row, widths, indent) { cell, column in
        ["0", "–", ""].contains(cell) ? cell : tinted(cell, tints[column])
      }
    }
    return lines
  }

  private func line(
    _ row: [String], _ widths: [Int], _ indent: String, _ show: (String, Int) -> String
  ) -> String {
    var line = indent
    for (column, cell) in row.enumerated() {
      if column > 0 { line += "  " }
      let padding = String(repeating: " ", count: widths[column] - Tint.width(of: cell))
      let shown = show(cell, column)
      // No line ends with spaces.
      let isLast = row[(column + 1)...].allSatisfy(\.isEmpty)
      line += numeric.contains(column) ? padding + shown : isLast ? shown : shown + padding
      if isLast { break }
    }
    return line + "\n"
  }

  private static func widths(_ rows: [[String]]) -> [Int] {
    (0..<(rows.map(\.count).max() ?? 0)).map { column in
      rows.map { $0.count > column ? Tint.width(of: $0[column]) : 0 }.max() ?? 0
    }
  }

  /// The least columns of a cell that is shortened.
  private static let leastWidth = 12

  private func fit(_ rows: inout [[String]], into width: Int?) {
    guard let width else { return }
    for column in shrinking {
      let widths = Self.widths([header] + rows)
      let excess = widths.reduce(0, +) + 2 * (widths.count - 1) - width
      guard excess > 0, widths.indices.contains(column) else { return }
      let limit = max(Self.leastWidth, widths[column] - excess)
      for index in rows.indices where rows[index].count > column {
        rows[index][column] = Self.shortened(rows[index][column], to: limit)
      }
    }
  }

  /// The least columns of a cell that is broken into lines.
  private static let leastWrappedWidth = 20

  /// The rows with the cells of the last column broken into lines; each line after the first is a row without other cells.
  private func wrapped(_ rows: [[String]], into width: Int) -> [[String]] {
    let others = Self.widths([header] + rows).prefix(header.count - 1).reduce(0) { $0 + $1 + 2 }
    let limit = max(Self.leastWrappedWidth, width - others)
    return rows.flatMap { row -> [[String]] in
      guard row.count == header.count, let cell = row.last else { return [row] }
      let lines = TextWrapping.lines(of: cell, width: limit)
      return lines.enumerated().map { number, line in
        (number == 0 ? Array(row.dropLast()) : [String](repeating: "", count: row.count - 1)) + [line]
      }
    }
  }

  /// A text with its middle left out: the end tells most of a path.
  static func shortened(_ text: String, to width: Int) -> String {
    guard text.count > width, width > 2 else { return text }
    let start = (width - 1) / 3
    return text.prefix(start) + "…" + text.suffix(width - 1 - start)
  }
}

/// A line of text fitted into the columns of a terminal.
enum TextWrapping {
  /// The lines that a line becomes: broken at spaces, what follows indented under its beginning.
  ///
  /// A command to be copied is never broken: one that does not fit begins a line of its own. A word that is wider than a line
  /// stays whole.
  static func lines(of line: String, width: Int) -> [String] {
    guard Tint.width(of: line) > width else { return [line] }
    let lead = line.prefix { $0 == " " }.count
    guard !line.dropFirst(lead).prefix(while: { $0 != " " }).hasSuffix(tool) else { return [line] }
    let indent = String(repeating: " ", count: hang(of: line, after: lead))
    var result: [String] = []
    var current = ""
    var isEmpty = true
    for (gap, word) in pieces(of: line) {
      if !isEmpty, Tint.width(of: current) + gap.count + Tint.width(of: String(word)) > width {
        result.append(current)
        (current, isEmpty) = (indent, true)
      }
      if !isEmpty || result.isEmpty { current += gap }
      current += word
      isEmpty = false
    }
    result.append(current)
    return result
  }

  /// The words with the spaces before each; a command to be copied is one word.
  private static func pieces(of line: String) -> [(gap: Substring, word: Substring)] {
    var text = line[...]
    var command = Substring()
    if let range = line.range(of: ": \(tool) ") {
      let colon = line.index(after: range.lowerBound)
      text = line[..<colon]
      command = line[line.index(after: colon)...]
    }
    var result: [(Substring, Substring)] = []
    while !text.isEmpty {
      let gap = text.prefix { $0 == " " }
      let word = text.dropFirst(gap.count).prefix { $0 != " " }
      result.append((gap, word))
      text = text.dropFirst(gap.count + word.count)
    }
    if !command.isEmpty { result.append((" ", command)) }
    return result
  }

  private static let tool = "lazaret"

  /// The most columns of a label that what follows is indented under.
  private static let labelLimit = 24

  /// The column that the lines after the first begin at: under what follows a label, else a little to the right.
  private static func hang(of line: String, after lead: Int) -> Int {
    guard let gap = line.dropFirst(lead).range(of: "  ") else { return lead + 2 }
    let text = line[gap.upperBound...].drop { $0 == " " }
    let column = line.distance(from: line.startIndex, to: text.startIndex)
    return column <= labelLimit && !text.isEmpty ? column : lead + 2
  }
}
