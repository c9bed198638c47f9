/// A report as JUnit's XML, for build servers: a suite for each version, a case for each kind of store.
public struct JUnitReport: Sendable {
  private let report: VerificationReport
  private let allowed: Set<VerificationReport.Outcome>

  /// Prepares the XML of a report.
  ///
  /// - Parameters:
  ///   - report: what was found.
  ///   - allowed: outcomes that are no failures: losses, for instance, that are known and meant.
  public init(_ report: VerificationReport, allowing allowed: Set<VerificationReport.Outcome> = []) {
    self.report = report
    self.allowed = allowed
  }

  private struct Case {
    var name: String
    var seconds: Double
    var failure: (type: String, message: String, text: String)?
    var output: String
  }

  /// The document.
  public var xml: String {
    let suites = report.versions.map { ($0, cases(of: $0)) }
    let all = suites.flatMap(\.1)
    var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    text += "<testsuites name=\"\(escaped("\(report.model) to \(report.to)"))\"\(numbers(of: all))>\n"
    for (version, cases) in suites {
      let name = "\(version.from) → \(version.to)\(version.direct ? " (direct)" : "")"
      text += "  <testsuite name=\"\(escaped(name))\"\(numbers(of: cases))>\n    <properties>\n"
      for (key, value) in [
        ("model", report.model), ("seed", String(report.seed)), ("rows", String(report.rows)),
        ("steps", version.steps.joined(separator: ", ")),
      ] {
        text += "      <property name=\"\(key)\" value=\"\(escaped(value))\"/>\n"
      }
      text += "    </properties>\n"
      for found in cases { text += element(found, in: "\(report.model).\(name)") }
      text += "  </testsuite>\n"
    }
    for version in report.unreadableVersions {
      text += "  <testsuite name=\"\(escaped(version.name))\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"1\" "
      text +=
        "time=\"0.000\">\n    <testcase name=\"mapping\" classname=\"\(escaped("\(report.model).\(version.name)"))\" "
      text +=
        "time=\"0.000\">\n      <skipped message=\"\(escaped(version.detail))\"/>\n    </testcase>\n  </testsuite>\n"
    }
    return text + "</testsuites>\n"
  }

  private func numbers(of cases: [Case]) -> String {
    let seconds = cases.reduce(0) { $0 + $1.seconds }
    return " tests=\"\(cases.count)\" failures=\"\(cases.filter { $0.failure != nil }.count)\" errors=\"0\" "
      + "time=\"\(Self.time(seconds))\""
  }

  private func element(_ found: Case, in className: String) -> String {
    var text =
      "    <testcase name=\"\(escaped(found.name))\" classname=\"\(escaped(className))\" "
      + "time=\"\(Self.time(found.seconds))\""
    guard found.failure != nil || !found.output.isEmpty else { return text + "/>\n" }
    text += ">\n"
    if let failure = found.failure {
      text +=
        "      <failure type=\"\(escaped(failure.type))\" message=\"\(escaped(failure.message))\">"
        + "\(escaped(failure.text))</failure>\n"
    }
    if !found.output.isEmpty { text += "      <system-out>\(escaped(found.output))</system-out>\n" }
    return text + "    </testcase>\n"
  }

  private func cases(of version: VerificationReport.Version) -> [Case] {
    var result: [Case] = []
    if !version.refusals.isEmpty {
      let lines = version.refusals.map { "\($0.step): \($0.text). \($0.wayRound)" }
      result.append(
        Case(
          name: "mapping", seconds: 0,
          failure: ("refused", version.refusals.first?.text ?? "", lines.joined(separator: "\n")), output: ""))
      return result
    }
    let lost = version.losses.map { "\($0.step): \($0.text) (\($0.count) in the generated stores)" }
    let isLossy = !lost.isEmpty && !allowed.contains(.lossy)
    result.append(
      Case(
        name: "losses", seconds: 0,
        failure: isLossy
          ? ("loss", version.losses.first.map { $0.text } ?? "", lost.joined(separator: "\n")) : nil,
        output: isLossy ? "" : lost.joined(separator: "\n")))
    for found in version.cases {
      var lines = found.alterations.map { "\($0.kind.rawValue) \($0.entity).\($0.property): \($0.count)" }
      lines += found.unchecked.map { "unchecked \($0)" }
      let words = VerificationListing.words(for: found)
      let isFailure = found.outcome > .lossy && !allowed.contains(found.outcome)
      let details = found.differences.map(\.description)
      result.append(
        Case(
          name: found.profile.rawValue, seconds: found.seconds,
          failure: isFailure
            ? (found.code ?? "difference", words, ([words] + details).joined(separator: "\n")) : nil,
          output: ((isFailure || words.isEmpty ? [] : [words]) + lines).joined(separator: "\n")))
    }
    return result
  }

  /// Seconds with three decimals.
  private static func time(_ seconds: Double) -> String {
    let thousandths = Int((max(0, min(seconds, 1e9)) * 1000).rounded())
    let rest = String(thousandths % 1000)
    return "\(thousandths / 1000).\(String(repeating: "0", count: 3 - rest.count))\(rest)"
  }

  /// The text with everything escaped that means something in XML, and with what no XML may hold replaced.
  private func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "\n": result += "&#10;"
      case "\t": result += "&#9;"
      case "\r": result += "&#13;"
      default:
        let isAllowed = scalar.value >= 0x20 && scalar.value != 0xFFFE && scalar.value != 0xFFFF
        result.unicodeScalars.append(isAllowed ? scalar : "\u{FFFD}")
      }
    }
    return result
  }
}
