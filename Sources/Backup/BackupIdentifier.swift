package import Platform

/// What a backup is called: `b-`, the time it was taken, in UTC, and a number where several came in one second.
///
/// `b-2026-11-21-10-11-12`, then `b-2026-11-21-10-11-12-2`. Later ones are greater. The mark tells a backup from a quarantined
/// store of the same second. Earlier versions wrote none; a backup of theirs keeps the name that it has.
package struct BackupIdentifier: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The whole second in which it was taken.
  package let date: Timestamp

  /// 1 for the first of its second.
  package let number: Int

  /// Whether it begins with the mark of backups; those that earlier versions gave do not.
  package let isMarked: Bool

  /// The identifier of a moment.
  package init(date: Timestamp, number: Int = 1) {
    self.init(date: date, number: number, isMarked: true)
  }

  private init(date: Timestamp, number: Int, isMarked: Bool) {
    self.date = Timestamp(secondsSince1970: date.secondsSince1970)
    self.number = max(1, number)
    self.isMarked = isMarked
  }

  /// The identifier that a text is; nil for any other text.
  package init?(_ text: String) {
    let isMarked = text.hasPrefix(Timestamp.backupMark)
    let digits = Array(text.utf8.dropFirst(isMarked ? Timestamp.backupMark.utf8.count : 0))
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
    self.init(date: date, number: number, isMarked: isMarked)
    // Another spelling of the same moment, such as the 31st of a month with 30 days, would be a second name.
    guard description == text else { return nil }
  }

  /// The text of the identifier, as file names begin with it.
  package var description: String {
    let name = isMarked ? date.backupName : date.fileName
    return number == 1 ? name : "\(name)-\(number)"
  }

  /// Whether one was taken before another; of one second those of earlier versions come first.
  package static func < (left: BackupIdentifier, right: BackupIdentifier) -> Bool {
    (left.date, left.isMarked ? 1 : 0, left.number) < (right.date, right.isMarked ? 1 : 0, right.number)
  }
}

extension BackupIdentifier: Codable {
  /// Reads the text of an identifier.
  package init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let identifier = BackupIdentifier(text) else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "not the identifier of a backup"))
    }
    self = identifier
  }

  /// Writes the text of the identifier.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
