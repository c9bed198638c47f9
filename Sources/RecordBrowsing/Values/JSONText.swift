/// Values as JSON text, written as they come so that nothing is gathered in memory.
package enum JSONText {
  /// A string with everything escaped that JSON, or a page it is put into, could take for something else.
  package static func string(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      default:
        if scalar.value < 0x20 || scalar == "<" || scalar == ">" || scalar == "&" || scalar.value == 0x2028
          || scalar.value == 0x2029
        {
          let digits = String(scalar.value, radix: 16)
          result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        } else {
          result.unicodeScalars.append(scalar)
        }
      }
    }
    return result + "\""
  }

  /// A value: numbers and booleans as such, dates, UUIDs and decimals as text, bytes as an object with their number.
  package static func value(_ value: PresentedValue) -> String {
    switch value.form {
    case .null: return "null"
    case .integer, .reference: return value.text
    case .boolean: return value.text
    case .real:
      guard let number = value.number, number.isFinite else { return string(value.text) }
      return "\(number)"
    case .decimal, .text, .date, .uuid, .uri: return string(value.text)
    case .bytes: return "{\"bytes\":\(value.byteCount ?? 0),\"kind\":\(string(value.text))}"
    case .file: return "{\"file\":\(string(value.text))}"
    case .unexpected: return "{\"unexpected\":\(string(value.text))}"
    }
  }
}
