internal import StoreFiles

/// A moment as header fields have it: `Sat, 21 Nov 2026 10:11:12 GMT` (RFC 9110, section 5.6.7).
enum HTTPDate {
  /// The text of a moment.
  static func text(_ time: Timestamp) -> String {
    let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let parts = time.civil
    // 1 January 1970 was a Thursday.
    let number = Timestamp.daysSince1970(year: parts.year, month: parts.month, day: parts.day)
    let day = days[((number % 7) + 7) % 7]
    let month = months.indices.contains(parts.month - 1) ? months[parts.month - 1] : "Jan"
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }
    let year = String(repeating: "0", count: max(0, 4 - String(parts.year).count)) + String(parts.year)
    return "\(day), \(two(parts.day)) \(month) \(year) \(two(parts.hour)):\(two(parts.minute)):\(two(parts.second)) GMT"
  }
}
