internal import Platform

/// The text output of `model lint`.
public struct LintListing: Sendable {
  /// The lines.
  public private(set) var lines: [String] = []

  package static let releasedSteps = "more between released versions, not listed here."

  /// Lists the findings by version and step.
  public init(_ lint: ModelLint, width: Int = 100) {
    var place: String?
    for finding in lint.findings {
      if finding.place != place {
        if place != nil { lines.append("") }
        lines.append(printable(finding.place))
        place = finding.place
      }
      if let file = finding.file { lines.append("  \(printable(file)):\(finding.line ?? 1):") }
      lines += Self.wrapped(
        "\(finding.severity.rawValue): \(finding.detail) [\(finding.rule.rawValue)]", indent: "  ", width)
      lines += Self.wrapped(finding.hint, indent: "      ", width)
    }
    if lint.findings.isEmpty {
      lines.append("nothing found")
    } else {
      let errors = lint.findings.count { $0.severity == .error }
      lines += [
        "",
        "\(lint.findings.count) \(lint.findings.count == 1 ? "finding" : "findings")"
          + (errors == 0 ? "" : ", \(errors) of them \(errors == 1 ? "an error" : "errors")"),
      ]
    }
    if lint.releasedFindingCount > 0 {
      lines.append("\(lint.releasedFindingCount) \(Self.releasedSteps)")
    }
  }

  /// The lines with line feeds.
  public var text: String { lines.map { $0 + "\n" }.joined() }

  private static func wrapped(_ text: String, indent: String, _ width: Int) -> [String] {
    var lines: [String] = []
    var line = indent
    var isEmpty = true
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      if !isEmpty, line.count + 1 + word.count > width {
        lines.append(line)
        line = indent + "  "
        isEmpty = true
      }
      line += isEmpty ? String(word) : " \(word)"
      isEmpty = false
    }
    return lines + [line]
  }
}
