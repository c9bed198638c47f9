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

  private static func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
