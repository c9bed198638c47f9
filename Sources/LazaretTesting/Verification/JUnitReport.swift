/// A report in JUnit's XML, with a case for each step, and for each version with dependent steps.
public struct JUnitReport: Sendable {
  private let report: VerificationReport
  private let allowed: Set<VerificationReport.Outcome>

  /// Prepares the XML.
  ///
  /// - Parameters:
  ///   - report: the report.
  ///   - allowed: outcomes that do not fail, such as known losses.
  public init(_ report: VerificationReport, allowing allowed: Set<VerificationReport.Outcome> = []) {
    self.report = report
    self.allowed = allowed
  }

  private struct Case {
    var name: String
    var seconds = 0.0
    var failure: (type: String, message: String, text: String)?
    var skipped: String?
    var output = ""
  }

  /// The document.
  public var xml: String {
    var suites = [("steps", report.steps.map(self.case))]
    let ways = report.versions.filter(\.wholeWay)
    if !ways.isEmpty { suites.append(("ways", ways.map(wholeWay))) }
    let unchecked = self.unchecked
    if !unchecked.isEmpty { suites.append(("not checked", unchecked)) }
    var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    text += "<testsuites name=\"\(escaped("\(report.model) to \(report.to)"))\"\(numbers(of: suites.flatMap(\.1)))>\n"
    for (name, cases) in suites {
      text += "  <testsuite name=\"\(escaped(name))\"\(numbers(of: cases))>\n    <properties>\n"
      for (key, value) in [("model", report.model), ("seed", String(report.seed)), ("rows", String(report.rows))] {
        text += "      <property name=\"\(key)\" value=\"\(escaped(value))\"/>\n"
      }
      text += "    </properties>\n"
      for found in cases { text += element(found, in: "\(report.model).\(name)") }
      text += "  </testsuite>\n"
    }
    return text + "</testsuites>\n"
  }

  private func numbers(of cases: [Case]) -> String {
    let seconds = cases.reduce(0) { $0 + $1.seconds }
    return " tests=\"\(cases.count)\" failures=\"\(cases.count { $0.failure != nil })\" errors=\"0\" "
      + "skipped=\"\(cases.count { $0.skipped != nil })\" time=\"\(inThousandths(seconds))\""
  }

  private func element(_ found: Case, in className: String) -> String {
    var text =
      "    <testcase name=\"\(escaped(found.name))\" classname=\"\(escaped(className))\" "
      + "time=\"\(inThousandths(found.seconds))\""
    guard found.failure != nil || found.skipped != nil || !found.output.isEmpty else { return text + "/>\n" }
    text += ">\n"
    if let reason = found.skipped { text += "      <skipped message=\"\(escaped(reason))\"/>\n" }
    if let failure = found.failure {
      text +=
        "      <failure type=\"\(escaped(failure.type))\" message=\"\(escaped(failure.message))\">"
        + "\(escaped(failure.text))</failure>\n"
    }
    if !found.output.isEmpty { text += "      <system-out>\(escaped(found.output))</system-out>\n" }
    return text + "    </testcase>\n"
  }

  // MARK: Cases

  private var unchecked: [Case] {
    report.unreadableVersions.map { Case(name: $0.name, skipped: $0.detail) }
      + report.uncheckedVersions.map { version in
        Case(
          name: version.name,
          skipped: version.reason == .newer
            ? "it is newer than the current version" : "the order that was given leaves it out")
      }
  }

  private func `case`(_ step: VerificationReport.Step) -> Case {
    var refusals = Lines()
    for refusal in step.refusals { refusals.add("refused", refusal.text, "\(refusal.text). \(refusal.wayRound)") }
    return made("\(step.step)\(step.direct ? " (direct)" : "")", refusals, step.losses, step.cases)
  }

  private func wholeWay(_ version: VerificationReport.Version) -> Case {
    made("\(version.from) → \(version.to) (\(version.steps.count) steps)", Lines(), version.losses, version.cases)
  }

  private func made(
    _ name: String, _ refusals: Lines, _ losses: [VerificationReport.Loss], _ stores: [VerificationReport.Case]
  ) -> Case {
    var failures = refusals
    var others = Lines()
    for store in stores {
      let words = VerificationListing.sentence(for: store)
      if store.outcome > .lossy, !allowed.contains(store.outcome) {
        let details = store.differences.map { "\n  \($0.description)" }.joined()
        failures.add(store.code ?? "difference", words, words + details)
      } else if store.outcome > .lossy {
        others.add("", words, words)
      }
      for altered in store.alterations {
        let line =
          "\(store.profile.rawValue): \(altered.kind.rawValue) \(altered.entity).\(altered.property): \(altered.count)"
        others.add("", line, line)
      }
    }
    for loss in losses {
      let line = "\(loss.step): \(loss.text) (\(loss.count) in the generated stores)"
      if allowed.contains(.lossy) { others.add("", line, line) } else { failures.add("loss", loss.text, line) }
    }
    for name in Set(stores.flatMap(\.unchecked)).sorted() { others.add("", name, "unchecked \(name)") }
    return Case(
      name: name, seconds: stores.reduce(0) { $0 + $1.seconds },
      failure: failures.first.map { ($0.type, $0.message, failures.text) }, output: others.text)
  }

  /// The lines about one item; the first gives the kind.
  private struct Lines {
    private(set) var first: (type: String, message: String)?
    private var lines: [String] = []

    mutating func add(_ type: String, _ message: String, _ line: String) {
      first = first ?? (type, message)
      lines.append(line)
    }

    var text: String { lines.joined(separator: "\n") }
  }

  /// Escapes text for XML and replaces forbidden characters.
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
