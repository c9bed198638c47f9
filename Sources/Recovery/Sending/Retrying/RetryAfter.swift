package import StoreFiles
internal import TusProtocol

/// How long a receiver asks to wait: `Retry-After` (RFC 9110, section 10.2.3).
package enum RetryAfter {
  /// The longest wait that is believed: a day.
  package static let limit = Duration.seconds(86400)

  /// What a field says, as a span from now; nil where it says nothing that can be meant.
  package static func parse(_ field: String, now: Timestamp) -> Duration? {
    let words = field.split(separator: " ")
    if words.count == 1, let digits = words.first, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      guard digits.utf8.count <= 9, let seconds = Int64(digits) else { return limit }
      return min(.seconds(seconds), limit)
    }
    guard let date = HTTPDate.parse(field) else { return nil }
    let seconds = date.secondsSince1970 - now.secondsSince1970
    return min(max(.seconds(seconds), .zero), limit)
  }
}
