/// A row of CSV (RFC 4180) that no spreadsheet takes for a formula.
package enum CSVRow {
  /// The row's line, with CR LF at its end.
  package static func line(_ fields: some Sequence<String>) -> String {
    fields.map { field($0) }.joined(separator: ",") + "\r\n"
  }

  /// A field: in quotation marks where it needs them, and with an apostrophe before what begins a formula.
  ///
  /// A number stays a number, with its sign.
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

  /// What spreadsheets begin a formula with, also in its full-width forms (OWASP, "CSV Injection").
  private static func isFormula(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "\u{FF1D}", "\u{FF0B}", "\u{FF0D}", "\u{FF20}": true
    default: false
    }
  }
}
