import Foundation

/// JSON as the verbs print it: keys sorted, slashes plain, nothing in it that a terminal would obey.
enum JSONText {
  /// Several lines, for standard output.
  static func pretty(_ value: some Encodable) -> String { text(value, [.prettyPrinted]) }

  /// One line, for errors.
  static func line(_ value: some Encodable) -> String { text(value, []) }

  private static func text(_ value: some Encodable, _ formatting: JSONEncoder.OutputFormatting) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = formatting.union([.sortedKeys, .withoutEscapingSlashes])
    do {
      return escaped(String(decoding: try encoder.encode(value), as: UTF8.self)) + "\n"
    } catch {
      // Only a number that JSON has no word for could get here, and none is ever printed.
      return "{}\n"
    }
  }

  /// The same JSON with everything escaped that could steer a terminal; the encoder leaves some of it as it is.
  private static func escaped(_ json: String) -> String {
    guard json.unicodeScalars.contains(where: isSteering) else { return json }
    var result = ""
    for scalar in json.unicodeScalars {
      guard isSteering(scalar) else {
        result.unicodeScalars.append(scalar)
        continue
      }
      // Outside its strings JSON has no such characters but line ends, so an escape is always in its place.
      for unit in String(scalar).utf16 {
        let digits = String(unit, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }
    }
    return result
  }

  private static func isSteering(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.value == 0x7F || (scalar.value < 0x20 && scalar != "\n") }
    return switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
