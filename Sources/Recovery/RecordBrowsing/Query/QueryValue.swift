internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import StoreFiles

/// A value that a user typed, as a store would hold it.
enum QueryValue {
  /// The value; of one that stands for a span, such as a day, where it begins and where the next one does.
  struct Bounds {
    var first: any DatabaseValueConvertible
    var end: (any DatabaseValueConvertible)?
  }

  /// Reads a value for a column.
  ///
  /// - Throws: `bad-query` where it is no value of the column's type.
  static func bounds(_ text: String, of column: RecordColumn) throws(RecordBrowsingError) -> Bounds {
    let word = text.trimmingCharacters(in: .whitespaces)
    switch column.kind {
    case .key, .entity, .toOne: return Bounds(first: try integer(word, column))
    case .stored: return Bounds(first: text)
    case .attribute(let type, _):
      switch type {
      case .integer16, .integer32, .integer64: return Bounds(first: try integer(word, column))
      case .boolean:
        switch word.lowercased() {
        case "1", "true", "yes": return Bounds(first: 1)
        case "0", "false", "no": return Bounds(first: 0)
        default: throw wrong(column, "true or false")
        }
      case .double, .float:
        guard let number = Double(word), number.isFinite else { throw wrong(column, "a number such as 1.5") }
        return Bounds(first: number)
      case .decimal:
        guard Double(word) != nil else { throw wrong(column, "a number such as 1.50") }
        return Bounds(first: word)
      case .date: return try date(word, column)
      case .uuid:
        let digits = Array(word.utf8.filter { $0 != UInt8(ascii: "-") })
        guard digits.count == 32, let bytes = [UInt8](hexadecimal: digits) else {
          throw wrong(column, "a UUID such as 6BA7B810-9DAD-11D1-80B4-00C04FD430C8")
        }
        return Bounds(first: Data(bytes))
      case .string, .uri, .undefined, .objectID, .composite: return Bounds(first: text)
      case .binary, .transformable: throw wrong(column, "nothing: bytes can only be tested for null")
      }
    }
  }

  private static func integer(_ word: String, _ column: RecordColumn) throws(RecordBrowsingError) -> Int64 {
    guard let number = Int64(word) else { throw wrong(column, "a whole number") }
    return number
  }

  /// A moment, or a day, month or year with its end; in seconds since 2001-01-01T00:00:00Z, as stores hold dates.
  private static func date(_ word: String, _ column: RecordColumn) throws(RecordBrowsingError) -> Bounds {
    let hint = "a date such as 2026-11-21 or 2026-11-21T10:11:12Z"
    if let moment = Timestamp(word.replacingOccurrences(of: " ", with: "T")), word.count == 20 {
      return Bounds(first: moment.secondsSinceReferenceDate, end: moment.secondsSinceReferenceDate + 1)
    }
    let parts = word.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
    guard (1...3).contains(parts.count), word.count >= 4, !parts.contains(nil), let year = parts[0],
      (1...9999).contains(year)
    else { throw wrong(column, hint) }
    let month = parts.count > 1 ? parts[1] ?? 0 : 1
    let day = parts.count > 2 ? parts[2] ?? 0 : 1
    guard (1...12).contains(month), (1...31).contains(day) else { throw wrong(column, hint) }
    func begin(_ year: Int, _ month: Int, _ day: Int) -> Double? {
      let digits = [(year, 4), (month, 2), (day, 2)].map { number, width in
        String(repeating: "0", count: max(0, width - String(number).count)) + String(number)
      }
      return Timestamp("\(digits.joined(separator: "-"))T00:00:00Z")?.secondsSinceReferenceDate
    }
    let next =
      switch parts.count {
      case 1: begin(year + 1, 1, 1)
      case 2: month == 12 ? begin(year + 1, 1, 1) : begin(year, month + 1, 1)
      default: begin(year, month, day).map { $0 + 86400 }
      }
    guard let first = begin(year, month, day), let next else { throw wrong(column, hint) }
    return Bounds(first: first, end: next)
  }

  private static func wrong(_ column: RecordColumn, _ expected: String) -> RecordBrowsingError {
    .badQuery(
      "the value for \"\(printable(column.name))\" cannot be understood", hint: "It takes \(expected).")
  }
}
