/// How many backups of one kind are kept.
///
/// In JSON a number, or the text `unlimited`.
package enum RetentionCount: Sendable, Hashable, Codable, CustomStringConvertible {
  /// So many; 0 for none on this account.
  case number(Int)

  case unlimited

  /// The count that a person wrote: a number, `unlimited` or `-1`; nil for anything else.
  package init?(_ text: String) {
    if text == "unlimited" || text == "-1" {
      self = .unlimited
    } else if let number = Int(text), (0...Self.largest).contains(number) {
      self = .number(number)
    } else {
      return nil
    }
  }

  /// More backups than any place holds.
  static let largest = 1_000_000

  /// Whether nothing is kept on this account.
  var isNone: Bool { self == .number(0) }

  /// The count as it is written on the command line.
  package var description: String {
    switch self {
    case .number(let number): "\(number)"
    case .unlimited: "unlimited"
    }
  }

  /// Reads a number or the text `unlimited`.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text: String
    do {
      text = String(try container.decode(Int.self))
    } catch {
      // Not a number; whatever is wrong with a text is told below.
      text = try container.decode(String.self)
    }
    guard let count = RetentionCount(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "it is neither a number from 0 on nor the text \"unlimited\"")
    }
    self = count
  }

  /// Writes a number or the text `unlimited`.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .number(let number): try container.encode(number)
    case .unlimited: try container.encode("unlimited")
    }
  }
}
