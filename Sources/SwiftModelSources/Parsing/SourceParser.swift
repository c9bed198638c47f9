#if SwiftSources
  internal import SwiftParser
  internal import SwiftSyntax

  enum SourceParser {
    /// Real code has a dozen levels.
    private static let maximumNestingLevel = 128

    static func parse(_ bytes: [UInt8], file: String, conditions: BuildConditions, isAside: Bool) -> ParsedSource {
      guard SourceScan.isBounded(bytes) else {
        var result = ParsedSource()
        result.findings.append(
          SourceFinding(
            .unreadableSource, .warning, place: SourcePlace(file: file, line: 1, column: 1),
            detail: "the file is nested more deeply than code is, and is left out",
            hint: "Leave it out, or write it with less nesting."))
        return result
      }
      var parser = Parser(String(decoding: bytes, as: UTF8.self), maximumNestingLevel: maximumNestingLevel)
      let tree = SourceFileSyntax.parse(from: &parser)
      let lines = LineTable(file: file, bytes: bytes)
      var reader = DeclarationReader(conditions: conditions, lines: lines)
      reader.read(tree.statements)
      var result = reader.result
      if RootReader.isWorthReading(bytes) {
        var roots = RootReader(lines: lines, isAside: isAside)
        roots.read(tree)
        result.roots = roots.roots
        result.lists = roots.lists
      }
      if tree.hasError, let place = Self.firstError(in: tree, lines) {
        result.findings.append(
          SourceFinding(
            .unreadableSource, .warning, place: place, detail: "the file cannot be read as Swift from here on",
            hint: "Correct the file, or leave it out; what it declares may be read wrongly."))
      }
      return result
    }

    private static func firstError(in tree: SourceFileSyntax, _ lines: LineTable) -> SourcePlace? {
      var waiting: [Syntax] = [Syntax(tree)]
      while let node = waiting.popLast() {
        if node.is(UnexpectedNodesSyntax.self) || node.as(TokenSyntax.self)?.presence == .missing {
          return lines.place(of: node.positionAfterSkippingLeadingTrivia.utf8Offset)
        }
        waiting += node.children(viewMode: .all).reversed().filter { $0.hasError || $0.is(UnexpectedNodesSyntax.self) }
      }
      return lines.place(of: 0)
    }
  }
#endif
