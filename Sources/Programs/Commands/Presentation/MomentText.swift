import StoreCoordination

/// A moment that a document has in RFC 3339, as it is shown: `2026-11-21 10:11 UTC`; any other text as it is.
func momentText(_ text: String) -> String {
  guard let parts = Timestamp(text)?.civil else { return printable(text) }
  func padded(_ number: Int, _ width: Int = 2) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
  return "\(padded(parts.year, 4))-\(padded(parts.month))-\(padded(parts.day)) "
    + "\(padded(parts.hour)):\(padded(parts.minute)) UTC"
}
