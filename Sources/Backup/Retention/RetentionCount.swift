/// The number of backups to keep by a rule.
///
/// In JSON a number, or the text `unlimited`.
package enum RetentionCount: Sendable, Hashable, Codable, CustomStringConvertible {
  /// A number; 0 disables the rule.
  case number(Int)

  case unlimited

  /// Parses a number, `unlimited` or `-1`.
  package init?(_ text: String) {
    if text == "unlimited" || text == "-1" {
      self = .unlimited
    } else if let number = Int(text), (0...Self.largest).contains(number) {
      self = .number(number)
    } else {
      return nil
    }
  }

  /// A number beyond any place's backups.
  static let largest = 1_000_000

  var isNone: Bool { self == .number(0) }

  package var description: String {
    switch self {
    case .number(let number): "\(number)"
    case .unlimited: "unlimited"
    }
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text: String
    do {
      text = String(try container.decode(Int.self))
    } catch {
      // Not a number; errors of a text are thrown below.
      text = try container.decode(String.self)
    }
    guard let count = RetentionCount(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "it is neither a number from 0 on nor the text \"unlimited\"")
    }
    self = count
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .number(let number): try container.encode(number)
    case .unlimited: try container.encode("unlimited")
    }
  }
}
