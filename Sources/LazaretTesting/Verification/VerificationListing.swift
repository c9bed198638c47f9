internal import Platform

/// A report as text for a terminal.
public struct VerificationListing: Sendable {
  private let report: VerificationReport

  /// Prepares the text.
  public init(_ report: VerificationReport) { self.report = report }

  /// The text, with a final newline.
  public var text: String {
    var lines = ["\(printable(report.model)) to \(printable(report.to)), seed \(report.seed)"]
    if report.versions.isEmpty { lines += ["", "There is no earlier version that differs from it."] }
    for step in report.steps { lines += [""] + self.lines(for: step) }
    for version in report.versions where version.wholeWay { lines += [""] + self.lines(for: version) }
    let unchecked = uncheckedLines
    if !unchecked.isEmpty { lines += [""] + unchecked }
    lines += ["", summary]
    return lines.joined(separator: "\n") + "\n"
  }

  private var summary: String {
    let isWhole = report.unreadableVersions.isEmpty && report.uncheckedVersions.isEmpty
    let every = isWhole ? "Every version" : "Every version that was checked"
    return switch report.outcome {
    case .fine: "\(every) migrates, and nothing is lost."
    case .lossy: "\(every) migrates; something is lost."
    case .conditional: "Stores with certain records do not migrate."
    case .failed: "Something does not migrate as it should."
    }
  }

  private var uncheckedLines: [String] {
    var lines = report.unreadableVersions.map {
      "\(printable($0.name)) cannot be read and was not checked [\($0.code)]"
    }
    for (reason, words) in [
      (VerificationReport.UncheckedVersion.Reason.newer, "newer than \(printable(report.to))"),
      (.leftOut, "left out of the order that was given"),
    ] {
      let names = report.uncheckedVersions.filter { $0.reason == reason }.map { printable($0.name) }
      if !names.isEmpty { lines.append("Not checked, since \(words): \(names.joined(separator: ", "))") }
    }
    return lines
  }

  private func lines(for step: VerificationReport.Step) -> [String] {
    let way = step.direct ? ", direct" : ""
    var lines = ["\(printable(step.step))\(way): \(Self.word(step.outcome))"] + Self.lines(for: step.cases)
    for refusal in step.refusals { lines.append("  refused  \(printable(refusal.text))") }
    for loss in step.losses { lines.append("  lost  \(loss.text) (\(loss.count))") }
    return lines + Self.unchecked(step.cases)
  }

  /// The results of stores over dependent steps.
  private func lines(for version: VerificationReport.Version) -> [String] {
    var lines = [
      """
      \(printable(version.from)) → \(printable(version.to)), all \(version.steps.count) steps: \
      \(Self.word(version.outcome))
      """
    ]
    lines += Self.lines(for: version.cases)
    for loss in version.losses { lines.append("  lost  \(printable(loss.step)): \(loss.text) (\(loss.count))") }
    return lines + Self.unchecked(version.cases)
  }

  /// A line for each notable store, and one for the others.
  private static func lines(for cases: [VerificationReport.Case]) -> [String] {
    var lines: [String] = []
    let quiet = cases.filter { $0.outcome == .fine && $0.alterations.isEmpty && words(for: $0).isEmpty }
    if !quiet.isEmpty {
      let count = counted(quiet.reduce(0) { $0 + $1.records }, "record")
      lines.append("  \(quiet.map(\.profile.rawValue).joined(separator: ", ")): ok, \(count)")
    }
    for found in cases where !quiet.contains(found) {
      lines.append("  \(found.profile.rawValue): \(word(found.outcome)), \(counted(found.records, "record"))")
      let words = words(for: found)
      if !words.isEmpty { lines.append("    \(printable(words))") }
      lines += found.differences.prefix(5).map { "    \($0.description)" }
      for altered in found.alterations {
        lines.append(
          "    \(altered.kind.rawValue) \(printable(altered.entity)).\(printable(altered.property)): \(altered.count)")
      }
    }
    return lines
  }

  private static func unchecked(_ cases: [VerificationReport.Case]) -> [String] {
    let names = Set(cases.flatMap(\.unchecked)).sorted().map { printable($0) }
    return names.isEmpty ? [] : ["  not compared, made by custom steps: \(names.joined(separator: ", "))"]
  }

  /// The result of one store in a sentence; empty if unremarkable.
  static func words(for found: VerificationReport.Case) -> String {
    if let detail = found.detail {
      let place = found.step.map { "\($0): " } ?? ""
      let reason = found.condition.map { "fails for stores with \(found.profile.words): \($0)" } ?? detail
      return place + reason
    }
    guard found.differenceCount > 0 else { return "" }
    return "\(counted(found.differenceCount, "difference")) from what the mapping implies"
  }

  /// Returns the result of one store, with its profile.
  public static func sentence(for found: VerificationReport.Case) -> String {
    "\(found.profile.rawValue): \(words(for: found))"
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
