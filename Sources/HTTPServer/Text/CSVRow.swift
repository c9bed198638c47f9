/// A CSV row (RFC 4180) that spreadsheets do not read as formulas.
package enum CSVRow {
  package static func line(_ fields: some Sequence<String>) -> String {
    fields.map { field($0) }.joined(separator: ",") + "\r\n"
  }

  /// Quotes a field as needed, with an apostrophe before a formula.
  ///
  /// Signed numbers stay numbers.
  static func field(_ value: String) -> String {
    var value = value
    if let first = value.unicodeScalars.first(where: { $0 != " " }), isFormula(first), Double(value) == nil {
      value = "'" + value
    }
    let needsQuotes = value.unicodeScalars.contains { $0 == "," || $0 == "\"" || $0 == "\n" || $0 == "\r" || $0 == ";" }
    guard needsQuotes || value.hasPrefix(" ") || value.hasPrefix("'") else { return value }
    var result = "\""
    for scalar in value.unicodeScalars {
      if scalar == "\"" { result += "\"" }
      result.unicodeScalars.append(scalar)
    }
    return result + "\""
  }

  /// Whether a formula can begin with it, also full-width (OWASP, "CSV Injection").
  private static func isFormula(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "\u{FF1D}", "\u{FF0B}", "\u{FF0D}", "\u{FF20}": true
    default: false
    }
  }
}
