public import StoreFiles

/// What a backup is called: the time it was taken, in UTC, and a number where several came in one second.
///
/// `2026-11-21-10-11-12`, then `2026-11-21-10-11-12-2`. Later ones are greater.
public struct BackupIdentifier: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The whole second in which it was taken.
  public let date: Timestamp

  /// 1 for the first of its second.
  public let number: Int

  /// The identifier of a moment.
  public init(date: Timestamp, number: Int = 1) {
    self.date = Timestamp(secondsSince1970: date.secondsSince1970)
    self.number = max(1, number)
  }

  /// The identifier that a text is; nil for any other text.
  public init?(_ text: String) {
    let digits = Array(text.utf8)
    guard digits.count >= 19, digits.count <= 29, let date = Timestamp(String(decoding: digits[..<19], as: UTF8.self))
    else { return nil }
    var number = 1
    if digits.count > 19 {
      let rest = digits[20...]
      guard digits[19] == UInt8(ascii: "-"), !rest.isEmpty, rest.allSatisfy({ (48...57).contains($0) }),
        let given = Int(String(decoding: rest, as: UTF8.self)), given > 1
      else { return nil }
      number = given
    }
    self.init(date: date, number: number)
    // Another spelling of the same moment, such as the 31st of a month with 30 days, would be a second name.
    guard description == text else { return nil }
  }

  /// The text of the identifier, as file names begin with it.
  public var description: String { number == 1 ? date.fileName : "\(date.fileName)-\(number)" }

  /// Whether one was taken before another.
  public static func < (left: BackupIdentifier, right: BackupIdentifier) -> Bool {
    (left.date, left.number) < (right.date, right.number)
  }
}

extension BackupIdentifier: Codable {
  /// Reads the text of an identifier.
  public init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let identifier = BackupIdentifier(text) else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "not the identifier of a backup"))
    }
    self = identifier
  }

  /// Writes the text of the identifier.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
