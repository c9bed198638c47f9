import Foundation
import Platform

/// A table with numbers aligned right, fitted to the terminal.
struct TextTable {
  static let accountTints: [Int: Tint] = [2: .doubtful, 3: .bad]

  private let header: [String]
  private var rows: [[String]] = []
  private let numeric: Set<Int>

  /// The columns with tints for nonzero numbers.
  private let tints: [Int: Tint]

  /// The columns to shorten in the middle, in this order; such as paths.
  private let shrinking: [Int]

  /// Whether the last column wraps, for reasons that must stay complete.
  private let wrapsLast: Bool

  private var leftOut = 0

  /// The plural noun of omitted rows; nil to keep all.
  private let rowsWithoutNumbers: String?

  /// - Parameters:
  ///   - zeros: the noun for rows of zeros, such as `entities without records`, which are omitted unless requested.
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

  mutating func append(_ row: String...) { append(row) }

  mutating func append(_ row: [String]) {
    if rowsWithoutNumbers != nil, numeric.allSatisfy({ !row.indices.contains($0) || ["0", ""].contains(row[$0]) }) {
      leftOut += 1
    } else {
      rows.append(row)
    }
  }

  func text(indent: String = "  ") -> String {
    let lines = rows.isEmpty && leftOut > 0 ? "" : body(indent)
    return lines + Self.note(leftOut, rowsWithoutNumbers ?? "", indent: indent)
  }

  static func note(_ count: Int, _ words: String, indent: String = "  ") -> String {
    let words = count == 1 ? ofOne(words) : words
    return count > 0 ? indent + tinted("not shown: \(grouped(count)) \(words); --all shows all", .faint) + "\n" : ""
  }

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

  private func line(_ row: [String], _ widths: [Int], _ indent: String, _ show: (String, Int) -> String) -> String {
    var line = indent
    for (column, cell) in row.enumerated() {
      if column > 0 { line += "  " }
      let padding = String(repeating: " ", count: widths[column] - Tint.width(of: cell))
      let shown = show(cell, column)
      // No trailing spaces.
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

  private static let leastWrappedWidth = 20

  /// Wraps the last column; continuation rows have no other cells.
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

  /// Omits the middle: a path's end is most informative.
  static func shortened(_ text: String, to width: Int) -> String {
    guard text.count > width, width > 2 else { return text }
    let start = (width - 1) / 3
    return text.prefix(start) + "…" + text.suffix(width - 1 - start)
  }
}

enum TextWrapping {
  /// Wraps a line at spaces, with a hanging indent.
  ///
  /// A command to copy is never broken: one that does not fit starts a new line. A word longer than a line stays whole.
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

  /// Splits a line into words with preceding spaces; a command to copy is one word.
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

  private static let labelLimit = 24

  /// The column of continuation lines: after a label, else slightly indented.
  private static func hang(of line: String, after lead: Int) -> Int {
    guard let gap = line.dropFirst(lead).range(of: "  ") else { return lead + 2 }
    let text = line[gap.upperBound...].drop { $0 == " " }
    let column = line.distance(from: line.startIndex, to: text.startIndex)
    return column <= labelLimit && !text.isEmpty ? column : lead + 2
  }
}

/// Formats an RFC 3339 time as `2026-11-21 10:11 UTC`; the start of a month, which may stand for all of it, as
/// `2026-11`; other text unchanged.
func momentText(_ text: String) -> String {
  guard let time = Timestamp(text) else { return printable(text) }
  let moment = time.rfc3339
  if time.isBeginningOfMonth { return String(moment.prefix(7)) }
  return "\(moment.prefix(10)) \(moment.dropFirst(11).prefix(5)) UTC"
}
