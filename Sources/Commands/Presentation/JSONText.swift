import Foundation

/// JSON as the verbs print it: keys sorted, slashes plain.
enum JSONText {
  /// Several lines, for standard output.
  static func pretty(_ value: some Encodable) -> String { text(value, [.prettyPrinted]) }

  /// One line, for errors.
  static func line(_ value: some Encodable) -> String { text(value, []) }

  private static func text(_ value: some Encodable, _ formatting: JSONEncoder.OutputFormatting) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = formatting.union([.sortedKeys, .withoutEscapingSlashes])
    do {
      return String(decoding: try encoder.encode(value), as: UTF8.self) + "\n"
    } catch {
      // Only a number that JSON has no word for could get here, and none is ever printed.
      return "{}\n"
    }
  }
}
