internal import StoreFiles

/// A report as text for a terminal.
public struct VerificationListing: Sendable {
  private let report: VerificationReport

  /// Prepares the text of a report.
  public init(_ report: VerificationReport) { self.report = report }

  /// The text, with a line end at its end.
  public var text: String {
    var lines = ["\(printable(report.model)) to \(printable(report.to)), seed \(report.seed)"]
    if report.versions.isEmpty { lines += ["", "There is no earlier version that differs from it."] }
    for version in report.versions { lines += [""] + self.lines(for: version) }
    if !report.unreadableVersions.isEmpty {
      lines += [""]
      lines += report.unreadableVersions.map { "\(printable($0.name)) cannot be read and was not checked [\($0.code)]" }
    }
    lines += ["", summary]
    return lines.joined(separator: "\n") + "\n"
  }

  private var summary: String {
    switch report.outcome {
    case .fine: "Every version migrates, and nothing is lost."
    case .lossy: "Every version migrates; something is lost."
    case .conditional: "Stores with certain records do not migrate."
    case .failed: "Something does not migrate as it should."
    }
  }

  private func lines(for version: VerificationReport.Version) -> [String] {
    let steps = version.steps.count == 1 ? "1 step" : "\(version.steps.count) steps"
    let way = version.direct ? ", direct" : version.refusals.isEmpty ? ", \(steps)" : ""
    var lines = [
      "\(printable(version.from)) → \(printable(version.to))\(way): \(Self.word(version.outcome))"
    ]
    let width = StoreProfile.allCases.map(\.rawValue.count).max() ?? 0
    for found in version.cases {
      let name = found.profile.rawValue + String(repeating: " ", count: width - found.profile.rawValue.count)
      let count = found.records == 1 ? "1 record" : "\(found.records) records"
      let padding = String(repeating: " ", count: max(0, 14 - count.count))
      lines.append("  \(name)  \(padding)\(count)  \(Self.word(found.outcome))")
      let words = Self.words(for: found)
      if !words.isEmpty { lines.append("    \(printable(words))") }
      lines += found.differences.prefix(5).map { "    \($0.description)" }
      for altered in found.alterations {
        lines.append(
          "    \(altered.kind.rawValue) \(printable(altered.entity)).\(printable(altered.property)): \(altered.count)")
      }
    }
    for refusal in version.refusals {
      lines.append("  refused  \(printable(refusal.step)): \(printable(refusal.text))")
    }
    for loss in version.losses {
      lines.append("  lost  \(printable(loss.step)): \(loss.text) (\(loss.count))")
    }
    let unchecked = Set(version.cases.flatMap(\.unchecked)).sorted()
    if !unchecked.isEmpty {
      lines.append("  not compared, made by custom steps: \(unchecked.map { printable($0) }.joined(separator: ", "))")
    }
    return lines
  }

  /// What became of one store, in a sentence; empty where there is nothing to say.
  static func words(for found: VerificationReport.Case) -> String {
    if let detail = found.detail {
      let place = found.step.map { "\($0): " } ?? ""
      let reason = found.condition.map { "fails for stores with \(found.profile.words): \($0)" } ?? detail
      return place + reason
    }
    guard found.differenceCount > 0 else { return "" }
    return "\(found.differenceCount) differences from what the mapping implies"
  }

  private static func word(_ outcome: VerificationReport.Outcome) -> String {
    switch outcome {
    case .fine: "ok"
    case .lossy: "ok, with losses"
    case .conditional: "depends on the records"
    case .failed: "failed"
    }
  }
}
