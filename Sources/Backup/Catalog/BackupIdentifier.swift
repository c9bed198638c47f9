package import Platform

/// The name of a backup: `b-`, its UTC time, and a number if several share a second.
///
/// `b-2026-11-21-10-11-12`, then `b-2026-11-21-10-11-12-2`. The mark `b-` distinguishes backups from quarantined
/// stores; earlier versions wrote none.
package struct BackupIdentifier: Sendable, Hashable, Comparable, CustomStringConvertible {
  package let date: Timestamp

  /// 1 for the first of its second.
  let number: Int

  /// Whether it has the mark `b-`.
  package let isMarked: Bool

  package init(date: Timestamp, number: Int = 1) {
    self.init(date: date, number: number, isMarked: true)
  }

  private init(date: Timestamp, number: Int, isMarked: Bool) {
    self.date = Timestamp(secondsSince1970: date.secondsSince1970)
    self.number = max(1, number)
    self.isMarked = isMarked
  }

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
    // Impossible dates, such as 31 April, would be second names.
    guard description == text else { return nil }
  }

  package var description: String {
    let name = isMarked ? date.backupName : date.fileName
    return number == 1 ? name : "\(name)-\(number)"
  }

  /// Within a second, unmarked identifiers come first.
  package static func < (left: BackupIdentifier, right: BackupIdentifier) -> Bool {
    (left.date, left.isMarked ? 1 : 0, left.number) < (right.date, right.isMarked ? 1 : 0, right.number)
  }
}

extension BackupIdentifier: Codable {
  package init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let identifier = BackupIdentifier(text) else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "not the identifier of a backup"))
    }
    self = identifier
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
