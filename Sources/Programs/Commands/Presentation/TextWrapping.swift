import Foundation

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
