/// The header fields of tus 1.0 (<https://tus.io/protocols/resumable-upload>), and our additions.
package enum TusField {
  package static let resumable = "Tus-Resumable"

  package static let version = "Tus-Version"

  package static let `extension` = "Tus-Extension"

  package static let maxSize = "Tus-Max-Size"

  package static let checksumAlgorithm = "Tus-Checksum-Algorithm"

  package static let offset = "Upload-Offset"

  package static let length = "Upload-Length"

  /// Facts about a new upload; see ``UploadMetadata``.
  package static let metadata = "Upload-Metadata"

  /// The checksum of a part; see ``UploadChecksum``.
  package static let checksum = "Upload-Checksum"

  /// The expiry of an unfinished upload (RFC 9110, section 5.6.7).
  package static let expires = "Upload-Expires"

  package static let partType = "application/offset+octet-stream"
}

package enum TusVersion { package static let current = "1.0.0" }

/// The `Upload-Metadata` of an upload.
///
/// Comma-separated pairs of key, space and optional base64 value (tus 1.0, "Creation").
package struct UploadMetadata: Sendable, Hashable {
  package static let fileName = "filename"

  package static let fileType = "filetype"

  package static let sha256 = "sha256"

  package static let lengthLimit = 8 << 10

  package private(set) var values: [String: [UInt8]] = [:]

  package init() {}

  /// Returns nil for a malformed, overlong or repetitive field.
  package init?(_ field: String) {
    guard field.utf8.count <= Self.lengthLimit else { return nil }
    let trimmed = field.drop { $0 == " " }
    if trimmed.isEmpty { return }
    for pair in trimmed.split(separator: ",", omittingEmptySubsequences: false) {
      let parts = pair.split(separator: " ")
      guard (1...2).contains(parts.count), let key = parts.first.map(String.init), Self.isKey(key) else { return nil }
      guard let value = parts.count == 2 ? Base64.decode(parts[1]) : [] else { return nil }
      guard values.updateValue(value, forKey: key) == nil else { return nil }
    }
  }

  package subscript(_ key: String) -> String? {
    get { values[key].flatMap { String(utf8: $0) } }
    set { values[key] = newValue.map { Array($0.utf8) } }
  }

  package var field: String {
    values.sorted { $0.key < $1.key }
      .map { $0.value.isEmpty ? $0.key : "\($0.key) \(Base64.encode($0.value))" }
      .joined(separator: ",")
  }

  private static func isKey(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ",") }
  }
}

/// The checksum of a part in `Upload-Checksum`: algorithm, space, base64 (tus 1.0, "Checksum").
package struct UploadChecksum: Sendable, Hashable {
  /// The algorithm, in lower case, such as `sha256`.
  package var algorithm: String

  package var sum: [UInt8]

  package init(algorithm: String, sum: [UInt8]) {
    self.algorithm = algorithm
    self.sum = sum
  }

  package init?(_ field: String) {
    let parts = field.split(separator: " ")
    guard field.utf8.count <= 256, parts.count == 2, let sum = Base64.decode(parts[1]), !sum.isEmpty else { return nil }
    self.init(algorithm: parts[0].lowercased(), sum: sum)
  }

  package var field: String { "\(algorithm) \(Base64.encode(sum))" }
}

/// HTTP dates (RFC 9110, section 5.6.7).
package enum HTTPDate {
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
  private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]

  /// Accepts all three forms.
  package static func parse(_ field: String) -> Timestamp? {
    guard field.utf8.count <= 64 else { return nil }
    let words = field.split { $0 == " " || $0 == "," || $0 == "-" }.map(String.init)
    // Sun, 06 Nov 1994 08:49:37 GMT · Sunday, 06-Nov-94 08:49:37 GMT · Sun Nov  6 08:49:37 1994
    let order: (day: Int, month: Int, year: Int, time: Int)
    switch words.count {
    case 6 where words[5] == "GMT" || words[5] == "UTC": order = (1, 2, 3, 4)
    case 5: order = (2, 1, 4, 3)
    default: return nil
    }
    let time = words[order.time].split(separator: ":", omittingEmptySubsequences: false).map { number($0) }
    guard let month = months.firstIndex(of: words[order.month]), let day = number(words[order.day]),
      var year = number(words[order.year]), time.count == 3, let hour = time[0], let minute = time[1],
      let second = time[2], (1...31).contains(day), hour < 24, minute < 60, second < 61
    else { return nil }
    if words[order.year].utf8.count == 2 { year += year < 70 ? 2000 : 1900 }
    guard (1970...9999).contains(year) else { return nil }
    let date = Timestamp.daysSince1970(year: year, month: month + 1, day: day)
    return Timestamp(secondsSince1970: Int64(date * 86400 + hour * 3600 + minute * 60 + second))
  }

  package static func text(_ moment: Timestamp) -> String {
    let parts = moment.civil
    let day = Timestamp.daysSince1970(year: parts.year, month: parts.month, day: parts.day)
    let name = days[((day % 7) + 7) % 7]
    let time = [parts.hour, parts.minute, parts.second].map(padded).joined(separator: ":")
    return "\(name), \(padded(parts.day)) \(months[parts.month - 1]) \(parts.year) \(time) GMT"
  }

  private static func number(_ text: some StringProtocol) -> Int? {
    guard (1...4).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text)
  }

  private static func padded(_ number: Int) -> String { zeroPadded(String(number), to: 2) }
}
