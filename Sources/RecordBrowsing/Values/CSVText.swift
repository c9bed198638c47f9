/// Text as a field of comma-separated values (RFC 4180) that no spreadsheet takes for a formula.
enum CSVText {
  /// The field; text that begins like a formula gets an apostrophe, numbers do not.
  static func field(_ value: PresentedValue) -> String {
    switch value.form {
    case .null: return ""
    case .integer, .real, .boolean, .date, .uuid, .reference: return quoted(value.text)
    case .decimal: return quoted(Double(value.text) == nil ? guarded(value.text) : value.text)
    case .text, .uri, .bytes, .file, .unexpected: return quoted(guarded(value.text))
    }
  }

  /// A name at the top of a column.
  static func header(_ name: String) -> String { quoted(guarded(name)) }

  /// Text that a spreadsheet would compute gets an apostrophe in front.
  private static func guarded(_ text: String) -> String {
    let dangerous: Set<Unicode.Scalar> = ["=", "+", "-", "@", "\t", "\r", "\n", "|", "%"]
    guard let first = text.unicodeScalars.first, dangerous.contains(first) else { return text }
    return "'" + text
  }

  private static func quoted(_ text: String) -> String {
    let special: Set<Unicode.Scalar> = ["\"", ",", "\n", "\r", ";", "\t"]
    guard text.unicodeScalars.contains(where: { special.contains($0) }) else { return text }
    var result = "\""
    for scalar in text.unicodeScalars {
      if scalar == "\"" { result += "\"" }
      result.unicodeScalars.append(scalar)
    }
    return result + "\""
  }
}
